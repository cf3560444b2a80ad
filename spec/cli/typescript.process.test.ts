// Definitions in TypeScript, and scripts beside them, in projects with and without a loader. A loader changes its process, and a
// script writes to the directory of its process, so each verb has one.

import { existsSync, mkdirSync, symlinkSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { Project } from '../support/cli-project.js';
import { verifies } from '../verifies.js';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** A definition with syntax that Node cannot strip, and an import that only loaders resolve. */
const GREET = `import { defineLoop, LoopError } from 'rondo';
import { suffix } from './lib/suffix.js';
enum Mood { Happy = 'happy' }
export const greet = defineLoop({
  id: 'greet',
  input: { type: 'object' },
  output: { type: 'object' },
  run: async ({ name }: { name?: string }) => {
    if (name === undefined) throw new LoopError('TOOL_FAILED', 'no name');
    return { text: \`Hello \${name}\${suffix}\`, mood: Mood.Happy as string };
  },
});
`;

/** A project with a definition in TypeScript, and these packages of this repository. */
function typeScriptProject(packages: readonly string[], type = 'module'): Project {
  const project = new Project({});
  project.trusted = true;
  project.write('package.json', { type });
  project.write('loops/greet.ts', GREET);
  project.write('loops/lib/suffix.ts', "export const suffix: string = '!';\n");
  mkdirSync(project.path('node_modules'));
  symlinkSync(root, project.path('node_modules/rondo'));
  for (const name of packages) symlinkSync(`${root}/node_modules/${name}`, project.path(`node_modules/${name}`));
  return project;
}

for (const [name, type] of [
  ['tsx', 'module'],
  ['tsx', 'commonjs'],
  ['jiti', 'module'],
  ['jiti', 'commonjs'],
] as const) {
  verifies('definition.typescript', `${name} of the project runs TypeScript in a ${type} package`, async () => {
    const project = typeScriptProject([name], type);
    const result = await project.jsonProcess(['run', 'greet', '--input', '{"name": "Ada"}']);
    expect(result).toMatchObject({ status: 'ok', output: { text: 'Hello Ada!', mood: 'happy' } });
    // The class of an error is that of the runtime, so its code is kept; tsx loads a second one in a CommonJS package.
    if (name === 'tsx' && type === 'commonjs') return;
    expect(await project.jsonProcess(['run', 'greet'])).toMatchObject({
      status: 'error',
      error: { code: 'TOOL_FAILED' },
    });
  });
}

verifies('definition.typescript', 'without a loader, the message says what to install', async () => {
  const project = typeScriptProject([]);
  const { files } = await project.jsonProcess<{ files: { errors: { reason: string }[] }[] }>(['check']);
  expect(files[0]?.errors[0]?.reason).toMatch(
    /npm install --save-dev tsx|enum is not supported|Cannot find module .*suffix\.js/,
  );
});

verifies('definition.typescript', 'a loader of a directory that is not trusted is not loaded', async () => {
  const project = new Project({});
  project.write('package.json', { type: 'module' });
  project.write('loops/greet.ts', GREET);
  for (const name of ['tsx', 'jiti']) {
    project.write(`node_modules/${name}/package.json`, { name, version: '99.0.0', type: 'module', main: 'index.js' });
    project.write(
      `node_modules/${name}/index.js`,
      "import { writeFileSync } from 'node:fs'; writeFileSync('ran', '');",
    );
  }
  for (const args of [['list'], ['check'], ['run', 'greet'], ['run', 'loops/greet.ts']]) await project.runProcess(args);
  expect(project.has('ran')).toBe(false);
});

verifies('definition.scripts', 'no verb runs a script beside the definitions, and check names it', async () => {
  const project = new Project();
  project.trusted = true;
  const script = "import { writeFileSync } from 'node:fs';\nwriteFileSync('seeded', '');\nexport const done = 1;\n";
  project.write('loops/seed-database.mjs', script);
  project.write('loops/seed.ts', script);
  for (const args of [['list'], ['show', 'hello'], ['run', 'echo'], ['resume', '--all']]) {
    expect((await project.runProcess(args)).code).toBe(0);
  }
  const { ok, skipped } = await project.jsonProcess<{ ok: boolean; skipped: { file: string; reason: string }[] }>([
    'check',
  ]);
  expect(ok).toBe(true);
  expect(skipped.map(({ file }) => file)).toEqual(
    ['seed-database.mjs', 'seed.ts'].map((name) => project.path(`loops/${name}`)),
  );
  expect(skipped[0]?.reason).toContain('exports nothing made with defineLoop');
  expect((await project.runProcess(['check'])).stdout).toContain('skip  ');
  expect(existsSync(project.path('seeded'))).toBe(false);
});
