// Checks of time and of policies: each holds on the intact library and fails when its guard is broken.

import { deepStrictEqual, strictEqual, throws } from 'node:assert/strict';
import type { ModelProvider } from '../../src/loops/model.js';
import type { Scope } from '../../src/protocol/body.js';
import { errorOf } from '../support/turn-results.js';
import type { LibraryParts } from './library.js';

export const clockParts: LibraryParts = [
  'kernel/session.js',
  'adapters/memory/index.js',
  'adapters/system/index.js',
  'testing/manual-clock.js',
  'adapters/system/seeded-ids.js',
  'host/host.js',
  'loops/define.js',
  'loops/registry.js',
];

type ClockLibrary = typeof import('../../src/kernel/session.js') &
  typeof import('../../src/adapters/memory/index.js') &
  typeof import('../../src/adapters/system/index.js') &
  typeof import('../../src/testing/manual-clock.js') &
  typeof import('../../src/adapters/system/seeded-ids.js') &
  typeof import('../../src/host/host.js') &
  typeof import('../../src/loops/define.js') &
  typeof import('../../src/loops/registry.js');

const HOUR = 3_600_000;
const nextImmediate = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const nap = { name: 'nap', body: (_: null, scope: Scope) => scope.sleep(10_000) };

/** True if a sleep of 10 s on the system clock ends after `passedMs` and a jump of the wall clock by `jumpMs`. */
async function hasSleepEnded(library: ClockLibrary, passedMs: number, jumpMs: number): Promise<boolean> {
  let [wall, elapsed] = [1_000_000, 0];
  let timer: (() => void) | undefined;
  const clock = library.createClockFrom({
    now: () => wall,
    elapsed: () => elapsed,
    setTimeout: (callback) => {
      timer = callback;
    },
    clearTimeout: () => {},
  });
  let hasEnded = false;
  clock.sleep(10_000, new AbortController().signal).then(() => {
    hasEnded = true;
  });
  [wall, elapsed] = [wall + jumpMs + passedMs, passedMs];
  timer?.();
  await nextImmediate();
  return hasEnded;
}

/** Resumes a run with a sleep of 10 s, in this process or in a new one. Returns the state of the run. */
async function stateAfterResume(
  library: ClockLibrary,
  passedMs: number,
  jumpMs: number,
  isNewProcess: boolean,
): Promise<string> {
  const store = library.memoryStore();
  const first = new library.ManualClock(1_000_000);
  const open = (clock: typeof first, seed: number) =>
    library.Session.open('s', { store, clock, ids: library.seededIds(seed) });
  await (await open(first, 1)).run('t1', nap, null, { timers: 'pause' });
  await first.advance(passedMs);
  first.setWallClock(first.now() + jumpMs);
  const clock = isNewProcess ? new library.ManualClock(first.now()) : first;
  const session = await open(clock, 2);
  const running = session.run('t1', nap, null);
  await nextImmediate();
  if (isNewProcess) await clock.advance(10_000);
  await nextImmediate();
  let status = 'sleeping';
  running.then((outcome) => {
    status = outcome.status;
  });
  await nextImmediate();
  await nextImmediate();
  return status;
}

function hostOf(library: ClockLibrary, definition: unknown, providers: readonly ModelProvider[] = []) {
  const registry = new library.Registry();
  registry.add(definition);
  const known = new Map(providers.map((provider) => [provider.id, provider]));
  const [store, clock, ids] = [library.memoryStore(), new library.ManualClock(1_000_000), library.seededIds(1)];
  return new library.Host({ store, clock, ids, registry, providers: known });
}

/** Checks that the fallback is opened in a turn whose first model cannot be opened. */
async function checkFallback(library: ClockLibrary, open: () => Promise<never>): Promise<void> {
  const unavailable: ModelProvider = { id: 'bad', defaultModel: 'b', open };
  let fallbackOpens = 0;
  const fallback: ModelProvider = {
    id: 'good',
    defaultModel: 'g',
    open: async () => {
      fallbackOpens += 1;
      throw new Error('not needed');
    },
  };
  const policy = { fallback: [{ id: 'good' }] };
  const loop = library.defineLoop({ id: 'p', input: true, output: true, prompt: 'hi', model: { id: 'bad' }, policy });
  const result = await hostOf(library, loop, [unavailable, fallback]).run({ loop: 'p', input: {} });
  deepStrictEqual([fallbackOpens, errorOf(result)?.code], [1, 'BACKEND_FAILED']);
}

export const clockChecks = {
  'setting the wall clock back does not stall a sleep': async (library: ClockLibrary): Promise<void> => {
    strictEqual(await hasSleepEnded(library, 10_000, -HOUR), true);
  },
  'setting the wall clock forward does not end a sleep early': async (library: ClockLibrary): Promise<void> => {
    strictEqual(await hasSleepEnded(library, 1000, HOUR), false);
    strictEqual(await hasSleepEnded(library, 10_000, HOUR), true);
  },
  'resuming a run in the same process does not end a sleep early': async (library: ClockLibrary): Promise<void> => {
    strictEqual(await stateAfterResume(library, 1000, HOUR, false), 'sleeping');
  },
  'a sleep never exceeds its length after a restart': async (library: ClockLibrary): Promise<void> => {
    strictEqual(await stateAfterResume(library, 1000, -HOUR, true), 'ok');
  },
  'a policy without effect is refused': async (library: ClockLibrary): Promise<void> => {
    const base = { id: 'x', name: 'X', version: '1.0.0', inputSchema: true, outputSchema: true };
    const steps = [{ loopId: 'y', inputMapping: '$.input' }];
    const document = { ...base, kind: 'composite', composite: { steps }, policy: { cache: {} } };
    throws(() => hostOf(library, document), /has no effect/);
  },
  'a policy without effect is refused for a loop in code': async (library: ClockLibrary): Promise<void> => {
    const policy = { fallback: [{ id: 'mock' }] };
    throws(() => library.defineLoop({ id: 'x', input: true, output: true, run: () => 1, policy }), /has no effect/);
  },
  'a backend whose open throws is replaced by the fallback': (library: ClockLibrary): Promise<void> =>
    checkFallback(library, () => {
      throw new Error('no package');
    }),
  'a backend whose open rejects is replaced by the fallback': (library: ClockLibrary): Promise<void> =>
    checkFallback(library, () => Promise.reject(new Error('no package'))),
  'a worker notices that the clock was set back': async (library: ClockLibrary): Promise<void> => {
    const clock = new library.ManualClock(10 * HOUR);
    const run = (_: unknown, scope: Scope): Promise<void> => scope.sleep(3000);
    const registry = new library.Registry();
    registry.add(library.defineLoop({ id: 'nap', input: true, output: true, run }));
    const store = library.memoryStore();
    const host = new library.Host({ store, registry, clock, ids: library.seededIds(1) });
    void host.work();
    const { turnId } = await host.run({ loop: 'nap', input: null }, { timers: 'pause' });
    const pass = async (ms: number): Promise<void> => {
      for (let passedMs = 0; passedMs < ms; passedMs += 100) {
        await clock.advance(100);
        for (let n = 0; n < 10; n++) await nextImmediate();
      }
    };
    await pass(500);
    clock.setWallClock(9 * HOUR);
    await pass(4000);
    strictEqual((await host.archive.result(turnId))?.status, 'ok');
    await host.close();
  },
} as const;
