// Checks of the running time under a grant, of timeouts, and of what a turn that failed leaves behind.

import { strictEqual } from 'node:assert/strict';
import type { Effect } from '../../src/protocol/body.js';
import type { LibraryParts } from './library.js';

export const wallTimeParts: LibraryParts = [
  'adapters/memory/index.js',
  'testing/manual-clock.js',
  'host/budget/governed-turn.js',
  'host/budget/ledger.js',
  'host/budget/wall-time.js',
  'layers/timeout.js',
  'policy/grant.js',
];

type WallTimeLibrary = typeof import('../../src/adapters/memory/index.js') &
  typeof import('../../src/testing/manual-clock.js') &
  typeof import('../../src/host/budget/governed-turn.js') &
  typeof import('../../src/host/budget/ledger.js') &
  typeof import('../../src/host/budget/wall-time.js') &
  typeof import('../../src/layers/timeout.js') &
  typeof import('../../src/policy/grant.js');

type WallTimeCheck = (library: WallTimeLibrary) => Promise<void>;

const LIMIT_MS = 20;
const accounts = [{ id: '', limits: { wallMs: LIMIT_MS } }];
const document = { allowedTools: ['*'], limits: { wallMs: LIMIT_MS, outputTokens: 50 } };

const settled = async (): Promise<void> => {
  for (let n = 0; n < 20; n++) await new Promise((resolve) => setImmediate(resolve));
};

export const wallTimeChecks = {
  'time that has passed stays charged': async ({ Ledger, WallTime, ManualClock, memoryStore }) => {
    const clock = new ManualClock(1);
    const ledger = await Ledger.open({ store: memoryStore(), clock }, 'g', document);
    const deps = { turnId: 't', ledger, accounts, clock, onExceeded: () => undefined };
    const time = WallTime.start(deps);
    await clock.advance(7);
    time.end();
    strictEqual(ledger.budget.usedOf('', 'wallMs'), 7);
  },
  'time that another process took first is not used': async ({ Ledger, WallTime, ManualClock, memoryStore }) => {
    const [clock, store] = [new ManualClock(1), memoryStore()];
    let stops = 0;
    const ledgers = [
      await Ledger.open({ store, clock }, 'g', document),
      await Ledger.open({ store, clock }, 'g', document),
    ];
    for (const [index, ledger] of ledgers.entries()) {
      const onExceeded = (): void => {
        stops += 1;
      };
      WallTime.start({ turnId: `t${index}`, ledger, accounts, clock, onExceeded });
    }
    await settled();
    strictEqual(stops, 1);
  },
  'nothing starts when no running time is left': async (library) => {
    const { Ledger, GovernedTurn, ManualClock, memoryStore, parseGrant } = library;
    const clock = new ManualClock(1);
    const ledger = await Ledger.open({ store: memoryStore(), clock }, 'g', document);
    ledger.reserveTime('other', accounts, LIMIT_MS);
    const stops: string[] = [];
    const turn = new GovernedTurn({
      ...{ turnId: 't', ledger, accounts, clock, entries: [], grant: parseGrant(document, { isOperators: true }) },
      ...{ priceOf: () => undefined, agentAround: () => undefined, stop: ({ reason }) => stops.push(reason) },
    });
    turn.startTimer();
    stops.length = 0;
    turn.admit({ kind: 'tool', name: 'a', input: null, safety: 'once', perform: () => null }, 't/0');
    turn.close();
    strictEqual(stops.join(), 'wallMs');
  },
  'a turn that failed leaves no reservation that others wait for': async (library) => {
    const { Ledger, GovernedTurn, ManualClock, memoryStore, parseGrant } = library;
    const clock = new ManualClock(1);
    const ledger = await Ledger.open({ store: memoryStore(), clock }, 'g', document);
    const turn = new GovernedTurn({
      ...{ turnId: 't', ledger, accounts, clock, entries: [], grant: parseGrant(document, { isOperators: true }) },
      ...{ priceOf: () => undefined, agentAround: () => undefined, stop: () => undefined },
    });
    const tokenBound = (): never => ({ inputBytes: 5 }) as never;
    const perform = (): null => null;
    turn.admit({ kind: 'model', name: 'm', input: null, safety: 'idempotent', perform, tokenBound }, 't/0');
    turn.close();
    await settled();
    strictEqual(ledger.nextSettlement(), undefined);
    strictEqual(ledger.budget.usedOf('', 'outputTokens'), 0);
  },
  'an effect under a timeout stays confined': async ({ timeoutLayer, ManualClock }) => {
    const confinement = { roots: ['/data'] };
    const context = { idempotencyKey: 'k', signal: new AbortController().signal, confinement };
    const perform: Effect['perform'] = (_, given) => given.confinement;
    const effect: Effect = { kind: 'tool', name: 'a', input: null, safety: 'once', perform };
    const next = async (timed = effect): Promise<unknown> => timed.perform(null, context);
    strictEqual(await timeoutLayer(10, new ManualClock(1))(effect, undefined as never, next), confinement);
  },
} satisfies { readonly [promise: string]: WallTimeCheck };
