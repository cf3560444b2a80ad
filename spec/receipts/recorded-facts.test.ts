// What a body records: entries of the types of the runtime, which must not change what receipts say.

import { expect } from 'vitest';
import { defineLoop } from '../../src/loops/define.js';
import type { Json } from '../../src/protocol/json.js';
import type { ReceiptEnvelope } from '../../src/protocol/receipt.js';
import { payloadOf } from '../../src/views/receipt/envelope.js';
import { receiptsIn } from '../../src/views/receipt/sealed-receipts.js';
import { parseStatement } from '../../src/views/receipt/statement.js';
import { hostOf } from '../support/host-fixture.js';
import { testKeys } from '../support/receipt-keys.js';
import { verifies } from '../verifies.js';

const HASH = 'a'.repeat(64);

/** Facts of the runtime as a body could record them. */
const recorded: readonly (readonly [string, Json])[] = [
  [
    'rondo.receipt.sealed',
    { turn: 'x', sequence: 7, final: true, state: 'closed', hash: HASH, to: 9999, envelope: {} },
  ],
  ['rondo.session.forked', { session: 'prod', turn: 'prod.1', at: 3, copied: 99 }],
  ['rondo.turn.opened', { principal: 'root', sealed: false }],
  ['rondo.turn.granted', { id: 'wide' }],
  ['rondo.turn.refused', { reason: 'no', code: 'X' }],
  ['rondo.context.loaded', { items: [{ name: 'secret', sha256: HASH, bytes: 1 }] }],
];

verifies(
  'receipt.facts',
  'entries that a body records under the types of the runtime do not change receipts',
  async () => {
    const loops = recorded.map(([type, value], index) =>
      defineLoop({
        id: `record-${index}`,
        input: true,
        output: true,
        run: async (_, scope) => {
          await scope.record(type, () => value);
          return 'done';
        },
      }),
    );
    const host = hostOf(loops, { receiptKeys: testKeys() });
    for (const [index, [type]] of recorded.entries()) {
      const sessionId = `s${index}`;
      const { status, turnId } = await host.run({ loop: `record-${index}`, input: {}, sessionId, principal: 'ada' });
      expect(status, type).toBe('ok');
      const receipts = receiptsIn(await host.archive.storedEntriesOf(sessionId));
      expect(receipts, type).toHaveLength(1);
      const { predicate } = parseStatement(payloadOf(receipts[0]?.envelope as ReceiptEnvelope) ?? Buffer.alloc(0));
      expect(predicate, type).toMatchObject({ turn: turnId, sequence: 0, state: 'ok', principal: 'ada' });
      for (const absent of ['origin', 'grant', 'context', 'reason']) expect(predicate, type).not.toHaveProperty(absent);
    }
    expect(await host.receipts?.list()).toHaveLength(recorded.length);
    expect(await host.receipts?.verify(undefined)).toMatchObject({ valid: true });
  },
);
