/**
 * The one place where entries are born. A push is ordered and buffered; a barrier waits until everything pushed so
 * far is durable. A failed append is final: the writer takes nothing more, and whoever waits stays waiting while the
 * session is told. Entries leave memory with their append; a slow store holds the run back instead of growing a queue.
 */

import { Fault, faultOf } from '../base/errors.js';
import { type Mutable, plainConstructor } from '../base/plain-constructor.js';
import { snapshot, weighed } from '../json/value.js';
import type { Entry, ErrorRecord } from '../protocol/entry.js';
import type { Clock } from './clock.js';
import type { Fresh } from './fresh.js';
import { textsOf } from './parts.js';
import { digest } from './record.js';
import type { Batch, Claim, Store } from './store.js';
import { Timestamps } from './timestamps.js';
import type { Upcasts } from './upcast.js';
import type { Folds } from './view.js';

/** Values over this size go to the blobs. */
const INLINE = 4096;
const BATCH = 256;
const BATCH_SIZE = 1024 * 1024;
const BACKLOG = 4;
const LONGEST = 10_000;

/** What a writer works with; `tell` hears of the failure that ends it. */
export interface WriterParts {
  readonly session: string;
  readonly store: Store;
  readonly clock: Clock;
  readonly folds: Folds;
  readonly upcasts: Upcasts;
  readonly claim: Claim;
  tell(fault: Fault): void;
  readonly heard: ((entry: Entry) => void) | undefined;
}

/** Copied to make an empty buffer: V8 counts the arrays of a literal `[]` like objects (see `plainConstructor`), but not copies. */
const NONE: readonly Fresh[] = [];

const WrittenBatch = plainConstructor(function (
  this: Mutable<Batch>,
  session: string,
  fence: number,
  first: number,
  entries: readonly Entry[],
) {
  this.session = session;
  this.fence = fence;
  this.first = first;
  this.entries = entries;
});

export class Writer {
  fault: Fault | undefined;
  /** The sequence number of the next entry. */
  next: number;
  last: Entry | undefined;
  private readonly parts: WriterParts;
  private readonly timestamps: Timestamps;
  private readonly versioned: boolean;
  private readonly heard: ((entry: Entry) => void) | undefined;
  private buffer: Fresh[] = [];
  /** Large values that go out before the next append. */
  private blobs: Map<string, string> | undefined;
  private backlog = 0;
  /** About how many bytes the buffer holds. */
  private size = 0;
  private tail: Promise<void> = Promise.resolve();

  constructor(parts: WriterParts) {
    this.parts = parts;
    this.next = parts.claim.next;
    this.heard = parts.heard;
    this.timestamps = new Timestamps(parts.clock);
    this.versioned = Object.keys(parts.upcasts).length > 0;
  }

  /** Whether the store is so far behind that the run should wait for it. */
  get crowded(): boolean {
    return this.backlog >= BACKLOG;
  }

  /** Writes a proposal: the invariants may refuse it. */
  propose(entry: Fresh, weight?: number): Entry {
    return this.push(entry, true, weight);
  }

  /** Writes a fact; its value is checked, copied and, when large, put aside by digest. A value with a weight is a copy already. */
  push(entry: Fresh, proposed = false, weight?: number): Entry {
    const { folds, upcasts } = this.parts;
    if (entry.error !== undefined) entry.error = writable(entry.error);
    if (weight === undefined)
      // guard: journaled-value-copied
      entry.value = snapshot(entry.value, entry.type, entry.key);
    const size = weight ?? weighed();
    // guard: entry-keeps-invariants
    if (proposed && folds.ruled) folds.admit(entry);
    if (size > INLINE) this.putAside(entry);
    if (this.versioned) entry.v = upcasts[entry.type]?.current ?? 1;
    entry.seq = this.next++;
    this.timestamps.stamp(entry);
    this.last = entry;
    if (!folds.empty) this.fold(entry);
    this.buffer.push(entry);
    this.size += size;
    // Told when it has its place: whoever hears of it may make the next one at once.
    this.heard?.(entry);
    if (this.buffer.length >= BATCH || this.size >= BATCH_SIZE) this.flush();
    return entry;
  }

  /** Resolves once all that was pushed is durable; rejects with the Fault if that fails. */
  async durable(): Promise<void> {
    await this.flushed();
    if (this.fault !== undefined) throw this.fault;
  }

  /** Resolves once it is known whether all that was pushed is durable; `fault` tells. */
  flushed(): Promise<void> {
    this.flush();
    return this.tail;
  }

  /** A view that throws knows nothing more that can be relied on, and no writer goes on without its views. */
  private fold(entry: Entry): void {
    try {
      this.parts.folds.apply(entry);
    } catch (error) {
      this.fail(new Fault('VIEW_FAILED', `A view could not take ${entry.type} at ${entry.key}: ${error}`, {}, error));
      throw error;
    }
  }

  /** Resolves when what is under way is written; unlike a barrier it sends nothing out, so that batches stay large. */
  eased(): Promise<void> {
    return this.tail;
  }

  private putAside(entry: Fresh): void {
    const { text, parts } = textsOf(entry.value);
    entry.blob = digest(text);
    this.blobs ??= new Map();
    this.blobs.set(entry.blob, text);
    for (const [name, part] of parts) this.blobs.set(name, part);
  }

  /** One append at a time: after one that failed, the next is never tried. */
  private flush(): void {
    if (this.buffer.length === 0) return;
    const entries = this.buffer;
    const blobs = this.blobs;
    this.buffer = NONE.slice();
    this.blobs = undefined;
    this.size = 0;
    const first = this.next - entries.length;
    const append = (): Promise<void> => this.append(first, entries, blobs);
    this.tail = this.backlog === 0 ? append() : this.tail.then(append);
    this.backlog += 1;
  }

  private async append(first: number, entries: Fresh[], blobs: Map<string, string> | undefined): Promise<void> {
    // guard: nothing-appended-after-fault
    if (this.fault !== undefined) return;
    const { session, store, claim } = this.parts;
    try {
      if (blobs !== undefined) for (const [name, text] of blobs) await store.blobs.put(session, name, text);
      await store.journal.append(new WrittenBatch(session, claim.fence, first, entries));
      this.backlog -= 1;
    } catch (error) {
      this.fail(error);
    }
  }

  /** The first failure is the one to tell; those behind it only follow from it. */
  private fail(error: unknown): void {
    if (this.fault !== undefined) return;
    this.fault = faultOf(error);
    this.parts.tell(this.fault);
  }
}

/** An error whose message is bounded and whose data is JSON, whoever made it. */
function writable({ code, message, data }: ErrorRecord): ErrorRecord {
  const bounded = { code: String(code), message: String(message).slice(0, LONGEST) };
  try {
    const copy = snapshot(data, 'data');
    return copy === undefined || weighed() > INLINE ? bounded : { ...bounded, data: copy };
  } catch {
    return bounded;
  }
}
