/**
 * The store in the process that owns it: the ports of the kernel over one SQLite file. It only puts together: what is written
 * goes through the group commit, what is read is verified, and a session with damage is refused before either.
 */
import { Fault } from '../../base/errors.js';
import { digestOfText, type RecordDraft, recordDraftOf } from '../../journal/record.js';
import type { Blobs, Journal, SessionListing, Snapshots } from '../../journal/store.js';
import type { AnchorFile } from './anchor-file.js';
import { BlobTable } from './blob-table.js';
import { readRecordedClients } from './client-rows.js';
import { CommitQueue, type CommitStats, STORE_LOST_CODES } from './commit-queue.js';
import { abandonConnection, closeConnection } from './connection.js';
import type { Driver } from './driver.js';
import { LocalMaintenance } from './local-maintenance.js';
import type { ProcessId } from './owner/process.js';
import { type ReadContext, readEntries, yieldToEventLoop } from './read-entries.js';
import { RecordTable } from './record-table.js';
import { parseSessionRow, SESSION_COLUMNS, SessionHeads, sessionHeadOf } from './session-heads.js';
import { SnapshotTable } from './snapshot-table.js';
import { toFault, toReadFault } from './sqlite-faults.js';
import { StoreFileGuard } from './store-file-guard.js';
import type { CheckReport, StoreHealth } from './store-inspection.js';
import { TransactionWriter } from './transaction-writer.js';

export interface LocalStoreDeps {
  readonly driver: Driver;
  readonly path: string;
  readonly anchor: AnchorFile;
  readonly health: StoreHealth;
  readonly now: () => number;
  /** Which owner of the database this process is, counted from the first. */
  readonly epoch: number;
}

/** Sessions that are listed without a chance to yield to the event loop. */
const SESSIONS_PER_PAGE = 500;

/** SQLite takes no text over 10^9 bytes; no character has more than three. */
const MAX_BLOB_CHARS = 3 * 10 ** 8;

function assertSessionName(session: string): void {
  if (session.length > 0 && session.length <= 256 && !/[\p{Cc}\p{Cs}]/u.test(session)) return;
  const message = `${JSON.stringify(session.slice(0, 64))} cannot name a session: a name has 1 to 256 characters and no control characters.`;
  throw new Fault('STORE_FAILED', message, { session: session.slice(0, 64) });
}

/**
 * Failures of the chores at the end that lose nothing: there is no room for them, or a connection of this process that could not be closed
 * before has the file too. All that was acknowledged is in the WAL.
 */
const HARMLESS_CLOSE_CODES: ReadonlySet<string> = new Set(['STORE_FULL', 'STORE_OWNED']);

export class LocalStore {
  readonly journal: Journal;
  readonly blobs: Blobs;
  readonly snapshots: Snapshots;
  readonly maintenance: LocalMaintenance;
  /** What opening the store found. */
  readonly report: CheckReport;
  /** Called when the file is found not to be this process's any more. */
  onLost: () => void = () => {};
  /** Called when all of a commit was acknowledged, before the sessions of this process go on. */
  onAcknowledged: () => void = () => {};
  readonly #path: string;
  readonly #driver: Driver;
  readonly #anchor: AnchorFile;
  readonly #health: StoreHealth;
  readonly #records: RecordTable;
  readonly #sessionHeads: SessionHeads;
  readonly #writer: TransactionWriter;
  readonly #fileGuard: StoreFileGuard;
  readonly #commitQueue: CommitQueue;
  #closing: Promise<void> | undefined;

