/**
 * A store that dies at one append, before or after that append became durable, and answers nothing afterwards.
 * The store inside stays as a crash would leave it: open it again, go on, and compare.
 */
import { Fault } from '../base/errors.js';
import type { Batch, Store } from '../journal/store.js';

export interface CrashPoint {
  /** Which append fails, counted from 1. */
  readonly appendNumber: number;
  /** Whether its entries were lost or had just become durable. */
  readonly when: 'before' | 'after';
}

export interface CrashingStore extends Store {
  /** How many appends were asked for. */
  readonly appendCount: number;
  readonly hasCrashed: boolean;
}

/** Without a crash point it only counts. */
export function crashingStore(inner: Store, point?: CrashPoint): CrashingStore {
  let appends = 0;
  let crashed = false;
  const dead = (): Fault =>
    new Fault('STORE_FAILED', `The store crashed at append ${point?.appendNumber} (${point?.when}).`);
  const alive = <T>(work: () => Promise<T>): Promise<T> => (crashed ? Promise.reject(dead()) : work());
  const append = async (batch: Batch): Promise<void> => {
    appends += 1;
    if (appends === point?.appendNumber) {
      crashed = true;
      if (point.when === 'after') await inner.journal.append(batch);
    }
    if (crashed) throw dead();
    await inner.journal.append(batch);
  };
  return {
    get appendCount() {
      return appends;
    },
    get hasCrashed() {
      return crashed;
    },
    journal: {
      append,
      claim: (session) => alive(() => inner.journal.claim(session)),
      read: (session, from) => inner.journal.read(session, from),
      list: () => alive(() => inner.journal.list()),
      remove: (session) => alive(() => inner.journal.remove(session)),
    },
    blobs: {
      put: (session, digest, text) => alive(() => inner.blobs.put(session, digest, text)),
      get: (session, digest) => inner.blobs.get(session, digest),
    },
    leases: inner.leases,
    snapshots: {
      load: (session) => inner.snapshots.load(session),
      save: (session, snapshot) => alive(() => inner.snapshots.save(session, snapshot)),
    },
    close: async () => {},
  };
}
