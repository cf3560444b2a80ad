import { expect } from 'vitest';
import { hostOf, tool } from '../../../spec/support/host-fixture.js';
import { busyWitness, memoryWitness } from '../../../spec/support/length-witness.js';
import { testKeys } from '../../../spec/support/receipt-keys.js';
import { verifies } from '../../../spec/verifies.js';
import { memoryStore } from '../../adapters/memory/index.js';
import { seededIds } from '../../adapters/system/seeded-ids.js';
import { crashingStore } from '../../testing/crashing-store.js';
import { ManualClock } from '../../testing/manual-clock.js';
import { LOG_SESSION, ReceiptLog } from './receipt-log.js';

verifies(
  'receipt.witness',
  'a log that is shorter than it was is not valid, and nothing is signed over it',
  async () => {
    const [store, lengthWitness] = [memoryStore(), memoryWitness()];
    const open = (seed: number) => hostOf([tool('echo')], { store, receiptKeys: testKeys(), lengthWitness, seed });
    const first = open(1);
    for (const sessionId of ['a', 'b']) await first.run({ loop: 'echo', input: {}, sessionId });
    await first.close();
    const intact = await open(2).receipts?.verify(undefined);
    expect(intact).toMatchObject({ valid: true });
    await store.journal.remove(LOG_SESSION);
    const archive = open(3).receipts;
    expect(await archive?.verify(undefined)).toMatchObject({ valid: false, reasons: ['log_rewritten'] });
    await expect(archive?.export()).rejects.toMatchObject({ code: 'LOG_REWRITTEN' });
    await expect(archive?.close('a')).rejects.toMatchObject({ code: 'LOG_REWRITTEN' });
  },
);

verifies('receipt.witness', 'a log that another process adds to while it is opened is intact', async () => {
  const kept = memoryWitness();
  let note: string | undefined;
  const witness = { read: async () => note, write: async () => {} };
  const deps = { store: memoryStore(), clock: new ManualClock(1), ids: seededIds(1), witness, lengths: kept };
  const running = new ReceiptLog(deps);
  const add = async (): Promise<void> => {
    await running.recordCheckpoint('note');
    note = 'note';
    await running.flush();
  };
  // Both are read after the log was: the first time there is no log yet, the second time it is shorter.
  const busy = { read: async () => add().then(() => note), write: async () => {} };
  for (const more of [{ witness: busy }, { lengths: busyWitness(kept, add) }])
    await expect(
      new ReceiptLog({ ...deps, ...more }).recordCheckpoint('other'),
      'a healthy log was reported as rewritten',
    ).resolves.toBeUndefined();
});

verifies('receipt.store', 'nothing is signed about a session that lacks receipts which the log has', async () => {
  const store = memoryStore();
  const open = (seed: number) => hostOf([tool('echo')], { store, receiptKeys: testKeys(), seed });
  const first = open(1);
  for (const sessionId of ['a', 'a', 'b']) await first.run({ loop: 'echo', input: {}, sessionId });
  await first.receipts?.export();
  await first.close();
  await store.journal.remove('a');
  const second = open(2);
  await second.run({ loop: 'echo', input: {}, sessionId: 'a' });
  const refusal = { code: 'RECEIPT_INVALID' };
  await expect(second.receipts?.export()).rejects.toMatchObject(refusal);
  await expect(second.receipts?.export(['a'])).rejects.toMatchObject(refusal);
  await expect(second.receipts?.close('a')).rejects.toMatchObject(refusal);
  expect((await second.receipts?.export(['b']))?.length).toBeGreaterThan(0);
});

verifies('receipt.store', 'a store that fails while the log is opened ends no process', async () => {
  const store = crashingStore(memoryStore(), { appendNumber: 3, when: 'before' });
  const unhandled: unknown[] = [];
  const note = (reason: unknown): void => void unhandled.push(reason);
  process.on('unhandledRejection', note);
  const clock = new ManualClock(1_000_000);
  const host = hostOf([tool('echo')], { store, clock, receiptKeys: testKeys() });
  await host.run({ loop: 'echo', input: {}, sessionId: 'a' });
  const next = host.run({ loop: 'echo', input: {}, sessionId: 'b' }).catch(() => undefined);
  await clock.advance(1000);
  await next;
  await new Promise((resolve) => setTimeout(resolve, 20));
  process.off('unhandledRejection', note);
  expect(unhandled, 'an error of the log that nothing handles').toEqual([]);
});
