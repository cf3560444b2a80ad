import { expect } from 'vitest';
import { counter, hostedFixture, START } from '../../../spec/support/hosted-fixture.js';
import { verifies } from '../../../spec/verifies.js';

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
