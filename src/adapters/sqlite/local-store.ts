/**
 * The store in the process that owns the database: all ports but the leases, over one SQLite file. Writes go through
 * the commit queue. Entries, blobs and snapshots are verified when they are read. A damaged session is refused:
 * it can be neither read nor written, only removed or repaired (local-maintenance.ts).
 */
import { Fault } from '../../base/errors.js';
import type { DueTurns } from '../../journal/due-turns.js';
import { digestOfText, type RecordDraft, type RecordHasher, recordDraftOf } from '../../journal/record.js';
import type { Blobs, Journal, SessionListing, Snapshots } from '../../journal/store.js';
import type { AnchorFile } from './anchor-file.js';
import { BlobTable } from './blob-table.js';
import { readRecordedClients } from './client-rows.js';
import { CommitQueue, type CommitStats, STORE_LOST_CODES } from './commit-queue.js';
import { abandonConnection, closeConnection } from './connection.js';
import type { Driver } from './driver.js';
import { DueTurnTable } from './due-turn-table.js';
import { LocalMaintenance } from './local-maintenance.js';
import type { ProcessId } from './owner/process.js';
import { type ReadContext, readEntries, yieldToEventLoop } from './read-entries.js';
import { RecordTable } from './record-table.js';
import { parseSessionRow, SESSION_COLUMNS, SessionHeads, sessionHeadOf } from './session-heads.js';
import { SnapshotTable } from './snapshot-table.js';
import { toFault, toReadFault } from './sqlite-faults.js';
import { StoreFileGuard } from './store-file-guard.js';
import type { CheckReport, StoreHealth } from './store-inspection.js';
import { keyIdOf } from './store-key.js';
import { TransactionWriter } from './transaction-writer.js';

/** What a local store works with. */
interface LocalStoreDeps {
  readonly driver: Driver;
  readonly path: string;
  readonly anchor: AnchorFile;
  readonly health: StoreHealth;
  readonly hasher: RecordHasher;
  readonly now: () => number;
  /** The number of this ownership, higher than that of every earlier owner; 0 if the file is read-only. */
  readonly epoch: number;
}

/** Number of sessions that are listed at a time. Between two pages, the list may yield to the event loop. */
const SESSIONS_PER_PAGE = 500;

/**
 * Maximum length of a blob. SQLite limits a text to 10^9 bytes, and a UTF-16 code unit takes at most three in UTF-8.
 */
const MAX_BLOB_CHARS = 3 * 10 ** 8;

/** Throws unless a name has 1 to 256 UTF-16 code units, and neither control characters nor lone surrogates. */
function assertSessionName(session: string): void {
  if (session.length > 0 && session.length <= 256 && !/[\p{Cc}\p{Cs}]/u.test(session)) return;
  const message = `${JSON.stringify(session.slice(0, 64))} is not a valid session name: a name has 1 to 256 characters and no control characters.`;
  throw new Fault('STORE_FAILED', message, { session: session.slice(0, 64) });
}

/**
 * Failures while closing that lose nothing: the disk is full, or an older connection of this process still has the file
 * open. All acknowledged writes are in the database or its WAL.
 */
const HARMLESS_CLOSE_CODES: ReadonlySet<string> = new Set(['STORE_FULL', 'STORE_OWNED']);

/** The store of the owner. */
export class LocalStore {
  readonly journal: Journal;
  readonly blobs: Blobs;
  readonly snapshots: Snapshots;
  readonly dueTurns: DueTurns;
  readonly maintenance: LocalMaintenance;
  /** The result of the check when the store was opened. */
  readonly report: CheckReport;
  /** Identifies the key of the store; empty if it has none. */
  readonly keyId: string;
  /** Called when this process has lost the store to another owner, or when a file of it was removed or replaced. */
  onLost: () => void = () => {};
  /**
   * Called when all operations of a commit are acknowledged or rejected, before the sessions of this process continue.
   */
  onAcknowledged: () => void = () => {};
  private readonly path: string;
  private readonly driver: Driver;
  private readonly anchor: AnchorFile;
  private readonly health: StoreHealth;
  private readonly records: RecordTable;
  private readonly sessionHeads: SessionHeads;
  private readonly writer: TransactionWriter;
  private readonly fileGuard: StoreFileGuard;
  private readonly commitQueue: CommitQueue;
  private closing: Promise<void> | undefined;

  constructor({ driver, path, anchor, health, hasher, now, epoch }: LocalStoreDeps) {
    const { lastCommitNumber, highestSid } = health.anchorState;
    this.path = path;
    this.driver = driver;
    this.anchor = anchor;
    this.health = health;
    this.report = health.report;
    this.keyId = keyIdOf(hasher);
    this.records = new RecordTable(driver, hasher);
    this.sessionHeads = new SessionHeads(driver, this.records);
    const dueTurns = new DueTurnTable(driver);
    this.writer = new TransactionWriter({
      driver,
      heads: this.sessionHeads,
      records: this.records,
      dueTurns,
      highestSid,
      epoch,
    });
    this.fileGuard = new StoreFileGuard(path);
    const { writer, fileGuard } = this;
    this.commitQueue = new CommitQueue({
      driver,
      path,
      writer,
      anchor,
      now,
      lastCommitNumber,
      fileGuard,
      onLost: () => this.onLost(),
      onAcknowledged: () => this.onAcknowledged(),
    });
    this.maintenance = new LocalMaintenance({
      driver,
      path,
      commitQueue: this.commitQueue,
      writer,
      heads: this.sessionHeads,
      hasher,
      health,
    });
    this.journal = this.createJournal();
    this.blobs = this.createBlobs(new BlobTable(driver));
    this.snapshots = this.createSnapshots(new SnapshotTable(driver, hasher));
    this.dueTurns = this.createDueTurns(dueTurns);
  }

