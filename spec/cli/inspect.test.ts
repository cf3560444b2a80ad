// The verbs that inspect turns: details, the newest turn, and following from another process.

import { expect } from 'vitest';
import type { EventEnvelope, TurnResult, TurnStatus } from '../../src/protocol/index.js';
import { Project, parseLines } from '../support/cli-project.js';
import { verifies } from '../verifies.js';

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
  expect(parseLines<EventEnvelope>((await project.run(['events', 'last'])).stdout)).toMatchObject([
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
