/** What runs under an approval has the approved bytes, or is not counted as it, whatever happens to its file meanwhile. */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, linkSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { afterAll, expect } from 'vitest';
import { built, cleanUp, failure, pidIn, runs, sh, trusted } from '../../../spec/support/tools-fixture.mjs';
import { verifies } from '../../../spec/verifies.js';
import { runApprovedProgram } from './approved-program.js';
import { fingerprintProgram, programTargetOf } from './program.js';
import type { ProcessResult } from './run-process.js';

afterAll(cleanUp);

/** Runs the tool in this directory, approved as it is now; `startMs` is how long its file is watched. */
async function approvedRun({ directory }: ReturnType<typeof trusted>, startMs: number): Promise<ProcessResult> {
  const file = join(directory, 'tool');
  const command = { file, args: [], directory, env: process.env, input: '', maxOutputBytes: 100, killGraceMs: 100 };
  return runApprovedProgram(
    command,
    new AbortController().signal,
    await programTargetOf(file, 'tool'),
    'exec:tool',
    startMs,
  );
}

/** How a run ends whose file is changed while it waits, before it does the rest. */
async function changedRun(rest: string, startMs: number, change: (tool: string, other: string) => void) {
  const origin = trusted({
    tool: sh(`echo $$ > pid; touch begun; until [ -e go ]; do sleep 0.01; done; echo 1; ${rest}`),
    other: sh('echo 2'),
  });
  const path = (name: string): string => join(origin.directory, name);
  const ends = failure(approvedRun(origin, startMs));
  await exists(path('begun'));
  change(path('tool'), path('other'));
  writeFileSync(path('go'), '');
  const { code, message } = await ends;
  return [code, message.includes('may have run'), runs(await pidIn(path('pid')))];
}

async function exists(file: string): Promise<void> {
  while (!existsSync(file)) await setTimeout(5);
}

/** Ways to change what a path leads to; the last ones leave the approved bytes there. */
const changes: { readonly [how: string]: (tool: string, other: string) => void } = {
  written: (tool, other) => writeFileSync(tool, readFileSync(other)),
  replaced: (tool, other) => renameSync(other, tool),
  removed: (tool) => rmSync(tool),
  'replaced and put back': (tool, other) => {
    linkSync(tool, `${tool}.kept`);
    renameSync(other, tool);
    renameSync(`${tool}.kept`, tool);
  },
  'written and put back': (tool, other) => {
    const approved = readFileSync(tool);
    writeFileSync(tool, readFileSync(other));
    writeFileSync(tool, approved);
  },
};

verifies('approval.bytes', 'a program whose file changes while it starts never counts as approved', async () => {
  for (const [how, change] of Object.entries(changes)) {
    expect(await changedRun('exit', 60_000, change), how).toEqual(['TOOL_FAILED', true, false]);
  }
});

verifies('approval.bytes', 'a program that goes on is stopped if its file changed while it started', async () => {
  const change = (tool: string, other: string): void => renameSync(other, tool);
  expect(await changedRun('sleep 60', 2000, change)).toEqual(['TOOL_FAILED', true, false]);
});

verifies('approval.bytes', 'a program whose file is changed without end is not started', async () => {
  const file = join(trusted({ tool: sh('echo 1') }).directory, 'tool');
  const { code, message } = await failure(fingerprintProgram(file, 'exec:tool', () => statSync(file).ctimeMs));
  expect([code, message]).toEqual([
    'TOOL_NOT_ADMITTED',
    'exec:tool did not run: its file is being changed. Ask again.',
  ]);
  const later = await fingerprintProgram(file, 'exec:tool', () => statSync(file).ctimeMs + 60);
  expect(later.target).toEqual(await programTargetOf(file, 'exec:tool'));
});

verifies('approval.bytes', 'a program may change its file once it runs', async () => {
  const origin = trusted({ tool: sh('sleep 1; cp tool new; mv new tool; echo 1') });
  expect((await approvedRun(origin, 1)).stdout.toString()).toBe('1\n');
});

/** Imports a file with a digest in a process without the loader of these tests, and prints how that failed. */
const imports = `
const { importApprovedModule, isSourceChangedError } = await import(process.argv[1]);
const failed = await importApprovedModule(process.argv[2], process.argv[3], 1).then(() => '', (error) => isSourceChangedError(error));
console.log(failed);`;

verifies('approval.bytes', 'nothing of a module runs if its file changes before Node reads it', () => {
  const common = "require('node:fs').writeFileSync(require('node:path').join(__dirname, 'ran'), '');\n";
  for (const [name, text] of [
    ['tool.mjs', "import { writeFileSync } from 'node:fs';\nwriteFileSync(new URL('ran', import.meta.url), '');\n"],
    ['tool.cjs', common],
    ['tool.js', common],
  ] as const) {
    const { directory } = trusted({ [name]: text });
    for (const bytes of ['other', text]) {
      const sha256 = createHash('sha256').update(bytes).digest('hex');
      const args = ['--input-type=module', '-e', imports, new URL('approved-source.js', built).href];
      const { stdout } = spawnSync(process.execPath, [...args, join(directory, name), sha256], { encoding: 'utf8' });
      const isApproved = bytes === text;
      expect([stdout.trim(), existsSync(join(directory, 'ran'))], name).toEqual([isApproved ? '' : 'true', isApproved]);
    }
  }
});
