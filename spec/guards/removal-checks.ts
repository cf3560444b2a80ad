// Checks of the removal of sessions: each holds on the intact library and fails when its guard is broken.

import { deepStrictEqual } from 'node:assert';
import type { ReceiptArchive } from '../../src/host/receipts/receipt-archive.js';
import type { Store } from '../../src/journal/store.js';
import { testKeys } from '../support/receipt-keys.js';
import { type HostLibrary, hostParts } from './library.js';

export const removalParts = hostParts;

/** Returns a host with receipts on a store. The tool `pay` ends; the tool `hang` does not, as if it had been killed. */
function hostOf({ Host, Registry, ManualClock, seededIds, defineLoop }: HostLibrary, store: Store, seed: number) {
  const registry = new Registry();
  let begin = (): void => undefined;
  const begun = new Promise<void>((resolve) => {
    begin = resolve;
  });
  const hang = (): Promise<never> => {
    begin();
    return new Promise(() => undefined);
  };
  registry.add(defineLoop({ id: 'pay', input: true, output: true, tool: () => 'paid' }));
  registry.add(defineLoop({ id: 'hang', input: true, output: true, tool: hang }));
  const clock = new ManualClock(1_000_000);
  const host = new Host({ store, clock, ids: seededIds(seed), registry, receiptKeys: testKeys() });
  return { host, begun, receipts: host.receipts as ReceiptArchive };
}

/** Runs a turn in a session, closes it, and removes it as the command line does. */
async function removedSession(library: HostLibrary): Promise<Store> {
  const store = library.memoryStore();
  const { host, receipts } = hostOf(library, store, 1);
  await host.run({ loop: 'pay', input: {}, sessionId: 'ada' });
  await receipts.close('ada');
  await receipts.recordRemoval('ada', 'eve');
  await store.journal.remove('ada');
  return store;
}

type RemovalCheck = (library: HostLibrary) => Promise<void>;

export const removalChecks = {
  'the removal of a session without receipts is recorded if it had an unsealed turn': async (library) => {
    const store = await removedSession(library);
    const { host, begun } = hostOf(library, store, 2);
    await host.run({ loop: 'pay', input: {}, sessionId: 'bob' });
    void host.run({ loop: 'hang', input: {}, sessionId: 'eve' });
    await begun;
    const { receipts } = hostOf(library, store, 3);
    await receipts.recordRemoval('eve', 'eve');
    await store.journal.remove('eve');
    const { reasons } = await receipts.verify(undefined);
    deepStrictEqual(reasons.includes('turn_unsealed'), true);
  },
  'a receipt under the id of a removed session gets into the log after a crash': async (library) => {
    const store = await removedSession(library);
    await hostOf(library, store, 2).host.run({ loop: 'pay', input: {}, sessionId: 'ada' });
    const { subject } = await hostOf(library, store, 3).receipts.verify(undefined);
    deepStrictEqual(subject, { sessions: 1, receipts: 1, log: 3 });
  },
} satisfies Record<string, RemovalCheck>;
