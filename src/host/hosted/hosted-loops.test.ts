import { expect } from 'vitest';
import { counter, hostedFixture, START } from '../../../spec/support/hosted-fixture.js';
import { verifies } from '../../../spec/verifies.js';
import { memoryStore } from '../../adapters/memory/index.js';
import type { TurnResult } from '../../protocol/trace.js';
import type { WorkProblem } from '../worker.js';
import { defineHostedLoop } from './define-hosted-loop.js';

verifies('hosted.stops', 'a loop without a schedule runs turn after turn until its maximum of turns', async () => {
  const { host, work, inputs, start } = hostedFixture();
  await start(counter({ next: { from: '$.last.output.n', turn: '$.turn' } }));
  const results = await work();
  expect(results.map(({ status }) => status)).toEqual(['ok', 'ok', 'ok']);
  expect(inputs).toEqual([{ from: 0 }, { from: 1, turn: 2 }, { from: 2, turn: 3 }]);
  expect(await host.hosted.status('counter')).toMatchObject({ status: 'stopped', reason: 'max_turns', turns: 3 });
  const turns = await host.hosted.turns('counter');
  expect(turns.map(({ key, status }) => [key, status])).toEqual([
    ['counter#1', 'ok'],
    ['counter#2', 'ok'],
    ['counter#3', 'ok'],
  ]);
  expect(await host.receipts?.verify(undefined)).toMatchObject({ valid: true });
});

verifies('hosted.schedule', 'a turn starts when it is due, and not before', async () => {
  const { work, clock, start } = hostedFixture();
  await start(counter({ schedule: { cron: '0 9 * * *', zone: 'UTC' }, stop: { maxTurns: 2 } }));
  expect(await work()).toHaveLength(0);
  await clock.advance(9 * 3_600_000 - 1);
  expect(await work()).toHaveLength(0);
  await clock.advance(1);
  expect(await work()).toHaveLength(1);
  expect(clock.now()).toBe(START + 9 * 3_600_000);
});

verifies(
  'hosted.durable',
  'a process without the code that derives the inputs of a loop leaves its turns alone',
  async () => {
    const { store, clock, host } = hostedFixture();
    const loop = defineHostedLoop({ ...counter(), next: ({ turn }) => ({ from: turn }) });
    await host.hosted.start(loop, { by: 'ada' });
    const other = hostedFixture({ store, clock, seed: 2 });
    const problems: WorkProblem[] = [];
    await other.host.work({ once: true, onProblem: (problem) => problems.push(problem) });
    expect(problems).toMatchObject([{ turnId: 'counter', code: 'LOOP_NOT_FOUND' }]);
    expect(await host.hosted.status('counter')).toMatchObject({ status: 'waiting', turns: 0 });
    other.host.hosted.register(loop);
    await other.work();
    expect(other.inputs).toEqual([{ from: 0 }, { from: 2 }, { from: 3 }]);
  },
);

verifies('hosted.control', 'the reason of a pause is shown, and a worker reports the stop of a loop once', async () => {
  const { host, start } = hostedFixture();
  await start(counter({ stop: { maxTurns: 1 } }));
  const paused = await host.hosted.pause('counter', { by: 'ada', reason: 'holiday' });
  expect(paused).toMatchObject({ status: 'paused', message: 'Paused by ada: holiday' });
  await host.hosted.resume('counter', { by: 'bob' });
  const seen: unknown[] = [];
  const options = {
    onResult: ({ status }: TurnResult) => seen.push(status),
    onStop: (stop: object) => seen.push(stop),
  };
  for (const _ of [1, 2]) await host.work({ once: true, ...options });
  expect(seen).toEqual(['ok', { loop: 'counter', reason: 'max_turns', message: 'It has had 1 of 1 turns.' }]);
});

verifies('hosted.durable', 'the lease of a hosted loop is not listed as a turn', async () => {
  const store = memoryStore();
  const leases = { ...store.leases, list: async () => [{ session: 'rondo:hosted:counter', turn: 'counter', pid: 7 }] };
  const { host, start } = hostedFixture({ store: { ...store, leases } });
  await start(counter());
  expect(await host.archive.turns()).toEqual([]);
});