  /** Returns counters since the store was opened. */
  stats(): CommitStats {
    return this.commitQueue.stats();
  }

  /** Why the store accepts no more operations; undefined while it runs. */
  get stopFault(): Fault | undefined {
    return this.commitQueue.stopFault;
  }

  /** Returns the recorded lease holders, by client id. Until clients connect, they are those of the previous owner. */
  recordedClients(): ReadonlyMap<string, ProcessId> {
    return this.withReadFaults(() => readRecordedClients(this.driver));
  }

  /** Records a process that is about to hold leases, for the next owner. */
  addClient(id: string, process: ProcessId): Promise<void> {
    return this.commitQueue.submit(() => this.writer.addClient(id, process), false);
  }

  /** Removes a process that has ended or has not reconnected in time. */
  removeClient(id: string): Promise<void> {
    return this.commitQueue.submit(() => this.writer.removeClient(id), false);
  }

  /** Appends entries that are already JSON text. Checks run inside the commit, because this is the hot path. */
  append(draft: RecordDraft): Promise<void> {
    return new Promise((resolve, reject) => this.enqueueAppend(draft, resolve, reject));
  }

  /** Appends with callbacks instead of a promise, which would cost microseconds for every append of a client. */
  enqueueAppend(draft: RecordDraft, acknowledge: () => void, reject: (fault: Fault) => void): void {
    const perform = (): (() => void) => {
      this.assertWritable(draft.session);
      this.writer.append(draft);
      // guard: acknowledged-after-commit
      return acknowledge;
    };
    // guard: due-turns-share-the-commit
    const isSingleStatement = draft.due === undefined;
    this.commitQueue.enqueue({ perform, reject, isSingleStatement });
  }

  /**
   * Sets whether this process listens for clients. While it does, each commit checks that its socket file is unchanged.
   */
  setListening(isListening: boolean): void {
    this.fileGuard.setListening(isListening);
  }

  /** True if the session has committed entries after this one. Throws if the session is damaged. */
  hasEntriesAfter(session: string, seq: number): boolean {
    return (this.sessionHeads.find(session)?.next ?? 0) > seq + 1;
  }

  /** Commits the queued operations and staged blobs immediately. */
  flush(): void {
    this.commitQueue.flush();
  }

  /** Commits the queued operations, then closes the files. Later operations are refused. */
  close(): Promise<void> {
    this.closing ??= this.closeFiles();
    return this.closing;
  }

  private async closeFiles(): Promise<void> {
    this.commitQueue.flush();
    const hasFailed = this.commitQueue.stopFault !== undefined;
    const isLost = this.hasLostFiles();
    this.commitQueue.stop(new Fault('STORE_CLOSED', `${this.path} was closed. Open it again.`, { path: this.path }));
    this.fileGuard.close();
    if (isLost) return this.abandonFiles();
    const steps = [
      () => hasFailed || this.anchor.compact(),
      () => this.anchor.close(),
      () => closeConnection(this.driver),
    ];
    const faults = steps.map((step) => this.tryCloseStep(step));
    const failure = faults.find((fault) => fault !== undefined && !HARMLESS_CLOSE_CODES.has(fault.code));
    if (failure !== undefined) throw failure;
  }

  /** True if the files were removed or replaced, or have another owner. */
  private hasLostFiles(): boolean {
    const { stopFault } = this.commitQueue;
    if (stopFault !== undefined && STORE_LOST_CODES.has(stopFault.code)) return true;
    try {
      this.fileGuard.assertUnchanged();
      this.writer.assertOwner();
      return false;
    } catch (error) {
      return error instanceof Fault && STORE_LOST_CODES.has(error.code);
    }
  }

  /** Gives up the files without writing to them, because they may belong to another owner. */
  private abandonFiles(): void {
    this.anchor.close();
    abandonConnection(this.driver, this.path);
  }

  /** Runs one step of closing and returns its failure; undefined if it succeeded. */
  private tryCloseStep(step: () => unknown): Fault | undefined {
    try {
      step();
      return undefined;
    } catch (error) {
      return toFault(error, 'Closing', this.path);
    }
  }

