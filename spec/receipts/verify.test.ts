// Verdicts about bundles: what makes one valid, invalid, complete or of unknown completeness.

import { expect } from 'vitest';
import type { ReceiptBundle, ReceiptPredicate, ReceiptVerdict } from '../../src/protocol/receipt.js';
import { bundleBytes } from '../../src/views/receipt/bundle.js';
import { envelopeHash } from '../../src/views/receipt/envelope.js';
import { receiptReasons } from '../../src/views/receipt/reasons.js';
import { type VerifyOptions, verifyBundle } from '../../src/views/receipt/verify-bundle.js';
import {
  type BundleOptions,
  bundleOf,
  NO_GAPS,
  type SealedReceipt,
  sealHostedTurns,
  sealSession,
  trustedKeys,
} from '../support/receipt-fixture.js';
import { verifies } from '../verifies.js';

const verdictOf = (bundle: ReceiptBundle, options?: VerifyOptions): ReceiptVerdict =>
  verifyBundle(bundleBytes(bundle), trustedKeys, options).verdict;

const CHECKS = ['form', 'checkpoint', 'signatures', 'log', 'chain', 'effects', 'entries', 'completeness'];

const sessions = await Promise.all([sealSession('a'), sealSession('b', { turns: 1 })]);
const [first, second] = sessions as [readonly SealedReceipt[], readonly SealedReceipt[]];

verifies(
  'receipt.complete',
  'a bundle of closed sessions is valid, complete only with a checkpoint, and returns the bytes it checked',
  async () => {
    for (const hasCheckpoint of [true, false]) {
      const bundle = await bundleOf(sessions, { hasCheckpoint, disclosed: 3 });
      const { verdict, receipts } = verifyBundle(bundleBytes(bundle), trustedKeys);
      expect(verdict).toEqual({
        ...{
          valid: true,
          kind: 'rondo',
          trust: 'file',
          subject: { sessions: 2, receipts: 8, ...(hasCheckpoint && { log: 8 }) },
        },
        ...(hasCheckpoint && { scope: { asOf: 8 } }),
        ...(hasCheckpoint ? { complete: true, reasons: [] } : { complete: 'unknown', reasons: ['checkpoint_missing'] }),
        checks: CHECKS.filter((name) => hasCheckpoint || name !== 'checkpoint').map((name) => ({
          ...{ name, ok: true },
          ...(!hasCheckpoint && name === 'completeness' && { note: 'unknown: there is no checkpoint' }),
        })),
      });
      expect(receipts.map(({ payload }) => Buffer.from(payload).toString('base64'))).toEqual(
        bundle.receipts.map(({ envelope }) => envelope.payload),
      );
      expect(receipts[2]?.logIndex).toBe(hasCheckpoint ? 2 : undefined);
    }
  },
);

verifies('receipt.scope', 'a bundle is complete for the sessions of its checkpoint, unless that says all', async () => {
  const scopeOf = async (
    kept: readonly (readonly SealedReceipt[])[],
    scope: BundleOptions['scope'],
  ): Promise<unknown> => verdictOf(await bundleOf(kept, { scope })).scope;
  expect(await scopeOf(sessions, { isWhole: true, asOf: 7, gaps: NO_GAPS })).toEqual({ asOf: 7 });
  expect(await scopeOf([first], { isWhole: true, asOf: 5, gaps: NO_GAPS })).toEqual({ asOf: 5 });
  expect(await scopeOf([first], { isWhole: true, asOf: 5 }), 'an older version, which does not say').toEqual({
    ...{ session: 'a', asOf: 5 },
  });
  expect(await scopeOf([first], { isWhole: false, asOf: 3 })).toEqual({ session: 'a', asOf: 3 });
  expect(await scopeOf(sessions, { isWhole: false, asOf: 8 })).toEqual({ sessions: ['a', 'b'], asOf: 8 });
  expect(await scopeOf(sessions, 'none'), 'a checkpoint of an older version').toEqual({
    sessions: ['a', 'b'],
    asOf: 8,
  });
  expect(await scopeOf([first], 'none')).toEqual({ session: 'a', asOf: 5 });
  await expect(bundleOf([first], { scope: { isWhole: true, asOf: 6 } }), 'a scope beyond the log').rejects.toThrow();
});

verifies('receipt.complete', 'a bundle is as complete as its store was when it was made', async () => {
  const reasonsOf = async (gaps: typeof NO_GAPS) => {
    const { valid, complete, reasons } = verdictOf(
      await bundleOf(sessions, { scope: { isWhole: true, asOf: 8, gaps } }),
    );
    return { valid, complete, reasons };
  };
  expect(await reasonsOf(NO_GAPS)).toEqual({ valid: true, complete: true, reasons: [] });
  const unknown = { valid: true, complete: 'unknown' };
  expect(await reasonsOf({ unsealed: 1, removed: 0 })).toEqual({ ...unknown, reasons: ['turn_unsealed'] });
  expect(await reasonsOf({ unsealed: 0, removed: 2 })).toEqual({ ...unknown, reasons: ['session_removed'] });
  await expect(reasonsOf({ unsealed: -1, removed: 0 })).rejects.toThrow('invalid');
});

