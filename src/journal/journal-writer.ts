/**
 * The writer of a session: the one place where entries get their sequence numbers. A push orders and buffers an entry;
 * a flush appends the buffer. A failed append is final: nothing is appended after it, and the session gets the fault.
 * Entries leave memory with their append, and backpressure slows the run down instead of growing a queue.
 */

import { Fault, toStoreFault } from '../base/errors.js';
import { type Mutable, plainConstructor } from '../base/plain-constructor.js';
import { copyAsJson, lastCopyBytes } from '../json/value.js';
import type { Entry, ErrorRecord } from '../protocol/entry.js';
import type { PendingStep } from '../protocol/session.js';
import { MAX_INLINE_BYTES, splitIntoBlobs } from './blob-parts.js';
import type { Clock } from './clock.js';
import { type DueChange, dueTimeOf, withDueChange } from './due-turns.js';
import type { NewEntry } from './new-entry.js';
import { digestOfText } from './record.js';
import type { Batch, Claim, Store } from './store.js';
import { Timestamps } from './timestamps.js';
import type { Upcasts } from './upcast.js';
import type { ViewStates } from './view.js';

/** A buffer that reaches either of these sizes is flushed. */
const MAX_BATCH_ENTRIES = 256;
const MAX_BATCH_BYTES = 1024 * 1024;
/** With this many appends in progress, the writer counts as backlogged. */
const MAX_PENDING_APPENDS = 4;
const MAX_ERROR_MESSAGE_CHARS = 10_000;
const MAX_ERROR_STACK_CHARS = 4000;

interface JournalWriterDeps {
  readonly session: string;
  readonly store: Store;
  readonly clock: Clock;
  readonly viewStates: ViewStates;
  readonly upcasts: Upcasts;
  readonly claim: Claim;
  /** Called at most once, with the fault that ends the writer. */
  onFault(fault: Fault): void;
}

/** Callbacks of a writer. */
interface JournalWriterCallbacks {
  /** Called with each entry when it is pushed, before it is durable. */
  readonly onEntry?: (entry: Entry) => void;
  /** Returns when a paused turn is due at the latest, apart from its timers. */
  readonly wakeAt?: (pending: readonly PendingStep[]) => number | undefined;
  /** Redacts or omits the stacks of errors before they are written. */
  readonly errorStacks?: RedactStack | undefined;
}

/** Returns the stack of an error as it is journaled; undefined to omit it. */
export type RedactStack = (stack: string) => string | undefined;

/** Copied to create a buffer: V8 pretenures arrays of a literal `[]` (see `plainConstructor`), but not copies. */
const EMPTY_BUFFER: readonly NewEntry[] = [];

/** Constructs a batch as a plain object. */
const WrittenBatch = plainConstructor(function (
  this: Mutable<Batch>,
  session: string,
  fence: number,
  firstSeq: number,
  entries: readonly Entry[],
  due: readonly DueChange[] | undefined,
) {
  this.session = session;
  this.fence = fence;
  this.firstSeq = firstSeq;
  this.entries = entries;
  this.due = due;
});

/** Orders, buffers and appends the entries of one session. */
export class JournalWriter {
  /** The failure that ended the writer; undefined while it works. */
  fault: Fault | undefined;
  /** The sequence number of the next entry. */
  nextSeq: number;
  /** The last entry that this writer pushed. */
  lastEntry: Entry | undefined;
  private readonly deps: JournalWriterDeps;
  private readonly timestamps: Timestamps;
  /** True if entries get a `schemaVersion`. */
  private readonly isVersioned: boolean;
  private readonly onEntry: JournalWriterCallbacks['onEntry'];
  private readonly wakeAt: JournalWriterCallbacks['wakeAt'];
  private readonly errorStacks: JournalWriterCallbacks['errorStacks'];
  private buffer: NewEntry[] = [];
  /** Blobs that are stored before the next append, by digest. */
  private pendingBlobs: Map<string, string> | undefined;
  /** Changes of the index of due turns that the next append writes. */
  private pendingDue: readonly DueChange[] | undefined;
  /** The turn that the next append makes due at once, if it has entries. */
  private runningTurn: string | undefined;
  /** True if that turn has no row yet. */
  private isRunningTurnNew = false;
  private pendingAppends = 0;
  /** The approximate size of the values in the buffer. */
  private bufferedBytes = 0;
  private lastAppend: Promise<void> = Promise.resolve();

