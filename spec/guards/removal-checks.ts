// Checks of the removal of sessions: each holds on the intact library and fails when its guard is broken.

import { deepStrictEqual } from 'node:assert';
import type { ReceiptArchive } from '../../src/host/receipts/receipt-archive.js';
import type { Store } from '../../src/journal/store.js';
import { bundleBytes } from '../../src/views/receipt/bundle.js';
import { bundleOf, sealSession, trustedKeys } from '../support/receipt-fixture.js';
import { testKeys } from '../support/receipt-keys.js';
import { type HostLibrary, hostParts, type LibraryParts } from './library.js';

export const removalParts: LibraryParts = [...hostParts, 'views/receipt/verify-bundle.js', 'base/trusted-keys.js'];

type RemovalLibrary = HostLibrary &
  typeof import('../../src/views/receipt/verify-bundle.js') &
  typeof import('../../src/base/trusted-keys.js');

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

type RemovalCheck = (library: RemovalLibrary) => Promise<void>;

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
  'a file is as complete as its store was': async (library) => {
    const store = await removedSession(library);
    await hostOf(library, store, 2).host.run({ loop: 'pay', input: {}, sessionId: 'bob' });
    const { receipts } = hostOf(library, store, 3);
    await receipts.close('bob');
    const keys = new library.TrustedKeys((await testKeys().list()).keys);
    const { verdict } = library.verifyBundle(await receipts.export(), keys);
    deepStrictEqual([verdict.complete, verdict.reasons], ['unknown', ['session_removed']]);
  },
  'a file is complete only for what its checkpoint states': async ({ verifyBundle }) => {
    const sessions = [await sealSession('a')];
    const verdictOf = async (unsealed?: number, removed = 0): Promise<unknown> => {
      const gaps = unsealed === undefined ? {} : { gaps: { unsealed, removed } };
      const bundle = await bundleOf(sessions, { scope: { isWhole: true, asOf: 5, ...gaps } });
      const { complete, reasons, scope } = verifyBundle(bundleBytes(bundle), trustedKeys).verdict;
      return { complete, reasons, scope };
    };
    const scope = { asOf: 5 };
    deepStrictEqual(await verdictOf(0), { complete: true, reasons: [], scope });
    deepStrictEqual(await verdictOf(1), { complete: 'unknown', reasons: ['turn_unsealed'], scope });
    deepStrictEqual(await verdictOf(0, 1), { complete: 'unknown', reasons: ['session_removed'], scope });
    deepStrictEqual(await verdictOf(), { complete: true, reasons: [], scope: { session: 'a', asOf: 5 } });
  },
} satisfies Record<string, RemovalCheck>;
