/**
 * A journal stream that several processes append to, without a lease: each decides on the state that it knows, and an
 * append on another state is refused by the store. The stream then reads what others wrote and decides again. A decision
 * is known at once and may be reversed until it is durable.
 */

import { Fault, toStoreFault } from '../base/errors.js';
import type { Entry } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import type { Clock } from './clock.js';
import type { DueChange } from './due-turns.js';
import { tailDigestOf } from './snapshot-cache.js';
import type { Store } from './store.js';

/** The state that is folded from a stream. */
export interface StreamState {
  /** Applies the next entry of the stream. */
  apply(entry: StreamEntry): void;
  /** Returns the state as JSON. */
  save(): Json;
}

/** An entry of a shared stream, before it has a position. */
export interface StreamEntry {
  readonly type: string;
  readonly key: string;
  readonly value?: Json;
}

/** Returns the entries that a decision adds; undefined if it refuses. It may be called again with a newer state. */
export type Decide<S> = (state: S) => readonly StreamEntry[] | undefined;

/** A decision: whether it was accepted on the known state, and whether it is so durably. */
export interface Decision {
  readonly isAccepted: boolean;
  /** Resolves once the decision is final: true if its entries are durable. Rejects with the Fault of the store. */
  readonly durable: Promise<boolean>;
}

interface PendingDecision<S> {
  readonly decide: Decide<S>;
  entries: readonly StreamEntry[];
  readonly durable: Promise<boolean>;
  settle(isAccepted: boolean): void;
  fail(fault: Fault): void;
}

/** The dependencies of a stream. */
interface SharedStreamDeps<S extends StreamState> {
  readonly store: Store;
  readonly clock: Clock;
  readonly name: string;
  /** Creates the state: an empty one, or that of a snapshot, for which it may throw. */
  create(saved?: Json): S;
  /** Returns when a process has to work on the stream. @default no process has to */
  due?(state: S): DueChange;
}

/** A stream as it was read: its state, its claim and the position of the snapshot that was used. */
interface LoadedStream<S> {
  readonly state: S;
  readonly fence: number;
  readonly nextSeq: number;
  readonly from: number;
}

const NO_DECISION: Decision = { isAccepted: false, durable: Promise.resolve(false) };
/** The number of entries between two snapshots. */
const SNAPSHOT_INTERVAL = 1000;

/** One process's access to a shared stream. */
export class SharedStream<S extends StreamState> {
  private readonly deps: SharedStreamDeps<S>;
  private known: S;
  private fence = 0;
  private nextSeq = 0;
  private lastSnapshotSeq = 0;
  /** The decisions that are not durable, oldest first. */
  private pending: PendingDecision<S>[] = [];
  /** The decisions of the current microtask, which are appended together. */
  private batch: PendingDecision<S>[] = [];
  /** Resolves when all appends so far have ended, in any way. */
  private appending: Promise<void> = Promise.resolve();
  private isRecovering = false;
  private fault: Fault | undefined;

  private constructor(deps: SharedStreamDeps<S>) {
    this.deps = deps;
    this.known = deps.create();
  }

  /** Opens a stream and reads it. Creates one that does not exist. */
  static async open<S extends StreamState>(deps: SharedStreamDeps<S>): Promise<SharedStream<S>> {
    const stream = new SharedStream(deps);
    stream.use(await stream.load());
    return stream;
  }

  /** The state with all decisions that were accepted, durable or not. */
  get state(): S {
    return this.known;
  }

  /** The number of its entries, including those that are not durable. */
  get length(): number {
    return this.nextSeq;
  }

  /** Waits until the stream as it is now is durable, and returns the number of its entries. */
  async durableLength(): Promise<number> {
    const { length } = this;
    await this.flush();
    return Math.min(length, this.length);
  }

  /** Why the stream accepts no more decisions; undefined while it works. */
  get failure(): Fault | undefined {
    return this.fault;
  }