  constructor(deps: JournalWriterDeps, { onEntry, wakeAt, errorStacks }: JournalWriterCallbacks) {
    this.deps = deps;
    this.nextSeq = deps.claim.nextSeq;
    this.onEntry = onEntry;
    this.wakeAt = wakeAt;
    this.errorStacks = errorStacks;
    this.timestamps = new Timestamps(deps.clock);
    this.isVersioned = Object.keys(deps.upcasts).length > 0;
  }

  /** True if the store is so far behind that the run should wait for it. */
  get isBacklogged(): boolean {
    return this.pendingAppends >= MAX_PENDING_APPENDS;
  }

  /** True if an invariant may refuse a proposed entry. */
  get hasInvariants(): boolean {
    return this.deps.viewStates.hasInvariants;
  }

  /** Writes a proposed entry. Throws INVARIANT_VIOLATED and writes nothing if an invariant refuses it. */
  propose(entry: NewEntry, weight?: number): Entry {
    return this.push(entry, true, weight);
  }

  /**
   * Buffers an entry and returns it with its position and time. Its value is checked and copied, and stored as a blob
   * if it is large; throws VALUE_INVALID if it is not JSON. Invariants are checked only if `isProposed`.
   *
   * @param weight The size of the value in bytes, if the value is a JSON copy already. It is then not checked or
   * copied.
   */
  push(entry: NewEntry, isProposed = false, weight?: number): Entry {
    const { viewStates, upcasts } = this.deps;
    if (entry.error !== undefined) entry.error = toWritableError(entry.error, this.errorStacks);
    if (weight === undefined)
      // guard: journaled-value-copied
      entry.value = copyAsJson(entry.value, entry.type, entry.key);
    const size = weight ?? lastCopyBytes();
    // guard: entry-keeps-invariants
    if (isProposed && viewStates.hasInvariants) viewStates.checkInvariants(entry);
    if (size > MAX_INLINE_BYTES) this.moveToBlobs(entry);
    if (this.isVersioned) entry.schemaVersion = upcasts[entry.type]?.current ?? 1;
    entry.seq = this.nextSeq++;
    this.timestamps.stamp(entry);
    this.lastEntry = entry;
    if (!viewStates.isEmpty) this.applyToViews(entry);
    this.buffer.push(entry);
    this.bufferedBytes += size;
    // Called after the entry is in order: the listener may write the next one at once.
    this.onEntry?.(entry);
    if (this.buffer.length >= MAX_BATCH_ENTRIES || this.bufferedBytes >= MAX_BATCH_BYTES) this.flush();
    return entry;
  }

  /**
   * Sets when a turn is due, in milliseconds since the epoch; undefined for a turn that no process has to continue. The
   * next append writes it. Call it before the entry that is the reason: a push may append the buffer.
   */
  setDue(turn: string, dueAt: number | undefined): void {
    if (turn === this.runningTurn) {
      this.runningTurn = undefined;
      // The turn starts and ends in one append, so the index does not change.
      if (dueAt === undefined && this.isRunningTurnNew) return;
    }
    this.pendingDue = withDueChange(this.pendingDue, turn, dueAt);
  }

  /**
   * Makes a turn that starts to run due at once, with its next entries. If it writes none before `setDue` is called,
   * its row stays as it is.
   */
  setRunning(turn: string, isNew: boolean): void {
    if (this.buffer.length > 0) this.addRunningTurn();
    this.runningTurn = turn;
    this.isRunningTurnNew = isNew;
  }

  /** Makes a turn that has paused due at its earliest timer, or at the time of `wakeAt` if that is earlier. */
  setPaused(turn: string, pending: readonly PendingStep[]): void {
    this.setDue(turn, dueTimeOf(pending, this.wakeAt?.(pending)));
  }

  private addRunningTurn(): void {
    if (this.runningTurn === undefined) return;
    this.pendingDue = withDueChange(this.pendingDue, this.runningTurn, 0);
    this.runningTurn = undefined;
  }

