/** A call with an approval runs the approved bytes or fails, whatever happens to the file of its program meanwhile. */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, linkSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { afterAll, expect } from 'vitest';
import {
  builtToolsUrl,
  cleanUp,
  failure,
  isRunning,
  readPid,
  sh,
  trusted,
} from '../../../spec/support/tools-fixture.mjs';
import { verifies } from '../../../spec/verifies.js';
import { runApprovedProgram } from './approved-program.js';
import { fingerprintProgram, programTargetOf } from './program.js';
import type { ProcessResult } from './run-process.js';

afterAll(cleanUp);

/** Runs the tool of a directory with an approval for its current bytes. `startMs` is the time of the startup check. */
async function runApproved({ directory }: ReturnType<typeof trusted>, startMs: number): Promise<ProcessResult> {
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

/**
 * Runs a tool whose file is changed while it waits. Returns error code, whether the message fits, and if it still runs.
 */
async function runChanged(rest: string, startMs: number, change: (tool: string, other: string) => void) {
  const origin = trusted({
    tool: sh(`echo $$ > pid; touch begun; until [ -e go ]; do sleep 0.01; done; echo 1; ${rest}`),
    other: sh('echo 2'),
  });
  const path = (name: string): string => join(origin.directory, name);
  const outcome = failure(runApproved(origin, startMs));
  await exists(path('begun'));
  change(path('tool'), path('other'));
  writeFileSync(path('go'), '');
  const { code, message } = await outcome;
  return [code, message.includes('may have run'), isRunning(await readPid(path('pid')))];
}

async function exists(file: string): Promise<void> {
  while (!existsSync(file)) await setTimeout(5);
}

/** Ways to change or replace a file. After the last two, it has the approved bytes again. */
const changes: { readonly [how: string]: (tool: string, other: string) => void } = {
  written: (tool, other) => writeFileSync(tool, readFileSync(other)),
  replaced: (tool, other) => renameSync(other, tool),
  removed: (tool) => rmSync(tool),
  'replaced and put back': (tool, other) => {
    linkSync(tool, `${tool}.backup`);
    renameSync(other, tool);
    renameSync(`${tool}.backup`, tool);
  },
  'written and put back': (tool, other) => {
    const approved = readFileSync(tool);
    writeFileSync(tool, readFileSync(other));
    writeFileSync(tool, approved);
  },
};

verifies('approval.bytes', 'a call fails if the file of its program changes while it starts', async () => {
  for (const [name, change] of Object.entries(changes)) {
    expect(await runChanged('exit', 60_000, change), name).toEqual(['TOOL_FAILED', true, false]);
  }
});

verifies('approval.bytes', 'a running program is stopped if its file changed while it started', async () => {
  const change = (tool: string, other: string): void => renameSync(other, tool);
  expect(await runChanged('sleep 60', 2000, change)).toEqual(['TOOL_FAILED', true, false]);
});

verifies('approval.bytes', 'a program whose file keeps changing is not started', async () => {
  const file = join(trusted({ tool: sh('echo 1') }).directory, 'tool');
  const { code, message } = await failure(fingerprintProgram(file, 'exec:tool', () => statSync(file).ctimeMs));
  expect([code, message]).toEqual([
    'TOOL_NOT_ADMITTED',
    'exec:tool did not run: its file is being changed. Ask again.',
  ]);
  const later = await fingerprintProgram(file, 'exec:tool', () => statSync(file).ctimeMs + 60);
  expect(later.target).toEqual(await programTargetOf(file, 'exec:tool'));
});

verifies('approval.bytes', 'a program may change its own file after it has started', async () => {
  const origin = trusted({ tool: sh('sleep 1; cp tool new; mv new tool; echo 1') });
  expect((await runApproved(origin, 1)).stdout.toString()).toBe('1\n');
});

/** Imports a file by digest in a process without the loader of vitest, and prints whether the digest did not match. */
const importProgram = `
const { importApprovedModule, isSourceChangedError } = await import(process.argv[1]);
const failed = await importApprovedModule(process.argv[2], process.argv[3], 1).then(() => '', (error) => isSourceChangedError(error));
console.log(failed);`;

verifies('approval.bytes', 'no code of a module runs if its file changes before Node reads it', () => {
  const commonJs = "require('node:fs').writeFileSync(require('node:path').join(__dirname, 'ran'), '');\n";
  for (const [name, text] of [
    ['tool.mjs', "import { writeFileSync } from 'node:fs';\nwriteFileSync(new URL('ran', import.meta.url), '');\n"],
    ['tool.cjs', commonJs],
    ['tool.js', commonJs],
  ] as const) {
    const { directory } = trusted({ [name]: text });
    for (const bytes of ['other', text]) {
      const sha256 = createHash('sha256').update(bytes).digest('hex');
      const args = ['--input-type=module', '-e', importProgram, new URL('approved-source.js', builtToolsUrl).href];
      const { stdout } = spawnSync(process.execPath, [...args, join(directory, name), sha256], { encoding: 'utf8' });
      const isApproved = bytes === text;
      expect([stdout.trim(), existsSync(join(directory, 'ran'))], name).toEqual([isApproved ? '' : 'true', isApproved]);
    }
  }
});
