// Checks of what code and stores may not claim: each holds on the intact library and fails when its guard is broken.

import { deepStrictEqual, rejects, throws } from 'node:assert/strict';
import type { Effect } from '../../src/protocol/body.js';
import { testKeys } from '../support/receipt-keys.js';
import { type HostLibrary, hostParts, type LibraryParts } from './library.js';

export const claimParts: LibraryParts = [...hostParts, 'journal/runtime-effects.js', 'views/receipt/verify-store.js'];

type ClaimLibrary = HostLibrary &
  typeof import('../../src/journal/runtime-effects.js') &
  typeof import('../../src/views/receipt/verify-store.js') &
  typeof import('../../src/base/trusted-keys.js');

const effect: Effect = { kind: 'code', name: 'pay', input: null, safety: 'once', perform: () => 1 };

function newHost({ Host, memoryStore, seededIds, ManualClock, Registry }: ClaimLibrary) {
  const store = memoryStore();
  const parts = { clock: new ManualClock(1), ids: seededIds(1), registry: new Registry(new Map()), store };
  return { store, host: new Host({ ...parts, receiptKeys: testKeys() }) };
}

export const claimChecks = {
  'an effect of code has no kind of the runtime': async ({ assertNothingClaimed }) => {
    throws(() => assertNothingClaimed({ ...effect, kind: 'gate' }, false), { code: 'VALUE_INVALID' });
  },
  'an effect of code has no boundary': async ({ assertNothingClaimed }) => {
    throws(() => assertNothingClaimed({ ...effect, boundary: 'toolbox' }, false), { code: 'VALUE_INVALID' });
  },
  'a host refuses the claims of code': async (library) => {
    const performed: number[] = [];
    const run = (_: unknown, scope: { effect(claim: Effect): Promise<unknown> }) =>
      scope.effect({ ...effect, kind: 'gate', perform: () => performed.push(1) });
    const loop = library.defineLoop({ id: 'code', input: true, output: true, run: run as never });
    await newHost(library).host.run({ loop, input: {}, grant: { allowedTools: [], limits: {} } });
    deepStrictEqual(performed, []);
  },
  'nothing is signed over missing receipts': async (library) => {
    const { store, host } = newHost(library);
    const loop = library.defineLoop({ id: 'code', input: true, output: true, run: () => 1 });
    for (const sessionId of ['a', 'b']) await host.run({ loop, input: {}, sessionId });
    await host.receipts?.export();
    await store.journal.remove('a');
    await rejects(host.receipts?.export() ?? Promise.resolve(), { code: 'RECEIPT_INVALID' });
  },
  'a log that was cut off is not valid': async ({ verifyStore, TrustedKeys }) => {
    const log = {
      storeId: 'store',
      leaves: [],
      removed: [],
      checkpoints: [],
      isCutOff: true,
      isWitnessMissing: false,
      expected: 0,
    };
    const { reasons } = verifyStore([], log, new TrustedKeys([]), { trust: 'store', isWhole: true });
    deepStrictEqual(reasons.includes('log_rewritten'), true);
  },
} satisfies Record<string, (library: ClaimLibrary) => Promise<void>>;
