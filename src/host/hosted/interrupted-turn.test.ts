import { expect } from 'vitest';
import { ASK } from '../../../spec/support/approval-fixture.js';
import { tool } from '../../../spec/support/host-fixture.js';
import { counter, hostedFixture } from '../../../spec/support/hosted-fixture.js';
import { busyWitness, memoryWitness } from '../../../spec/support/length-witness.js';
import { verifies } from '../../../spec/verifies.js';
import { memoryStore } from '../../adapters/memory/index.js';

const SHARED = { turn: { history: 'session' }, stop: { maxTurns: 3 } } as const;

verifies('hosted.durable', 'an interrupted turn in the session of the turn before continues', async () => {
  const store = memoryStore();
  let calls = 0;
  const hang = (): unknown => (++calls === 2 ? new Promise(() => {}) : { n: calls });
  const first = hostedFixture({ store, tools: { count: hang } });
  await first.start(counter(SHARED));
  await first.step();
  // The process ends while the second turn performs its effect.
  void first.step();
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(calls, 'the second turn has begun').toBe(2);
  const next = hostedFixture({ store, clock: first.clock, seed: 2 });
  await next.work();
  expect(await next.host.hosted.status('counter')).toMatchObject({ reason: 'max_turns', turns: 3 });
  expect((await next.host.hosted.turns('counter')).map(({ status }) => status)).toEqual(['ok', 'ok', 'ok']);
});

verifies('hosted.durable', 'an answered turn in the session of the turn before continues', async () => {
  const { host, work, start } = hostedFixture({ definitions: [tool('pay', 'builtin:count', ASK)] });
  await start(counter({ ...SHARED, loop: 'pay', grant: { allowedTools: ['pay'], limits: {} } }));
  for (let turn = 1; turn <= 3; turn++) {
    await work();
    const [approval] = await host.archive.approvals();
    await host.answer({ id: approval?.id ?? '', approved: true, by: 'ada' });
  }
  await work();
  expect(await host.hosted.status('counter')).toMatchObject({ reason: 'max_turns', turns: 3 });
});

verifies('hosted.durable', 'a loop that another process advances while it is opened is intact', async () => {
  const kept = memoryWitness();
  const running = hostedFixture({ lengthWitness: kept });
  await running.start(counter());
  const lengthWitness = busyWitness(kept, () => running.step());
  const opening = hostedFixture({ store: running.store, clock: running.clock, lengthWitness, seed: 2 });
  expect(await opening.host.hosted.status('counter'), 'a healthy loop was reported as damaged').toMatchObject({
    turns: 1,
  });
});
