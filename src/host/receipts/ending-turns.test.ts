// Turns that are just ending when their host closes or its process dies: none is left without an end and a receipt.

import { expect } from 'vitest';
import { ASK } from '../../../spec/support/approval-fixture.js';
import { hostOf, tool } from '../../../spec/support/host-fixture.js';
import { testKeys } from '../../../spec/support/receipt-keys.js';
import { verifies } from '../../../spec/verifies.js';
import { memoryStore } from '../../adapters/memory/index.js';
import { LoopError } from '../../base/errors.js';
import type { Store } from '../../journal/store.js';
import { crashingStore } from '../../testing/crashing-store.js';
import { receiptsIn } from '../../views/receipt/sealed-receipts.js';
import type { Host } from '../host.js';

/** How many microtasks, and then turns of the event loop, pass before the host is closed. */
const MOMENTS = 60;
const definitions = [
  tool('echo'),
  tool('slow', 'builtin:slow'),
  tool('failing', 'builtin:failing'),
  tool('pay', 'builtin:echo', ASK),
];
const tools = {
  slow: async () => {
    for (let turns = 0; turns < 3; turns++) await new Promise((resolve) => setImmediate(resolve));
    return {};
  },
  failing: () => {
    throw new LoopError('TOOL_FAILED', 'no');
  },
};

function newHost(store: Store, seed: number): Host {
  const { list, signer } = testKeys();
  // A key that takes a while to load keeps the sealing of a turn open.
  const slowSigner: typeof signer = async (role) => {
    for (let ticks = 0; ticks < 20; ticks++) await Promise.resolve();
    return signer(role);
  };
  return hostOf(definitions, { store, tools, seed, receiptKeys: { list, signer: slowSigner } });
}

/** Ends a turn in each way, without waiting for it. Returns the ids of the turns. */
const endings: Readonly<Record<string, (host: Host, turnId: string) => Promise<unknown>>> = {
  ok: (host) => host.run({ loop: 'echo', input: {}, sessionId: 's' }),
  failed: (host) => host.run({ loop: 'failing', input: {}, sessionId: 's' }),
  cancelled: (host, turnId) => host.cancel(turnId, 'enough'),
  'cancelled as it runs': async (host) => {
    let turnId = '';
    const running = host.run(
      { loop: 'slow', input: {}, sessionId: 's' },
      {
        onTurn: (id) => {
          turnId = id;
        },
      },
    );
    running.catch(() => undefined);
    await new Promise((resolve) => setImmediate(resolve));
    await host.cancel(turnId, 'enough');
    await running;
  },
  denied: async (host, turnId) => {
    const [approval] = await host.archive.approvals('s');
    await host.answer({ id: approval?.id ?? '', approved: false, by: 'ada' });
    await host.resume(turnId);
  },
};

async function pausedTurn(store: Store): Promise<string> {
  const { turnId } = await newHost(store, 1).run({ loop: 'pay', input: {}, sessionId: 's' });
  return turnId;
}

async function pass(moments: number): Promise<void> {
  for (let n = 0; n < moments; n++) await Promise.resolve();
  if (moments % 3 === 0) await new Promise((resolve) => setImmediate(resolve));
}

/** Continues what is due in another host, and asserts that every turn has ended and has its final receipt. */
async function assertAllSealed(store: Store, where: string): Promise<void> {
  const host = newHost(store, 3);
  await host.work({ once: true });
  for (const { turnId, status } of await host.archive.turns('s')) {
    expect(['ok', 'error', 'cancelled'], `${where}: ${turnId}`).toContain(status);
    const ofTurn = receiptsIn(await host.archive.entries('s')).filter(({ turn }) => turn === turnId);
    expect(ofTurn.filter(({ final }) => final).length, `${where}: final receipts of ${turnId}`).toBe(1);
  }
  expect(await store.dueTurns.list(Number.MAX_SAFE_INTEGER, 10), where).toEqual([]);
  await host.close();
}

for (const [name, end] of Object.entries(endings)) {
  verifies(
    'receipt.sealed',
    `a turn that is ${name} while its host closes is sealed, at once or by a worker`,
    async () => {
      for (let moments = 0; moments < MOMENTS; moments++) {
        const store = memoryStore();
        const turnId = name === 'cancelled' || name === 'denied' ? await pausedTurn(store) : '';
        const host = newHost(store, 2);
        const ending = end(host, turnId).catch(() => undefined);
        await pass(moments);
        await host.close();
        await ending;
        const isAnswered = (await newHost(store, 4).archive.approvals('s')).length === 0;
        if (turnId === '' || isAnswered) await assertAllSealed(store, `closed after ${moments}`);
      }
    },
  );

  verifies('receipt.sealed', `a turn that is ${name} when its process dies is sealed by a worker`, async () => {
    for (let appendNumber = 1; ; appendNumber++) {
      for (const when of ['before', 'after'] as const) {
        const store = memoryStore();
        const turnId = name === 'cancelled' || name === 'denied' ? await pausedTurn(store) : '';
        const crashing = crashingStore(store, { appendNumber, when });
        await end(newHost(crashing, 2), turnId).catch(() => undefined);
        if (!crashing.hasCrashed) return;
        const isAnswered = (await newHost(store, 4).archive.approvals('s')).length === 0;
        if (turnId === '' || isAnswered) await assertAllSealed(store, `crash ${when} append ${appendNumber}`);
      }
    }
  });
}