verifies('receipt.complete', 'without a terminal receipt, it is unknown whether a bundle is complete', async () => {
  const open = [await sealSession('a', { isClosed: false })];
  expect(verdictOf(await bundleOf(open))).toMatchObject({
    valid: true,
    complete: 'unknown',
    reasons: ['session_open'],
  });
  expect(verdictOf(await bundleOf(open, { hasCheckpoint: false }))).toMatchObject({ valid: true, complete: 'unknown' });
  expect(verdictOf(await bundleOf(open), { requireTerminal: true })).toMatchObject({
    complete: false,
    reasons: ['terminal_missing'],
  });
});

verifies(
  'receipt.complete',
  'a file without a turn of a hosted loop that a later one names lacks receipts',
  async () => {
    const turns = await sealHostedTurns(4);
    const verify = async (numbers: readonly number[], isIncluded = (_: SealedReceipt): boolean => true) => {
      const sessions = numbers.map((number) => turns[number - 1] ?? []);
      return verdictOf(await bundleOf(sessions, { hasCheckpoint: false, isIncluded }));
    };
    for (const numbers of [[1, 2, 3, 4], [1, 2], [1], [3], [4]])
      expect(await verify(numbers), String(numbers)).toMatchObject({ valid: true, complete: 'unknown' });
    const missing = { valid: true, complete: false, reasons: ['receipts_missing'] };
    for (const numbers of [
      [1, 3],
      [1, 2, 4],
      [1, 4],
      [2, 3, 4],
      [3, 4],
      [2, 4],
    ])
      expect(await verify(numbers), String(numbers)).toMatchObject(missing);
    const withoutEnd = (receipt: SealedReceipt): boolean => receipt !== turns[1]?.at(-1);
    expect(await verify([1, 2, 3], withoutEnd), 'the final receipt of a turn is missing').toMatchObject(missing);
  },
);

verifies('receipt.complete', 'a cut tail, a gap, a missing start and a missing session are noticed', async () => {
  const last = first.at(-1);
  const missing: readonly ((receipt: SealedReceipt) => boolean)[] = [
    (receipt) => receipt === last,
    (receipt) => receipt === first[1],
    (receipt) => receipt === first[0],
    (receipt) => first.includes(receipt),
    (receipt) => receipt !== first[2],
  ];
  for (const isMissing of missing) {
    const bundle = await bundleOf(sessions, { isIncluded: (receipt) => !isMissing(receipt) });
    expect(verdictOf(bundle)).toMatchObject({ valid: true, complete: false, reasons: ['receipts_missing'] });
  }
  const cut = await bundleOf([first.slice(0, -1)], { hasCheckpoint: false });
  expect(verdictOf(cut)).toMatchObject({ valid: true, complete: 'unknown' });
  expect(verdictOf(cut, { expectedLength: 5 })).toMatchObject({
    complete: false,
    reasons: expect.arrayContaining(['length_mismatch']),
  });
  const expectedHead = envelopeHash((last as SealedReceipt).envelope);
  expect(verdictOf(cut, { expectedHead })).toMatchObject({
    complete: false,
    reasons: expect.arrayContaining(['head_mismatch']),
  });
  const whole = await bundleOf([first], { hasCheckpoint: false });
  expect(verdictOf(whole, { expectedHead, expectedLength: 5, requireTerminal: true })).toMatchObject({
    valid: true,
    complete: 'unknown',
    reasons: ['checkpoint_missing'],
  });
});

/** Returns the verdict about a session whose receipts were changed before they were signed, or after. */
async function changed(
  change: (predicate: ReceiptPredicate) => object,
  rearrange: (receipts: readonly SealedReceipt[]) => readonly SealedReceipt[] = (receipts) => receipts,
): Promise<ReceiptVerdict> {
  const sealed = await sealSession('a', {
    change: (predicate) => ({ ...predicate, ...change(predicate) }) as ReceiptPredicate,
  });
  return verdictOf(await bundleOf([rearrange(sealed)], { hasCheckpoint: false }));
}

verifies(
  'receipt.complete',
  'receipts in another order, twice, after the end of a turn or of a session are refused',
  async () => {
    const swap = ([a, b, ...rest]: readonly SealedReceipt[]): SealedReceipt[] => [b, a, ...rest] as SealedReceipt[];
    expect((await changed(() => ({}), swap)).reasons).toContain('receipts_out_of_order');
    expect(
      (
        await changed(
          () => ({}),
          (list) => [...list, ...list.slice(-1)],
        )
      ).reasons,
    ).toContain('receipts_out_of_order');
    const reasonsOf = async (change: (predicate: ReceiptPredicate) => object): Promise<readonly string[]> =>
      (await changed(change)).reasons;
    expect(await reasonsOf(({ sequence }) => (sequence === 0 ? { state: 'error', final: true } : {}))).toEqual([
      'receipt_after_final',
    ]);
    const closed = { state: 'closed', final: true, turn: '', effects: [], approvals: [] };
    expect(await reasonsOf(({ sequence }) => (sequence === 2 ? closed : {}))).toContain('receipt_after_closed');
    expect(await reasonsOf(({ sequence }) => (sequence === 2 ? { previous: 'a'.repeat(64) } : {}))).toEqual([
      'chain_broken',
    ]);
    expect(
      await reasonsOf(({ sequence, journal }) => (sequence === 1 ? { journal: { ...journal, from: 3 } } : {})),
    ).toEqual(['journal_overlap']);
    const mixed = verdictOf(await bundleOf([second, first], { hasCheckpoint: false }));
    expect(mixed).toMatchObject({ valid: false, reasons: ['receipts_out_of_order'] });
  },
);