  /** Decides on the known state. An accepted decision is part of the state at once. */
  update(decide: Decide<S>): Decision {
    if (this.fault !== undefined) return { isAccepted: true, durable: rejected(this.fault) };
    const entries = decide(this.known);
    if (entries === undefined) return NO_DECISION;
    let settle!: (isAccepted: boolean) => void;
    let fail!: (fault: Fault) => void;
    const durable = new Promise<boolean>((resolve, reject) => {
      settle = resolve;
      fail = reject;
    });
    durable.catch(() => {});
    for (const entry of entries) this.known.apply(entry);
    this.add({ decide, entries, durable, settle, fail });
    return { isAccepted: true, durable };
  }

  /** Resolves when every decision so far is durable or reversed. Rejects with the Fault of the store. */
  async flush(): Promise<void> {
    await Promise.all(this.pending.map(({ durable }) => durable));
    if (this.fault !== undefined) throw this.fault;
  }

  /** Reads what others wrote since. Decides on nothing; a later decision on what it does not know yet is refused anyway. */
  async refresh(): Promise<void> {
    await this.flush();
    const { store, name } = this.deps;
    for await (const entries of store.journal.read(name, this.nextSeq)) {
      // Another refresh, or a recovery, may have read them meanwhile.
      for (const entry of entries) {
        if (entry.seq !== this.nextSeq || this.isRecovering) continue;
        this.known.apply(entry as StreamEntry & Entry);
        this.nextSeq += 1;
      }
    }
  }

  /**
   * True if the stream has at least `length` entries, a number that another process may have kept after this one read the
   * stream: a stream that seems shorter is read again.
   */
  async reaches(length: number): Promise<boolean> {
    // guard: short-stream-read-again
    if (this.nextSeq < length) await this.refresh();
    // A recovery that began meanwhile reads the rest.
    if (this.isRecovering) await this.flush();
    return this.nextSeq >= length;
  }

  private add(decision: PendingDecision<S>): void {
    this.pending.push(decision);
    // A recovery appends everything that is pending.
    if (this.isRecovering) return;
    if (this.batch.length === 0) queueMicrotask(() => this.appendBatch());
    this.batch.push(decision);
  }

  private appendBatch(): void {
    const decisions = this.batch;
    this.batch = [];
    if (this.isRecovering || this.fault !== undefined) return;
    const appending = this.append(decisions).then(
      (last) => {
        // What was not written is decided again by a recovery that has begun.
        if (last !== undefined || !this.isRecovering) this.settle(decisions, last);
      },
      (thrown: unknown) => this.handleFailure(thrown),
    );
    this.appending = this.appending.then(() => appending);
  }

  /**
   * Appends the entries of decisions and returns the last one. Positions are taken at once, so that appends may overlap.
   * Decisions without entries are as durable as those before them, on which they depend.
   */
  private async append(decisions: readonly PendingDecision<S>[]): Promise<Entry | undefined> {
    const { store, name, clock } = this.deps;
    const at = clock.now();
    const firstSeq = this.nextSeq;
    const entries = decisions
      .flatMap((decision) => decision.entries)
      .map((entry, index) => ({ seq: firstSeq + index, at, ...entry }));
    this.nextSeq += entries.length;
    const due = this.deps.due === undefined ? undefined : [this.deps.due(this.known)];
    if (entries.length > 0) await store.journal.append({ session: name, fence: this.fence, firstSeq, entries, due });
    // guard: empty-decision-waits-for-earlier
    else await this.appending;
    return entries.at(-1);
  }

  /** Settles decisions that are durable. */
  private settle(decisions: readonly PendingDecision<S>[], last: Entry | undefined): void {
    this.pending = this.pending.filter((decision) => !decisions.includes(decision));
    for (const decision of decisions) decision.settle(true);
    if (last !== undefined && last.seq + 1 - this.lastSnapshotSeq >= SNAPSHOT_INTERVAL) this.saveSnapshot(last);
  }

  private handleFailure(thrown: unknown): void {
    if (this.fault !== undefined) return;
    // guard: stale-append-decided-again
    if (!isStale(thrown)) {
      this.fail(toStoreFault(thrown));
      return;
    }
    if (this.isRecovering) return;
    this.isRecovering = true;
    this.recover().catch((failure: unknown) => this.fail(toStoreFault(failure)));
  }

