/**
 * What can be done to the tables inside one open transaction. Heads that it changes are drafts, seen by the
 * operations after it and published only once the transaction is committed.
 * An operation that throws a Fault has left no trace, so the others of its transaction can go on; anything else
 * that is thrown ends the transaction.
 */
import { Fault } from '../../base/errors.js';
import { createRecord, type JournalRecord, type RecordDraft } from '../../journal/record.js';
import type { Claim, Snapshot } from '../../journal/store.js';
import { type Driver, integerColumn, readInteger, type Statement } from './driver.js';
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
}

function prepareStatements(driver: Driver, epoch: number): WriteStatements {
  // A condition on every statement that may be committed by itself: only the owner of this epoch writes.
  // guard: lone-write-checks-owner
  const owned = `(SELECT epoch FROM ownership WHERE id = 1) = ${epoch}`;
  return {
    insertSession: driver.prepare(
      `INSERT INTO sessions (sid, name, fence, commit_no, checksum) SELECT ?, ?, ?, ?, ? WHERE ${owned}`,
    ),
    claimSession: driver.prepare(
      `UPDATE sessions SET fence = ?, commit_no = ?, checksum = ? WHERE sid = ? AND fence = ? AND ${owned}`,
    ),
    // Without a fence, which is NULL unless the writer is the one that it should be, the record is refused.
    insertRecord: driver.prepare(
      // guard: append-needs-a-live-claim
      `INSERT INTO records (id, count, at, commit_no, prev, hash, body, fence)
       VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7,
         (SELECT fence FROM sessions WHERE sid = CAST(?1 / ${MAX_ENTRIES_PER_SESSION} AS INTEGER) AND fence = ?8 AND ${owned}))`,
    ),
    insertBlob: driver.prepare('INSERT OR IGNORE INTO blobs (sid, digest, body) VALUES (?, ?, ?)'),
    saveSnapshot: driver.prepare(
      `INSERT OR REPLACE INTO snapshots (sid, next, tail, state, checksum) SELECT ?, ?, ?, ?, ? WHERE ${owned}`,
    ),
    removeSession: driver.prepare('DELETE FROM sessions WHERE sid = ?'),
    removeRecords: driver.prepare('DELETE FROM records WHERE id >= ? AND id < ?'),
    removeBlobs: driver.prepare('DELETE FROM blobs WHERE sid = ?'),
    removeSnapshot: driver.prepare('DELETE FROM snapshots WHERE sid = ?'),
    insertUnanchoredRemoval: driver.prepare('INSERT OR REPLACE INTO removals (sid, commit_no) VALUES (?, ?)'),
    removeOldUnanchoredRemovals: driver.prepare('DELETE FROM removals WHERE commit_no < ?'),
    insertClient: driver.prepare('INSERT OR REPLACE INTO peers (id, pid, start) VALUES (?, ?, ?)'),
    removeClient: driver.prepare('DELETE FROM peers WHERE id = ?'),
    selectEpoch: driver.prepare(`SELECT ${integerColumn('epoch')} FROM ownership WHERE id = 1`),
  };
}

function staleWriterFault(draft: RecordDraft, found: SessionHead | undefined): Fault {
  const { session, fence, firstSeq } = draft;
  const is = found === undefined ? 'the session is not there' : `fence ${found.fence} and next entry ${found.next}`;
  const message = `Session "${session}" was not written: the writer has fence ${fence} and entry ${firstSeq}, the store has ${is}. Claim it again.`;
  const has = found === undefined ? null : { fence: found.fence, next: found.next };
  return new Fault('STALE_WRITER', message, { session, expected: { fence, next: firstSeq }, found: has });
}

export interface TransactionWriterDeps {
  readonly driver: Driver;
  readonly heads: SessionHeads;
  readonly records: RecordTable;
  /** The highest session number ever given. */
  readonly highestSid: number;
  /** The owner's epoch: writes are refused once the database holds another. */
  readonly epoch: number;
}

export class TransactionWriter {
  readonly #heads: SessionHeads;
  readonly #records: RecordTable;
  readonly #epoch: number;
  readonly #statements: WriteStatements;
  readonly #changedHeads = new Map<string, SessionHead | undefined>();
  readonly #removedSessions = new Set<string>();
  #highestSid: number;
  /** The highest fence of a removed session: a writer it left behind must not fit a new one of its name. */
  #highestRemovedFence = 0;
  #commitNumber = 0;
  #committedAt = 0;
  /** Pages that this transaction may have added to the WAL, by estimate. */
  #estimatedWalPages = 0;

