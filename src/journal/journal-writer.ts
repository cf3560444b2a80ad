/**
 * The one place where entries are born. A push is ordered and buffered; a barrier waits until everything pushed so
 * far is durable. A failed append is final: the writer takes nothing more, and whoever waits stays waiting while the
 * session is told. Entries leave memory with their append; a slow store holds the run back instead of growing a queue.
 */

import { Fault, toStoreFault } from '../base/errors.js';
import { type Mutable, plainConstructor } from '../base/plain-constructor.js';
import { copyAsJson, lastCopyBytes } from '../json/value.js';
import type { Entry, ErrorRecord } from '../protocol/entry.js';
import { splitIntoBlobs } from './blob-parts.js';
import type { Clock } from './clock.js';
import type { NewEntry } from './new-entry.js';
import { digestOfText } from './record.js';
import type { Batch, Claim, Store } from './store.js';
import { Timestamps } from './timestamps.js';
import type { Upcasts } from './upcast.js';
import type { ViewStates } from './view.js';

/** Values over this size go to the blobs. */
const MAX_INLINE_BYTES = 4096;
const MAX_BATCH_ENTRIES = 256;
const MAX_BATCH_BYTES = 1024 * 1024;
const MAX_PENDING_APPENDS = 4;
const MAX_ERROR_MESSAGE_CHARS = 10_000;

/** What a writer works with; `tell` hears of the failure that ends it. */
export interface JournalWriterDeps {
  readonly session: string;
  readonly store: Store;
  readonly clock: Clock;
  readonly viewStates: ViewStates;
  readonly upcasts: Upcasts;
  readonly claim: Claim;
  onFault(fault: Fault): void;
  readonly onEntry: ((entry: Entry) => void) | undefined;
}

/** Copied to make an empty buffer: V8 counts the arrays of a literal `[]` like objects (see `plainConstructor`), but not copies. */
const EMPTY_BUFFER: readonly NewEntry[] = [];

const WrittenBatch = plainConstructor(function (
  this: Mutable<Batch>,
  session: string,
  fence: number,
  first: number,
  entries: readonly Entry[],
) {
  this.session = session;
  this.fence = fence;
  this.firstSeq = first;
  this.entries = entries;
});

export class JournalWriter {
  fault: Fault | undefined;
  /** The sequence number of the next entry. */
  nextSeq: number;
  lastEntry: Entry | undefined;
  private readonly deps: JournalWriterDeps;
  private readonly timestamps: Timestamps;
  private readonly isVersioned: boolean;
  private readonly onEntry: ((entry: Entry) => void) | undefined;
  private buffer: NewEntry[] = [];
  /** Large values that go out before the next append. */
  private pendingBlobs: Map<string, string> | undefined;
  private pendingAppends = 0;
  /** About how many bytes the buffer holds. */
  private bufferedBytes = 0;
  private lastAppend: Promise<void> = Promise.resolve();

  constructor(parts: JournalWriterDeps) {
    this.deps = parts;
    this.nextSeq = parts.claim.nextSeq;
    this.onEntry = parts.onEntry;
    this.timestamps = new Timestamps(parts.clock);
    this.isVersioned = Object.keys(parts.upcasts).length > 0;
  }

  /** Whether the store is so far behind that the run should wait for it. */
  get isBacklogged(): boolean {
    return this.pendingAppends >= MAX_PENDING_APPENDS;
  }

  /** Writes a proposal: the invariants may refuse it. */
  propose(entry: NewEntry, weight?: number): Entry {
    return this.push(entry, true, weight);
  }

