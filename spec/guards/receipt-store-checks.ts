// Checks of the verification of a store: each holds on the intact library and fails when its guard is broken.

import { deepStrictEqual, strictEqual } from 'node:assert';
import { merkleRoot } from '../../src/base/merkle.js';
import { TrustedKeys } from '../../src/base/trusted-keys.js';
import type { Entry } from '../../src/protocol/entry.js';
import type { Json } from '../../src/protocol/json.js';
import { createCheckpoint } from '../../src/views/receipt/checkpoint.js';
import { envelopeHash, logLeafOf } from '../../src/views/receipt/envelope.js';
import { receiptsIn } from '../../src/views/receipt/sealed-receipts.js';
import type { LogContents } from '../../src/views/receipt/verify-log.js';
import { hostOf, tool } from '../support/host-fixture.js';
import { testKeys } from '../support/receipt-keys.js';
import type { LibraryParts } from './library.js';

export const receiptStoreParts: LibraryParts = [
  'views/receipt/verify-store.js',
  'views/receipt/verify-log.js',
  'views/receipt/unsealed-turns.js',
  'views/receipt/findings.js',
  'views/receipt/verify-sessions.js',
  'views/receipt/checkpoint.js',
  'base/merkle.js',
];

type StoreLibrary = typeof import('../../src/views/receipt/verify-store.js') &
  typeof import('../../src/base/merkle.js');

interface Fixture {
  readonly entries: readonly Entry[];
  readonly log: LogContents;
  readonly keys: TrustedKeys;
}

/** Runs two turns in a session and closes it, and returns its entries and the log of its receipts. */
async function sealedSession(isClosed = false): Promise<Fixture> {
  const host = hostOf([tool('echo')], { receiptKeys: testKeys() });
  for (const index of [1, 2]) await host.run({ loop: 'echo', input: { index }, sessionId: 's' });
  if (isClosed) await host.receipts?.close('s');
  const entries = await host.archive.storedEntriesOf('s');
  const leaves = receiptsIn(entries).map(({ sequence, envelope }) => ({
    session: 's',
    sequence,
    leaf: logLeafOf(envelopeHash(envelope)),
  }));
  const log = {
    storeId: 'store',
    leaves,
    removed: [],
    checkpoints: [],
    isCutOff: false,
    isWitnessMissing: false,
    expected: leaves.length,
  };
  return { entries, log, keys: new TrustedKeys((await testKeys().list()).keys) };
}

