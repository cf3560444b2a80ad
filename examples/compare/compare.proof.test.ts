// The versions in Mastra, whose packages are installed in the folder mastra, and the table of all versions.

import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { beforeAll, expect } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import { countAll, excessesOf, PROGRAMS, tableOf, VERSIONS } from './count.mjs';
import { RESULTS, runProgram } from './run.mjs';

const INSTALL_TIMEOUT_MS = 600_000;
const run = promisify(execFile);
const folder = fileURLToPath(new URL('mastra', import.meta.url));
const jsonOf = (name: string) => JSON.parse(readFileSync(`${folder}/${name}`, 'utf8'));

/** True if the packages have the versions that the manifest names. */
function isInstalled(): boolean {
  return Object.entries(jsonOf('package.json').dependencies).every(([name, version]) => {
    const manifest = `node_modules/${name}/package.json`;
    return existsSync(`${folder}/${manifest}`) && jsonOf(manifest).version === version;
  });
}

beforeAll(async () => {
  if (!isInstalled()) await run('npm', ['ci', '--no-audit', '--loglevel=error'], { cwd: folder });
}, INSTALL_TIMEOUT_MS);

for (const program of PROGRAMS) {
  verifies('compare.runs', `${program}: the version for mastra prints the result`, async () => {
    const output = await runProgram(program, 'mastra');
    expect(output.trim().split('\n').at(-1)).toBe(RESULTS[program]);
  });
}

verifies('compare.runs', 'the versions for mastra have no type errors', async () => {
  const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc');
  const errors = run(process.execPath, [tsc, '-p', folder]).then(
    () => '',
    ({ stdout }) => stdout,
  );
  expect(await errors).toBe('');
});

verifies('compare.counts', 'Rondo needs no more lines and no more concepts than a version that does the same', () => {
  const counts = countAll(VERSIONS);
  expect(counts).toHaveLength(PROGRAMS.length * VERSIONS.length);
  expect(excessesOf(counts)).toEqual([]);
  const readme = readFileSync(new URL('README.md', import.meta.url), 'utf8');
  expect(readme, 'the table is not what `node examples/compare/count.mjs` prints').toContain(tableOf(counts));
});