  constructor({ driver, path, anchor, health, now, epoch }: LocalStoreDeps) {
    const { lastCommitNumber, highestSid } = health.anchorState;
    this.#path = path;
    this.#driver = driver;
    this.#anchor = anchor;
    this.#health = health;
    this.report = health.report;
    this.#records = new RecordTable(driver);
    this.#sessionHeads = new SessionHeads(driver, this.#records);
    this.#writer = new TransactionWriter({
      driver,
      heads: this.#sessionHeads,
      records: this.#records,
      highestSid,
      epoch,
    });
    this.#fileGuard = new StoreFileGuard(path);
    const { writes, presence } = { writes: this.#writer, presence: this.#fileGuard };
    const lost = (): void => this.onLost();
    const acknowledged = (): void => this.onAcknowledged();
    this.#commitQueue = new CommitQueue({
      driver,
      path,
      writes,
      anchor,
      now,
      lastCommitNumber,
      presence,
      onLost: lost,
      onAcknowledged: acknowledged,
    });
    this.maintenance = new LocalMaintenance({
      driver,
      path,
      commits: this.#commitQueue,
      writes,
      heads: this.#sessionHeads,
      health,
    });
    this.journal = this.#createJournal();
    this.blobs = this.#createBlobs(new BlobTable(driver));
    this.snapshots = this.#createSnapshots(new SnapshotTable(driver));
  }

  stats(): CommitStats {
    return this.#commitQueue.stats();
  }

  /** Why nothing is accepted any more, if so. */
  get stopFault(): Fault | undefined {
    return this.#commitQueue.stopFault;
  }

  /** The processes that held leases under the last owner, by their ids. */
  recordedClients(): ReadonlyMap<string, ProcessId> {
    return this.#withReadFaults(() => readRecordedClients(this.#driver));
  }

  addClient(id: string, process: ProcessId): Promise<void> {
    return this.#commitQueue.submit(() => this.#writer.addClient(id, process), false);
  }

  removeClient(id: string): Promise<void> {
    return this.#commitQueue.submit(() => this.#writer.removeClient(id), false);
  }

  /** Writes an append whose entries are JSON text already. Judged inside the commit: this is the hot path. */
  append(draft: RecordDraft): Promise<void> {
    return new Promise((resolve, reject) => this.enqueueAppend(draft, resolve, reject));
  }

  /** The same for a client of the owner: it needs no promise, and each would cost it microseconds. */
  enqueueAppend(draft: RecordDraft, acknowledge: () => void, reject: (fault: Fault) => void): void {
    const perform = (): (() => void) => {
      this.#assertWritable(draft.session);
      this.#writer.append(draft);
      // guard: acknowledged-after-commit
      return acknowledge;
    };
    this.#commitQueue.enqueue({ perform, reject, isSingleStatement: true });
  }

  /** This process listens from now on, or no longer. */
  setListening(isOn: boolean): void {
    this.#fileGuard.setListening(isOn);
  }

  /** True if the session has entries behind this one. */
  hasEntriesAfter(session: string, seq: number): boolean {
    return (this.#sessionHeads.find(session)?.next ?? 0) > seq + 1;
  }

  /** Commits what is queued, at once. */
  flush(): void {
    this.#commitQueue.flush();
  }

  /** Commits what is queued, then gives the file back; what comes later is refused. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#commitQueue.flush();
    const failed = this.#commitQueue.stopFault !== undefined;
    const lost = this.#hasLostFiles();
    this.#commitQueue.stop(new Fault('STORE_CLOSED', `${this.#path} was closed. Open it again.`, { path: this.#path }));
    this.#fileGuard.close();
    if (lost) return this.#abandonFiles();
    const chores = [
      () => failed || this.#anchor.compact(),
      () => this.#anchor.close(),
      () => closeConnection(this.#driver),
    ];
    const faults = chores.map((chore) => this.#tryCloseStep(chore));
    const fault = faults.find((found) => found !== undefined && !HARMLESS_CLOSE_CODES.has(found.code));
    if (fault !== undefined) throw fault;
  }

  /** True if the files are not this process's any more: removed, replaced, or with another owner. */
  #hasLostFiles(): boolean {
    const { stopFault } = this.#commitQueue;
    if (stopFault !== undefined && STORE_LOST_CODES.has(stopFault.code)) return true;
    try {
      this.#fileGuard.assertUnchanged();
      this.#writer.assertOwner();
      return false;
    } catch (error) {
      return error instanceof Fault && STORE_LOST_CODES.has(error.code);
    }
  }

  /** Nothing is touched any more that is not this process's. */
  #abandonFiles(): void {
    this.#anchor.close();
    abandonConnection(this.#driver, this.#path);
  }

  #tryCloseStep(chore: () => unknown): Fault | undefined {
    try {
      chore();
      return undefined;
    } catch (error) {
      return toFault(error, 'Closing', this.#path);
    }
  }

  #createJournal(): Journal {
    const source: ReadContext = {
      path: this.#path,
      heads: this.#sessionHeads,
      records: this.#records,
      assertReadable: (session) => this.#assertReadable(session),
      // guard: damage-of-reads-recorded
      onError: (error) => this.maintenance.recordReadFault(error),
      yieldedAt: 0,
    };
    return {
      claim: async (session) => {
        assertSessionName(session);
        this.#assertWritable(session);
        return this.#commitQueue.submit(() => this.#writer.claim(session), true);
      },
      append: (batch) => {
        try {
          return this.append(recordDraftOf(batch));
        } catch (fault) {
          return Promise.reject(fault);
        }
      },
      read: (session, from) => readEntries(source, session, from),
      list: () => this.#listSessions(source),
      remove: async (session) => void (await this.maintenance.remove(session)),
    };
  }

  #createBlobs(rows: BlobTable): Blobs {
    return {
      put: async (session, name, text) => {
        this.#assertWritable(session);
        const head = this.#withReadFaults(() => this.#sessionHeads.find(session));
        if (head === undefined) {
          throw new Fault('STALE_WRITER', `Session "${session}" is not there: claim it before it is written.`, {
            session,
          });
        }
        if (text.length > MAX_BLOB_CHARS || digestOfText(text) !== name) {
          const flaw = text.length > MAX_BLOB_CHARS ? 'is too large' : 'does not fit its digest';
          throw new Fault('STORE_FAILED', `The value ${name} of session "${session}" ${flaw}.`, {
            session,
            digest: name,
          });
        }
        this.#commitQueue.stageBlob(head.sid, name, text);
      },
      get: async (session, name) => {
        this.#assertReadable(session);
        return this.#withReadFaults(() => {
          const head = this.#sessionHeads.find(session);
          return head && (this.#commitQueue.findStagedBlob(head.sid, name) ?? rows.get(session, head.sid, name));
        });
      },
    };
  }

  #createSnapshots(rows: SnapshotTable): Snapshots {
    return {
      load: async (session) => {
        this.#assertReadable(session);
        const head = this.#withReadFaults(() => this.#sessionHeads.find(session));
        return head && rows.load(head.sid);
      },
      save: async (session, snapshot) => {
        this.#assertWritable(session);
        return this.#commitQueue.submit(() => this.#writer.saveSnapshot(session, snapshot), true);
      },
    };
  }

  /** A session that is refused is listed too: whoever takes up all sessions must meet its Fault. */
  async #listSessions(source: ReadContext): Promise<readonly SessionListing[]> {
    this.#assertRunning();
    const { refusals } = this.#health;
    const sql = `SELECT ${SESSION_COLUMNS} FROM sessions WHERE sessions.sid > ? ORDER BY sessions.sid LIMIT ${SESSIONS_PER_PAGE}`;
    const statement = this.#withReadFaults(() => this.#driver.prepare(sql));
    const listed: SessionListing[] = [];
    let after = 0;
    for (let before = -1; after !== before; ) {
      await yieldToEventLoop(source);
      this.#assertRunning();
      before = after;
      this.#withReadFaults(() => {
        const rows = statement.all(before).map(parseSessionRow);
        after = Math.max(before, ...rows.map(({ owned }) => owned.sid));
        const tails = this.#records.readLastRecords(before, after);
        for (const { owned, sound } of rows) {
          const { sid, name } = owned;
          if (sound && !refusals.has(name))
            listed.push({ session: name, nextSeq: sessionHeadOf(owned, tails.get(sid)).next });
        }
      });
    }
    return [...listed, ...Array.from(refusals.keys(), (session) => ({ session, nextSeq: 0 }))];
  }

  #assertRunning(): void {
    if (this.#commitQueue.stopFault !== undefined) throw this.#commitQueue.stopFault;
  }

  #assertFileWritable(): void {
    if (this.#health.writeFault !== undefined) throw this.#health.writeFault;
  }

  #assertReadable(session: string): void {
    this.#assertRunning();
    const refusal = this.#health.refusals.get(session);
    if (refusal !== undefined) throw refusal.fault;
  }

  #assertWritable(session: string): void {
    this.#assertReadable(session);
    this.#assertFileWritable();
  }

  #withReadFaults<T>(read: () => T): T {
    try {
      return read();
    } catch (error) {
      const fault = toReadFault(error, this.#path);
      this.maintenance.recordReadFault(fault);
      throw fault;
    }
  }
}