/** A session that is complete, and the checkpoint of its log. */
async function completeSession(): Promise<Fixture & { readonly note: string }> {
  const { log, ...rest } = await sealedSession(true);
  const signer = await testKeys().signer('checkpoint');
  const root = merkleRoot(log.leaves.map(({ leaf }) => leaf));
  const state = { origin: 'rondo/store', size: log.leaves.length, root, sessions: [] };
  const note = await createCheckpoint(state, [signer]);
  return { ...rest, log: { ...log, checkpoints: [note] }, note };
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
    const removed = [{ session: 's', count: 2, head: '', by: 'ada', at: 2 }];
    strictEqual(verifyStore([], { ...log, removed }, keys, WHOLE).complete, 'unknown', 'a removal is no gap');
  },
  'only a whole store is complete': async ({ verifyStore }: StoreLibrary) => {
    const { entries, log, keys } = await completeSession();
    const verdictOf = (changed: Partial<LogContents>, session: readonly Entry[] = entries): unknown => {
      const { valid, complete, reasons } = verifyStore(
        [{ id: 's', entries: session }],
        { ...log, ...changed },
        keys,
        WHOLE,
      );
      return { valid, complete, reasons };
    };
    const unknown = (...reasons: readonly string[]): object => ({ valid: true, complete: 'unknown', reasons });
    deepStrictEqual(verdictOf({}), { valid: true, complete: true, reasons: [] });
    const removed = [{ session: 'other', count: 1, head: '', by: 'eve', at: 0 }];
    deepStrictEqual(verdictOf({ removed }), unknown('session_removed'));
    const unsealed = removed.map((removal) => ({ ...removal, unsealed: 1 }));
    deepStrictEqual(verdictOf({ removed: unsealed }), unknown('session_removed', 'turn_unsealed'));
    deepStrictEqual(verdictOf({ checkpoints: [] }), unknown('log_uncovered'));
    const added = { ...(entries.at(-1) as Entry), type: 'call.reopened', key: '#x', seq: entries.length };
    deepStrictEqual(verdictOf({}, [...entries, added]), unknown('entries_after_closed'));
    const other = { id: 't', entries: [{ seq: 0, at: 1, type: 'call.started', key: 't.1', name: 'pay' }] };
    const { complete, reasons } = verifyStore([{ id: 's', entries }, other], log, keys, WHOLE);
    deepStrictEqual({ complete, reasons }, { complete: 'unknown', reasons: ['turn_unsealed'] });
  },
  'a session may have the id of a removed one': async ({ verifyStore }: StoreLibrary) => {
    const { entries, log, keys } = await sealedSession();
    const earlier = [0, 1, 2].map((sequence) => ({ session: 's', sequence, leaf: `${sequence}e`.repeat(32) }));
    const leaves = [...earlier, ...log.leaves];
    const removed = [{ session: 's', count: 3, head: '', by: 'ada', at: 3 }];
    const verdictOf = (changed: Partial<LogContents>): unknown => {
      const whole = { ...log, leaves, removed, expected: leaves.length, ...changed };
      const { valid, complete, reasons } = verifyStore([{ id: 's', entries }], whole, keys, WHOLE);
      return { valid, complete, reasons };
    };
    const reasons = ['session_removed', 'log_uncovered', 'session_open'];
    deepStrictEqual(verdictOf({}), { valid: true, complete: 'unknown', reasons });
    const more = [...leaves, { session: 's', sequence: 2, leaf: '3e'.repeat(32) }];
    const missing = verdictOf({ leaves: more, expected: more.length });
    deepStrictEqual(missing, { valid: true, complete: false, reasons: ['receipts_missing'] });
    const part = verifyStore([{ id: 's', entries }], { ...log, leaves, removed }, keys, { ...WHOLE, isWhole: false });
    strictEqual(part.reasons.includes('session_removed'), true, 'the verdict of a session forgets an earlier one');
  },
  'a verdict names the part that it is about': async ({ verifyStore }: StoreLibrary) => {
    const { entries, log, keys } = await sealedSession();
    const scopeOf = (isWhole: boolean): unknown =>
      verifyStore([{ id: 's', entries }], log, keys, { trust: 'store', isWhole }).scope;
    deepStrictEqual([scopeOf(false), scopeOf(true)], [{ session: 's', asOf: 2 }, { asOf: 2 }]);
  },
  'what is logged later is not expected': async ({ verifyStore }: StoreLibrary) => {
    const { entries, log, keys } = await sealedSession();
    const later = { session: 'later', sequence: 0, leaf: 'ab'.repeat(32) };
    const leaves = [...log.leaves, later];
    const { complete, scope } = verifyStore([{ id: 's', entries }], { ...log, leaves }, keys, WHOLE);
    deepStrictEqual({ complete, scope }, { complete: 'unknown', scope: { asOf: 2 } });
    const expected = verifyStore([{ id: 's', entries }], { ...log, leaves, expected: 3 }, keys, WHOLE);
    strictEqual(expected.complete, false);
  },
  'an open session is not complete': async ({ verifyStore }: StoreLibrary) => {
    const { entries, log, keys } = await sealedSession();
    const { complete, reasons } = verifyStore([{ id: 's', entries }], log, keys, { trust: 'store', isWhole: false });
    deepStrictEqual({ complete, reasons }, { complete: 'unknown', reasons: ['session_open'] });
  },
  'a damaged store is not valid': async ({ verifyStore }: StoreLibrary) => {
    const { entries, log, keys } = await completeSession();
    const damage = ['the anchor is missing'];
    const { valid, reasons, checks } = verifyStore([{ id: 's', entries }], log, keys, { ...WHOLE, damage });
    deepStrictEqual({ valid, reasons }, { valid: false, reasons: ['store_damaged'] });
    strictEqual(checks.find(({ name }) => name === 'store')?.ok, false);
  },
  'a receipt that is stored as another is noticed': async ({ verifyStore }: StoreLibrary) => {
    const { entries, log, keys } = await completeSession();
    const changed = entries.map((entry) =>
      entry.key === '#receipt/1' ? { ...entry, value: { ...(entry.value as object), to: 9999 } as Json } : entry,
    );
    const { valid, reasons } = verifyStore([{ id: 's', entries: changed }], log, keys, WHOLE);
    deepStrictEqual({ valid, reasons }, { valid: false, reasons: ['journal_mismatch'] });
  },
  'a salt that is no salt is noticed': async ({ verifyStore }: StoreLibrary) => {
    const { entries, log, keys } = await completeSession();
    for (const salt of ['AAAA', 7]) {
      const changed = entries.map((entry) =>
        entry.key === '#receipt/0' ? { ...entry, value: { ...(entry.value as object), salt } as Json } : entry,
      );
      const { valid, reasons } = verifyStore([{ id: 's', entries: changed }], log, keys, WHOLE);
      deepStrictEqual({ valid, reasons }, { valid: false, reasons: ['journal_mismatch'] });
    }
  },
  'a log that does not continue the witness is noticed': async ({ verifyStore }: StoreLibrary) => {
    const { entries, log, keys, note } = await completeSession();
    const reasonsOf = (changed: Partial<LogContents>, witness: string): readonly string[] =>
      verifyStore([{ id: 's', entries }], { ...log, ...changed }, keys, { ...WHOLE, witness }).reasons;
    deepStrictEqual(reasonsOf({}, note), []);
    const rewritten = { leaves: [...log.leaves].reverse(), checkpoints: [] };
    strictEqual(reasonsOf(rewritten, note.replace(/— .*/su, '— other AAAA\n')).includes('log_rewritten'), true);
    strictEqual(reasonsOf({}, 'nonsense').includes('log_rewritten'), true);
  },
  'a witness that was removed is noticed': async ({ verifyStore }: StoreLibrary) => {
    const { entries, log, keys } = await completeSession();
    const { valid, reasons } = verifyStore([{ id: 's', entries }], { ...log, isWitnessMissing: true }, keys, WHOLE);
    deepStrictEqual({ valid, reasons }, { valid: false, reasons: ['witness_missing'] });
  },
  'definitions that were removed are noticed': async ({ verifyStore }: StoreLibrary) => {
    const { entries, log, keys } = await completeSession();
    const options = { ...WHOLE, turnsWithoutDefinitions: ['s.1'] };
    const { valid, reasons } = verifyStore([{ id: 's', entries }], log, keys, options);
    deepStrictEqual({ valid, reasons }, { valid: false, reasons: ['definition_missing'] });
  },
  'the log of another store is noticed': async ({ verifyStore }: StoreLibrary) => {
    const { entries, log, keys } = await completeSession();
    const { reasons } = verifyStore([{ id: 's', entries }], { ...log, storeId: 'another' }, keys, WHOLE);
    deepStrictEqual(reasons, ['log_rewritten']);
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
