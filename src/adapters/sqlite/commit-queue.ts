/**
 * Group commit: one queue of operations, and one transaction per event loop iteration for all queued operations.
 * Invariants: an operation is acknowledged only after COMMIT has returned and the anchor (a second file, which detects
 * lost commits) has its line. Blobs are written before the entries of the same commit, and stay staged until a commit
 * includes them. After a failure that leaves the state of the disk unknown, the queue stops and retries nothing.
 */
import { Fault } from '../../base/errors.js';
import type { AnchorFile } from './anchor-file.js';
import type { Driver, Statement } from './driver.js';
import { toFault } from './sqlite-faults.js';
import type { StoreFileGuard } from './store-file-guard.js';
import type { TransactionWriter } from './transaction-writer.js';

/** An operation in the queue. */
interface QueuedOperation {
  /**
   * Performs the operation inside the transaction and returns the callback that acknowledges it. A Fault refuses it.
   */
  perform(): () => void;
  /**
   * True if the operation changes the tables by one statement at most. Alone in a commit, it needs no BEGIN and COMMIT.
   */
  readonly isSingleStatement: boolean;
  /** Called instead of the acknowledgement if the operation was refused, not committed or not anchored. */
  reject(fault: Fault): void;
}

interface StagedBlob {
  readonly sid: number;
  readonly digest: string;
  readonly text: string;
}

/** Counters since the store was opened. */
export interface CommitStats {
  /** Committed transactions. With durability "fsync", each one that changed a table cost one sync. */
  readonly commits: number;
  /** Operations in these transactions, including refused ones. */
  readonly operations: number;
  /** Operations that were refused inside their transaction, such as appends of a stale writer. */
  readonly refused: number;
  /** Checkpoints of the WAL into the database. */
  readonly checkpoints: number;
  /** Compactions of the anchor file. */
  readonly compactions: number;
}

/** What a commit queue works with. */
interface CommitQueueDeps {
  readonly driver: Driver;
  readonly path: string;
  readonly writer: TransactionWriter;
  readonly anchor: AnchorFile;
  readonly now: () => number;
  /** The highest commit number that was ever used. */
  readonly lastCommitNumber: number;
  readonly fileGuard: StoreFileGuard;
  /** Called after a failure which shows that this process has lost the file. */
  readonly onLost: () => void;
  /** Called when all operations of a commit are acknowledged or rejected, before callers that await them continue. */
  readonly onAcknowledged: () => void;
}

/**
 * The number of WAL pages that triggers a checkpoint: the pages of `commits` large commits, but between `least` and
 * `most`. It is low, because a WAL that is overwritten from its start syncs faster than a growing file. It covers many
 * commits, because a checkpoint copies a page that all of them changed only once.
 */
const CHECKPOINT_PAGES = { least: 400, most: 4000, commits: 24 };
/** Maximum total length of the staged blobs. A single blob may be longer. */
const MAX_STAGED_CHARS = 64 << 20;

/** Failures after which the content of the disk is known, so the queue continues. */
const RECOVERABLE_CODES: ReadonlySet<string> = new Set(['STORE_FULL', 'STORE_READ_ONLY']);

/** Failures after which this process must not write to the files of the store. */
export const STORE_LOST_CODES: ReadonlySet<string> = new Set(['OWNERSHIP_LOST', 'STORE_MISSING']);

/** Queues operations and commits them in groups. */
export class CommitQueue {
  private readonly driver: Driver;
  private readonly path: string;
  private readonly writer: TransactionWriter;
  private readonly anchor: AnchorFile;
  private readonly now: () => number;
  private readonly fileGuard: StoreFileGuard;
  private readonly onLost: () => void;
  private readonly onAcknowledged: () => void;
  private readonly beginStatement: Statement;
  private readonly commitStatement: Statement;
  private readonly counters = { commits: 0, operations: 0, refused: 0, checkpoints: 0, compactions: 0 };
  private readonly flushCallback = (): void => this.flush();
  private queue: QueuedOperation[] = [];
  private stagedBlobs = new Map<string, StagedBlob>();
  private stagedChars = 0;
  private isFlushScheduled = false;
  /** Estimated number of WAL pages that were not checkpointed yet. */
  private walPages = 0;
  /** Decaying maximum of pages per commit: with several processes, large and small commits alternate. */
  private largeCommitPages = 0;
  private lastCommitNumber: number;
  private fault: Fault | undefined;

  constructor({
    driver,
    path,
    writer,
    anchor,
    now,
    lastCommitNumber,
    fileGuard,
    onLost,
    onAcknowledged,
  }: CommitQueueDeps) {
    this.driver = driver;
    this.path = path;
    this.writer = writer;
    this.anchor = anchor;
    this.now = now;
    this.lastCommitNumber = lastCommitNumber;
    this.fileGuard = fileGuard;
    this.onLost = onLost;
    this.onAcknowledged = onAcknowledged;
    this.beginStatement = driver.prepare('BEGIN IMMEDIATE');
    this.commitStatement = driver.prepare('COMMIT');
  }

