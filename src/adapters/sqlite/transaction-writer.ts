/**
 * The write operations on the tables. They run inside transactions that the commit queue opens and commits. The head of
 * a session (its fence, next sequence number and last hash) changes in a draft, which later operations of the same
 * transaction see, and which is published once the transaction is committed. An operation that throws a Fault has
 * changed nothing, and the queue decides whether the rest of the transaction is committed. Any other error aborts it.
 */
import { Fault } from '../../base/errors.js';
import { createRecord, type JournalRecord, type RecordDraft } from '../../journal/record.js';
import type { Claim, Snapshot } from '../../journal/store.js';
import { type Driver, integerColumn, readInteger, type Statement } from './driver.js';
import type { DueTurnTable } from './due-turn-table.js';
import type { ProcessId } from './owner/process.js';
import { damagedSessionFault, MAX_ENTRIES_PER_SESSION, MAX_SID, type RecordTable, recordIdOf } from './record-table.js';
import {
  type SessionHead,
  type SessionHeads,
  type SessionRow,
  sessionHeadOf,
  sessionRowChecksum,
} from './session-heads.js';
import { snapshotChecksum } from './snapshot-table.js';
import { sqliteResultCode } from './sqlite-faults.js';

const SQLITE_CONSTRAINT = 19;
const SQLITE_TOOBIG = 18;

interface WriteStatements {
  readonly insertSession: Statement;
  readonly claimSession: Statement;
  readonly insertRecord: Statement;
  readonly insertBlob: Statement;
  readonly saveSnapshot: Statement;
  readonly removeSession: Statement;
  readonly removeRecords: Statement;
  readonly removeBlobs: Statement;
  readonly removeSnapshot: Statement;
  readonly insertUnanchoredRemoval: Statement;
  readonly removeOldUnanchoredRemovals: Statement;
  readonly insertClient: Statement;
  readonly removeClient: Statement;
  readonly selectEpoch: Statement;
  readonly selectFence: Statement;
}

function prepareStatements(driver: Driver, epoch: number): WriteStatements {
  // Every statement that can be the only one of its transaction has this condition, so that only the owner of this
  // epoch writes. The commit queue checks the owner of all other transactions.
  // guard: lone-write-checks-owner
  const ownerCondition = `(SELECT epoch FROM ownership WHERE id = 1) = ${epoch}`;
  return {
    insertSession: driver.prepare(
      `INSERT INTO sessions (sid, name, fence, commit_no, checksum) SELECT ?, ?, ?, ?, ? WHERE ${ownerCondition}`,
    ),
    claimSession: driver.prepare(
      `UPDATE sessions SET fence = ?, commit_no = ?, checksum = ? WHERE sid = ? AND fence = ? AND ${ownerCondition}`,
    ),
    // The subquery yields NULL unless the writer has the current fence and this process is the owner. The NOT NULL
    // column then refuses the record.
    insertRecord: driver.prepare(
      // guard: append-needs-a-live-claim
      `INSERT INTO records (id, count, at, commit_no, prev, hash, body, fence)
       VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7,
         (SELECT fence FROM sessions WHERE sid = CAST(?1 / ${MAX_ENTRIES_PER_SESSION} AS INTEGER) AND fence = ?8 AND ${ownerCondition}))`,
    ),
    insertBlob: driver.prepare('INSERT OR IGNORE INTO blobs (sid, digest, body) VALUES (?, ?, ?)'),
    saveSnapshot: driver.prepare(
      `INSERT OR REPLACE INTO snapshots (sid, next, tail, state, checksum) SELECT ?, ?, ?, ?, ? WHERE ${ownerCondition}`,
    ),
    removeSession: driver.prepare('DELETE FROM sessions WHERE sid = ?'),
    removeRecords: driver.prepare('DELETE FROM records WHERE id >= ? AND id < ?'),
    removeBlobs: driver.prepare('DELETE FROM blobs WHERE sid = ?'),
    removeSnapshot: driver.prepare('DELETE FROM snapshots WHERE sid = ?'),
    insertUnanchoredRemoval: driver.prepare('INSERT OR REPLACE INTO removals (sid, commit_no) VALUES (?, ?)'),
    removeOldUnanchoredRemovals: driver.prepare('DELETE FROM removals WHERE commit_no < ?'),
    insertClient: driver.prepare('INSERT OR REPLACE INTO clients (id, pid, start) VALUES (?, ?, ?)'),
    removeClient: driver.prepare('DELETE FROM clients WHERE id = ?'),
    selectFence: driver.prepare(`SELECT ${integerColumn('fence')} FROM sessions WHERE sid = ?`),
    selectEpoch: driver.prepare(`SELECT ${integerColumn('epoch')} FROM ownership WHERE id = 1`),
  };
}

