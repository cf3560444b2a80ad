/**
 * The group commit: one queue of operations, and one transaction for all that is queued when the loop turns.
 * Invariants: nothing is acknowledged before COMMIT returned and its line is in the anchor; large values go first,
 * and stay staged until a commit took them; after a failure that leaves the disk in doubt nothing is accepted any
 * more and nothing is tried again.
 */
import { Fault } from '../../base/errors.js';
import type { Anchor } from './anchor.js';
import type { Driver, Statement } from './driver.js';
import { faultOf } from './failure.js';
import type { Presence } from './presence.js';
import type { Writes } from './writes.js';

export interface Queued {
  /** Does it inside the transaction; what comes back acknowledges it. */
  perform(): () => void;
  /** It is one statement, which SQLite commits by itself when nothing rides with it. */
  readonly single: boolean;
  reject(fault: Fault): void;
}

interface Staged {
  readonly sid: number;
  readonly digest: string;
  readonly text: string;
}

/** Counts since the store was opened. */
export interface Stats {
  /** Transactions; with durability "fsync" each that changed something is one sync. */
  readonly commits: number;
  readonly operations: number;
  readonly refused: number;
  readonly checkpoints: number;
  readonly compactions: number;
}

export interface CommitsOptions {
  readonly driver: Driver;
  readonly path: string;
  readonly writes: Writes;
  readonly anchor: Anchor;
  readonly now: () => number;
  /** The last commit number that was ever used. */
  readonly commit: number;
  readonly presence: Presence;
  /** Called after a failure that says that the file is not this process's any more. */
  readonly lost: () => void;
  /** Called when all of a commit was acknowledged, before anybody goes on with it. */
  readonly acknowledged: () => void;
}

/**
 * WAL pages after which it is copied into the database. Few, because it is then written over from its beginning, and that syncs faster
 * than a file that grows; but those of many commits, because a page that each of them changed is copied once.
 */
const checkpointPages = { least: 400, most: 4000, commits: 24 };
const stagedLimit = 64 << 20;

/** Failures that say for sure that nothing was committed, so that the store can go on. */
const passing: ReadonlySet<string> = new Set(['STORE_FULL', 'STORE_READ_ONLY']);

/** Failures after which this process has no business with the file. */
export const final: ReadonlySet<string> = new Set(['OWNERSHIP_LOST', 'STORE_MISSING']);

export class Commits {
  readonly #driver: Driver;
  readonly #path: string;
  readonly #writes: Writes;
  readonly #anchor: Anchor;
  readonly #now: () => number;
  readonly #presence: Presence;
  readonly #lost: () => void;
  readonly #acknowledged: () => void;
  readonly #begin: Statement;
  readonly #end: Statement;
  readonly #stats = { commits: 0, operations: 0, refused: 0, checkpoints: 0, compactions: 0 };
  readonly #flush = (): void => this.flush();
  #queue: Queued[] = [];
  #staged = new Map<string, Staged>();
  #stagedSize = 0;
  #scheduled = false;
  /** Pages in the WAL that are not in the database. */
  #pages = 0;
  /** Pages of a large commit; those of several processes alternate with smaller ones. */
  #largest = 0;
  #commit: number;
  #stopped: Fault | undefined;

  constructor({ driver, path, writes, anchor, now, commit, presence, lost, acknowledged }: CommitsOptions) {
    this.#driver = driver;
    this.#path = path;
    this.#writes = writes;
    this.#anchor = anchor;
    this.#now = now;
    this.#commit = commit;
    this.#presence = presence;
    this.#lost = lost;
    this.#acknowledged = acknowledged;
    this.#begin = driver.prepare('BEGIN IMMEDIATE');
    this.#end = driver.prepare('COMMIT');
  }

  /** Why nothing is accepted any more, if so. */
  get stopped(): Fault | undefined {
    return this.#stopped;
  }

