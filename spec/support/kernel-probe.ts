/** The stage of the probes: what an adversary tried against the kernel. Each asserts what must hold. */

import { memoryStore } from '../../src/adapters/memory/index.js';
import { seededIds } from '../../src/adapters/system/seeded-ids.js';
import type { Batch, Store } from '../../src/journal/store.js';
import { Session, type SessionOptions } from '../../src/kernel/session.js';
import type { Effect, Scope } from '../../src/protocol/body.js';
import type { Entry, Safety } from '../../src/protocol/entry.js';
import type { RunOutcome } from '../../src/protocol/session.js';
import { ManualClock } from '../../src/testing/manual-clock.js';

export { codeOf } from './code-of.js';

export const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
export const ticks = async (n = 5): Promise<void> => {
  for (let i = 0; i < n; i++) await tick();
};

export const micro = async (n: number): Promise<void> => {
  for (let i = 0; i < n; i++) await undefined;
};

export const unhandled: unknown[] = [];
process.on('unhandledRejection', (reason) => unhandled.push(reason));

/** The memory store, but values go through JSON text as in any durable store. */
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

export interface Kit {
  store: Store;
  clock: ManualClock;
  performed: string[];
  keys: string[];
  open(options?: Partial<SessionOptions>): Promise<Session>;
  entries(): Promise<Entry[]>;
  types(): Promise<string[]>;
  effect(name: string, safety?: Safety, perform?: Effect['perform'], input?: unknown): Effect;
}

export function kit(store: Store = textStore()): Kit {
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

/** Entries that close or open the same key twice. */
export function duplicates(entries: readonly Entry[]): string[] {
  const seen = new Set<string>();
  const twice: string[] = [];
  for (const { type, key } of entries) {
    const group =
      type === 'effect.returned' || type === 'effect.failed'
        ? 'effect.end'
        : type === 'call.completed' || type === 'call.errored'
          ? 'call.end'
          : type;
    const id = `${group} ${key}`;
    if (seen.has(id)) twice.push(`${type} ${key}`);
    seen.add(id);
  }
  return twice;
}

export async function within<T>(ms: number, work: Promise<T>, what = 'hang'): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`HANG: ${what}`)), ms);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** A store whose large values take some turns of the loop to read. */
export function slowBlobs(store: Store): Store {
  const get: Store['blobs']['get'] = async (session, digest) => {
    await ticks(3);
    return store.blobs.get(session, digest);
  };
  return { ...store, blobs: { ...store.blobs, get } };
}

/** A store whose appends become durable only when released one by one (or all). */
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
      for (const go of waiting.splice(0)) go();
    },
  };
}

export function deferred<T = unknown>() {
  let resolve: (value: T) => void = () => {};
  let reject: (error: unknown) => void = () => {};
  const promise = new Promise<T>((a, b) => {
    resolve = a;
    reject = b;
  });
  return { promise, resolve, reject };
}

/** What bodies write after their attempt was over (how effects ended is allowed to come late). */
export function lateWrites(session: Session): string[] {
  const late: string[] = [];
  const inner = session as unknown as {
    writer: { push(entry: Entry, proposed?: boolean): Entry };
    activeRun: { attempt: { isOver: boolean } } | undefined;
  };
  const push = inner.writer.push.bind(inner.writer);
  inner.writer.push = (entry, proposed) => {
    const beside =
      /^(signal\.received|effect\.resolved|cancel\.requested|effect\.returned|effect\.failed|session\.opened)$/;
    if ((inner.activeRun === undefined || inner.activeRun.attempt.isOver) && !beside.test(entry.type))
      late.push(`${entry.type} ${entry.key}`);
    return push(entry, proposed);
  };
  return late;
}