function staleWriterFault(draft: RecordDraft, head: SessionHead | undefined): Fault {
  const { session, fence, firstSeq } = draft;
  const actual = head === undefined ? 'no such session' : `fence ${head.fence} and next entry ${head.next}`;
  const message = `Session "${session}" was not written: the writer has fence ${fence} and entry ${firstSeq}, the store has ${actual}. Claim it again.`;
  const found = head === undefined ? null : { fence: head.fence, next: head.next };
  return new Fault('STALE_WRITER', message, { session, expected: { fence, next: firstSeq }, found });
}

/** The database, the caches and the state that a transaction writer needs. */
interface TransactionWriterDeps {
  readonly driver: Driver;
  readonly heads: SessionHeads;
  readonly records: RecordTable;
  readonly dueTurns: DueTurnTable;
  /** The highest numeric session id (sid) that was ever assigned. */
  readonly highestSid: number;
  /** The owner's epoch. Writes are refused once the database has a different one. */
  readonly epoch: number;
}

/** Writes to the tables. One instance serves all transactions, one after another; see `begin`. */
export class TransactionWriter {
  private readonly heads: SessionHeads;
  private readonly records: RecordTable;
  private readonly dueTurns: DueTurnTable;
  private readonly epoch: number;
  private readonly statements: WriteStatements;
  private readonly draftHeads = new Map<string, SessionHead | undefined>();
  private readonly removedNames = new Set<string>();
  private highestSid: number;
  /**
   * The highest fence of the sessions that this instance has removed, except for refused ones. New sessions get a
   * higher one, so the writer of a removed session is stale for a new session of the same name.
   */
  private highestRemovedFence = 0;
  private commitNumber = 0;
  private commitTime = 0;
  /** Estimated number of pages that this transaction adds to the WAL. */
  private walPages = 0;

  constructor({ driver, heads, records, dueTurns, highestSid, epoch }: TransactionWriterDeps) {
    this.heads = heads;
    this.records = records;
    this.dueTurns = dueTurns;
    this.epoch = epoch;
    this.statements = prepareStatements(driver, epoch);
    this.highestSid = highestSid;
  }

  /** The Unix time of the current transaction, in milliseconds. */
  get commitTimeMs(): number {
    return this.commitTime;
  }

  /** Estimated number of pages that this transaction adds to the WAL. It decides when the WAL is checkpointed. */
  get estimatedWalPages(): number {
    return this.walPages;
  }

  /** The names of the sessions whose absence this transaction records in the anchor. */
  get removedSessions(): ReadonlySet<string> {
    return this.removedNames;
  }

  /** The heads that this transaction records in the anchor; undefined for removed sessions. */
  get changedHeads(): ReadonlyMap<string, SessionHead | undefined> {
    return this.draftHeads;
  }

  /** Resets the drafts for a new transaction with this commit number and time. */
  begin(commit: number, at: number): void {
    this.draftHeads.clear();
    if (this.removedNames.size > 0) this.removedNames.clear();
    this.commitNumber = commit;
    this.commitTime = at;
    this.walPages = 0;
  }

  /** Publishes the drafted heads to the cache. Call it once the transaction is committed. */
  publishHeads(): void {
    for (const [name, head] of this.draftHeads) {
      if (head === undefined) this.heads.evict(name);
      else this.heads.cache(head);
    }
  }

  /** Claims a session with the next fence, and creates the session if it is absent. */
  claim(name: string): Claim {
    const head = this.findHead(name);
    if (head === undefined) return this.createSession(name);
    const next: SessionHead = { ...head, fence: head.fence + 1, commitNumber: this.commitNumber };
    const { claimSession } = this.statements;
    const changed = claimSession.run(next.fence, next.commitNumber, this.checksumOf(next), head.sid, head.fence);
    if (changed !== 1) throw this.unchangedRowFault(name);
    this.setHead(next, 0);
    return { fence: next.fence, nextSeq: next.next };
  }

