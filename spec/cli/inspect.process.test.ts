// Turns of other processes, followed until they end.

import { expect } from 'vitest';
import type { EventEnvelope, TraceEvent, TurnStatus } from '../../src/protocol/index.js';
import { Project, parseLines, until } from '../support/cli-project.js';
import { verifies } from '../verifies.js';

verifies('cli.follow', 'a turn in another process is followed until it ends', async () => {
  const project = new Project().withHoldTool();
  const { turn } = await project.startHeld('held');
  const trace = project.start(['trace', turn, '--follow', '--json']);
  const events = project.start(['events', 'held', '--follow']);
  const tree = project.start(['trace', turn, '--follow']);
  await until(() => trace.output().stdout.includes('call.tool.invoked'));
  await until(() => events.output().stdout.includes('loop-triggered'));
  expect(trace.output().stdout).not.toContain('call.completed');
  project.release('held');
  const [traced, conversed, drawn] = await Promise.all([trace.ended, events.ended, tree.ended]);
  expect([traced.code, conversed.code, drawn.code]).toEqual([0, 0, 0]);
  expect(parseLines<TraceEvent>(traced.stdout)).toEqual(
    parseLines<TraceEvent>((await project.run(['trace', turn, '--json'])).stdout),
  );
  expect(conversed.stdout).toBe((await project.run(['events', 'held', '--json'])).stdout);
  expect(drawn.stdout).toContain('✓ hold@1.0.0');
});

verifies('cli.follow', 'a turn that another process continues after a kill is followed to its end', async () => {
  const project = new Project().withHoldTool();
  const first = await project.startHeld('held');
  const trace = project.start(['trace', first.turn, '--follow', '--json']);
  const events = project.start(['events', 'held', '--follow', '--json']);
  await until(() => trace.output().stdout.includes('call.tool.invoked'));
  first.child.kill('SIGKILL');
  await first.ended;
  const resumed = project.start(['resume', first.turn]);
  await until(async () => {
    const { runs } = await project.json<{ runs: TurnStatus[] }>(['runs']);
    return runs[0]?.status === 'running';
  });
  expect(trace.child.exitCode).toBeNull();
  project.release('held');
  expect((await resumed.ended).code).toBe(0);
  const [traced, conversed] = await Promise.all([trace.ended, events.ended]);
  const types = parseLines<TraceEvent>(traced.stdout).map(({ type }) => type);
  expect(types.filter((type) => type === 'call.started')).toHaveLength(1);
  expect(types.at(-1)).toBe('call.completed');
  expect(parseLines<EventEnvelope>(conversed.stdout).map(({ type }) => type)).toEqual([
    'loop-triggered',
    'tool-result',
  ]);
});

verifies('cli.follow', 'an interrupt ends the follower with 130 and leaves the turn alone', async () => {
  const project = new Project().withHoldTool();
  const held = await project.startHeld('held');
  const followers = [project.start(['trace', held.turn, '--follow']), project.start(['events', 'held', '--follow'])];
  await until(() => followers[1]?.output().stdout !== '');
  // The tree of a trace is printed at its end, so nothing shows that its follower has started.
  await new Promise((resolve) => setTimeout(resolve, 2000));
  for (const { child, ended } of followers) {
    child.kill('SIGINT');
    const { code, stderr } = await ended;
    expect(code).toBe(130);
    expect(stderr).toContain('continue');
  }
  expect(await project.json(['status', held.turn])).toMatchObject({ status: 'running' });
  project.release('held');
  expect((await held.ended).code).toBe(0);
});
