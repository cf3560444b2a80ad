import { expect } from 'vitest';
import { composite, hostOf, tool } from '../../../spec/support/host-fixture.js';
import { testKeys } from '../../../spec/support/receipt-keys.js';
import { verifies } from '../../../spec/verifies.js';
import { memoryStore } from '../../adapters/memory/index.js';
import { defineLoop } from '../../loops/define.js';
import type { ReceiptEnvelope } from '../../protocol/receipt.js';
import { payloadOf } from '../../views/receipt/envelope.js';
import { receiptsIn } from '../../views/receipt/sealed-receipts.js';
import { parseStatement } from '../../views/receipt/statement.js';

verifies('receipt.sealed', 'a turn is sealed when it ends, and its receipt names its effects', async () => {
  const store = memoryStore();
  const host = hostOf([tool('echo'), composite('both', [{ loopId: 'echo', inputMapping: '$.input' }])], {
    store,
    receiptKeys: testKeys(),
  });
  const result = await host.run({ loop: 'both', input: { a: 1 }, sessionId: 's' });
  expect(result).toMatchObject({ status: 'ok', receipt: expect.stringMatching(/^sha256:[0-9a-f]{64}$/) });
  const [receipt, ...others] = receiptsIn(await host.archive.entries('s'));
  expect(others).toEqual([]);
  const { predicate } = parseStatement(payloadOf(receipt?.envelope as ReceiptEnvelope) ?? Buffer.alloc(0));
  expect(predicate).toMatchObject({ session: 's', turn: result.turnId, state: 'ok', final: true, sequence: 0 });
  expect(predicate.effects).toMatchObject([{ name: 'echo', state: 'done', boundary: 'builtin' }]);
  const [status] = await host.archive.status(result.turnId);
  expect(status).toMatchObject({ status: 'ok' });
});

verifies(
  'rondo.turn',
  'the recorded result of a turn that ended, paused or stopped names its last receipt',
  async () => {
    const waiting = defineLoop({ id: 'waiting', input: true, output: true, run: (_, scope) => scope.wait('go') });
    const host = hostOf([tool('echo'), waiting], { receiptKeys: testKeys() });
    const grant = { allowedTools: ['echo'], limits: { effects: 0 } };
    for (const run of [{ loop: 'echo' }, { loop: 'waiting' }, { loop: 'echo', grant }]) {
      const { turnId, status, receipt } = await host.run({ ...run, input: {} });
      const recorded = await host.waiter.restingResult(turnId);
      expect(recorded, 'the receipt of the turn cannot be found').toMatchObject({ status, receipt });
      expect(receipt).toMatch(/^sha256:/);
    }
  },
);
