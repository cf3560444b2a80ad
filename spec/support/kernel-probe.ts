// Shared set-up of the kernel probes: a session on a store, stores that delay or release appends, and journal checks.

import { memoryStore } from '../../src/adapters/memory/index.js';
import { seededIds } from '../../src/adapters/system/seeded-ids.js';
import type { SessionOptions } from '../../src/journal/session-options.js';
import type { Batch, Store } from '../../src/journal/store.js';
import { Session } from '../../src/kernel/session.js';
import type { Effect, Scope } from '../../src/protocol/body.js';
import type { Entry, Safety } from '../../src/protocol/entry.js';
import type { RunOutcome } from '../../src/protocol/session.js';
import { ManualClock } from '../../src/testing/manual-clock.js';

export { codeOf } from './code-of.js';

/** Waits for one iteration of the event loop. */
export const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
/** Waits for several iterations of the event loop. */
export const ticks = async (n = 5): Promise<void> => {
  for (let i = 0; i < n; i++) await tick();
};

/** Waits for a number of microtasks. */
export const micro = async (n: number): Promise<void> => {
  for (let i = 0; i < n; i++) await undefined;
};

/** The unhandled rejections of this process. */
export const unhandled: unknown[] = [];
process.on('unhandledRejection', (reason) => unhandled.push(reason));

/** The memory store with values that pass through JSON text, as in any durable store. */
export function textStore(inner: Store = memoryStore()): Store {
  const copy = <T>(value: T): T => (value === undefined ? value : (JSON.parse(JSON.stringify(value)) as T));
  return {
    ...inner,
    journal: {
      claim: (s) => inner.journal.claim(s),
      append: (batch: Batch) =>
        inner.journal.append(
          copy({
            ...batch,
            entries: batch.entries.map(({ blob, value, ...r }) =>
              blob === undefined ? { ...r, value } : { ...r, blob },
            ) as Entry[],
          }),
        ),
      async *read(s, from) {
        for await (const some of inner.journal.read(s, from)) yield copy(some);
      },
      list: () => inner.journal.list(),
      remove: (s) => inner.journal.remove(s),
    },
    snapshots: {
      load: async (s) => copy(await inner.snapshots.load(s)),
      save: (s, snap) => inner.snapshots.save(s, copy(snap)),
    },
  };
}

/** A store with the session `s`, a manual clock, and a record of the performed effects. */
export interface KernelFixture {
  store: Store;
  clock: ManualClock;
  /** The names of the performed effects, in order. */
  performed: string[];
  /** The idempotency keys of the performed effects, in order. */
  keys: string[];
  open(options?: Partial<SessionOptions>): Promise<Session>;
  entries(): Promise<Entry[]>;
  /** Returns the type and key of every entry. */
  types(): Promise<string[]>;
  effect(name: string, safety?: Safety, perform?: Effect['perform'], input?: unknown): Effect;
}

/** Creates a fixture on a store. */
export function kernelFixture(store: Store = textStore()): KernelFixture {
  const clock = new ManualClock(1000);
  let opened = 0;
  const performed: string[] = [];
  const keys: string[] = [];
  const entries = async (): Promise<Entry[]> => {
    const all: Entry[] = [];
    for await (const some of store.journal.read('s', 0)) all.push(...some);
    return all;
  };
  return {
    store,
    clock,
    performed,
    keys,
    open: (options = {}) => Session.open('s', { store, clock, ids: seededIds(++opened), ...options }),
    entries,
    types: async () => (await entries()).map((e) => `${e.type} ${e.key}`),
    effect: (name, safety = 'once', perform = () => `${name} done`, input = null) => ({
      kind: 'test',
      name,
      safety,
      input,
      perform: (i, p) => {
        performed.push(name);
        keys.push(p.idempotencyKey);
        return perform(i, p);
      },
    }),
  };
}

/** Runs a body as the root `t1`. */
export function run(
  session: Session,
  body: (scope: Scope) => unknown,
  root = 't1',
  timers: 'hold' | 'pause' = 'pause',
): Promise<RunOutcome> {
  return session.run(root, { name: 'main', body: (_: null, scope) => body(scope) as Promise<unknown> }, null, {
    timers,
  });
}

/** Returns the entries that open or close a key for the second time. */
export function duplicates(entries: readonly Entry[]): string[] {
  const ids = new Set<string>();
  const repeated: string[] = [];
  for (const { type, key } of entries) {
    // There is one for each start after a crash.
    if (type === 'effect.repeated') continue;
    const group =
      type === 'effect.returned' || type === 'effect.failed'
        ? 'effect.end'
        : type === 'call.completed' || type === 'call.errored'
          ? 'call.end'
          : type;
    const id = `${group} ${key}`;
    if (ids.has(id)) repeated.push(`${type} ${key}`);
    ids.add(id);
  }
  return repeated;
}

/** Awaits work for a limited time; throws `HANG: …` if it takes longer. */
export async function within<T>(ms: number, work: Promise<T>, description = 'hang'): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`HANG: ${description}`)), ms);
  });
  try {
    return await Promise.race([work, timeout]);
  } finally {
    clearTimeout(timer);
  }
}

/** A store whose blobs take several iterations of the event loop to read. */
export function slowBlobs(store: Store): Store {
  const get: Store['blobs']['get'] = async (session, digest) => {
    await ticks(3);
    return store.blobs.get(session, digest);
  };
  return { ...store, blobs: { ...store.blobs, get } };
}

/** A store whose appends stay pending until `release` is called. */
export function gatedStore(inner: Store = textStore()) {
  const waiting: (() => void)[] = [];
  const state = { open: false };
  const append = async (batch: Batch): Promise<void> => {
    if (!state.open) await new Promise<void>((resolve) => waiting.push(resolve));
    await inner.journal.append(batch);
  };
  const store: Store = {
    ...inner,
    journal: {
      ...inner.journal,
      append,
      claim: (s) => inner.journal.claim(s),
      read: (s, f) => inner.journal.read(s, f),
      list: () => inner.journal.list(),
      remove: (s) => inner.journal.remove(s),
    },
  };
  return {
    store,
    state,
    waiting,
    shut: () => {
      state.open = false;
    },
    release: () => {
      state.open = true;
      for (const resume of waiting.splice(0)) resume();
    },
  };
}

/** Returns a promise with its resolvers. */
export function deferred<T = unknown>() {
  let resolve: (value: T) => void = () => {};
  let reject: (error: unknown) => void = () => {};
  const promise = new Promise<T>((a, b) => {
    resolve = a;
    reject = b;
  });
  return { promise, resolve, reject };
}

/** Collects the entries that bodies write after the end of their attempt. Results of effects may arrive late. */
export function lateWrites(session: Session): string[] {
  const late: string[] = [];
  const inner = session as unknown as {
    writer: { push(entry: Entry, proposed?: boolean): Entry };
    activeRun: { attempt: { isOver: boolean } } | undefined;
  };
  const push = inner.writer.push.bind(inner.writer);
  inner.writer.push = (entry, proposed) => {
    const allowedLate =
      /^(signal\.received|effect\.resolved|cancel\.requested|effect\.returned|effect\.failed|session\.opened)$/;
    if ((inner.activeRun === undefined || inner.activeRun.attempt.isOver) && !allowedLate.test(entry.type))
      late.push(`${entry.type} ${entry.key}`);
    return push(entry, proposed);
  };
  return late;
}
