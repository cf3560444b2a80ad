/**
 * The store as each process uses it. The first process owns the database and serves it; the others are its clients.
 * When the owner ends, a client takes over. The role of a process can change at any time without its callers noticing:
 * an operation whose answer was lost with a connection is repeated, because every operation may safely be repeated. The
 * exception is a request to the holder of a lease: it is reported as lost (shared-leases.ts).
 */
import { existsSync, realpathSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { Fault } from '../../base/errors.js';
import type { DueTurn, DueTurns } from '../../journal/due-turns.js';
import { recordDraftOf } from '../../journal/record.js';
import type { Claim, Journal, Leases, SessionListing, Snapshot, Store } from '../../journal/store.js';
import { protectStore, storeKeyFileOf } from '../../journal/store-files.js';
import type { Entry } from '../../protocol/entry.js';
import type { CommitStats } from './commit-queue.js';
import type { Incident, RemovedSession } from './incidents.js';
import type { LocalStore } from './local-store.js';
import type { Maintenance, MaintenanceLog } from './maintenance.js';
import { Membership } from './membership.js';
import { assertOptions, type SqliteOptions } from './open-local-store.js';
import { PendingBlobs } from './pending-blobs.js';
import { waitUntilUnexposed } from './sandbox-exposure.js';
import type { CheckReport } from './store-inspection.js';
import type { VerifyStep } from './store-verifier.js';
import { ConnectionLost } from './wire/wire-errors.js';

/** The process that owns a store, that is, has its database open. */
interface StoreOwner {
  readonly pid: number;
  /** True if the owner is this process. */
  readonly here: boolean;
}

/** A store in a SQLite file that any number of processes of one user share. */
export interface SqliteStore extends Store {
  /** The result of the check when the owner opened the file. */
  readonly report: CheckReport;
  /** The process that owns the store, or the last owner until the next one is found. */
  readonly owner: StoreOwner;
  /** Verification, damage and removal of sessions. */
  readonly maintenance: Maintenance;
  /**
   * Throws a Fault with the code KEYS_UNUSABLE if the store has a key that is not in its file any more: the directory of
   * the keys was moved away or replaced.
   */
  assertKey(): void;
  /** Returns counters since this process became the owner; all are zero in a client. */
  stats(): CommitStats;
}

const NO_STATS: CommitStats = { commits: 0, operations: 0, refused: 0, checkpoints: 0, compactions: 0 };

/** Rounds a number down to an integer that both SQLite and JSON can hold; at least `least`. */
function toInteger(value: number, least: number): number {
  return Math.max(least, Math.min(Math.floor(value) || 0, Number.MAX_SAFE_INTEGER));
}

/** A page of entries, as the owner sends it. `more` is true if further entries follow. */
interface EntryPage {
  readonly entries: readonly Entry[];
  readonly more: boolean;
}

/**
 * Opens the store in a SQLite file and creates the file if it is absent. Processes that open the same file share the
 * store. Waits while a sandboxed command can see the directory of the store. Throws a Fault if an option is invalid, or
 * if the store can neither be opened nor reached through its owner.
 *
 * @example
 * const store = await openSqlite('.rondo/journal.db');
 * // …
 * await store.close();
 */
export async function openSqlite(path: string, options: SqliteOptions = {}): Promise<SqliteStore> {
  assertOptions(options);
  const { database, release } = await waitUntilUnexposed(path, options);
  try {
    protectStore(database);
    protectStore(options.keyFile === undefined ? storeKeyFileOf(database) : canonicalPath(options.keyFile));
    const store = new SharedStore(database, options);
    await store.join();
    return store;
  } finally {
    release();
  }
}

/** Returns the absolute path of a file that need not exist, without symlinks of its directory. */
function canonicalPath(path: string): string {
  const directory = dirname(resolve(path));
  return join(existsSync(directory) ? realpathSync(directory) : directory, basename(path));
}

class SharedStore implements SqliteStore {
  readonly journal: Journal;
  readonly blobs: Store['blobs'];
  readonly snapshots: Store['snapshots'];
  readonly leases: Leases;
  readonly dueTurns: DueTurns;
  readonly maintenance: Maintenance;
  private readonly path: string;
  private readonly membership: Membership;
  private readonly pendingBlobs = new PendingBlobs();
  private closing: Promise<void> | undefined;

  constructor(database: string, options: SqliteOptions) {
    this.path = database;
    this.membership = new Membership(database, options);
    this.leases = this.membership.leases;
    this.journal = this.createJournal();
    this.blobs = this.createBlobs();
    this.snapshots = this.createSnapshots();
    this.dueTurns = this.createDueTurns();
    this.maintenance = this.createMaintenance();
  }

  /** Joins the store as its owner or as a client. */
  async join(): Promise<void> {
    await this.membership.ensureJoined();
  }

  get report(): CheckReport {
    return this.membership.report;
  }

  get owner(): StoreOwner {
    const { pid } = this.membership.owner;
    return { pid, here: this.membership.local !== undefined };
  }

  assertKey(): void {
    this.membership.assertKey();
  }

  stats(): CommitStats {
    return this.membership.local?.stats() ?? NO_STATS;
  }

  close(): Promise<void> {
    this.closing ??= this.membership.close(
      new Fault('STORE_CLOSED', `${this.path} was closed. Open it again.`, { path: this.path }),
    );
    return this.closing;
  }

  private createJournal(): Journal {
    const membership = this.membership;
    return {
      claim: (session) =>
        membership.perform(
          (store) => store.journal.claim(session),
          (client) => client.request('claim', { session }) as Promise<Claim>,
        ),
      append: (batch) => {
        const { local } = membership;
        // The hot path of the owner: no promise beyond that of the local store.
        if (local !== undefined && this.pendingBlobs.isEmpty) return local.journal.append(batch);
        const { client } = membership;
        if (client === undefined || !this.pendingBlobs.isEmpty) return this.appendWithBlobs(batch);
        return client.append(recordDraftOf(batch)).catch((error) => this.retryAppend(error, batch));
      },
      read: (session, from) => membership.local?.journal.read(session, from) ?? this.readPages(session, from),
      list: () =>
        membership.perform(
          (store) => store.journal.list(),
          (client) => client.request('list', {}) as Promise<readonly SessionListing[]>,
        ),
      remove: (session) =>
        membership.perform(
          (store) => store.journal.remove(session),
          async (client) => void (await client.request('remove', { session })),
        ),
    };
  }

  /** Repeats an append that was in flight when the connection to the owner was lost. Rethrows any other error. */
  private retryAppend(error: unknown, batch: Parameters<Journal['append']>[0]): Promise<void> {
    if (error instanceof ConnectionLost) return this.appendWithBlobs(batch);
    throw error;
  }

  /**
   * Performs an append together with the unsent blobs of its session, so that a crash of the owner never leaves an
   * entry without its blobs.
   */
  private async appendWithBlobs(batch: Parameters<Journal['append']>[0]): Promise<void> {
    const draft = recordDraftOf(batch);
    const { session } = batch;
    const blobs = this.pendingBlobs.takeUnsent(session);
    try {
      await this.membership.perform(
        async (store) => {
          for (const [digest, text] of blobs) await store.blobs.put(session, digest, text);
          await store.append(draft);
        },
        async (client) => {
          await client.append(draft, blobs.length === 0 ? undefined : blobs);
        },
      );
    } finally {
      // Also after a failed append: its writer stops, and the next writer puts the blobs that it needs.
      this.pendingBlobs.discard(session, blobs);
    }
  }

  /** Reads page by page through the owner, and continues at the same entry after a change of the owner. */
  private async *readPages(session: string, from: number): AsyncGenerator<readonly Entry[]> {
    for (let next = from; ; ) {
      const page: EntryPage | LocalStore = await this.membership.perform<EntryPage | LocalStore>(
        async (store) => store,
        async (client) => (await client.request('read', { session, from: next })) as EntryPage,
      );
      if (!('entries' in page)) return yield* page.journal.read(session, next);
      if (page.entries.length > 0) yield page.entries;
      next += page.entries.length;
      if (!page.more || page.entries.length === 0) return;
    }
  }

  private createBlobs(): Store['blobs'] {
    const membership = this.membership;
    return {
      put: (session, digest, text) => {
        if (membership.local !== undefined) return membership.local.blobs.put(session, digest, text);
        return this.pendingBlobs.add(session, digest, text);
      },
      get: async (session, digest) =>
        this.pendingBlobs.get(session, digest) ??
        (await membership.perform(
          (store) => store.blobs.get(session, digest),
          async (client) => ((await client.request('get', { session, digest })) as string | null) ?? undefined,
        )),
    };
  }

  private createMaintenance(): Maintenance {
    const membership = this.membership;
    return {
      readLog: () =>
        membership.perform(
          (store) => store.maintenance.readLog(),
          async (client) => (await client.request('record', {})) as MaintenanceLog,
        ),
      verify: (cursor) =>
        membership.perform(
          (store) => store.maintenance.verify(cursor),
          async (client) => (await client.request('verify', { cursor })) as VerifyStep,
        ),
      accept: (ids, attribution) =>
        membership.perform(
          (store) => store.maintenance.accept(ids, attribution),
          async (client) => (await client.request('accept', { ids, word: attribution })) as readonly Incident[],
        ),
      remove: (session, attribution) =>
        membership.perform(
          (store) => store.maintenance.remove(session, attribution),
          async (client) =>
            ((await client.request('erase', { session, word: attribution })) as RemovedSession | null) ?? undefined,
        ),
    };
  }

  private createSnapshots(): Store['snapshots'] {
    const membership = this.membership;
    return {
      load: (session) =>
        membership.perform(
          (store) => store.snapshots.load(session),
          async (client) => ((await client.request('load', { session })) as Snapshot | null) ?? undefined,
        ),
      save: (session, snapshot) =>
        membership.perform(
          (store) => store.snapshots.save(session, snapshot),
          async (client) => void (await client.request('save', { session, snapshot })),
        ),
    };
  }

  private createDueTurns(): DueTurns {
    const membership = this.membership;
    return {
      list: (latest, maximum, after) => {
        const until = toInteger(latest, -1);
        const limit = toInteger(maximum, 0);
        return membership.perform(
          (store) => store.dueTurns.list(until, limit, after),
          async (client) => (await client.request('due', { until, limit, after })) as readonly DueTurn[],
        );
      },
      nextDueAt: (earliest) => {
        const after = toInteger(earliest, -1);
        return membership.perform(
          (store) => store.dueTurns.nextDueAt(after),
          async (client) => ((await client.request('next-due', { after })) as number | null) ?? undefined,
        );
      },
      isComplete: () =>
        membership.perform(
          (store) => store.dueTurns.isComplete(),
          async (client) => (await client.request('is-due-complete', {})) as boolean,
        ),
      rebuild: (turns) =>
        membership.perform(
          (store) => store.dueTurns.rebuild(turns),
          async (client) => void (await client.request('rebuild-due', { turns })),
        ),
    };
  }
}
