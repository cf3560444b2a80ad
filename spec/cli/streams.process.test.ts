// Output to pipes and terminals, with and without colours.

import { expect } from 'vitest';
import type { TurnResult } from '../../src/protocol/index.js';
import { Project } from '../support/cli-project.js';
import { verifies } from '../verifies.js';
import { hasScript } from './pty.js';
import { quote, shell } from './shell.js';

const ESCAPE = '\u001b[';

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

verifies(
  'cli.contract',
  'a process uses colours on a pseudo-terminal, and none with NO_COLOR or --json',
  async (context) => {
    context.skip(!hasScript, 'needs script');
    const project = new Project();
    expect(await onTerminal(project, '$RONDO list')).toContain(ESCAPE);
    expect(await onTerminal(project, 'NO_COLOR=1 $RONDO list')).not.toContain(ESCAPE);
    expect(await onTerminal(project, '$RONDO list --json')).not.toContain(ESCAPE);
  },
);