  /**
   * Appends a record, which contains one or more entries, to a session, and changes its rows in the index of due turns.
   * Throws STALE_WRITER if the session does not exist, was claimed again since, or ends at another entry; and STORE_FULL
   * if it would have too many entries. An exact repetition of an append that was already written succeeds without
   * effect.
   */
  append(draft: RecordDraft): void {
    const { session, fence, firstSeq, count, due } = draft;
    const head = this.findHead(session);
    if (count === 0 && due === undefined)
      throw new Fault('STORE_FAILED', `An append to session "${session}" has neither entries nor due turns.`);
    if (head === undefined || head.fence !== fence || head.next !== firstSeq) {
      // guard: repeated-append-accepted
      if (head !== undefined && this.isAlreadyWritten(draft, head)) return;
      throw staleWriterFault(draft, head);
    }
    if (count > 0) this.appendRecord(draft, head);
    // guard: due-change-needs-a-live-claim
    if (count === 0 && this.readFence(head.sid) !== fence) throw this.staleHeadFault(draft);
    if (due === undefined) return;
    this.dueTurns.apply(head.sid, session, due);
    this.walPages += 2 * due.length;
  }

  private appendRecord(draft: RecordDraft, head: SessionHead): void {
    const { session, fence, firstSeq, count, body } = draft;
    if (firstSeq + count > MAX_ENTRIES_PER_SESSION) {
      throw new Fault(
        'STORE_FULL',
        `Session "${session}" has ${firstSeq} entries; the maximum is ${MAX_ENTRIES_PER_SESSION}. Start a new session.`,
      );
    }
    const commit = { committedAt: this.commitTime, commitNumber: this.commitNumber };
    const record = createRecord(this.records.hasher, head.sid, head.hash, draft, commit);
    // The insert checks the fence in the row again, in case the session was claimed since its head was read.
    if (!this.insertRecord(session, head.sid, record)) throw this.staleHeadFault(draft);
    const { sid, name } = head;
    this.setHead(
      { sid, name, fence, next: firstSeq + count, hash: record.hash, commitNumber: this.commitNumber },
      body.length,
    );
  }

  /** Returns the Fault of a writer whose session was claimed since its head was read. Throws OWNERSHIP_LOST. */
  private staleHeadFault(draft: RecordDraft): Fault {
    this.assertOwner();
    this.heads.evict(draft.session);
    return staleWriterFault(draft, undefined);
  }

  private readFence(sid: number): number {
    return readInteger(this.statements.selectFence.all(sid)[0]?.fence);
  }

  /** Throws OWNERSHIP_LOST if another process has become the owner. */
  assertOwner(): void {
    const [row] = this.statements.selectEpoch.all();
    const epoch = readInteger(row?.epoch);
    // guard: group-write-checks-owner
    if (epoch === this.epoch) return;
    const message = `Another process owns the store now (owner ${epoch}; this process was owner ${this.epoch}). Nothing of this commit was written.`;
    throw new Fault('OWNERSHIP_LOST', message, { epoch, own: this.epoch });
  }

  /** Adds a process that may hold leases. A new owner gives such processes time to reconnect. */
  addClient(id: string, { pid, start }: ProcessId): void {
    this.statements.insertClient.run(id, pid, start);
    this.walPages += 1;
  }

  /** Removes a process that has ended or has not reconnected in time. */
  removeClient(id: string): void {
    this.statements.removeClient.run(id);
    this.walPages += 1;
  }

  /**
   * Removes a session with all of its rows; does nothing if it does not exist. Pass the `sids` of a refused session,
   * whose row may not be found by name.
   */
  remove(name: string, sids: readonly number[] | undefined): void {
    const head = sids === undefined ? this.findHead(name) : undefined;
    const removedSids = sids ?? (head && [head.sid]);
    if (removedSids === undefined) return;
    this.highestRemovedFence = Math.max(this.highestRemovedFence, head?.fence ?? 0);
    for (const sid of removedSids) {
      this.statements.removeSession.run(sid);
      this.statements.removeRecords.run(recordIdOf(sid, 0), recordIdOf(sid + 1, 0));
      this.statements.removeBlobs.run(sid);
      this.statements.removeSnapshot.run(sid);
      this.dueTurns.removeSession(sid);
      this.statements.insertUnanchoredRemoval.run(sid, this.commitNumber);
      this.walPages += 8;
    }
    // Older removals are in the anchor, the file outside of the database that detects lost commits.
    this.statements.removeOldUnanchoredRemovals.run(this.commitNumber - 1000);
    this.draftHeads.set(name, undefined);
    this.removedNames.add(name);
  }

