// Output to pipes and terminals, with and without colours.

import { expect } from 'vitest';
import type { TurnResult } from '../../src/protocol/index.js';
import { Project } from '../support/cli-project.js';
import { runCommand } from '../support/command-line.js';
import { verifies } from '../verifies.js';

const ESCAPE = '\u001b[';

verifies('cli.contract', 'colours appear only on a terminal, and never with NO_COLOR', async () => {
  const project = new Project();
  const { turnId } = await project.json<TurnResult>(['run', 'hello', '--input', '{"name": "Ada"}']);
  const onTerminal = async (args: readonly string[], more: Readonly<Record<string, string>> = {}): Promise<string> => {
    const env = { ...project.environment(), TERM: 'xterm', ...more };
    return (await runCommand(args, { cwd: project.directory, env, isTerminal: true })).stdout;
  };
  for (const verb of [['trace', turnId], ['list'], ['check'], ['doctor']]) {
    expect((await project.run(verb)).stdout).not.toContain(ESCAPE);
    expect(await onTerminal(verb)).toContain(ESCAPE);
    expect(await onTerminal(verb, { NO_COLOR: '1' })).not.toContain(ESCAPE);
  }
  expect(await onTerminal(['list', '--json'])).not.toContain(ESCAPE);
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
