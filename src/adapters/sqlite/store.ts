/**
 * The store as every process sees it. The first process owns the database and serves it; the others are its clients; when the
 * owner goes, one of them takes over. Which of the two this process is may change at any time, and no caller notices: an operation
 * whose answer was lost with a connection is asked for again, because every operation may be repeated.
 */
import { Fault } from '../../base/errors.js';
import { draftOf } from '../../journal/record.js';
import type { Claim, Journal, Leases, Listed, Snapshot, Store } from '../../journal/store.js';
import { protectStore } from '../../journal/store-files.js';
import type { Entry } from '../../protocol/entry.js';
import { admit } from './admission.js';
import type { Report } from './check.js';
import type { Stats } from './commits.js';
import type { Incident, Removal } from './incidents.js';
import type { LocalStore } from './local-store.js';
import type { Maintenance, StoreRecord } from './maintenance.js';
import { Membership } from './membership.js';
import { checkOptions, type SqliteOptions } from './open.js';
import { PendingBlobs } from './pending-blobs.js';
import type { VerifyStep } from './verify.js';
import { ConnectionLost } from './wire/errors.js';

/** The process that owns a store. */
export interface Owner {
  readonly pid: number;
  /** True if it is this process. */
  readonly here: boolean;
}

/** A store in an SQLite file that any number of processes of one user share. */
export interface SqliteStore extends Store {
  /** What the owner found when it opened the file. */
  readonly report: Report;
  readonly owner: Owner;
  readonly maintenance: Maintenance;
  /** Counts since this process became the owner; all zero in a client. */
  stats(): Stats;
}

const NO_STATS: Stats = { commits: 0, operations: 0, refused: 0, checkpoints: 0, compactions: 0 };

interface Page {
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
  checkOptions(options);
  const { database, release } = await admit(path, options);
  try {
    protectStore(database);
    const store = new SharedStore(database, options);
    await store.ready();
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
  readonly #members: Membership;
  readonly #pending = new PendingBlobs();
  #closing: Promise<void> | undefined;

  constructor(database: string, options: SqliteOptions) {
    this.#path = database;
    this.#members = new Membership(database, options);
    this.leases = this.#members.leases;
    this.journal = this.#journal();
    this.blobs = this.#blobs();
    this.snapshots = this.#snapshots();
    this.maintenance = this.#maintenance();
  }

  /** Becomes the owner or a client of it. */
  async ready(): Promise<void> {
    await this.#members.role();
  }

  get report(): Report {
    return this.#members.report;
  }

  get owner(): Owner {
    const { pid } = this.#members.owner;
    return { pid, here: this.#members.local !== undefined };
  }

  stats(): Stats {
    return this.#members.local?.stats() ?? NO_STATS;
  }

  close(): Promise<void> {
    this.#closing ??= this.#members.close(
      new Fault('STORE_CLOSED', `${this.#path} was closed. Open it again.`, { path: this.#path }),
    );
    return this.#closing;
  }

  #journal(): Journal {
    const members = this.#members;
    return {
      claim: (session) =>
        members.perform(
          (store) => store.journal.claim(session),
          (client) => client.request('claim', { session }) as Promise<Claim>,
        ),
      append: (batch) => {
        const { local } = members;
        // The hot path of the owner: no promise more than the store's own.
        if (local !== undefined && this.#pending.isEmpty) return local.journal.append(batch);
        const { client } = members;
        if (client === undefined || !this.#pending.isEmpty) return this.#append(batch);
        return client.append(draftOf(batch)).catch((thrown) => this.#again(thrown, batch));
      },
      read: (session, from) => members.local?.journal.read(session, from) ?? this.#read(session, from),
      list: () =>
        members.perform(
          (store) => store.journal.list(),
          (client) => client.request('list', {}) as Promise<readonly Listed[]>,
        ),
      remove: (session) =>
        members.perform(
          (store) => store.journal.remove(session),
          async (client) => void (await client.request('remove', { session })),
        ),
    };
  }

  /** Appends once more what was under way when the owner went. */
  #again(thrown: unknown, batch: Parameters<Journal['append']>[0]): Promise<void> {
    if (thrown instanceof ConnectionLost) return this.#append(batch);
    throw thrown;
  }

  /** The large values that the entries name travel with them: an owner that dies before its commit loses both or neither. */
  async #append(batch: Parameters<Journal['append']>[0]): Promise<void> {
    const draft = draftOf(batch);
    const { session } = batch;
    const blobs = this.#pending.take(session);
    try {
      await this.#members.perform(
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
      this.#pending.forget(session, blobs);
    }
  }

  /** Reads page by page; after a change of the owner it goes on where it was. */
  async *#read(session: string, from: number): AsyncGenerator<readonly Entry[]> {
    for (let next = from; ; ) {
      const page: Page | LocalStore = await this.#members.perform<Page | LocalStore>(
        async (store) => store,
        async (client) => (await client.request('read', { session, from: next })) as Page,
      );
      if (!('entries' in page)) return yield* page.journal.read(session, next);
      if (page.entries.length > 0) yield page.entries;
      next += page.entries.length;
      if (!page.more || page.entries.length === 0) return;
    }
  }

  #blobs(): Store['blobs'] {
    const members = this.#members;
    return {
      put: (session, digest, text) => {
        if (members.local !== undefined) return members.local.blobs.put(session, digest, text);
        return this.#pending.add(session, digest, text);
      },
      get: async (session, digest) =>
        this.#pending.get(session, digest) ??
        (await members.perform(
          (store) => store.blobs.get(session, digest),
          async (client) => ((await client.request('get', { session, digest })) as string | null) ?? undefined,
        )),
    };
  }

  #maintenance(): Maintenance {
    const members = this.#members;
    return {
      record: () =>
        members.perform(
          (store) => store.maintenance.record(),
          async (client) => (await client.request('record', {})) as StoreRecord,
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
          async (client) => ((await client.request('erase', { session, word })) as Removal | null) ?? undefined,
        ),
    };
  }

  #snapshots(): Store['snapshots'] {
    const members = this.#members;
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