  /** Resolves once everything pushed so far is durable; rejects with the Fault if that fails. */
  async waitForDurability(): Promise<void> {
    await this.waitForFlush();
    if (this.fault !== undefined) throw this.fault;
  }

  /** Resolves once everything pushed so far is durable or an append has failed; `fault` distinguishes the two. */
  waitForFlush(): Promise<void> {
    this.flush();
    return this.lastAppend;
  }

  /** Applies an entry to the views. A view that throws is in an unknown state, so its error ends the writer. */
  private applyToViews(entry: Entry): void {
    try {
      this.deps.viewStates.apply(entry);
    } catch (error) {
      this.fail(new Fault('VIEW_FAILED', `A view failed on ${entry.type} at ${entry.key}: ${error}`, {}, error));
      throw error;
    }
  }

  /**
   * Resolves when the appends in progress have ended, successfully or not. It does not flush the buffer, so that
   * batches stay large.
   */
  waitForBacklog(): Promise<void> {
    return this.lastAppend;
  }

  private moveToBlobs(entry: NewEntry): void {
    const { text, parts } = splitIntoBlobs(entry.value);
    entry.blob = digestOfText(text);
    this.pendingBlobs ??= new Map();
    this.pendingBlobs.set(entry.blob, text);
    for (const [digest, part] of parts) this.pendingBlobs.set(digest, part);
  }

  /** Appends the buffer and the due changes after all earlier appends. After an append has failed, no later one is tried. */
  private flush(): void {
    if (this.buffer.length === 0 && this.pendingDue === undefined) return;
    const entries = this.buffer;
    const blobs = this.pendingBlobs;
    if (entries.length > 0) this.addRunningTurn();
    const { session, claim } = this.deps;
    const batch = new WrittenBatch(session, claim.fence, this.nextSeq - entries.length, entries, this.pendingDue);
    this.pendingDue = undefined;
    this.buffer = EMPTY_BUFFER.slice();
    this.pendingBlobs = undefined;
    this.bufferedBytes = 0;
    this.lastAppend =
      this.pendingAppends === 0 ? this.append(batch, blobs) : this.lastAppend.then(() => this.append(batch, blobs));
    this.pendingAppends += 1;
  }

  private async append(batch: Batch, blobs: Map<string, string> | undefined): Promise<void> {
    // guard: nothing-appended-after-fault
    if (this.fault !== undefined) return;
    const { session, store } = this.deps;
    try {
      if (blobs !== undefined) for (const [digest, text] of blobs) await store.blobs.put(session, digest, text);
      await store.journal.append(batch);
      this.pendingAppends -= 1;
    } catch (error) {
      this.fail(error);
    }
  }

  /** Ends the writer with the first failure. Later failures are its consequences and are ignored. */
  private fail(error: unknown): void {
    if (this.fault !== undefined) return;
    this.fault = toStoreFault(error);
    this.deps.onFault(this.fault);
  }
}

/** Bounds the message and the stack of an error, and drops data that is large or not JSON. */
function toWritableError({ code, message, data, stack }: ErrorRecord, redactStack?: RedactStack): ErrorRecord {
  const text = stack === undefined ? undefined : toWritableStack(stack, redactStack);
  const bounded = {
    code: String(code),
    message: String(message).slice(0, MAX_ERROR_MESSAGE_CHARS),
    ...(text !== undefined && { stack: text }),
  };
  try {
    const copy = copyAsJson(data, 'data');
    return copy === undefined || lastCopyBytes() > MAX_INLINE_BYTES ? bounded : { ...bounded, data: copy };
  } catch {
    return bounded;
  }
}

/** Returns the redacted stack. A function that throws or returns no text omits it. */
function toWritableStack(stack: string, redactStack: RedactStack | undefined): string | undefined {
  try {
    // guard: stack-redacted-before-written
    const text: unknown = redactStack === undefined ? stack : redactStack(stack);
    return typeof text === 'string' ? text.slice(0, MAX_ERROR_STACK_CHARS) : undefined;
  } catch {
    return undefined;
  }
}
