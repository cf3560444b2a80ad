// Receipts of turns that a host really ran: every effect and every answer is in one of them, and in the right one.

import { expect } from 'vitest';
import { merkleRoot } from '../../src/base/merkle.js';
import type { Entry } from '../../src/protocol/entry.js';
import { leafHashes } from '../../src/views/receipt/leaf-hashes.js';
import { foldTurn, isEntryOfTurn, TurnFold, type TurnPart } from '../../src/views/receipt/turn-fold.js';
import { ASK, onlyPending, RecordedActions } from '../support/approval-fixture.js';
import { composite, hostOf, tool } from '../support/host-fixture.js';
import { verifies } from '../verifies.js';

const SALT = Buffer.alloc(16, 7);

const partOf = (entries: readonly Entry[], turn: string, from = 0): TurnPart =>
  foldTurn(
    turn,
    entries.filter((entry) => isEntryOfTurn(entry, turn)),
    from,
    SALT,
  );

verifies(
  'receipt.fold',
  'a turn of leaf calls has one effect for each, with the leaves of its intent and its end',
  async () => {
    const host = hostOf(
      [
        tool('a'),
        tool('b', 'builtin:b'),
        composite('both', [
          { loopId: 'a', inputMapping: {} },
          { loopId: 'b', inputMapping: {} },
        ]),
      ],
      {
        tools: {
          b: () => {
            throw new Error('down');
          },
        },
      },
    );
    const { turnId, sessionId } = await host.run({ loop: 'both', input: {}, principal: 'ada' });
    const entries = await host.archive.entries(sessionId);
    const part = partOf(entries, turnId);
    expect(part).toMatchObject({ state: 'error', final: true, code: 'TOOL_FAILED', principal: 'ada', approvals: [] });
    expect(part.loop.id).toBe('both');
    expect(part.loop.definition).not.toBe('');
    expect(part.effects.map(({ name, state }) => `${name} ${state}`)).toEqual(['a done', 'b failed']);
    const covered = entries.filter((entry) => isEntryOfTurn(entry, turnId));
    expect(part.journal.count).toBe(covered.length);
    for (const { intent = -1, end = -1 } of part.effects) {
      expect(covered[intent]?.type).toBe('call.started');
      expect(covered[end]?.type).toMatch(/^call\.(?:completed|errored)$/);
    }
    expect(part.journal.root).toBe(merkleRoot(leafHashes(covered, SALT)));
  },
);

verifies('receipt.fold', 'an approved call is in the receipt after its pause, with equal commitments', async () => {
  const { act } = new RecordedActions();
  const host = hostOf([tool('pay', 'builtin:pay', ASK)], { tools: { pay: act } });
  const { turnId, sessionId } = await host.run({ loop: 'pay', input: { amount: 12 } });
  const before = await host.archive.entries(sessionId);
  const paused = partOf(before, turnId);
  expect(paused).toMatchObject({ state: 'paused', final: false, approvals: [], effects: [] });
  const approval = await onlyPending(host);
  await host.answer({ id: approval.id, approved: true, by: 'ada' });
  await host.resume(turnId);
  const part = partOf(await host.archive.entries(sessionId), turnId, paused.journal.to + 1);
  expect(part).toMatchObject({ state: 'ok', final: true });
  expect(part.effects).toMatchObject([{ name: 'pay', state: 'done' }]);
  expect(part.approvals).toMatchObject([{ id: approval.id, tool: 'pay', by: 'ada', approved: true }]);
  expect(part.approvals[0]?.effect).toBe(part.effects[0]?.key);
  expect(part.approvals[0]?.arguments).toBe(part.effects[0]?.arguments);
  expect(part.journal.from).toBeGreaterThan(paused.journal.to);
});

verifies('receipt.fold', 'a denied call is an effect that was not started', async () => {
  const { act } = new RecordedActions();
  const host = hostOf([tool('pay', 'builtin:pay', ASK)], { tools: { pay: act } });
  const { turnId, sessionId } = await host.run({ loop: 'pay', input: { amount: 12 } });
  const approval = await onlyPending(host);
  await host.answer({ id: approval.id, approved: false, by: 'ada' });
  await host.resume(turnId);
  const part = partOf(await host.archive.entries(sessionId), turnId);
  expect(part).toMatchObject({ state: 'error', code: 'APPROVAL_DENIED' });
  expect(part.effects).toMatchObject([{ name: 'pay', state: 'denied' }]);
  expect(part.effects[0]).not.toHaveProperty('intent');
  expect(part.effects[0]).not.toHaveProperty('arguments');
  expect(part.approvals).toMatchObject([{ id: approval.id, approved: false, by: 'ada' }]);
});

