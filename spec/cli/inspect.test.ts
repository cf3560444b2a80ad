// The verbs that inspect turns: details, the newest turn, and following from another process.

import { expect } from 'vitest';
import type { EventEnvelope, TraceEvent, TurnResult, TurnStatus } from '../../src/protocol/index.js';
import { Project, until } from '../support/cli-project.js';
import { verifies } from '../verifies.js';

const linesOf = <T>(text: string): T[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as T);

verifies('cli.inspect', 'status, trace and show print input, prompt, reply, output and usage', async () => {
  const project = new Project();
  const name = `Ada ${'Lovelace '.repeat(40)}`;
  const { turnId } = await project.json<TurnResult>(['run', 'hello', '--input', JSON.stringify({ name })]);
  for (const verb of ['trace', 'show']) {
    const short = await project.run([verb, turnId]);
    for (const label of ['input', 'prompt', 'reply', 'output'])
      expect(short.stdout).toMatch(new RegExp(`${label} +│ `));
    const full = await project.run([verb, turnId, '--full']);
    expect(full.stdout.match(/Lovelace/g)?.length).toBeGreaterThanOrEqual(80);
    expect(full.stderr).toBe('');
  }
  const { stdout, stderr } = await project.run(['status', turnId]);
  expect(stdout).toMatch(/^usage +1 model call, \d+ tokens in, \d+ out$/m);
  expect(stdout).toMatch(/^input +│ \{"name":"Ada Lovelace/m);
  expect(stdout).toMatch(/^started +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC \((?:just now|\d+ s ago)\)$/m);
  expect(stderr).toContain('--full');
  expect((await project.run(['status', turnId, '--full'])).stdout.match(/Lovelace/g)?.length).toBeGreaterThanOrEqual(
    40,
  );
  expect(await project.json(['status', turnId])).toMatchObject({
    input: { name },
    output: expect.anything(),
    usage: { modelCalls: 1 },
    startedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
  });
  const shown = await project.json<{ calls: object[] }>(['show', turnId]);
  expect(shown).toMatchObject({ turnId, calls: [{ modelCalls: [{ prompt: `Greet ${name}.` }] }] });
  const trace = await project.run(['trace', turnId, '--full', '--json']);
  expect(trace.stdout).toBe((await project.run(['trace', turnId, '--json'])).stdout);
});

verifies('cli.inspect', '"last" is the newest turn, and the id of a loop takes precedence over a turn', async () => {
  const project = new Project();
  expect((await project.run(['status', 'last'])).code).toBe(1);
  await project.run(['run', 'echo', '--input', '{"n": 1}', '--session', 'first']);
  const { turnId } = await project.json<TurnResult>(['run', 'echo', '--input', '{"n": 2}', '--session', 'echo']);
  expect(await project.json(['status', 'last'])).toMatchObject({ turnId, input: { n: 2 } });
  expect((await project.run(['trace', 'last'])).stdout).toContain('{"n":2}');
  expect(linesOf<EventEnvelope>((await project.run(['events', 'last'])).stdout)).toMatchObject([
    { type: 'loop-triggered', sessionId: 'echo' },
    { type: 'tool-result', content: { result: { n: 2 } } },
  ]);
  expect(await project.json(['show', 'last'])).toMatchObject({ turnId });
  expect(await project.json(['show', 'echo'])).toMatchObject({ definition: { id: 'echo' } });
  expect(await project.json(['show', 'first'])).toMatchObject({ sessionId: 'first', calls: [{ output: { n: 1 } }] });
  const neither = await project.run(['show', 'nothing', '--json']);
  expect(neither.code).toBe(1);
  expect(JSON.parse(neither.stdout)).toMatchObject({ error: { code: 'LOOP_NOT_FOUND' } });
});

verifies('cli.inspect', 'runs is readable in 60 columns', async () => {
  const project = new Project();
  await project.run(['run', 'fail', '--session', 'a-session-with-a-rather-long-name']);
  const { runs } = await project.json<{ runs: TurnStatus[] }>(['runs']);
  const { stdout } = await project.run(['runs']);
  expect(stdout).toMatch(/ (?:just now|\d+ s ago) /);
  expect(runs[0]?.startedAt).toMatch(/Z$/);
  const { turnId = '' } = runs[0] ?? {};
  // A program reads complete ids; an id that a terminal has cut finds its turn too.
  expect(stdout).toContain(`${turnId} `);
  expect(await project.json(['show', `${turnId.slice(0, -4)}…`])).toMatchObject({ turnId });
});

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
  expect(linesOf<TraceEvent>(traced.stdout)).toEqual(
    linesOf<TraceEvent>((await project.run(['trace', turn, '--json'])).stdout),
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
  const types = linesOf<TraceEvent>(traced.stdout).map(({ type }) => type);
  expect(types.filter((type) => type === 'call.started')).toHaveLength(1);
  expect(types.at(-1)).toBe('call.completed');
  expect(linesOf<EventEnvelope>(conversed.stdout).map(({ type }) => type)).toEqual(['loop-triggered', 'tool-result']);
});

verifies('cli.follow', 'an interrupt ends the follower with 130 and leaves the turn alone', async () => {
  const project = new Project().withHoldTool();
  const held = await project.startHeld('held');
  for (const args of [
    ['trace', held.turn, '--follow'],
    ['events', 'held', '--follow'],
  ]) {
    const follower = project.start(args);
    if (args[0] === 'events') await until(() => follower.output().stdout !== '');
    else await new Promise((resolve) => setTimeout(resolve, 2000));
    follower.child.kill('SIGINT');
    const { code, stderr } = await follower.ended;
    expect(code).toBe(130);
    expect(stderr).toContain('continue');
  }
  expect(await project.json(['status', held.turn])).toMatchObject({ status: 'running' });
  project.release('held');
  expect((await held.ended).code).toBe(0);
});
