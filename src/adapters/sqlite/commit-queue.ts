/**
 * The group commit: one queue of operations, and one transaction for all that is queued when the loop turns.
 * Invariants: nothing is acknowledged before COMMIT returned and its line is in the anchor; large values go first,
 * and stay staged until a commit took them; after a failure that leaves the disk in doubt nothing is accepted any
 * more and nothing is tried again.
 */
import { Fault } from '../../base/errors.js';
import type { AnchorFile } from './anchor-file.js';
import type { Driver, Statement } from './driver.js';
import { toFault } from './sqlite-faults.js';
import type { StoreFileGuard } from './store-file-guard.js';
import type { TransactionWriter } from './transaction-writer.js';

export interface QueuedOperation {
  /** Does it inside the transaction; what comes back acknowledges it. */
  perform(): () => void;
  /** It is one statement, which SQLite commits by itself when nothing rides with it. */
  readonly isSingleStatement: boolean;
  reject(fault: Fault): void;
}

interface StagedBlob {
  readonly sid: number;
  readonly digest: string;
  readonly text: string;
}

/** Counts since the store was opened. */
export interface CommitStats {
  /** Transactions; with durability "fsync" each that changed something is one sync. */
  readonly commits: number;
  readonly operations: number;
  readonly refused: number;
  readonly checkpoints: number;
  readonly compactions: number;
}

export interface CommitQueueDeps {
  readonly driver: Driver;
  readonly path: string;
  readonly writes: TransactionWriter;
  readonly anchor: AnchorFile;
  readonly now: () => number;
  /** The last commit number that was ever used. */
  readonly lastCommitNumber: number;
  readonly presence: StoreFileGuard;
  /** Called after a failure that says that the file is not this process's any more. */
  readonly onLost: () => void;
  /** Called when all of a commit was acknowledged, before anybody goes on with it. */
  readonly onAcknowledged: () => void;
}

/**
 * WAL pages after which it is copied into the database. Few, because it is then written over from its beginning, and that syncs faster
 * than a file that grows; but those of many commits, because a page that each of them changed is copied once.
 */
const CHECKPOINT_PAGES = { least: 400, most: 4000, commits: 24 };
const MAX_STAGED_CHARS = 64 << 20;

/** Failures that say for sure that nothing was committed, so that the store can go on. */
const RECOVERABLE_CODES: ReadonlySet<string> = new Set(['STORE_FULL', 'STORE_READ_ONLY']);

/** Failures after which this process has no business with the file. */
export const STORE_LOST_CODES: ReadonlySet<string> = new Set(['OWNERSHIP_LOST', 'STORE_MISSING']);

export class CommitQueue {
  readonly #driver: Driver;
  readonly #path: string;
  readonly #writes: TransactionWriter;
  readonly #anchor: AnchorFile;
  readonly #now: () => number;
  readonly #presence: StoreFileGuard;
  readonly #onLost: () => void;
  readonly #onAcknowledged: () => void;
  readonly #beginStatement: Statement;
  readonly #commitStatement: Statement;
  readonly #stats = { commits: 0, operations: 0, refused: 0, checkpoints: 0, compactions: 0 };
  readonly #flushCallback = (): void => this.flush();
  #queue: QueuedOperation[] = [];
  #stagedBlobs = new Map<string, StagedBlob>();
  #stagedChars = 0;
  #isFlushScheduled = false;
  /** Pages in the WAL that are not in the database. */
  #walPages = 0;
  /** Pages of a large commit; those of several processes alternate with smaller ones. */
  #largeCommitPages = 0;
  #lastCommitNumber: number;
  #stopFault: Fault | undefined;

  constructor({
    driver,
    path,
    writes,
    anchor,
    now,
    lastCommitNumber,
    presence,
    onLost,
    onAcknowledged,
  }: CommitQueueDeps) {
    this.#driver = driver;
    this.#path = path;
    this.#writes = writes;
    this.#anchor = anchor;
    this.#now = now;
    this.#lastCommitNumber = lastCommitNumber;
    this.#presence = presence;
    this.#onLost = onLost;
    this.#onAcknowledged = onAcknowledged;
    this.#beginStatement = driver.prepare('BEGIN IMMEDIATE');
    this.#commitStatement = driver.prepare('COMMIT');
  }

