// Receipts and the journal: a receipt that says anything else than the entries is refused.

import fc from 'fast-check';
import { expect } from 'vitest';
import { jsonEquals } from '../../src/json/value.js';
import type { Entry } from '../../src/protocol/entry.js';
import type { Json } from '../../src/protocol/json.js';
import type { ReceiptPredicate } from '../../src/protocol/receipt.js';
import { commitmentOf, commitmentSalt } from '../../src/views/receipt/commitment.js';
import { leafHash, leafHashes, leafSalt, leafText } from '../../src/views/receipt/leaf-hashes.js';
import { verifyTurnEntries } from '../../src/views/receipt/verify-turn-entries.js';
import { type SealedReceipt, sealSession } from '../support/receipt-fixture.js';
import { verifies } from '../verifies.js';

const receipts = await sealSession('a');
const entries = receipts.flatMap((receipt) => receipt.entries);
const [paused, done] = receipts as [SealedReceipt, SealedReceipt];
const verify = (
  receipt: SealedReceipt,
  more: Partial<ReceiptPredicate> = {},
  journal: readonly Entry[] = entries,
): readonly string[] => verifyTurnEntries({ ...receipt.predicate, ...more }, journal, receipt.salt);

verifies('receipt.journal', 'every receipt matches the entries that it was made from', () => {
  for (const receipt of receipts.slice(0, -1)) expect(verify(receipt)).toEqual([]);
  expect(verify(paused, { state: 'stopped', reason: 'budget' })).toEqual([]);
});

verifies('receipt.journal', 'a receipt that names another definition, result, effect or approval is refused', () => {
  const { effects, approvals, loop, journal } = done.predicate;
  const [effect] = effects;
  const [approval] = approvals;
  if (effect === undefined || approval === undefined) throw new Error('no effects');
  expect(verify(done, { loop: { ...loop, definition: 'd2' } })).toEqual(['loop_mismatch']);
  expect(verify(done, { loop: { ...loop, version: '2.0.0' } })).toEqual(['loop_mismatch']);
  expect(verify(done, { state: 'error', code: 'X' })).toEqual(['outcome_mismatch']);
  expect(verify(done, { principal: 'eve' })).toEqual(['principal_mismatch']);
  expect(verify(paused, { state: 'ok', final: true })).toEqual(['outcome_mismatch']);
  for (const changed of [
    { name: 'refund' },
    { key: 'a.0/9' },
    { state: 'failed' },
    { intent: 1 },
    { end: 3 },
    { safety: 'pure' },
    { attempts: 2 },
    { arguments: 'c'.repeat(64) },
  ])
    expect(verify(done, { effects: [{ ...effect, ...changed } as typeof effect] })).toEqual(['effects_mismatch']);
  expect(verify(done, { effects: [] })).toEqual(['effects_mismatch']);
  for (const changed of [{ by: 'eve' }, { approved: false }, { arguments: 'c'.repeat(64) }, { tool: 'x' }, { id: 'y' }])
    expect(verify(done, { approvals: [{ ...approval, ...changed }] })).toEqual(['approvals_mismatch']);
  expect(verify(done, { journal: { ...journal, root: 'd'.repeat(64) } })).toEqual(['root_mismatch']);
  expect(verify(done, { effects: [{ ...effect, boundary: 'sandbox' }] })).toEqual(['effects_mismatch']);
});

verifies('receipt.journal', 'a changed, missing, added or moved entry is noticed', () => {
  fc.assert(
    fc.property(
      fc.nat({ max: done.entries.length - 1 }),
      fc.constantFrom('value', 'at', 'drop', 'repeat', 'key'),
      (at, how) => {
        const chosen = done.entries[at] as Entry;
        const changed = entries.flatMap((each): Entry[] => {
          if (each !== chosen) return [each];
          if (how === 'drop') return [];
          if (how === 'repeat') return [each, each];
          if (how === 'value') return [{ ...each, value: { changed: true } }];
          return [how === 'at' ? { ...each, at: each.at + 1 } : { ...each, key: `${each.key}/x` }];
        });
        expect(verify(done, {}, changed)).toContain('root_mismatch');
      },
    ),
  );
  expect(verify({ ...done, salt: paused.salt })).toContain('root_mismatch');
});

verifies('receipt.journal', 'what was executed is what was approved, or the receipt is refused', () => {
  const changed = entries.map((each) =>
    each.type === 'effect.requested' && each.key.startsWith('a.0/') ? { ...each, value: { amount: 50 } } : each,
  );
  expect(verify(done, {}, changed)).toEqual(['root_mismatch', 'effects_mismatch']);
});

verifies('receipt.commitments', 'commitments for one effect are equal exactly if the values are', () => {
  const salt = commitmentSalt(Buffer.alloc(16, 3), 't/0');
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), (a, b) => {
      const [left, right] = [a, b].map((each) => JSON.parse(JSON.stringify(each)) as Json) as [Json, Json];
      expect(commitmentOf(salt, { value: left }) === commitmentOf(salt, { value: right })).toBe(
        jsonEquals(left, right),
      );
      expect(commitmentOf(salt, { value: structuredClone(left) as Json })).toBe(commitmentOf(salt, { value: left }));
    }),
  );
  expect(commitmentOf(salt, { value: { a: 1, b: 2 } })).toBe(commitmentOf(salt, { value: { b: 2, a: 1 } }));
  expect(commitmentOf(salt, { blob: 'x' })).not.toBe(commitmentOf(salt, { value: { blob: 'x' } }));
  const others = [commitmentSalt(Buffer.alloc(16, 3), 't/1'), commitmentSalt(Buffer.alloc(16, 4), 't/0')];
  for (const other of others)
    expect(commitmentOf(other, { value: 'yes' })).not.toBe(commitmentOf(salt, { value: 'yes' }));
});

verifies('receipt.disclosure', 'each leaf has a salt of its own, which does not reveal the others', () => {
  const salt = Buffer.alloc(16, 5);
  const each = Array.from({ length: 500 }, (_, i) => leafSalt(salt, i));
  expect(new Set(each).size).toBe(500);
  expect(each.every((text) => /^[0-9a-f]{32}$/.test(text))).toBe(true);
  expect(each).not.toContain(salt.toString('hex'));
  const entry = { seq: 1, at: 2, type: 'x', key: 'é'.repeat(20_000) } as const;
  const hashes = leafHashes(
    Array.from({ length: 9 }, () => entry),
    salt,
  );
  expect(new Set(hashes).size).toBe(9);
  for (const [i, hash] of hashes.entries()) expect(leafHash(each[i] as string, leafText(entry))).toBe(hash);
  expect(() => leafSalt(Buffer.alloc(8), 1)).toThrow('16 bytes');
});