verifies(
  'receipt.journal',
  'effects and approvals that contradict each other or their entries are refused',
  async () => {
    const inSecond = (change: (predicate: ReceiptPredicate) => object) => async (): Promise<readonly string[]> =>
      (await changed((predicate) => (predicate.sequence === 1 ? change(predicate) : {}))).reasons;
    const withEffect = (more: object) =>
      inSecond(({ effects }) => ({ effects: effects.map((each) => ({ ...each, ...more })) }));
    const withApproval = (more: object) =>
      inSecond(({ approvals }) => ({ approvals: approvals.map((each) => ({ ...each, ...more })) }));
    expect(await withEffect({ arguments: 'b'.repeat(64) })()).toEqual(['arguments_mismatch']);
    expect(await withApproval({ arguments: 'b'.repeat(64) })()).toEqual(['arguments_mismatch']);
    expect(await withApproval({ approved: false })()).toEqual(['denied_effect_executed']);
    expect(await withApproval({ effect: 'another' })()).toEqual(['arguments_missing']);
    expect(await inSecond(() => ({ approvals: [] }))()).toEqual(['arguments_missing']);
    expect(await withEffect({ end: 7 })()).toEqual(['effect_leaf']);
    expect(await withEffect({ end: 1 })()).toEqual(['effect_inconsistent']);
    expect(await withEffect({ state: 'denied' })()).toEqual(['effect_inconsistent']);
    expect(await inSecond(({ effects }) => ({ effects: [...effects, ...effects] }))()).toEqual(['effect_duplicate']);
    const withoutArguments = inSecond(({ effects }) => ({ effects: effects.map(({ arguments: _, ...each }) => each) }));
    expect(await withoutArguments()).toEqual(['arguments_missing']);
  },
);

verifies(
  'receipt.disclosure',
  'a disclosed entry is proved alone, and no other entry or salt passes for it',
  async () => {
    const bundle = await bundleOf(sessions, { disclosed: 4 });
    const [entry, other, ...rest] = bundle.entries ?? [];
    if (entry === undefined || other === undefined) throw new Error('no entries');
    expect(verdictOf(bundle)).toMatchObject({ valid: true, complete: true });
    for (const wrong of [
      { ...entry, entry: other.entry },
      { ...entry, salt: other.salt },
      { ...entry, leaf: 7 },
      { ...entry, proof: other.proof },
      { ...entry, entry: `${entry.entry} ` },
    ])
      expect(verdictOf({ ...bundle, entries: [wrong] }).reasons).toEqual(['entry_not_in_receipt']);
    expect(verdictOf({ ...bundle, entries: [{ ...entry, receipt: 99 }] }).reasons).toEqual(['entry_not_in_receipt']);
    expect(verdictOf({ ...bundle, entries: [other, entry, ...rest] }).reasons).toEqual(['entries_out_of_order']);
    expect(new Set(bundle.entries?.map(({ salt }) => salt)).size).toBe(bundle.entries?.length);
  },
);

verifies(
  'receipt.complete',
  'the checkpoint of a bundle lists its sessions, and proves each of its receipts',
  async () => {
    const bundle = await bundleOf(sessions);
    const fewer = await bundleOf([first]);
    const other = await bundleOf([await sealSession('a', { turns: 1 }), second]);
    const [head, ...tail] = bundle.receipts;
    expect(verdictOf({ ...bundle, checkpoint: fewer.checkpoint ?? '' }).reasons).toEqual([
      'proof_invalid',
      'session_not_listed',
    ]);
    expect(verdictOf({ ...bundle, checkpoint: other.checkpoint ?? '' }).reasons).toEqual([
      'proof_invalid',
      'checkpoint_mismatch',
    ]);
    const { checkpoint: _, ...unproved } = bundle;
    expect(verdictOf(unproved).reasons).toEqual(['proof_without_checkpoint']);
    expect(verdictOf({ ...bundle, receipts: [{ envelope: head?.envelope as never }, ...tail] }).reasons).toEqual([
      'proof_missing',
    ]);
  },
);

verifies('receipt.complete', 'an unknown option is refused, and every reason is in the table', async () => {
  const bytes = bundleBytes(await bundleOf(sessions));
  expect(() => verifyBundle(bytes, trustedKeys, { requireTermial: true } as never)).toThrow('requireTermial');
  expect(Object.keys(receiptReasons)).toContain('chain_broken');
  expect(verifyBundle(bytes, trustedKeys, { trust: 'store' }).verdict.trust).toBe('store');
});