  private createJournal(): Journal {
    const context: ReadContext = {
      path: this.path,
      heads: this.sessionHeads,
      records: this.records,
      assertReadable: (session) => this.assertReadable(session),
      // guard: damage-of-reads-recorded
      onError: (error) => this.maintenance.recordReadFault(error),
      yieldedAt: 0,
    };
    return {
      claim: async (session) => {
        assertSessionName(session);
        this.assertWritable(session);
        return this.commitQueue.submit(() => this.writer.claim(session), true);
      },
      append: (batch) => {
        try {
          return this.append(recordDraftOf(batch));
        } catch (fault) {
          return Promise.reject(fault);
        }
      },
      read: (session, from) => readEntries(context, session, from),
      list: () => this.listSessions(context),
      remove: async (session) => void (await this.maintenance.remove(session)),
    };
  }

  private createBlobs(table: BlobTable): Blobs {
    return {
      put: async (session, digest, text) => {
        this.assertWritable(session);
        const head = this.withReadFaults(() => this.sessionHeads.find(session));
        if (head === undefined) {
          throw new Fault('STALE_WRITER', `Session "${session}" does not exist: claim it before writing to it.`, {
            session,
          });
        }
        if (text.length > MAX_BLOB_CHARS || digestOfText(text) !== digest) {
          const flaw = text.length > MAX_BLOB_CHARS ? 'is too large' : 'does not match its digest';
          throw new Fault('STORE_FAILED', `The value ${digest} of session "${session}" ${flaw}.`, { session, digest });
        }
        this.commitQueue.stageBlob(head.sid, digest, text);
      },
      get: async (session, digest) => {
        this.assertReadable(session);
        return this.withReadFaults(() => {
          const head = this.sessionHeads.find(session);
          return head && (this.commitQueue.findStagedBlob(head.sid, digest) ?? table.get(session, head.sid, digest));
        });
      },
    };
  }

  private createSnapshots(table: SnapshotTable): Snapshots {
    return {
      load: async (session) => {
        this.assertReadable(session);
        const head = this.withReadFaults(() => this.sessionHeads.find(session));
        return head && table.load(head.sid);
      },
      save: async (session, snapshot) => {
        this.assertWritable(session);
        return this.commitQueue.submit(() => this.writer.saveSnapshot(session, snapshot), true);
      },
    };
  }

  private createDueTurns(table: DueTurnTable): DueTurns {
    const read = <T>(select: () => T): T => {
      this.assertRunning();
      return this.withReadFaults(select);
    };
    return {
      list: async (until, limit, after) => read(() => table.list(until, limit, after)),
      nextDueAt: async (after) => {
        this.assertRunning();
        this.commitQueue.assertPresent();
        return read(() => table.nextDueAt(after));
      },
      isComplete: async () => read(() => table.readMark()),
      rebuild: async (turns) => {
        this.assertFileWritable();
        await this.commitQueue.submit(() => table.rebuild(turns), false);
        read(() => table.readMark());
      },
    };
  }

  /**
   * Lists the sessions with an intact row, and all refused sessions with `nextSeq` 0. A caller that resumes every
   * listed session thus gets the Fault of each refused one.
   */
  private async listSessions(context: ReadContext): Promise<readonly SessionListing[]> {
    this.assertRunning();
    const { refusals } = this.health;
    const sql = `SELECT ${SESSION_COLUMNS} FROM sessions WHERE sessions.sid > ? ORDER BY sessions.sid LIMIT ${SESSIONS_PER_PAGE}`;
    const statement = this.withReadFaults(() => this.driver.prepare(sql));
    const listed: SessionListing[] = [];
    let after = 0;
    for (let before = -1; after !== before; ) {
      await yieldToEventLoop(context);
      this.assertRunning();
      before = after;
      this.withReadFaults(() => {
        const rows = statement.all(before).map((row) => parseSessionRow(this.records.hasher, row));
        after = Math.max(before, ...rows.map(({ sessionRow }) => sessionRow.sid));
        const lastRecords = this.records.readLastRecords(before, after);
        for (const { sessionRow, isIntact } of rows) {
          const { sid, name } = sessionRow;
          if (isIntact && !refusals.has(name))
            listed.push({ session: name, nextSeq: sessionHeadOf(sessionRow, lastRecords.get(sid)).next });
        }
      });
    }
    return [...listed, ...Array.from(refusals.keys(), (session) => ({ session, nextSeq: 0 }))];
  }

  /** Throws the fault that stopped the store, if it has stopped. */
  private assertRunning(): void {
    if (this.commitQueue.stopFault !== undefined) throw this.commitQueue.stopFault;
  }

  private assertFileWritable(): void {
    if (this.health.writeFault !== undefined) throw this.health.writeFault;
  }

  /** Throws if the store has stopped or the session is refused. */
  private assertReadable(session: string): void {
    this.assertRunning();
    const refusal = this.health.refusals.get(session);
    if (refusal !== undefined) throw refusal.fault;
  }

  /** Throws if the store has stopped or is read-only, or if the session is refused. */
  private assertWritable(session: string): void {
    this.assertReadable(session);
    this.assertFileWritable();
  }

  /** Runs a read, converts its error into a Fault, and logs the damage that the error reports. */
  private withReadFaults<T>(read: () => T): T {
    try {
      return read();
    } catch (error) {
      const fault = toReadFault(error, this.path);
      this.maintenance.recordReadFault(fault);
      throw fault;
    }
  }
}
