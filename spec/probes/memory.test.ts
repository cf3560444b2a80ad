/** Does a session that works for long grow? */

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect } from 'vitest';
import { singleProcessLeases } from '../../src/journal/leases.js';
import type { Store } from '../../src/journal/store.js';
import type { Session } from '../../src/kernel/session.js';
import type { Scope } from '../../src/protocol/body.js';
import { deferred, kit, run, tick, ticks } from '../support/kernel-probe.js';
import { verifies } from '../verifies.js';

setFlagsFromString('--expose-gc');
const gc = runInNewContext('gc') as () => void;
const heap = async (): Promise<number> => {
  await ticks(3);
  gc();
  gc();
  return process.memoryUsage().heapUsed / 1024 / 1024;
};

/** Keeps nothing of what is appended, so that only the session's own memory shows. */
function forgetful(): Store {
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
    close: async () => {},
  };
}

interface Insides {
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
const insides = (session: Session): Insides => session as unknown as Insides;

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
  strands: number;
}> {
  const k = kit(forgetful());
  const session = await k.open();
  let mid = 0;
  let end = 0;
  let parked = -1;
  let seen: Insides['activeRun'];
  await run(
    session,
    async (s) => {
      for (let i = 0; i < n; i++) {
        if (i === Math.floor(n / 4)) mid = await heap();
        await work(s, i, session);
      }
      end = await heap();
      seen = insides(session).activeRun;
      // Ending the attempt clears it, so it is counted while the body still runs.
      parked = seen?.attempt.parkedWaits?.size ?? 0;
    },
    't1',
    'hold',
  );
  const { runDeps, inFlight, sessionState } = insides(session);
  const attempt = seen?.attempt;
  return {
    mib: end - mid,
    listeners: attempt?.lifetime.listeners?.size ?? 0,
    parked,
    waiters: runDeps.waiters?.size ?? 0,
    inFlight: inFlight.size,
    intents: sessionState.intents.size,
    inbox: sessionState.inbox?.all.length ?? 0,
    strands: attempt?.runnableCount ?? -1,
  };
}

const clean = { listeners: 0, parked: 0, waiters: 0, inFlight: 0, intents: 0, inbox: 0 };

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
    '10k signals taken',
    10_000,
    async (s: Scope, i: number, session: Session) => {
      void session.signal({ id: `s${i}`, name: 'x' });
      await s.wait('x');
    },
  ],
] as const)
  verifies(
    'kernel.pressure',
    `M1 ${name}`,
    async () => {
      const g = await growth(work as never, n);
      const { mib, strands, ...rest } = g;
      expect(rest).toEqual(clean);
      expect(strands).toBe(1);
      expect(mib).toBeLessThan(name.includes('signals') ? 4 : 8);
    },
    120_000,
  );

verifies(
  'kernel.pressure',
  'M2 10k roots of one line: what stays of each',
  async () => {
    const k = kit(forgetful());
    const session = await k.open();
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
  'M4 lost branches whose effects never end',
  async () => {
    const k = kit(forgetful());
    const session = await k.open();
    const hang = deferred();
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
    expect(insides(session).inFlight.size).toBe(0);
    void hang;
  },
  60_000,
);
