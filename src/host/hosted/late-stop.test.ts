import { expect } from 'vitest';
import { counter, hostedFixture } from '../../../spec/support/hosted-fixture.js';
import { verifies } from '../../../spec/verifies.js';
import { memoryStore } from '../../adapters/memory/index.js';
import type { Batch, Store } from '../../journal/store.js';

/** A store that calls a function once, before the first append to a session. */
function interruptedStore(session: string, interrupt: () => Promise<unknown>): Store {
  const store = memoryStore();
  let isInterrupted = false;
  const append = async (batch: Batch): Promise<void> => {
    if (batch.session === session && !isInterrupted) {
      isInterrupted = true;
      await interrupt();
    }
    return store.journal.append(batch);
  };
  const { claim, read, list, remove } = store.journal;
  const journal = { append, claim: claim.bind(store.journal), read: read.bind(store.journal) };
  return { ...store, journal: { ...journal, list: list.bind(store.journal), remove: remove.bind(store.journal) } };
}

verifies('hosted.control', 'a stop reaches a turn that is requested and has not started', async () => {
  let calls = 0;
  let stopping: Promise<unknown> = Promise.resolve();
  const store = interruptedStore('hosted:counter:1', async () => {
    // Not awaited to its end: the stop waits for the turn that it cancels.
    stopping = host.hosted.stop('counter', { by: 'ada' });
    for (let n = 0; n < 50; n++) await undefined;
  });
  const slow = async (): Promise<unknown> => {
    calls += 1;
    await stopping;
    return { n: calls };
  };
  const { host, work, start } = hostedFixture({ store, tools: { count: slow } });
  await start(counter());
  await work();
  await stopping;
  expect(await host.hosted.status('counter')).toMatchObject({ status: 'stopped', reason: 'stopped_by', turns: 1 });
  const [only, ...others] = await host.hosted.turns('counter');
  expect([only?.status, others, calls <= 1]).toEqual(['cancelled', [], true]);
});

verifies('hosted.handoff', 'the last turn of a loop hands off, although the loop has stopped', async () => {
  const { host, work, start, inputs } = hostedFixture();
  const stop = { maxTurns: 1 };
  await start(counter({ id: 'target', acceptsHandoffsFrom: ['sender'], stop }));
  const rule = { target: 'target', input: { seen: '$.last.output.n' }, reason: 'done' };
  await start(counter({ id: 'sender', handoffs: [rule], stop }));
  await work();
  expect((await host.hosted.status('sender')).reason).toBe('max_turns');
  expect(inputs).toEqual([{ from: 0 }, { seen: 1 }]);
  const [turn] = await host.hosted.turns('target');
  expect(turn).toMatchObject({ cause: 'handoff', status: 'ok' });
});