  /** Reads what others wrote, and decides and appends everything pending again, until an append succeeds. */
  private async recover(): Promise<void> {
    // An earlier append that is still under way may succeed; deciding on it again would repeat it.
    // guard: recovery-waits-for-appends
    await this.appending;
    for (let retries = 0; this.fault === undefined; retries++) {
      await waitForTurn(this.fence, retries);
      const loaded = await this.load();
      // Nothing may be decided between these two: a decision on the loaded state would be applied to it twice.
      // guard: loaded-state-decided-at-once
      this.use(loaded);
      const accepted = this.decideAgain();
      try {
        this.settle(accepted, await this.append(accepted));
      } catch (thrown) {
        if (isStale(thrown)) continue;
        throw thrown;
      }
      if (this.pending.length > 0) continue;
      this.isRecovering = false;
      return;
    }
  }

  /** Decides on everything pending with the current state, settles what is refused, and returns the rest. */
  private decideAgain(): readonly PendingDecision<S>[] {
    const accepted: PendingDecision<S>[] = [];
    for (const decision of this.pending.splice(0)) {
      const entries = decision.decide(this.known);
      if (entries === undefined) {
        decision.settle(false);
        continue;
      }
      decision.entries = entries;
      for (const entry of entries) this.known.apply(entry);
      accepted.push(decision);
    }
    this.pending = [...accepted];
    return accepted;
  }

  private fail(fault: Fault): void {
    this.fault ??= fault;
    for (const { fail } of this.pending.splice(0)) fail(fault);
  }

  /** Claims the stream and folds it, from its snapshot if there is one. */
  private async load(): Promise<LoadedStream<S>> {
    const { store, name, create } = this.deps;
    const { fence, nextSeq } = await store.journal.claim(name);
    const { state, from } = await this.restore(nextSeq);
    const folded = state ?? create();
    for await (const entries of store.journal.read(name, from))
      for (const entry of entries) folded.apply(entry as StreamEntry & Entry);
    return { state: folded, fence, nextSeq, from };
  }

  private use({ state, fence, nextSeq, from }: LoadedStream<S>): void {
    this.known = state;
    this.fence = fence;
    this.nextSeq = nextSeq;
    this.lastSnapshotSeq = from;
  }

  private async restore(nextSeq: number): Promise<{ readonly state?: S; readonly from: number }> {
    const { store, name, create } = this.deps;
    const saved = await store.snapshots.load(name);
    if (saved === undefined || saved.nextSeq === 0 || saved.nextSeq > nextSeq) return { from: 0 };
    try {
      for await (const entries of store.journal.read(name, saved.nextSeq - 1)) {
        const [last] = entries;
        // guard: stream-snapshot-matches
        if (last === undefined || tailDigestOf(last) !== saved.tailDigest) break;
        return { state: create(saved.state), from: saved.nextSeq };
      }
    } catch (thrown) {
      if (thrown instanceof Fault) throw thrown;
    }
    return { from: 0 };
  }

  /** Saves a snapshot unless the state has undurable parts. Errors are ignored: it is a cache. */
  private saveSnapshot(last: Entry): void {
    const { store, name } = this.deps;
    // guard: stream-snapshot-is-durable
    if (this.pending.length > 0) return;
    const nextSeq = last.seq + 1;
    this.lastSnapshotSeq = nextSeq;
    const snapshot = { nextSeq, tailDigest: tailDigestOf(last), state: this.known.save() };
    store.snapshots.save(name, snapshot).catch(() => undefined);
  }
}

/**
 * Waits for some iterations of the event loop, the more the more often a recovery failed, so that processes that claim a
 * stream at the same pace do not refuse each other forever. Every claim has a fence of its own.
 */
async function waitForTurn(fence: number, retries: number): Promise<void> {
  const iterations = fence % 2 ** Math.min(retries, 6);
  for (let i = 0; i < iterations; i++) await new Promise((resolve) => setImmediate(resolve));
}

function isStale(thrown: unknown): boolean {
  return thrown instanceof Fault && thrown.code === 'STALE_WRITER';
}

function rejected(fault: Fault): Promise<never> {
  const promise = Promise.reject(fault);
  promise.catch(() => {});
  return promise;
}
