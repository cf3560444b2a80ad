// The memory of a session does not grow with the number of its steps.

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect } from 'vitest';
import { noDueTurns } from '../../src/journal/due-turns.js';
import { singleProcessLeases } from '../../src/journal/leases.js';
import type { Store } from '../../src/journal/store.js';
import type { Session } from '../../src/kernel/session.js';
import type { Scope } from '../../src/protocol/body.js';
import { kernelFixture, run, tick, ticks } from '../support/kernel-probe.js';
import { verifies } from '../verifies.js';

setFlagsFromString('--expose-gc');
const gc = runInNewContext('gc') as () => void;
const heap = async (): Promise<number> => {
  await ticks(3);
  gc();
  gc();
  return process.memoryUsage().heapUsed / 1024 / 1024;
};

/** A store that discards all entries, so that only the memory of the session is measured. */
function discardingStore(): Store {
  let next = 0;
  let fence = 0;
  return {
    journal: {
      claim: async () => ({ fence: ++fence, nextSeq: next }),
      append: async (b) => {
        next += b.entries.length;
      },
      async *read() {},
      list: async () => [],
      remove: async () => {},
    },
    blobs: { put: async () => {}, get: async () => undefined },
    snapshots: { load: async () => undefined, save: async () => {} },
    leases: singleProcessLeases,
    dueTurns: noDueTurns,
    close: async () => {},
  };
}

interface SessionInternals {
  activeRun:
    | {
        attempt: {
          lifetime: { listeners: Set<unknown> | undefined };
          parkedWaits: Set<unknown> | undefined;
          runnableCount: number;
        };
      }
    | undefined;
  runDeps: { waiters: Map<string, unknown> | undefined };
  inFlight: Map<string, unknown>;
  sessionState: {
    inbox: { all: readonly unknown[] } | undefined;
    deliveredSignals: Map<string, unknown>;
    intents: Map<string, unknown>;
    roots: Map<string, unknown>;
  };
}
const internalsOf = (session: Session): SessionInternals => session as unknown as SessionInternals;

/** Repeats work in one run. Returns the growth of the heap and the sizes of internal collections. */
async function growth(
  work: (s: Scope, i: number, session: Session) => Promise<unknown>,
  n: number,
): Promise<{
  mib: number;
  listeners: number;
  parked: number;
  waiters: number;
  inFlight: number;
  intents: number;
  inbox: number;
  runnableCount: number;
}> {
  const fixture = kernelFixture(discardingStore());
  const session = await fixture.open();
  let mid = 0;
  let end = 0;
  let parked = -1;
  let activeRun: SessionInternals['activeRun'];
  await run(
    session,
    async (s) => {
      for (let i = 0; i < n; i++) {
        if (i === Math.floor(n / 4)) mid = await heap();
        await work(s, i, session);
      }
      end = await heap();
      activeRun = internalsOf(session).activeRun;
      // Counted while the body runs, because the end of the attempt clears the set.
      parked = activeRun?.attempt.parkedWaits?.size ?? 0;
    },
    't1',
    'hold',
  );
  const { runDeps, inFlight, sessionState } = internalsOf(session);
  const attempt = activeRun?.attempt;
  return {
    mib: end - mid,
    listeners: attempt?.lifetime.listeners?.size ?? 0,
    parked,
    waiters: runDeps.waiters?.size ?? 0,
    inFlight: inFlight.size,
    intents: sessionState.intents.size,
    inbox: sessionState.inbox?.all.length ?? 0,
    runnableCount: attempt?.runnableCount ?? -1,
  };
}

const EMPTY = { listeners: 0, parked: 0, waiters: 0, inFlight: 0, intents: 0, inbox: 0 };

for (const [name, n, work] of [
  ['100k records', 100_000, (s: Scope) => s.record('a.b', () => 1)],
  [
    '40k effects',
    40_000,
    (s: Scope, i: number) =>
      s.effect({ kind: 'k', name: 'e', safety: i % 2 ? 'once' : 'pure', input: null, perform: () => 1 }),
  ],
  [
    '20k effects with abort signals',
    20_000,
    (s: Scope) =>
      s.effect({
        kind: 'k',
        name: 'e',
        safety: 'pure',
        input: null,
        perform: (_i: unknown, p: { signal: AbortSignal }) => p.signal.aborted,
      }),
  ],
  ['20k races', 20_000, (s: Scope) => s.race([(a) => a.now(), (b) => b.wait('never'), (c) => c.sleep(1e9)])],
  ['20k alls', 20_000, (s: Scope) => s.all([(a) => a.now(), (b) => b.call({ name: 'c', body: () => 1 }, null)])],
  [
    '20k failing calls',
    20_000,
    (s: Scope) =>
      s
        .call(
          {
            name: 'c',
            body: () => {
              throw new Error('x');
            },
          },
          null,
        )
        .catch(() => {}),
  ],
  [
    '10k received signals',
    10_000,
    async (s: Scope, i: number, session: Session) => {
      void session.signal({ id: `s${i}`, name: 'x' });
      await s.wait('x');
    },
  ],
] as const)
  verifies(
    'kernel.pressure',
    `${name} do not grow the memory of a session`,
    async () => {
      const g = await growth(work as never, n);
      const { mib, runnableCount, ...sizes } = g;
      expect(sizes, 'the session leaks').toEqual(EMPTY);
      expect(runnableCount).toBe(1);
      expect(mib).toBeLessThan(name.includes('signals') ? 4 : 8);
    },
    120_000,
  );

verifies(
  'kernel.pressure',
  '10k finished roots take less than 10 MiB',
  async () => {
    const fixture = kernelFixture(discardingStore());
    const session = await fixture.open();
    for (let i = 0; i < 2_000; i++) await run(session, (s) => s.now(), `w${i}`);
    const before = await heap();
    for (let i = 0; i < 10_000; i++) await run(session, (s) => s.now(), `r${i}`);
    const after = await heap();
    expect(after - before).toBeLessThan(10);
  },
  120_000,
);

verifies(
  'kernel.pressure',
  'effects of lost branches do not stay in flight',
  async () => {
    const fixture = kernelFixture(discardingStore());
    const session = await fixture.open();
    await run(session, async (s) => {
      for (let i = 0; i < 2_000; i++)
        await s.race([
          (a) =>
            a.effect({
              kind: 'k',
              name: 'slow',
              safety: 'pure',
              input: null,
              perform: (_i, { signal }) =>
                new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
            }),
          (b) => b.sleep(0),
        ]);
    });
    await tick();
    expect(internalsOf(session).inFlight.size).toBe(0);
  },
  60_000,
);