  constructor({ driver, heads, records, highestSid, epoch }: TransactionWriterDeps) {
    this.#heads = heads;
    this.#records = records;
    this.#epoch = epoch;
    this.#statements = prepareStatements(driver, epoch);
    this.#highestSid = highestSid;
  }

  get committedAt(): number {
    return this.#committedAt;
  }

  get estimatedWalPages(): number {
    return this.#estimatedWalPages;
  }

  /** The sessions that this transaction removed. */
  get removedSessions(): ReadonlySet<string> {
    return this.#removedSessions;
  }

  /** The heads of the sessions that it changed; undefined for those that it removed. */
  get changedHeads(): ReadonlyMap<string, SessionHead | undefined> {
    return this.#changedHeads;
  }

  begin(commit: number, at: number): void {
    this.#changedHeads.clear();
    if (this.#removedSessions.size > 0) this.#removedSessions.clear();
    this.#commitNumber = commit;
    this.#committedAt = at;
    this.#estimatedWalPages = 0;
  }

  /** The transaction is durable: its heads are the heads. */
  publishHeads(): void {
    for (const [name, head] of this.#changedHeads) {
      if (head === undefined) this.#heads.evict(name);
      else this.#heads.cache(head);
    }
  }

  claim(name: string): Claim {
    const head = this.#findHead(name);
    if (head === undefined) return this.#createSession(name);
    const next: SessionHead = { ...head, fence: head.fence + 1, commitNumber: this.#commitNumber };
    const { claimSession } = this.#statements;
    const changed = claimSession.run(next.fence, next.commitNumber, sessionRowChecksum(next), head.sid, head.fence);
    if (changed !== 1) throw this.#unchangedRowFault(name);
    this.#setHead(next, 0);
    return { fence: next.fence, nextSeq: next.next };
  }

  append(draft: RecordDraft): void {
    const { session, fence, firstSeq, count, body } = draft;
    const head = this.#findHead(session);
    if (count === 0) throw new Fault('STORE_FAILED', `Session "${session}" was given nothing to write.`);
    if (head === undefined || head.fence !== fence || head.next !== firstSeq) {
      // guard: repeated-append-accepted
      if (head !== undefined && this.#isAlreadyWritten(draft, head)) return;
      throw staleWriterFault(draft, head);
    }
    if (firstSeq + count > MAX_ENTRIES_PER_SESSION) {
      throw new Fault(
        'STORE_FULL',
        `Session "${session}" has ${firstSeq} entries and can have no more than ${MAX_ENTRIES_PER_SESSION}.`,
      );
    }
    const record = createRecord(head.hash, draft);
    // The row is asked once more: who lost the session since its head was read writes nothing.
    if (!this.#insertRecord(session, head.sid, record)) {
      this.assertOwner();
      this.#heads.evict(session);
      throw staleWriterFault(draft, undefined);
    }
    const { sid, name } = head;
    this.#setHead(
      { sid, name, fence, next: firstSeq + count, hash: record.hash, commitNumber: this.#commitNumber },
      body.length,
    );
  }

  /** Throws OWNERSHIP_LOST if another process has become the owner. */
  assertOwner(): void {
    const [row] = this.#statements.selectEpoch.all();
    const epoch = readInteger(row?.epoch);
    // guard: group-write-checks-owner
    if (epoch === this.#epoch) return;
    const message = `Another process owns the store now (owner ${epoch}; this process was owner ${this.#epoch}). Nothing of this commit was written.`;
    throw new Fault('OWNERSHIP_LOST', message, { epoch, own: this.#epoch });
  }

  /** Records a process that holds leases, so that the next owner waits for it. */
  addClient(id: string, { pid, start }: ProcessId): void {
    this.#statements.insertClient.run(id, pid, start);
    this.#estimatedWalPages += 1;
  }

  removeClient(id: string): void {
    this.#statements.removeClient.run(id);
    this.#estimatedWalPages += 1;
  }

  /** Removes all of a session; `sids` is for one whose row can no longer be found by its name. */
  remove(name: string, sids: readonly number[] | undefined): void {
    const head = sids === undefined ? this.#findHead(name) : undefined;
    const all = sids ?? (head && [head.sid]);
    if (all === undefined) return;
    this.#highestRemovedFence = Math.max(this.#highestRemovedFence, head?.fence ?? 0);
    for (const sid of all) {
      this.#statements.removeSession.run(sid);
      this.#statements.removeRecords.run(recordIdOf(sid, 0), recordIdOf(sid + 1, 0));
      this.#statements.removeBlobs.run(sid);
      this.#statements.removeSnapshot.run(sid);
      this.#statements.insertUnanchoredRemoval.run(sid, this.#commitNumber);
      this.#estimatedWalPages += 8;
    }
    // Notes this old are long anchored.
    this.#statements.removeOldUnanchoredRemovals.run(this.#commitNumber - 1000);
    this.#changedHeads.set(name, undefined);
    this.#removedSessions.add(name);
  }

  /** Anchors a session as it is now: where it ends, or that it is gone. */
  anchorSession(name: string): void {
    const head = this.#findHead(name);
    this.#changedHeads.set(name, head);
    if (head === undefined) this.#removedSessions.add(name);
  }

  putBlob(sid: number, digest: string, body: string): void {
    this.#statements.insertBlob.run(sid, digest, body);
    this.#estimatedWalPages += 2 + Math.ceil(body.length / 4000);
  }

  saveSnapshot(name: string, { nextSeq, tailDigest, state }: Snapshot): void {
    const head = this.#findHead(name);
    if (head === undefined) return;
    const body = JSON.stringify(state);
    const checkSum = snapshotChecksum(head.sid, nextSeq, tailDigest, body);
    if (this.#statements.saveSnapshot.run(head.sid, nextSeq, tailDigest, body, checkSum) !== 1)
      throw this.#unchangedRowFault(name);
    this.#estimatedWalPages += 2 + Math.ceil(body.length / 4000);
  }

  /** Why a statement changed nothing that should have. */
  #unchangedRowFault(name: string): Fault {
    this.assertOwner();
    return damagedSessionFault(name, this.#findHead(name)?.next ?? 0, 'its row is not the one that was read');
  }

  #findHead(name: string): SessionHead | undefined {
    return this.#changedHeads.has(name) ? this.#changedHeads.get(name) : this.#heads.find(name);
  }

  #setHead(head: SessionHead, bytes: number): void {
    this.#changedHeads.set(head.name, head);
    this.#estimatedWalPages += 1 + Math.floor(bytes / 4000);
  }

  #createSession(name: string): Claim {
    if (this.#highestSid >= MAX_SID)
      throw new Fault('STORE_FULL', `The store has had ${MAX_SID} sessions and can have no more.`);
    const sid = ++this.#highestSid;
    const owned: SessionRow = { sid, name, fence: this.#highestRemovedFence + 1, commitNumber: this.#commitNumber };
    const { insertSession } = this.#statements;
    const changed = insertSession.run(sid, name, owned.fence, owned.commitNumber, sessionRowChecksum(owned));
    if (changed !== 1) throw this.#unchangedRowFault(name);
    const head = sessionHeadOf(owned, undefined);
    this.#setHead(head, 0);
    return { fence: head.fence, nextSeq: head.next };
  }

  /** True if exactly this append was written before: its acknowledgement was lost, and it is asked for again. */
  #isAlreadyWritten({ fence, firstSeq, count, body }: RecordDraft, { sid, next }: SessionHead): boolean {
    if (firstSeq + count > next) return false;
    const [record] = this.#records.readPage(sid, firstSeq, firstSeq + 1);
    return (
      record?.fence === fence &&
      record.count === count &&
      // guard: repeated-append-has-same-body
      record.body === body
    );
  }

  /** False if the record was not written: only the newest claim of its session may, and only the owner. */
  #insertRecord(
    session: string,
    sid: number,
    { firstSeq, count, fence, prevHash, hash, body }: JournalRecord,
  ): boolean {
    const { insertRecord } = this.#statements;
    try {
      const id = recordIdOf(sid, firstSeq);
      insertRecord.run(id, count, this.#committedAt, this.#commitNumber, prevHash, hash, body, fence);
      return true;
    } catch (error) {
      const code = sqliteResultCode(error);
      if (code === SQLITE_CONSTRAINT && this.#records.readPage(sid, firstSeq, firstSeq + 1).length === 0) return false;
      if (code === SQLITE_CONSTRAINT) throw damagedSessionFault(session, firstSeq, 'a record is there already');
      if (code !== SQLITE_TOOBIG) throw error;
      throw new Fault(
        'STORE_FAILED',
        `Session "${session}" was not written: entry ${firstSeq} and its batch are too large.`,
      );
    }
  }
}
