// Checks of the verification of a store: each holds on the intact library and fails when its guard is broken.

import { deepStrictEqual, strictEqual } from 'node:assert';
import { TrustedKeys } from '../../src/base/trusted-keys.js';
import type { Entry } from '../../src/protocol/entry.js';
import { createCheckpoint } from '../../src/views/receipt/checkpoint.js';
import { envelopeHash, logLeafOf } from '../../src/views/receipt/envelope.js';
import { receiptsIn } from '../../src/views/receipt/sealed-receipts.js';
import type { LogContents } from '../../src/views/receipt/verify-store.js';
import { hostOf, tool } from '../support/host-fixture.js';
import { testKeys } from '../support/receipt-keys.js';
import type { LibraryParts } from './library.js';

export const receiptStoreParts: LibraryParts = ['views/receipt/verify-store.js', 'base/merkle.js'];

type StoreLibrary = typeof import('../../src/views/receipt/verify-store.js') &
  typeof import('../../src/base/merkle.js');

interface Fixture {
  readonly entries: readonly Entry[];
  readonly log: LogContents;
  readonly keys: TrustedKeys;
}

/** Runs two turns in a session, and returns its entries and the log of its receipts. */
async function sealedSession(): Promise<Fixture> {
  const host = hostOf([tool('echo')], { receiptKeys: testKeys() });
  for (const index of [1, 2]) await host.run({ loop: 'echo', input: { index }, sessionId: 's' });
  const entries = await host.archive.storedEntriesOf('s');
  const leaves = receiptsIn(entries).map(({ sequence, envelope }) => ({
    session: 's',
    sequence,
    leaf: logLeafOf(envelopeHash(envelope)),
  }));
  const log = { storeId: 'store', leaves, removed: [], checkpoints: [] };
  return { entries, log, keys: new TrustedKeys((await testKeys().list()).keys) };
}

const WHOLE = { trust: 'store', isWhole: true } as const;

/** Each check asserts that the intact store is valid, and that a changed one is not. */
export const receiptStoreChecks = {
  'a changed journal is noticed': async ({ verifyStore }: StoreLibrary) => {
    const { entries, log, keys } = await sealedSession();
    strictEqual(verifyStore([{ id: 's', entries }], log, keys, WHOLE).valid, true);
    const changed = entries.map((entry) => (entry.type === 'call.completed' ? { ...entry, value: 'other' } : entry));
    const { valid, reasons } = verifyStore([{ id: 's', entries: changed }], log, keys, WHOLE);
    deepStrictEqual({ valid, reasons }, { valid: false, reasons: ['journal_mismatch'] });
  },
  'a receipt that differs from the log is noticed': async ({ verifyStore }: StoreLibrary) => {
    const { entries, log, keys } = await sealedSession();
    const leaves = log.leaves.map((leaf) => ({ ...leaf, leaf: 'ab'.repeat(32) }));
    const { valid, reasons } = verifyStore([{ id: 's', entries }], { ...log, leaves }, keys, WHOLE);
    deepStrictEqual({ valid, reasons }, { valid: false, reasons: ['log_mismatch'] });
  },
  'a receipt that only the log has is missing': async ({ verifyStore }: StoreLibrary) => {
    const { entries, log, keys } = await sealedSession();
    const cut = entries.slice(0, -1);
    const { complete, reasons } = verifyStore([{ id: 's', entries: cut }], log, keys, WHOLE);
    deepStrictEqual({ complete, reasons }, { complete: false, reasons: ['receipts_missing'] });
    const removed = [{ session: 's', count: 2, head: '', by: 'ada' }];
    strictEqual(verifyStore([], { ...log, removed }, keys, WHOLE).complete, 'unknown', 'a removal is no gap');
  },
  'a log that was rewritten is noticed': async ({ verifyStore, merkleRoot }: StoreLibrary) => {
    const { entries, log, keys } = await sealedSession();
    const signer = await testKeys().signer('checkpoint');
    const root = merkleRoot(['1'.repeat(64), '2'.repeat(64)]);
    const note = await createCheckpoint({ origin: 'rondo/store', size: 2, root, sessions: [] }, [signer]);
    const { valid, reasons } = verifyStore([{ id: 's', entries }], { ...log, checkpoints: [note] }, keys, WHOLE);
    deepStrictEqual({ valid, reasons }, { valid: false, reasons: ['log_rewritten'] });
  },
};
