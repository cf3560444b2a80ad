// Output to pipes and terminals, with and without colours.

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { promisify } from 'node:util';
import { expect } from 'vitest';
import type { TurnResult } from '../../src/protocol/index.js';
import { bin, Project } from '../support/cli-project.js';
import { verifies } from '../verifies.js';

const execute = promisify(execFile);
const ESCAPE = '\u001b[';
const quote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** Runs a shell command in the project, with `$RONDO` as the command line. */
async function shell(project: Project, line: string): Promise<{ stdout: string; stderr: string }> {
  const { PATH = '' } = process.env;
  const RONDO = `${quote(process.execPath)} ${quote(bin)}`;
  return execute('bash', ['-c', line.replaceAll('$RONDO', RONDO)], {
    cwd: project.directory,
    env: { PATH, TERM: 'xterm' },
  });
}

verifies('cli.contract', 'a reader that closes the pipe early does not make a verb fail', async () => {
  const project = new Project();
  project.write('big.json', JSON.stringify({ text: 'x'.repeat(5_000_000) }));
  const line = `$RONDO run echo --input @big.json --json | head -c 10; echo; echo "\${PIPESTATUS[0]}"`;
  const { stdout, stderr } = await shell(project, line);
  expect(stdout).toBe('{"callId":\n0\n');
  expect(stderr).not.toMatch(/EPIPE|^\s+at /m);
  const { turnId } = await project.json<TurnResult>(['run', 'pair', '--input', '{"name": "A", "ms": 1}']);
  const traced = await shell(project, `$RONDO trace ${turnId} --json | head -1; echo "\${PIPESTATUS[0]}"`);
  expect(traced.stdout).toMatch(/^\{.*"call\.started".*\}\n0\n$/);
});

/** Returns the output of a command in a pseudo-terminal. */
async function onTerminal(project: Project, line: string): Promise<string> {
  const { stdout } = await shell(project, `script -qec ${quote(line)} /dev/null`);
  return stdout;
}

verifies('cli.contract', 'colours appear only on a terminal, and never with NO_COLOR', async (context) => {
  context.skip(!existsSync('/usr/bin/script'), 'needs script');
  const project = new Project();
  const { turnId } = await project.json<TurnResult>(['run', 'hello', '--input', '{"name": "Ada"}']);
  for (const verb of [`trace ${turnId}`, 'list', 'check', 'doctor']) {
    expect((await project.run(verb.split(' '))).stdout).not.toContain(ESCAPE);
    expect(await onTerminal(project, `$RONDO ${verb}`)).toContain(ESCAPE);
    expect(await onTerminal(project, `NO_COLOR=1 $RONDO ${verb}`)).not.toContain(ESCAPE);
  }
  expect(await onTerminal(project, '$RONDO list --json')).not.toContain(ESCAPE);
});

verifies('cli.contract', '--watch prints to stderr and leaves stdout to the result', async () => {
  const project = new Project();
  const args = ['run', 'pair', '--input', '{"name": "Ada", "ms": 1}', '--watch'];
  const { code, stdout, stderr } = await project.run([...args, '--json']);
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ status: 'ok' });
  expect(stderr).toContain('hello@1.0.0');
  expect(stderr).toContain('wait@1.0.0');
});
