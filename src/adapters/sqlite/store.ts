/**
 * The store as every process sees it. The first process owns the database and serves it; the others are its clients; when the
 * owner goes, one of them takes over. Which of the two this process is may change at any time, and no caller notices: an operation
 * whose answer was lost with a connection is asked for again, because every operation may be repeated.
 */
import { Fault } from '../../base/errors.js';
import { recordDraftOf } from '../../journal/record.js';
import type { Claim, Journal, Leases, SessionListing, Snapshot, Store } from '../../journal/store.js';
import { protectStore } from '../../journal/store-files.js';
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

/** The process that owns a store. */
export interface StoreOwner {
  readonly pid: number;
  /** True if it is this process. */
  readonly here: boolean;
}

/** A store in an SQLite file that any number of processes of one user share. */
export interface SqliteStore extends Store {
  /** What the owner found when it opened the file. */
  readonly report: CheckReport;
  readonly owner: StoreOwner;
  readonly maintenance: Maintenance;
  /** Counts since this process became the owner; all zero in a client. */
  stats(): CommitStats;
}

const NO_STATS: CommitStats = { commits: 0, operations: 0, refused: 0, checkpoints: 0, compactions: 0 };

interface EntryPage {
  readonly entries: readonly Entry[];
  readonly more: boolean;
}

/**
 * Opens the store in a file, which is made if it is absent. If another process has it open, the two share it.
 *
 * @example
 * const store = await openSqlite('.rondo/journal.db');
 */
export async function openSqlite(path: string, options: SqliteOptions = {}): Promise<SqliteStore> {
  assertOptions(options);
  const { database, release } = await waitUntilUnexposed(path, options);
  try {
    protectStore(database);
    const store = new SharedStore(database, options);
    await store.join();
    return store;
  } finally {
    release();
  }
}

class SharedStore implements SqliteStore {
  readonly journal: Journal;
  readonly blobs: Store['blobs'];
  readonly snapshots: Store['snapshots'];
  readonly leases: Leases;
  readonly maintenance: Maintenance;
  readonly #path: string;
  readonly #membership: Membership;
  readonly #pendingBlobs = new PendingBlobs();
  #closing: Promise<void> | undefined;

  constructor(database: string, options: SqliteOptions) {
    this.#path = database;
    this.#membership = new Membership(database, options);
    this.leases = this.#membership.leases;
    this.journal = this.#createJournal();
    this.blobs = this.#createBlobs();
    this.snapshots = this.#createSnapshots();
    this.maintenance = this.#createMaintenance();
  }

  /** Becomes the owner or a client of it. */
  async join(): Promise<void> {
    await this.#membership.ensureJoined();
  }

  get report(): CheckReport {
    return this.#membership.report;
  }