  /** Why the queue accepts no more operations; undefined while it runs. */
  get stopFault(): Fault | undefined {
    return this.fault;
  }

  /** Returns a copy of the counters. */
  stats(): CommitStats {
    return { ...this.counters };
  }

  /** Queues an operation for the next commit. Resolves with its result once it is committed and anchored. */
  submit<T>(operation: () => T, isSingleStatement: boolean): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.fault !== undefined) throw this.fault;
      const perform = (): (() => void) => {
        const value = operation();
        return () => resolve(value);
      };
      this.enqueue({ perform, reject, isSingleStatement });
    });
  }

  /**
   * Queues an operation for the next commit, with callbacks instead of a promise. Rejects it if the queue has stopped.
   */
  enqueue(queued: QueuedOperation): void {
    if (this.fault !== undefined) return void queued.reject(this.fault);
    this.queue.push(queued);
    if (this.isFlushScheduled) return;
    this.isFlushScheduled = true;
    setImmediate(this.flushCallback);
  }

  /**
   * Stages a blob for the next commit, but schedules none. Every append that is queued later is in that commit or in a
   * later one. If too much is staged, commits first. Throws if the queue has stopped, and STORE_FULL if that commit
   * failed.
   */
  stageBlob(sid: number, digest: string, text: string): void {
    const key = `${sid} ${digest}`;
    if (this.stagedBlobs.has(key)) return;
    const isFull = (): boolean => this.stagedBlobs.size > 0 && this.stagedChars + text.length > MAX_STAGED_CHARS;
    if (isFull()) this.flush();
    if (this.fault !== undefined) throw this.fault;
    if (isFull())
      throw new Fault('STORE_FULL', `${this.path} has too many values that wait to be written. Free some disk space.`);
    this.stagedBlobs.set(key, { sid, digest, text });
    this.stagedChars += text.length;
  }

  /** Returns the text of a staged blob; undefined if there is none. */
  findStagedBlob(sid: number, digest: string): string | undefined {
    return this.stagedBlobs.get(`${sid} ${digest}`)?.text;
  }

  /** Commits the queued operations and staged blobs immediately; does nothing if the queue has stopped. */
  flush(): void {
    this.isFlushScheduled = false;
    const queue = this.queue;
    this.queue = [];
    if (this.fault !== undefined || (queue.length === 0 && this.stagedBlobs.size === 0)) return;
    const acks = this.runTransaction(queue);
    if (acks === undefined) return;
    const anchorFault = this.publishAndAnchor();
    if (anchorFault === undefined) for (const acknowledge of acks) acknowledge();
    else for (const { reject } of queue) reject(anchorFault);
    this.onAcknowledged();
    this.checkpointAndCompact();
  }

  /** Stops the queue: queued and future operations are rejected with this fault, or with that of an earlier stop. */
  stop(fault: Fault): void {
    this.fault ??= fault;
    const queue = this.queue;
    this.queue = [];
    this.stagedBlobs.clear();
    for (const { reject } of queue) reject(this.fault);
  }

  /**
   * Throws STORE_MISSING, and stops, if the files of the store were removed. For a process that waits for work and writes
   * nothing: what it reads is still there for it alone.
   */
  assertPresent(): void {
    try {
      this.fileGuard.assertUnchanged();
    } catch (error) {
      // A lost ownership is found by the next commit, which another owner can then perform.
      // guard: waiting-process-notices-removal
      if (!(error instanceof Fault) || error.code !== 'STORE_MISSING') return;
      this.stop(error);
      setImmediate(this.onLost);
      throw error;
    }
  }

  /**
   * Runs the operations in one transaction and returns the callbacks that answer them. Returns undefined if the
   * transaction failed; all operations are then rejected.
   */
  private runTransaction(queue: readonly QueuedOperation[]): (() => void)[] | undefined {
    // In autocommit mode, without BEGIN and COMMIT, a single append takes a tenth less time.
    const isAutocommit = queue.length === 1 && queue[0]?.isSingleStatement === true && this.stagedBlobs.size === 0;
    // guard: lone-statement-counts-as-commit
    let isCommitting = isAutocommit;
    try {
      // guard: store-file-present
      this.fileGuard.assertUnchanged();
      this.writer.begin(this.lastCommitNumber + 1, this.now());
      if (!isAutocommit) {
        this.beginStatement.run();
        this.writer.assertOwner();
      }
      for (const { sid, digest, text } of this.stagedBlobs.values()) this.writer.putBlob(sid, digest, text);
      const acks = queue.map((queued) => this.perform(queued));
      isCommitting = true;
      if (!isAutocommit) this.commitStatement.run();
      this.fileGuard.noteCommit();
      this.counters.commits += 1;
      this.counters.operations += queue.length;
      return acks;
    } catch (error) {
      this.fail(queue, error, isCommitting);
      return undefined;
    }
  }

  /** Performs an operation and returns the callback that acknowledges it, or that rejects it if it was refused. */
  private perform(queued: QueuedOperation): () => void {
    try {
      return queued.perform();
    } catch (error) {
      if (!(error instanceof Fault) || STORE_LOST_CODES.has(error.code)) throw error;
      this.counters.refused += 1;
      return () => queued.reject(error);
    }
  }

  /**
   * Publishes and anchors the heads after COMMIT. Returns a Fault, and may stop, if the anchor could not be written.
   */
  private publishAndAnchor(): Fault | undefined {
    this.stagedBlobs.clear();
    this.stagedChars = 0;
    this.walPages += this.writer.estimatedWalPages;
    this.writer.publishHeads();
    const { changedHeads, removedSessions, commitTimeMs } = this.writer;
    if (changedHeads.size === 0 && removedSessions.size === 0) return undefined;
    this.lastCommitNumber += 1;
    try {
      this.anchor.appendCommit(this.lastCommitNumber, commitTimeMs, changedHeads.values(), removedSessions);
      return undefined;
    } catch (error) {
      const fault = this.toDiskFault(error, 'Anchoring a commit of');
      if (!RECOVERABLE_CODES.has(fault.code)) this.stop(fault);
      return fault;
    }
  }

  /**
   * Rolls back a failed transaction and rejects its operations. Stops the queue if the content of the disk is unknown
   * or damaged, or if the store is lost.
   */
  private fail(queue: readonly QueuedOperation[], error: unknown, isCommitting: boolean): void {
    let fault = isCommitting ? this.toDiskFault(error, 'COMMIT to') : toFault(error, 'A commit to', this.path);
    const rollbackError = this.rollback();
    if (rollbackError !== undefined) fault = toFault(rollbackError, 'ROLLBACK of', this.path, 'SYNC_FAILED');
    // guard: failed-sync-stops-the-store
    if (fault.code === 'SYNC_FAILED' || fault.code === 'STORE_DAMAGED' || STORE_LOST_CODES.has(fault.code))
      this.stop(fault);
    for (const { reject } of queue) reject(fault);
    if (STORE_LOST_CODES.has(fault.code)) setImmediate(this.onLost);
    // The WAL holds many versions of a page. A checkpoint may free enough space to continue.
    if (fault.code === 'STORE_FULL' && this.walPages > 0) this.checkpointAndCompact('TRUNCATE');
  }

  /**
   * Converts an error of a disk operation into a Fault. An error whose effect on the disk is unknown counts as a failed
   * sync.
   */
  private toDiskFault(error: unknown, doing: string): Fault {
    const fault = toFault(error, doing, this.path);
    const isKnown =
      RECOVERABLE_CODES.has(fault.code) || STORE_LOST_CODES.has(fault.code) || fault.code === 'STORE_DAMAGED';
    return isKnown ? fault : toFault(error, doing, this.path, 'SYNC_FAILED');
  }

  /** Rolls back and returns the error if that failed. It is no error if SQLite has already rolled back. */
  private rollback(): unknown {
    try {
      this.driver.exec('ROLLBACK');
      return undefined;
    } catch (error) {
      return error instanceof Error && error.message.includes('no transaction is active') ? undefined : error;
    }
  }

  /** Checkpoints the WAL and compacts the anchor if they have grown large. A `mode` forces the checkpoint. */
  private checkpointAndCompact(mode?: 'TRUNCATE'): void {
    if (this.fault !== undefined) return;
    try {
      const { least, most, commits } = CHECKPOINT_PAGES;
      this.largeCommitPages = Math.max(this.writer.estimatedWalPages, 0.9 * this.largeCommitPages);
      const threshold = Math.min(most, Math.max(least, commits * this.largeCommitPages));
      if (this.walPages >= threshold || mode !== undefined) {
        this.walPages = 0;
        this.counters.checkpoints += 1;
        this.driver.exec(`PRAGMA wal_checkpoint(${mode ?? 'PASSIVE'})`);
        this.fileGuard.noteCheckpoint();
      }
      if (this.anchor.needsCompaction) {
        this.counters.compactions += 1;
        this.anchor.compact();
      }
    } catch (error) {
      const fault = this.toDiskFault(error, 'A checkpoint of');
      if (!RECOVERABLE_CODES.has(fault.code)) this.stop(fault);
    }
  }
}
