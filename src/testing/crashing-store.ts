/**
 * A store that crashes at one append, before or after that append is durable. Afterwards it refuses claims, lists and
 * all writes, but not reads and leases. The inner store stays as a crash would leave it, and is not closed: open a
 * session on it, continue, and compare.
 */
import { Fault } from '../base/errors.js';
import type { Batch, Store } from '../journal/store.js';

/** The append at which a store crashes. */
export interface CrashPoint {
  /** The number of the append, counted from 1. */
  readonly appendNumber: number;
  /** `before`: its entries are lost. `after`: its entries are durable, but the append fails. */
  readonly when: 'before' | 'after';
}

/** A store that counts its appends and may crash. */
export interface CrashingStore extends Store {
  /** The number of append calls, including the one that crashed and later ones, which are refused. */
  readonly appendCount: number;
  readonly hasCrashed: boolean;
}

/**
 * Wraps a store so that it crashes at one append. Without a crash point it only counts appends.
 *
 * @example
 * const inner = memoryStore();
 * const store = crashingStore(inner, { appendNumber: 3, when: 'after' });
 */
export function crashingStore(inner: Store, point?: CrashPoint): CrashingStore {
  let appendCount = 0;
  let hasCrashed = false;
  const crashFault = (): Fault =>
    new Fault('STORE_FAILED', `The store crashed at append ${point?.appendNumber} (${point?.when}).`);
  const unlessCrashed = <T>(work: () => Promise<T>): Promise<T> => (hasCrashed ? Promise.reject(crashFault()) : work());
  const append = async (batch: Batch): Promise<void> => {
    appendCount += 1;
    if (appendCount === point?.appendNumber) {
      hasCrashed = true;
      if (point.when === 'after') await inner.journal.append(batch);
    }
    if (hasCrashed) throw crashFault();
    await inner.journal.append(batch);
  };
  return {
    get appendCount() {
      return appendCount;
    },
    get hasCrashed() {
      return hasCrashed;
    },
    journal: {
      append,
      claim: (session) => unlessCrashed(() => inner.journal.claim(session)),
      read: (session, from) => inner.journal.read(session, from),
      list: () => unlessCrashed(() => inner.journal.list()),
      remove: (session) => unlessCrashed(() => inner.journal.remove(session)),
    },
    blobs: {
      put: (session, digest, text) => unlessCrashed(() => inner.blobs.put(session, digest, text)),
      get: (session, digest) => inner.blobs.get(session, digest),
    },
    leases: inner.leases,
    dueTurns: {
      list: (until, limit, after) => inner.dueTurns.list(until, limit, after),
      nextDueAt: (after) => inner.dueTurns.nextDueAt(after),
      isComplete: () => inner.dueTurns.isComplete(),
      rebuild: (turns) => unlessCrashed(() => inner.dueTurns.rebuild(turns)),
    },
    snapshots: {
      load: (session) => inner.snapshots.load(session),
      save: (session, snapshot) => unlessCrashed(() => inner.snapshots.save(session, snapshot)),
    },
    close: async () => {},
  };
}