  get owner(): StoreOwner {
    const { pid } = this.#membership.owner;
    return { pid, here: this.#membership.local !== undefined };
  }

  stats(): CommitStats {
    return this.#membership.local?.stats() ?? NO_STATS;
  }

  close(): Promise<void> {
    this.#closing ??= this.#membership.close(
      new Fault('STORE_CLOSED', `${this.#path} was closed. Open it again.`, { path: this.#path }),
    );
    return this.#closing;
  }

  #createJournal(): Journal {
    const members = this.#membership;
    return {
      claim: (session) =>
        members.perform(
          (store) => store.journal.claim(session),
          (client) => client.request('claim', { session }) as Promise<Claim>,
        ),
      append: (batch) => {
        const { local } = members;
        // The hot path of the owner: no promise more than the store's own.
        if (local !== undefined && this.#pendingBlobs.isEmpty) return local.journal.append(batch);
        const { client } = members;
        if (client === undefined || !this.#pendingBlobs.isEmpty) return this.#appendWithBlobs(batch);
        return client.append(recordDraftOf(batch)).catch((thrown) => this.#retryAppend(thrown, batch));
      },
      read: (session, from) => members.local?.journal.read(session, from) ?? this.#readPages(session, from),
      list: () =>
        members.perform(
          (store) => store.journal.list(),
          (client) => client.request('list', {}) as Promise<readonly SessionListing[]>,
        ),
      remove: (session) =>
        members.perform(
          (store) => store.journal.remove(session),
          async (client) => void (await client.request('remove', { session })),
        ),
    };
  }

  /** Appends once more what was under way when the owner went. */
  #retryAppend(thrown: unknown, batch: Parameters<Journal['append']>[0]): Promise<void> {
    if (thrown instanceof ConnectionLost) return this.#appendWithBlobs(batch);
    throw thrown;
  }

  /** The large values that the entries name travel with them: an owner that dies before its commit loses both or neither. */
  async #appendWithBlobs(batch: Parameters<Journal['append']>[0]): Promise<void> {
    const draft = recordDraftOf(batch);
    const { session } = batch;
    const blobs = this.#pendingBlobs.takeUnsent(session);
    try {
      await this.#membership.perform(
        async (store) => {
          for (const [digest, text] of blobs) await store.blobs.put(session, digest, text);
          await store.append(draft);
        },
        async (client) => {
          await client.append(draft, blobs.length === 0 ? undefined : blobs);
        },
      );
    } finally {
      // A writer whose append failed is done; the next one brings its values again.
      this.#pendingBlobs.discard(session, blobs);
    }
  }

  /** Reads page by page; after a change of the owner it goes on where it was. */
  async *#readPages(session: string, from: number): AsyncGenerator<readonly Entry[]> {
    for (let next = from; ; ) {
      const page: EntryPage | LocalStore = await this.#membership.perform<EntryPage | LocalStore>(
        async (store) => store,
        async (client) => (await client.request('read', { session, from: next })) as EntryPage,
      );
      if (!('entries' in page)) return yield* page.journal.read(session, next);
      if (page.entries.length > 0) yield page.entries;
      next += page.entries.length;
      if (!page.more || page.entries.length === 0) return;
    }
  }

  #createBlobs(): Store['blobs'] {
    const members = this.#membership;
    return {
      put: (session, digest, text) => {
        if (members.local !== undefined) return members.local.blobs.put(session, digest, text);
        return this.#pendingBlobs.add(session, digest, text);
      },
      get: async (session, digest) =>
        this.#pendingBlobs.get(session, digest) ??
        (await members.perform(
          (store) => store.blobs.get(session, digest),
          async (client) => ((await client.request('get', { session, digest })) as string | null) ?? undefined,
        )),
    };
  }

  #createMaintenance(): Maintenance {
    const members = this.#membership;
    return {
      readLog: () =>
        members.perform(
          (store) => store.maintenance.readLog(),
          async (client) => (await client.request('record', {})) as MaintenanceLog,
        ),
      verify: (cursor) =>
        members.perform(
          (store) => store.maintenance.verify(cursor),
          async (client) => (await client.request('verify', { cursor })) as VerifyStep,
        ),
      accept: (ids, word) =>
        members.perform(
          (store) => store.maintenance.accept(ids, word),
          async (client) => (await client.request('accept', { ids, word })) as readonly Incident[],
        ),
      remove: (session, word) =>
        members.perform(
          (store) => store.maintenance.remove(session, word),
          async (client) => ((await client.request('erase', { session, word })) as RemovedSession | null) ?? undefined,
        ),
    };
  }

  #createSnapshots(): Store['snapshots'] {
    const members = this.#membership;
    return {
      load: (session) =>
        members.perform(
          (store) => store.snapshots.load(session),
          async (client) => ((await client.request('load', { session })) as Snapshot | null) ?? undefined,
        ),
      save: (session, snapshot) =>
        members.perform(
          (store) => store.snapshots.save(session, snapshot),
          async (client) => void (await client.request('save', { session, snapshot })),
        ),
    };
  }
}