  stats(): Stats {
    return { ...this.#stats };
  }

  /**
   * Queues an operation for the next commit; resolves with its result once that is durable.
   * `single` says that it changes the tables by one statement at most.
   */
  push<T>(operation: () => T, single: boolean): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#stopped !== undefined) throw this.#stopped;
      const perform = (): (() => void) => {
        const value = operation();
        return () => resolve(value);
      };
      this.enqueue({ perform, reject, single });
    });
  }

  /** The same for a caller that has no use for a promise. */
  enqueue(queued: Queued): void {
    if (this.#stopped !== undefined) return void queued.reject(this.#stopped);
    this.#queue.push(queued);
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(this.#flush);
  }

  /** Lets a large value ride with the next commit, which every later append is in or after. */
  stage(sid: number, digest: string, text: string): void {
    const key = `${sid} ${digest}`;
    if (this.#staged.has(key)) return;
    const crowded = (): boolean => this.#staged.size > 0 && this.#stagedSize + text.length > stagedLimit;
    if (crowded()) this.flush();
    if (this.#stopped !== undefined) throw this.#stopped;
    if (crowded()) throw new Fault('STORE_FULL', `${this.#path} has no room for what waits to be written.`);
    this.#staged.set(key, { sid, digest, text });
    this.#stagedSize += text.length;
  }

  staged(sid: number, digest: string): string | undefined {
    return this.#staged.get(`${sid} ${digest}`)?.text;
  }

  /** Commits what is queued, at once. */
  flush(): void {
    this.#scheduled = false;
    const queue = this.#queue;
    this.#queue = [];
    if (this.#stopped !== undefined || (queue.length === 0 && this.#staged.size === 0)) return;
    const acks = this.#transact(queue);
    if (acks === undefined) return;
    const anchored = this.#anchored();
    if (anchored === undefined) for (const acknowledge of acks) acknowledge();
    else for (const { reject } of queue) reject(anchored);
    this.#acknowledged();
    this.#maintain();
  }

  /** Ends it: what is queued is refused, and so is all that comes. */
  stop(fault: Fault): void {
    this.#stopped ??= fault;
    const queue = this.#queue;
    this.#queue = [];
    this.#staged.clear();
    for (const { reject } of queue) reject(this.#stopped);
  }

  /** Runs the queue in one transaction; undefined if it failed, and then everybody knows. */
  #transact(queue: readonly Queued[]): (() => void)[] | undefined {
    // Without BEGIN and COMMIT around it a step of a lone session takes a tenth less.
    const alone = queue.length === 1 && queue[0]?.single === true && this.#staged.size === 0;
    // guard: lone-statement-counts-as-commit
    let committing = alone;
    try {
      // guard: store-file-present
      this.#presence.assert();
      this.#writes.begin(this.#commit + 1, this.#now());
      if (!alone) {
        this.#begin.run();
        this.#writes.assertOwner();
      }
      for (const { sid, digest, text } of this.#staged.values()) this.#writes.put(sid, digest, text);
      const acks = queue.map((queued) => this.#perform(queued));
      committing = true;
      if (!alone) this.#end.run();
      this.#stats.commits += 1;
      this.#stats.operations += queue.length;
      return acks;
    } catch (error) {
      this.#fail(queue, error, committing);
      return undefined;
    }
  }

  #perform(queued: Queued): () => void {
    try {
      return queued.perform();
    } catch (error) {
      if (!(error instanceof Fault) || final.has(error.code)) throw error;
      this.#stats.refused += 1;
      return () => queued.reject(error);
    }
  }

  /** After COMMIT: the heads are published and anchored. A Fault if the anchor could not be written. */
  #anchored(): Fault | undefined {
    this.#staged.clear();
    this.#stagedSize = 0;
    this.#pages += this.#writes.pages;
    this.#writes.publish();
    const { drafts, gone, at } = this.#writes;
    if (drafts.size === 0 && gone.size === 0) return undefined;
    this.#commit += 1;
    try {
      this.#anchor.add(this.#commit, at, drafts.values(), gone);
      return undefined;
    } catch (error) {
      const fault = this.#judge(error, 'Anchoring a commit of');
      if (!passing.has(fault.code)) this.stop(fault);
      return fault;
    }
  }

  #fail(queue: readonly Queued[], error: unknown, committing: boolean): void {
    let fault = committing ? this.#judge(error, 'COMMIT to') : faultOf(error, 'A commit to', this.#path);
    const left = this.#rollback();
    if (left !== undefined) fault = faultOf(left, 'ROLLBACK of', this.#path, 'SYNC_FAILED');
    // guard: failed-sync-stops-the-store
    if (fault.code === 'SYNC_FAILED' || fault.code === 'STORE_DAMAGED' || final.has(fault.code)) this.stop(fault);
    for (const { reject } of queue) reject(fault);
    if (final.has(fault.code)) setImmediate(this.#lost);
    // The WAL holds many versions of a page; moved into the database they may leave room to go on.
    if (fault.code === 'STORE_FULL' && this.#pages > 0) this.#maintain('TRUNCATE');
  }

  /** The Fault of a failure at the disk itself: what is not known to be harmless counts as a failed sync. */
  #judge(error: unknown, doing: string): Fault {
    const fault = faultOf(error, doing, this.#path);
    const known = passing.has(fault.code) || final.has(fault.code) || fault.code === 'STORE_DAMAGED';
    return known ? fault : faultOf(error, doing, this.#path, 'SYNC_FAILED');
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
  #maintain(how?: 'TRUNCATE'): void {
    if (this.#stopped !== undefined) return;
    try {
      const { least, most, commits } = checkpointPages;
      this.#largest = Math.max(this.#writes.pages, 0.9 * this.#largest);
      const due = Math.min(most, Math.max(least, commits * this.#largest));
      if (this.#pages >= due || how !== undefined) {
        this.#pages = 0;
        this.#stats.checkpoints += 1;
        this.#driver.exec(`PRAGMA wal_checkpoint(${how ?? 'PASSIVE'})`);
      }
      if (this.#anchor.bloated) {
        this.#stats.compactions += 1;
        this.#anchor.compact();
      }
    } catch (error) {
      const fault = this.#judge(error, 'A checkpoint of');
      if (!passing.has(fault.code)) this.stop(fault);
    }
  }
}
