/**
 * The one place where entries are born. A push is ordered and buffered; a barrier waits until everything pushed so
 * far is durable. A failed append is final: the writer takes nothing more, and whoever waits stays waiting while the
 * session is told. Entries leave memory with their append; a slow store holds the run back instead of growing a queue.
 */
import type { Entry } from '../protocol/entry.js';
import { stall } from './attempt.js';
import type { Clock } from './clock.js';
import { type Fault, faultOf } from './errors.js';
import type { Claim, Store } from './journal.js';
import { digest } from './record.js';
import type { Upcasts } from './upcast.js';
import { heavy, snapshot } from './value.js';
import type { Folds } from './view.js';

/** An entry that has no place yet: `seq` and `at` are filled in by the push. */
export type Fresh = { -readonly [K in keyof Entry]: Entry[K] };

const BATCH = 256;
const BACKLOG = 4;

export class Writer {
  fault: Fault | undefined;
  /** The sequence number of the next entry. */
  next: number;
  last: Entry | undefined;
  private readonly session: string;
  private readonly store: Store;
  private readonly fence: number;
  private readonly clock: Clock;
  private readonly folds: Folds;
  private readonly upcasts: Upcasts;
  private readonly versioned: boolean;
  private readonly tell: (fault: Fault) => void;
  private buffer: Fresh[] = [];
  /** Large values that go out before the next append. */
  private blobs: Map<string, string> | undefined;
  private backlog = 0;
  private putting = 0;
  private tail: Promise<void> = Promise.resolve();

  constructor(
    session: string,
    parts: { store: Store; clock: Clock; folds: Folds; upcasts: Upcasts; claim: Claim; tell(fault: Fault): void },
  ) {
    this.session = session;
    this.store = parts.store;
    this.clock = parts.clock;
    this.folds = parts.folds;
    this.upcasts = parts.upcasts;
    this.versioned = Object.keys(parts.upcasts).length > 0;
    this.fence = parts.claim.fence;
    this.next = parts.claim.next;
    this.tell = parts.tell;
  }

  /** Whether the store is so far behind that the run should wait for it. */
  get crowded(): boolean {
    return this.backlog >= BACKLOG;
  }

  /** Writes a proposal: the invariants may refuse it. */
  propose(entry: Fresh): Entry {
    return this.push(entry, true);
  }

  /** Writes a fact; its value is checked, copied and, when large, put aside by digest. */
  push(entry: Fresh, proposed = false): Entry {
    const value = snapshot(entry.value, entry.type);
    const large = heavy();
    entry.value = value;
    if (proposed && this.folds.ruled) this.folds.admit(entry);
    if (large) this.putAside(entry);
    if (this.versioned) entry.v = this.upcasts[entry.type]?.current ?? 1;
    entry.seq = this.next++;
    entry.at = this.clock.now();
    this.last = entry;
    if (!this.folds.empty) this.folds.apply(entry);
    this.buffer.push(entry);
    if (this.buffer.length >= BATCH) this.flush();
    return entry;
  }

  /** Resolves once all that was pushed is durable; rejects with the Fault if that fails. */
  async durable(): Promise<void> {
    this.flush();
    await this.tail;
    if (this.fault !== undefined) throw this.fault;
  }

  /** The same for bodies, which never see a Fault: it stays unsettled and the session ends the attempt. */
  async barrier(): Promise<void> {
    this.flush();
    await this.tail;
    if (this.fault !== undefined) await stall();
  }

  private putAside(entry: Fresh): void {
    const text = JSON.stringify(entry.value);
    entry.blob = digest(text);
    this.blobs ??= new Map();
    this.blobs.set(entry.blob, text);
  }

  private flush(): void {
    if (this.buffer.length === 0) return;
    const entries = this.buffer;
    const blobs = this.blobs;
    this.buffer = [];
    this.blobs = undefined;
    this.backlog += 1;
    const batch = { session: this.session, fence: this.fence, first: this.next - entries.length, entries };
    const append = (): Promise<void> => this.store.journal.append(batch);
    // An append may only overtake nothing: once one waits for its blobs, the ones after it queue behind.
    const direct = blobs === undefined && this.putting === 0;
    const written = direct ? append() : this.tail.then(() => this.putAll(blobs)).then(append);
    if (!direct) this.putting += 1;
    const done = (): void => {
      this.backlog -= 1;
      if (!direct) this.putting -= 1;
    };
    this.tail = written.then(done, (error: unknown) => this.fail(error));
  }

  private async putAll(blobs: ReadonlyMap<string, string> | undefined): Promise<void> {
    for (const [name, text] of blobs ?? []) await this.store.blobs.put(this.session, name, text);
  }

  /** The first failure is the one to tell; those behind it only follow from it. */
  private fail(error: unknown): void {
    if (this.fault !== undefined) return;
    this.fault = faultOf(error);
    this.tell(this.fault);
  }
}
