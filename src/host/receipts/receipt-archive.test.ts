import { expect } from 'vitest';
import { hostOf, tool } from '../../../spec/support/host-fixture.js';
import { testKeys } from '../../../spec/support/receipt-keys.js';
import { verifies } from '../../../spec/verifies.js';
import { memoryStore } from '../../adapters/memory/index.js';
import { TrustedKeys } from '../../base/trusted-keys.js';
import type { Store } from '../../journal/store.js';
import { verifyBundle } from '../../views/receipt/verify-bundle.js';

const trusted = new TrustedKeys((await testKeys().list()).keys);

/** Returns a host that verifies a store, in which turns end whenever it has read a session. */
async function busyStore() {
  const store = memoryStore();
  const worker = hostOf([tool('echo')], { store, receiptKeys: testKeys(), seed: 1 });
  const run = async (sessionId: string): Promise<void> => {
    await worker.run({ loop: 'echo', input: {}, sessionId });
    await worker.receipts?.flush();
  };
  for (const session of ['a', 'b']) await run(session);
  let turns = 0;
  const journal = Object.create(store.journal) as Store['journal'];
  journal.read = async function* (session, from) {
    yield* store.journal.read(session, from);
    if (session.startsWith('rondo:')) return;
    for (const busy of [session, `new${turns++}`]) await run(busy);
  };
  return { run, verifier: hostOf([tool('echo')], { store: { ...store, journal }, receiptKeys: testKeys(), seed: 2 }) };
}

verifies('receipt.store', 'receipts of turns that end while a store is verified are not missing', async () => {
  const { verifier } = await busyStore();
  for (const sessions of [undefined, ['a'], ['a', 'b']])
    expect(await verifier.receipts?.verify(sessions), `${sessions}`).toMatchObject({
      valid: true,
      complete: 'unknown',
    });
});

verifies('receipt.log', 'a receipt that two processes add to the log is in it once', async () => {
  const store = memoryStore();
  const worker = hostOf([tool('echo')], { store, receiptKeys: testKeys(), seed: 1 });
  await worker.run({ loop: 'echo', input: {}, sessionId: 'a' });
  await worker.receipts?.flush();
  await worker.run({ loop: 'echo', input: {}, sessionId: 'a' });
  // The worker waits for further receipts before it appends.
  const verifier = hostOf([tool('echo')], { store, receiptKeys: testKeys(), seed: 2 });
  expect(await verifier.receipts?.verify(undefined)).toMatchObject({ valid: true, subject: { receipts: 2, log: 2 } });
  await worker.receipts?.flush();
  expect(await verifier.receipts?.verify(undefined)).toMatchObject({ valid: true, subject: { receipts: 2, log: 2 } });
});

verifies('receipt.store', 'the receipts of a store can be exported while its turns end', async () => {
  const { verifier } = await busyStore();
  for (const sessions of [undefined, ['a']]) {
    const bytes = (await verifier.receipts?.export(sessions)) ?? Buffer.alloc(0);
    const { verdict } = verifyBundle(bytes, trusted);
    expect(verdict, `${sessions}`).toMatchObject({ valid: true, complete: 'unknown', reasons: ['session_open'] });
  }
});