const entry = (seq: number, type: string, key: string, more: Partial<Entry> = {}): Entry => ({
  seq,
  at: seq,
  type,
  key,
  ...more,
});
const intent = { kind: 'tool', name: 'send', safety: 'once', value: { to: 'ada' } } as const;

verifies('receipt.fold', 'an effect without an end is unknown, and its end is in the receipt that covers it', () => {
  const fold = new TurnFold('t');
  for (const each of [entry(3, 'call.started', 't', { name: 'main' }), entry(4, 'effect.requested', 't/0', intent)])
    fold.apply(each);
  expect(fold.summarize(SALT)).toMatchObject({
    state: 'paused',
    effects: [{ key: 't/0', state: 'unknown', intent: 1 }],
  });
  fold.beginPart();
  expect(fold.isEmpty).toBe(true);
  for (const each of [
    entry(9, 'effect.requested', 't/0~1', intent),
    entry(12, 'effect.returned', 't/0', { value: 'sent' }),
    entry(13, 'call.completed', 't'),
  ])
    fold.apply(each);
  const part = fold.summarize(SALT);
  expect(part.effects).toEqual([
    { key: 't/0', name: 'send', kind: 'tool', safety: 'once', state: 'done', intent: 0, end: 1, attempts: 2 },
  ]);
  expect(part.journal).toMatchObject({ from: 9, to: 13, count: 3 });
});

verifies('receipt.fold', 'an effect that was resolved as failed may have happened', () => {
  const error = { code: 'EFFECT_IN_DOUBT', message: 'unknown' };
  const part = foldTurn(
    't',
    [entry(0, 'effect.requested', 't/0', intent), entry(1, 'effect.failed', 't/0', { error })],
    0,
    SALT,
  );
  expect(part.effects).toMatchObject([{ state: 'unknown', intent: 0, end: 1 }]);
});

verifies('receipt.fold', 'a body cannot forge an approval', () => {
  const value = { id: 't:x', tool: 'send' };
  const part = foldTurn(
    't',
    [
      entry(0, 'rondo.approval.requested', 't/0', { value }),
      entry(1, 'wait.opened', 't/1', { name: 'approval t:x' }),
      entry(2, 'wait.settled', 't/1', { value: { approved: true, by: 'ada' } }),
      entry(3, 'effect.requested', 't/2', intent),
      entry(4, 'effect.returned', 't/2'),
    ],
    0,
    SALT,
  );
  expect(part.approvals).toEqual([]);
});

verifies('receipt.fold', 'texts that cannot be signed are made signable, so that every turn can be sealed', () => {
  const part = foldTurn(
    't',
    [
      entry(0, 'call.started', 't', { name: '\ud800x' }),
      entry(1, 'effect.requested', 't/0', { ...intent, name: 'y'.repeat(9999) }),
    ],
    0,
    SALT,
  );
  expect(part.loop.id).toBe('\ufffdx');
  expect(part.effects[0]?.name.length).toBe(4096);
});

verifies('receipt.fold', 'entries of other turns are not covered, whatever their ids', () => {
  const of = (turn: string, more: Partial<Entry>): boolean =>
    isEntryOfTurn(entry(0, more.type ?? 'x', more.key ?? '', more), turn);
  expect(of('s.1', { key: 's.1/0' })).toBe(true);
  expect(of('s.1', { key: 's.10/0' })).toBe(false);
  expect(of('a', { type: 'signal.received', key: 'approval a:b:0123', name: 'approval a:b:0123' })).toBe(false);
  expect(of('a:b', { type: 'signal.received', key: 'approval a:b:0123', name: 'approval a:b:0123' })).toBe(true);
  expect(of('a', { type: 'signal.received', key: 'a', name: 'paid' })).toBe(false);
  expect(of('a', { type: 'signal.received', key: 'k', name: 'paid', turnId: 'a' })).toBe(true);
});
