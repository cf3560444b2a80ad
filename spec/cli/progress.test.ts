// The progress of a turn on a terminal, and its absence everywhere else.

import { setTimeout } from 'node:timers/promises';
import { expect } from 'vitest';
import type { TraceEvent } from '../../src/protocol/trace.js';
import { TurnProgress } from '../../src/surfaces/cli/turn-progress.js';
import { Project } from '../support/cli-project.js';
import { verifies } from '../verifies.js';
import { hasScript, Pty } from './pty.js';

verifies('cli.progress', 'a terminal shows the time and the current call after a second', async (context) => {
  context.skip(!hasScript, 'needs script');
  const pty = new Pty(new Project(), ['run', 'pair', '--input', '{"name": "Ada", "ms": 2500}']);
  await pty.waitFor('2 s  wait');
  await pty.waitFor('ok after');
  const lastLine = pty.raw.split('ok after')[0]?.split('\r').at(-1) ?? '';
  expect(lastLine.replace('\u001b[2K', '')).not.toContain('wait');
});

verifies('cli.progress', 'a quick turn, a pipe and --json show nothing', async (context) => {
  context.skip(!hasScript, 'needs script');
  const project = new Project();
  const quick = new Pty(project, ['run', 'echo']);
  await quick.waitFor('ok after');
  expect(quick.raw).not.toContain('\u001b[2K');
  const json = new Pty(project, ['run', 'wait', '--input', '{"ms": 1500}', '--json']);
  await json.waitFor('ok after');
  expect(json.raw).not.toContain('\u001b[2K');
  const { stderr } = await project.run(['run', 'wait', '--input', '{"ms": 1500}']);
  expect(stderr).toMatch(/^ok after/);
});

const event = (type: string, callId: string, payload: object): TraceEvent => ({ callId, ts: '', type, payload });

verifies('cli.progress', 'the line names the innermost call and what it does, and is removed at the end', async () => {
  const shown: (string | undefined)[] = [];
  const progress = new TurnProgress((text) => shown.push(text), Date.now);
  progress.apply(event('call.started', 't', { loopId: 'desk agent' }));
  progress.apply(event('call.started', 't/0', { loopId: 'refund\u001b[31m' }));
  progress.apply(event('call.tool.invoked', 't/0', { toolName: 'exec:pay' }));
  await setTimeout(1150);
  expect(shown[0]).toMatch(/^\S 1 s {2}refund.*\[31m {2}runs exec:pay$/);
  expect(shown[0]).not.toContain('\u001b');
  progress.apply(event('call.completed', 't/0', {}));
  await setTimeout(250);
  expect(shown.at(-1)).toMatch(/ {2}desk agent$/);
  progress.end();
  const count = shown.length;
  await setTimeout(250);
  expect([shown.at(-1), shown.length]).toEqual([undefined, count]);
});