  /** Why nothing is accepted any more, if so. */
  get stopFault(): Fault | undefined {
    return this.#stopFault;
  }

  stats(): CommitStats {
    return { ...this.#stats };
  }

  /**
   * Queues an operation for the next commit; resolves with its result once that is durable.
   * `single` says that it changes the tables by one statement at most.
   */
  submit<T>(operation: () => T, single: boolean): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#stopFault !== undefined) throw this.#stopFault;
      const perform = (): (() => void) => {
        const value = operation();
        return () => resolve(value);
      };
      this.enqueue({ perform, reject, isSingleStatement: single });
    });
  }

  /** The same for a caller that has no use for a promise. */
  enqueue(queued: QueuedOperation): void {
    if (this.#stopFault !== undefined) return void queued.reject(this.#stopFault);
    this.#queue.push(queued);
    if (this.#isFlushScheduled) return;
    this.#isFlushScheduled = true;
    setImmediate(this.#flushCallback);
  }

  /** Lets a large value ride with the next commit, which every later append is in or after. */
  stageBlob(sid: number, digest: string, text: string): void {
    const key = `${sid} ${digest}`;
    if (this.#stagedBlobs.has(key)) return;
    const crowded = (): boolean => this.#stagedBlobs.size > 0 && this.#stagedChars + text.length > MAX_STAGED_CHARS;
    if (crowded()) this.flush();
    if (this.#stopFault !== undefined) throw this.#stopFault;
    if (crowded()) throw new Fault('STORE_FULL', `${this.#path} has no room for what waits to be written.`);
    this.#stagedBlobs.set(key, { sid, digest, text });
    this.#stagedChars += text.length;
  }

  findStagedBlob(sid: number, digest: string): string | undefined {
    return this.#stagedBlobs.get(`${sid} ${digest}`)?.text;
  }

  /** Commits what is queued, at once. */
  flush(): void {
    this.#isFlushScheduled = false;
    const queue = this.#queue;
    this.#queue = [];
    if (this.#stopFault !== undefined || (queue.length === 0 && this.#stagedBlobs.size === 0)) return;
    const acks = this.#runTransaction(queue);
    if (acks === undefined) return;
    const anchored = this.#publishAndAnchor();
    if (anchored === undefined) for (const acknowledge of acks) acknowledge();
    else for (const { reject } of queue) reject(anchored);
    this.#onAcknowledged();
    this.#checkpointAndCompact();
  }

  /** Ends it: what is queued is refused, and so is all that comes. */
  stop(fault: Fault): void {
    this.#stopFault ??= fault;
    const queue = this.#queue;
    this.#queue = [];
    this.#stagedBlobs.clear();
    for (const { reject } of queue) reject(this.#stopFault);
  }

  /** Runs the queue in one transaction; undefined if it failed, and then everybody knows. */
  #runTransaction(queue: readonly QueuedOperation[]): (() => void)[] | undefined {
    // Without BEGIN and COMMIT around it a step of a lone session takes a tenth less.
    const alone = queue.length === 1 && queue[0]?.isSingleStatement === true && this.#stagedBlobs.size === 0;
    // guard: lone-statement-counts-as-commit
    let committing = alone;
    try {
      // guard: store-file-present
      this.#presence.assertUnchanged();
      this.#writes.begin(this.#lastCommitNumber + 1, this.#now());
      if (!alone) {
        this.#beginStatement.run();
        this.#writes.assertOwner();
      }
      for (const { sid, digest, text } of this.#stagedBlobs.values()) this.#writes.putBlob(sid, digest, text);
      const acks = queue.map((queued) => this.#perform(queued));
      committing = true;
      if (!alone) this.#commitStatement.run();
      this.#stats.commits += 1;
      this.#stats.operations += queue.length;
      return acks;
    } catch (error) {
      this.#fail(queue, error, committing);
      return undefined;
    }
  }

  #perform(queued: QueuedOperation): () => void {
    try {
      return queued.perform();
    } catch (error) {
      if (!(error instanceof Fault) || STORE_LOST_CODES.has(error.code)) throw error;
      this.#stats.refused += 1;
      return () => queued.reject(error);
    }
  }

  /** After COMMIT: the heads are published and anchored. A Fault if the anchor could not be written. */
  #publishAndAnchor(): Fault | undefined {
    this.#stagedBlobs.clear();
    this.#stagedChars = 0;
    this.#walPages += this.#writes.estimatedWalPages;
    this.#writes.publishHeads();
    const { changedHeads, removedSessions, committedAt } = this.#writes;
    if (changedHeads.size === 0 && removedSessions.size === 0) return undefined;
    this.#lastCommitNumber += 1;
    try {
      this.#anchor.appendCommit(this.#lastCommitNumber, committedAt, changedHeads.values(), removedSessions);
      return undefined;
    } catch (error) {
      const fault = this.#toDiskFault(error, 'Anchoring a commit of');
      if (!RECOVERABLE_CODES.has(fault.code)) this.stop(fault);
      return fault;
    }
  }

  #fail(queue: readonly QueuedOperation[], error: unknown, committing: boolean): void {
    let fault = committing ? this.#toDiskFault(error, 'COMMIT to') : toFault(error, 'A commit to', this.#path);
    const left = this.#rollback();
    if (left !== undefined) fault = toFault(left, 'ROLLBACK of', this.#path, 'SYNC_FAILED');
    // guard: failed-sync-stops-the-store
    if (fault.code === 'SYNC_FAILED' || fault.code === 'STORE_DAMAGED' || STORE_LOST_CODES.has(fault.code))
      this.stop(fault);
    for (const { reject } of queue) reject(fault);
    if (STORE_LOST_CODES.has(fault.code)) setImmediate(this.#onLost);
    // The WAL holds many versions of a page; moved into the database they may leave room to go on.
    if (fault.code === 'STORE_FULL' && this.#walPages > 0) this.#checkpointAndCompact('TRUNCATE');
  }

  /** The Fault of a failure at the disk itself: what is not known to be harmless counts as a failed sync. */
  #toDiskFault(error: unknown, doing: string): Fault {
    const fault = toFault(error, doing, this.#path);
    const known =
      RECOVERABLE_CODES.has(fault.code) || STORE_LOST_CODES.has(fault.code) || fault.code === 'STORE_DAMAGED';
    return known ? fault : toFault(error, doing, this.#path, 'SYNC_FAILED');
  }

  /** The error of a rollback that failed; that SQLite had rolled back by itself is none. */
  #rollback(): unknown {
    try {
      this.#driver.exec('ROLLBACK');
      return undefined;
    } catch (error) {
      return error instanceof Error && error.message.includes('no transaction is active') ? undefined : error;
    }
  }

  /** The slow chores, after everybody was told. */
  #checkpointAndCompact(how?: 'TRUNCATE'): void {
    if (this.#stopFault !== undefined) return;
    try {
      const { least, most, commits } = CHECKPOINT_PAGES;
      this.#largeCommitPages = Math.max(this.#writes.estimatedWalPages, 0.9 * this.#largeCommitPages);
      const due = Math.min(most, Math.max(least, commits * this.#largeCommitPages));
      if (this.#walPages >= due || how !== undefined) {
        this.#walPages = 0;
        this.#stats.checkpoints += 1;
        this.#driver.exec(`PRAGMA wal_checkpoint(${how ?? 'PASSIVE'})`);
      }
      if (this.#anchor.needsCompaction) {
        this.#stats.compactions += 1;
        this.#anchor.compact();
      }
    } catch (error) {
      const fault = this.#toDiskFault(error, 'A checkpoint of');
      if (!RECOVERABLE_CODES.has(fault.code)) this.stop(fault);
    }
  }
}