  /** Writes a fact; its value is checked, copied and, when large, put aside by digest. A value with a weight is a copy already. */
  push(entry: NewEntry, proposed = false, weight?: number): Entry {
    const { viewStates, upcasts } = this.deps;
    if (entry.error !== undefined) entry.error = toWritableError(entry.error);
    if (weight === undefined)
      // guard: journaled-value-copied
      entry.value = copyAsJson(entry.value, entry.type, entry.key);
    const size = weight ?? lastCopyBytes();
    // guard: entry-keeps-invariants
    if (proposed && viewStates.hasInvariants) viewStates.checkInvariants(entry);
    if (size > MAX_INLINE_BYTES) this.moveToBlobs(entry);
    if (this.isVersioned) entry.schemaVersion = upcasts[entry.type]?.current ?? 1;
    entry.seq = this.nextSeq++;
    this.timestamps.stamp(entry);
    this.lastEntry = entry;
    if (!viewStates.isEmpty) this.applyToViews(entry);
    this.buffer.push(entry);
    this.bufferedBytes += size;
    // Told when it has its place: whoever hears of it may make the next one at once.
    this.onEntry?.(entry);
    if (this.buffer.length >= MAX_BATCH_ENTRIES || this.bufferedBytes >= MAX_BATCH_BYTES) this.flush();
    return entry;
  }

  /** Resolves once all that was pushed is durable; rejects with the Fault if that fails. */
  async waitForDurability(): Promise<void> {
    await this.waitForFlush();
    if (this.fault !== undefined) throw this.fault;
  }

  /** Resolves once it is known whether all that was pushed is durable; `fault` tells. */
  waitForFlush(): Promise<void> {
    this.flush();
    return this.lastAppend;
  }

  /** A view that throws knows nothing more that can be relied on, and no writer goes on without its views. */
  private applyToViews(entry: Entry): void {
    try {
      this.deps.viewStates.apply(entry);
    } catch (error) {
      this.fail(new Fault('VIEW_FAILED', `A view could not take ${entry.type} at ${entry.key}: ${error}`, {}, error));
      throw error;
    }
  }

  /** Resolves when what is under way is written; unlike a barrier it sends nothing out, so that batches stay large. */
  waitForBacklog(): Promise<void> {
    return this.lastAppend;
  }

  private moveToBlobs(entry: NewEntry): void {
    const { text, parts } = splitIntoBlobs(entry.value);
    entry.blob = digestOfText(text);
    this.pendingBlobs ??= new Map();
    this.pendingBlobs.set(entry.blob, text);
    for (const [name, part] of parts) this.pendingBlobs.set(name, part);
  }

  /** One append at a time: after one that failed, the next is never tried. */
  private flush(): void {
    if (this.buffer.length === 0) return;
    const entries = this.buffer;
    const blobs = this.pendingBlobs;
    this.buffer = EMPTY_BUFFER.slice();
    this.pendingBlobs = undefined;
    this.bufferedBytes = 0;
    const first = this.nextSeq - entries.length;
    const append = (): Promise<void> => this.append(first, entries, blobs);
    this.lastAppend = this.pendingAppends === 0 ? append() : this.lastAppend.then(append);
    this.pendingAppends += 1;
  }

  private async append(first: number, entries: NewEntry[], blobs: Map<string, string> | undefined): Promise<void> {
    // guard: nothing-appended-after-fault
    if (this.fault !== undefined) return;
    const { session, store, claim } = this.deps;
    try {
      if (blobs !== undefined) for (const [name, text] of blobs) await store.blobs.put(session, name, text);
      await store.journal.append(new WrittenBatch(session, claim.fence, first, entries));
      this.pendingAppends -= 1;
    } catch (error) {
      this.fail(error);
    }
  }

  /** The first failure is the one to tell; those behind it only follow from it. */
  private fail(error: unknown): void {
    if (this.fault !== undefined) return;
    this.fault = toStoreFault(error);
    this.deps.onFault(this.fault);
  }
}

/** An error whose message is bounded and whose data is JSON, whoever made it. */
function toWritableError({ code, message, data }: ErrorRecord): ErrorRecord {
  const bounded = { code: String(code), message: String(message).slice(0, MAX_ERROR_MESSAGE_CHARS) };
  try {
    const copy = copyAsJson(data, 'data');
    return copy === undefined || lastCopyBytes() > MAX_INLINE_BYTES ? bounded : { ...bounded, data: copy };
  } catch {
    return bounded;
  }
}
