import fc from 'fast-check';
import { expect } from 'vitest';
import { composite, hostOf, tool } from '../../../spec/support/host-fixture.js';
import { testKeys } from '../../../spec/support/receipt-keys.js';
import { verifies } from '../../../spec/verifies.js';
import { encodeBase64 } from '../../base/base64.js';
import type { Entry } from '../../protocol/entry.js';
import type { Json } from '../../protocol/json.js';
import type { ReceiptPredicate } from '../../protocol/receipt.js';
import { RECEIPT_SEALED } from '../turns.js';
import { statementBytes } from './statement.js';
import { MAX_SUMMARY_BYTES, summarizeReceipts } from './summary.js';

const TURN = 'ada.1';
const hash = 'a'.repeat(64);

const predicateOf = (sequence: number, more: Partial<ReceiptPredicate> = {}): ReceiptPredicate => ({
  session: 'ada',
  turn: TURN,
  sequence,
  ...(sequence > 0 && { previous: hash }),
  at: '2026-01-01T00:00:00.000Z',
  state: 'paused',
  final: false,
  loop: { id: 'helper', version: '1.0.0', definition: 'x' },
  approvals: [],
  effects: [],
  journal: { from: 0, to: 0, count: 1, root: hash },
  ...more,
});

const entryOf = (predicate: ReceiptPredicate): Entry => {
  const { turn, sequence, final, state } = predicate;
  const envelope = { payload: encodeBase64(statementBytes(predicate)), payloadType: 'x', signatures: [] };
  const value = { turn, sequence, final, state, hash, to: 0, envelope };
  return { seq: sequence, at: 0, type: RECEIPT_SEALED, key: `#receipt/${sequence}`, value: value as Json };
};

verifies(
  'context.receipts',
  'a summary has the id, the state, the code, the loop and the number of effects',
  async () => {
    const act = (): Json => {
      throw new Error('the till is closed');
    };
    const steps = ['echo', 'act'].map((loopId) => ({ loopId, inputMapping: '$.input' }));
    const host = hostOf([tool('echo'), tool('act', 'builtin:act'), composite('both', steps)], {
      tools: { act },
      receiptKeys: testKeys(),
    });
    const { turnId, receipt } = await host.run({ loop: 'both', input: {}, sessionId: 's' });
    const summary = summarizeReceipts(turnId, await host.archive.entries('s')) ?? '';
    const [title, line = '', ...others] = summary.split('\n');
    expect([title, others]).toEqual([`Receipts of turn ${turnId}: 1.`, []]);
    expect(JSON.parse(line)).toEqual({
      id: receipt,
      state: 'error',
      final: true,
      code: 'TOOL_FAILED',
      loop: 'both 1.0.0',
      effects: { done: 1, failed: 1 },
    });
  },
);

verifies('context.receipts', 'a turn without receipts has no summary, and receipts of other turns do not count', () => {
  expect(summarizeReceipts('ada.2', [entryOf(predicateOf(0))])).toBeUndefined();
  expect(summarizeReceipts(TURN, [])).toBeUndefined();
});

verifies(
  'context.receipts',
  'a summary is at most 4 KiB, ends with the newest receipt and has no hidden characters',
  () => {
    const reason = fc.string({ unit: 'grapheme', maxLength: 400 });
    fc.assert(
      fc.property(fc.array(reason, { minLength: 1, maxLength: 40 }), (reasons) => {
        const entries = reasons.map((text, sequence) => entryOf(predicateOf(sequence, { reason: text })));
        const summary = summarizeReceipts(TURN, entries) ?? '';
        expect(Buffer.byteLength(summary)).toBeLessThanOrEqual(MAX_SUMMARY_BYTES);
        expect(summary).toBe(summarizeReceipts(TURN, entries));
        const [title = '', ...lines] = summary.split('\n');
        expect(title).toContain(`: ${reasons.length}`);
        const omitted = Number(/first (\d+) of them/.exec(title)?.[1] ?? 0);
        expect(lines.length + omitted).toBe(reasons.length);
        const last = summarizeReceipts(TURN, entries.slice(-1))?.split('\n').at(-1);
        expect(lines.at(-1)).toBe(last);
        expect(summary).not.toMatch(/[\u202a-\u202e\u2066-\u2069\u200b]/u);
      }),
    );
  },
);

verifies('context.receipts', 'a receipt that cannot be read is refused, not left out', () => {
  const entry = entryOf(predicateOf(0));
  const envelope = { payload: encodeBase64(Buffer.from('{}')), payloadType: 'x', signatures: [] };
  const damaged = { ...entry, value: { ...(entry.value as object), envelope } as Json };
  expect(() => summarizeReceipts(TURN, [damaged])).toThrow(expect.objectContaining({ code: 'CONTEXT_REFUSED' }));
});