  /** Records the current head of a session, or its absence, in the anchor with this commit. */
  anchorSession(name: string): void {
    const head = this.findHead(name);
    this.draftHeads.set(name, head);
    if (head === undefined) this.removedNames.add(name);
  }

  /** Stores a blob of a session, unless the session has one with this digest. */
  putBlob(sid: number, digest: string, body: string): void {
    this.statements.insertBlob.run(sid, digest, body);
    this.walPages += 2 + Math.ceil(body.length / 4000);
  }

  /** Replaces the snapshot of a session; does nothing if the session does not exist. */
  saveSnapshot(name: string, { nextSeq, tailDigest, state }: Snapshot): void {
    const head = this.findHead(name);
    if (head === undefined) return;
    const body = JSON.stringify(state);
    const saved = { next: nextSeq, tail: tailDigest, state: body };
    const checksum = snapshotChecksum(this.records.hasher, head.sid, saved);
    if (this.statements.saveSnapshot.run(head.sid, nextSeq, tailDigest, body, checksum) !== 1)
      throw this.unchangedRowFault(name);
    this.walPages += 2 + Math.ceil(body.length / 4000);
  }

  /** Returns the Fault for a statement that changed no row. Throws OWNERSHIP_LOST if that is the reason. */
  private unchangedRowFault(name: string): Fault {
    this.assertOwner();
    return damagedSessionFault(name, this.findHead(name)?.next ?? 0, 'its row has changed since it was read');
  }

  /** Returns the head of a session as this transaction sees it; undefined if the session is absent or removed. */
  private findHead(name: string): SessionHead | undefined {
    return this.draftHeads.has(name) ? this.draftHeads.get(name) : this.heads.find(name);
  }

  /** Drafts the new head of a session. `chars` is the length of the body that was written with it. */
  private setHead(head: SessionHead, chars: number): void {
    this.draftHeads.set(head.name, head);
    this.walPages += 1 + Math.floor(chars / 4000);
  }

  private checksumOf(row: SessionRow): string {
    return sessionRowChecksum(this.records.hasher, row);
  }

  private createSession(name: string): Claim {
    if (this.highestSid >= MAX_SID)
      throw new Fault('STORE_FULL', `The store has reached its limit of ${MAX_SID} sessions. Use a new store.`);
    const sid = ++this.highestSid;
    const row: SessionRow = { sid, name, fence: this.highestRemovedFence + 1, commitNumber: this.commitNumber };
    const { insertSession } = this.statements;
    const changed = insertSession.run(sid, name, row.fence, row.commitNumber, this.checksumOf(row));
    if (changed !== 1) throw this.unchangedRowFault(name);
    const head = sessionHeadOf(row, undefined);
    this.setHead(head, 0);
    return { fence: head.fence, nextSeq: head.next };
  }

  /** True if exactly this append is already stored. A writer repeats an append whose acknowledgement was lost. */
  private isAlreadyWritten({ fence, firstSeq, count, body }: RecordDraft, { sid, next }: SessionHead): boolean {
    if (count === 0 || firstSeq + count > next) return false;
    const [record] = this.records.readPage(sid, firstSeq, firstSeq + 1);
    return (
      record?.fence === fence &&
      record.count === count &&
      // guard: repeated-append-has-same-body
      record.body === body
    );
  }

  /**
   * Inserts a record; false if the writer does not have the newest claim or this process is not the owner. Throws a
   * Fault if another record has this place, or if the record is too large.
   */
  private insertRecord(
    session: string,
    sid: number,
    { firstSeq, count, fence, committedAt, commitNumber, prevHash, hash, body }: JournalRecord,
  ): boolean {
    const { insertRecord } = this.statements;
    try {
      const id = recordIdOf(sid, firstSeq);
      insertRecord.run(id, count, committedAt, commitNumber, prevHash, hash, body, fence);
      return true;
    } catch (error) {
      const code = sqliteResultCode(error);
      if (code === SQLITE_CONSTRAINT && this.records.readPage(sid, firstSeq, firstSeq + 1).length === 0) return false;
      if (code === SQLITE_CONSTRAINT)
        throw damagedSessionFault(session, firstSeq, 'another record exists at this entry');
      if (code !== SQLITE_TOOBIG) throw error;
      throw new Fault(
        'STORE_FAILED',
        `Session "${session}" was not written: the batch at entry ${firstSeq} is too large.`,
      );
    }
  }
}
