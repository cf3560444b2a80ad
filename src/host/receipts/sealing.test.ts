import { expect } from 'vitest';
import { composite, hostOf, tool } from '../../../spec/support/host-fixture.js';
import { testKeys } from '../../../spec/support/receipt-keys.js';
import { verifies } from '../../../spec/verifies.js';
import { memoryStore } from '../../adapters/memory/index.js';
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
  const payload = receipt && payloadOf(receipt.envelope);
  if (payload === undefined) throw new Error('The receipt has no payload.');
  const { predicate } = parseStatement(payload);
  expect(predicate).toMatchObject({ session: 's', turn: result.turnId, state: 'ok', final: true, sequence: 0 });
  expect(predicate.effects).toMatchObject([{ name: 'echo', state: 'done', boundary: 'builtin' }]);
  const [status] = await host.archive.status(result.turnId);
  expect(status).toMatchObject({ status: 'ok' });
});
