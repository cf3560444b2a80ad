import { expect } from 'vitest';
import { composite, hostOf, tool } from '../../../spec/support/host-fixture.js';
import { testKeys } from '../../../spec/support/receipt-keys.js';
import { verifies } from '../../../spec/verifies.js';
import { memoryStore } from '../../adapters/memory/index.js';
import { crashingStore } from '../../testing/crashing-store.js';

verifies('receipt.sealed', 'a retried turn that crashes at any append is sealed when it continues', async () => {
  const steps = ['flaky', 'second'].map((loopId) => ({ loopId, inputMapping: '$.input' }));
  const definitions = [tool('flaky', 'builtin:flaky'), tool('second', 'builtin:second'), composite('both', steps)];
  for (let appendNumber = 1, hasCrashed = true; hasCrashed; appendNumber++) {
    let isDown = true;
    const tools = {
      flaky: () => {
        if (isDown) throw new Error('down');
        return 1;
      },
      second: () => 2,
    };
    const inner = memoryStore();
    const open = (store = inner, seed = 1) => hostOf(definitions, { store, tools, receiptKeys: testKeys(), seed });
    const failed = await open().run({ loop: 'both', input: {}, sessionId: 's' });
    isDown = false;
    const store = crashingStore(inner, { appendNumber, when: 'after' });
    await open(store, 2)
      .retry(failed.turnId)
      .catch(() => undefined);
    hasCrashed = store.hasCrashed;
    const host = open(inner, 3);
    const [status] = await host.archive.status(failed.turnId);
    const result = status?.status === 'error' ? await host.retry(failed.turnId) : await host.resume(failed.turnId);
    expect(result, `a crash at append ${appendNumber}`).toMatchObject({ status: 'ok', output: 2 });
    await host.receipts?.close('s');
    expect(await host.receipts?.verify(undefined)).toMatchObject({ valid: true, complete: true, reasons: [] });
  }
});
