import { expect } from 'vitest';
import { hostOf, tool } from '../../../spec/support/host-fixture.js';
import { testKeys } from '../../../spec/support/receipt-keys.js';
import { verifies } from '../../../spec/verifies.js';
import { memoryStore } from '../../adapters/memory/index.js';
import { Fault } from '../../base/errors.js';
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

verifies(
  'receipt.store',
  'what belongs to a session that is removed while a store is verified is no flaw',
  async () => {
    const store = memoryStore();
    const worker = hostOf([tool('echo')], { store, receiptKeys: testKeys(), seed: 1 });
    for (const sessionId of ['a', 'b', 'c']) await worker.run({ loop: 'echo', input: {}, sessionId });
    await worker.receipts?.flush();
    const remove = async (session: string): Promise<void> => {
      await worker.receipts?.recordRemoval(session, 'ada');
      await store.journal.remove(session);
    };
    const [blobs, journal] = [Object.create(store.blobs), Object.create(store.journal)] as [
      Store['blobs'],
      Store['journal'],
    ];
    // One is removed before its definitions are read, one while its entries are.
    blobs.get = async (session, digest) => {
      if (session === 'a') await remove(session);
      return store.blobs.get(session, digest);
    };
    journal.read = async function* (session, from) {
      yield* store.journal.read(session, from);
      if (session !== 'b') return;
      await remove(session);
      throw new Fault('STORE_DAMAGED', 'The session has no entries.');
    };
    const verifier = hostOf([tool('echo')], { store: { ...store, blobs, journal }, receiptKeys: testKeys(), seed: 2 });
    const { valid, complete, reasons } = (await verifier.receipts?.verify(undefined)) ?? {};
    expect({ valid, complete, reasons }).toMatchObject({ valid: true, complete: 'unknown' });
    expect(reasons, 'a healthy store is called invalid').not.toContain('definition_missing');
    expect(await verifier.receipts?.verify(undefined)).toMatchObject({ valid: true, subject: { sessions: 1 } });
  },
);

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
