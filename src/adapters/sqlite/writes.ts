/**
 * What can be done to the tables inside one open transaction. Heads that it changes are drafts, seen by the
 * operations after it and published only once the transaction is committed.
 * An operation that throws a Fault has left no trace, so the others of its transaction can go on; anything else
 * that is thrown ends the transaction.
 */
import { Fault } from '../../base/errors.js';
import { type Draft, type SealedRecord, sealRecord } from '../../journal/record.js';
import type { Claim, Snapshot } from '../../journal/store.js';
import { type Driver, type Statement, whole, wholeOf } from './driver.js';
import { resultCode } from './failure.js';
import { type Head, type Heads, headOf, type Owned, ownedSum } from './heads.js';
import type { ProcessId } from './owner/process.js';
import { damagedAt, idOf, lastSid, type Records, span } from './records.js';
import { snapshotSum } from './snapshot.js';

const constraint = 19;
const tooBig = 18;

interface Statements {
  readonly insertSession: Statement;
  readonly claimSession: Statement;
  readonly insertRecord: Statement;
  readonly insertBlob: Statement;
  readonly saveSnapshot: Statement;
  readonly removeSession: Statement;
  readonly removeRecords: Statement;
  readonly removeBlobs: Statement;
  readonly removeSnapshot: Statement;
  readonly noteRemoval: Statement;
  readonly forgetRemovals: Statement;
  readonly insertPeer: Statement;
  readonly removePeer: Statement;
  readonly selectEpoch: Statement;
}

function prepare(driver: Driver, epoch: number): Statements {
  // A condition on every statement that may be committed by itself: only the owner of this epoch writes.
  // guard: lone-write-checks-owner
  const owned = `(SELECT epoch FROM ownership WHERE id = 1) = ${epoch}`;
  return {
    insertSession: driver.prepare(
      `INSERT INTO sessions (sid, name, fence, commit_no, check_sum) SELECT ?, ?, ?, ?, ? WHERE ${owned}`,
    ),
    claimSession: driver.prepare(
      `UPDATE sessions SET fence = ?, commit_no = ?, check_sum = ? WHERE sid = ? AND fence = ? AND ${owned}`,
    ),
    // Without a fence, which is NULL unless the writer is the one that it should be, the record is refused.
    insertRecord: driver.prepare(
      // guard: append-needs-a-live-claim
      `INSERT INTO records (id, count, at, commit_no, prev, hash, body, fence)
       VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7,
         (SELECT fence FROM sessions WHERE sid = CAST(?1 / ${span} AS INTEGER) AND fence = ?8 AND ${owned}))`,
    ),
    insertBlob: driver.prepare('INSERT OR IGNORE INTO blobs (sid, digest, body) VALUES (?, ?, ?)'),
    saveSnapshot: driver.prepare(
      `INSERT OR REPLACE INTO snapshots (sid, next, tail, state, check_sum) SELECT ?, ?, ?, ?, ? WHERE ${owned}`,
    ),
    removeSession: driver.prepare('DELETE FROM sessions WHERE sid = ?'),
    removeRecords: driver.prepare('DELETE FROM records WHERE id >= ? AND id < ?'),
    removeBlobs: driver.prepare('DELETE FROM blobs WHERE sid = ?'),
    removeSnapshot: driver.prepare('DELETE FROM snapshots WHERE sid = ?'),
    noteRemoval: driver.prepare('INSERT OR REPLACE INTO removals (sid, commit_no) VALUES (?, ?)'),
    forgetRemovals: driver.prepare('DELETE FROM removals WHERE commit_no < ?'),
    insertPeer: driver.prepare('INSERT OR REPLACE INTO peers (id, pid, start) VALUES (?, ?, ?)'),
    removePeer: driver.prepare('DELETE FROM peers WHERE id = ?'),
    selectEpoch: driver.prepare(`SELECT ${wholeOf('epoch')} FROM ownership WHERE id = 1`),
  };
}

function stale(draft: Draft, found: Head | undefined): Fault {
  const { session, fence, first } = draft;
  const is = found === undefined ? 'the session is not there' : `fence ${found.fence} and next entry ${found.next}`;
  const message = `Session "${session}" was not written: the writer has fence ${fence} and entry ${first}, the store has ${is}. Claim it again.`;
  const has = found === undefined ? null : { fence: found.fence, next: found.next };
  return new Fault('STALE_WRITER', message, { session, expected: { fence, next: first }, found: has });
}

export interface WritesOptions {
  readonly driver: Driver;
  readonly heads: Heads;
  readonly records: Records;
  /** The highest session number ever given. */
  readonly sid: number;
  /** The owner's epoch: writes are refused once the database holds another. */
  readonly epoch: number;
}

export class Writes {
  readonly #heads: Heads;
  readonly #records: Records;
  readonly #epoch: number;
  readonly #do: Statements;
  readonly #drafts = new Map<string, Head | undefined>();
  readonly #gone = new Set<string>();
  #sid: number;
  /** The highest fence of a removed session: a writer it left behind must not fit a new one of its name. */
  #floor = 0;
  #commit = 0;
  #at = 0;
  /** Pages that this transaction may have added to the WAL, by estimate. */
  #pages = 0;

  constructor({ driver, heads, records, sid, epoch }: WritesOptions) {
    this.#heads = heads;
    this.#records = records;
    this.#epoch = epoch;
    this.#do = prepare(driver, epoch);
    this.#sid = sid;
  }

  get at(): number {
    return this.#at;
  }

  get pages(): number {
    return this.#pages;
  }

  /** The sessions that this transaction removed. */
  get gone(): ReadonlySet<string> {
    return this.#gone;
  }

  /** The heads of the sessions that it changed; undefined for those that it removed. */
  get drafts(): ReadonlyMap<string, Head | undefined> {
    return this.#drafts;
  }

  begin(commit: number, at: number): void {
    this.#drafts.clear();
    if (this.#gone.size > 0) this.#gone.clear();
    this.#commit = commit;
    this.#at = at;
    this.#pages = 0;
  }

  /** The transaction is durable: its heads are the heads. */
  publish(): void {
    for (const [name, head] of this.#drafts) {
      if (head === undefined) this.#heads.forget(name);
      else this.#heads.keep(head);
    }
  }

  claim(name: string): Claim {
    const head = this.#find(name);
    if (head === undefined) return this.#create(name);
    const next: Head = { ...head, fence: head.fence + 1, commit: this.#commit };
    const { claimSession } = this.#do;
    const changed = claimSession.run(next.fence, next.commit, ownedSum(next), head.sid, head.fence);
    if (changed !== 1) throw this.#refusal(name);
    this.#change(next, 0);
    return { fence: next.fence, next: next.next };
  }

  append(draft: Draft): void {
    const { session, fence, first, count, body } = draft;
    const head = this.#find(session);
    if (count === 0) throw new Fault('STORE_FAILED', `Session "${session}" was given nothing to write.`);
    if (head === undefined || head.fence !== fence || head.next !== first) {
      // guard: repeated-append-accepted
      if (head !== undefined && this.#isWritten(draft, head)) return;
      throw stale(draft, head);
    }
    if (first + count > span) {
      throw new Fault('STORE_FULL', `Session "${session}" has ${first} entries and can have no more than ${span}.`);
    }
    const record = sealRecord(head.hash, draft);
    // The row is asked once more: who lost the session since its head was read writes nothing.
    if (!this.#insert(session, head.sid, record)) {
      this.assertOwner();
      this.#heads.forget(session);
      throw stale(draft, undefined);
    }
    const { sid, name } = head;
    this.#change({ sid, name, fence, next: first + count, hash: record.hash, commit: this.#commit }, body.length);
  }

  /** Throws OWNERSHIP_LOST if another process has become the owner. */
  assertOwner(): void {
    const [row] = this.#do.selectEpoch.all();
    const epoch = whole(row?.epoch);
    // guard: group-write-checks-owner
    if (epoch === this.#epoch) return;
    const message = `Another process owns the store now (owner ${epoch}; this process was owner ${this.#epoch}). Nothing of this commit was written.`;
    throw new Fault('OWNERSHIP_LOST', message, { epoch, own: this.#epoch });
  }

  /** Records a process that holds leases, so that the next owner waits for it. */
  addPeer(id: string, { pid, start }: ProcessId): void {
    this.#do.insertPeer.run(id, pid, start);
    this.#pages += 1;
  }

  removePeer(id: string): void {
    this.#do.removePeer.run(id);
    this.#pages += 1;
  }

  /** Removes all of a session; `sids` is for one whose row can no longer be found by its name. */
  remove(name: string, sids: readonly number[] | undefined): void {
    const head = sids === undefined ? this.#find(name) : undefined;
    const all = sids ?? (head && [head.sid]);
    if (all === undefined) return;
    this.#floor = Math.max(this.#floor, head?.fence ?? 0);
    for (const sid of all) {
      this.#do.removeSession.run(sid);
      this.#do.removeRecords.run(idOf(sid, 0), idOf(sid + 1, 0));
      this.#do.removeBlobs.run(sid);
      this.#do.removeSnapshot.run(sid);
      this.#do.noteRemoval.run(sid, this.#commit);
      this.#pages += 8;
    }
    // Notes this old are long anchored.
    this.#do.forgetRemovals.run(this.#commit - 1000);
    this.#drafts.set(name, undefined);
    this.#gone.add(name);
  }

  /** Anchors a session as it is now: where it ends, or that it is gone. */
  anchor(name: string): void {
    const head = this.#find(name);
    this.#drafts.set(name, head);
    if (head === undefined) this.#gone.add(name);
  }

  put(sid: number, digest: string, body: string): void {
    this.#do.insertBlob.run(sid, digest, body);
    this.#pages += 2 + Math.ceil(body.length / 4000);
  }

  save(name: string, { next, tail, state }: Snapshot): void {
    const head = this.#find(name);
    if (head === undefined) return;
    const body = JSON.stringify(state);
    const checkSum = snapshotSum(head.sid, next, tail, body);
    if (this.#do.saveSnapshot.run(head.sid, next, tail, body, checkSum) !== 1) throw this.#refusal(name);
    this.#pages += 2 + Math.ceil(body.length / 4000);
  }

  /** Why a statement changed nothing that should have. */
  #refusal(name: string): Fault {
    this.assertOwner();
    return damagedAt(name, this.#find(name)?.next ?? 0, 'its row is not the one that was read');
  }

  #find(name: string): Head | undefined {
    return this.#drafts.has(name) ? this.#drafts.get(name) : this.#heads.find(name);
  }

  #change(head: Head, bytes: number): void {
    this.#drafts.set(head.name, head);
    this.#pages += 1 + Math.floor(bytes / 4000);
  }

  #create(name: string): Claim {
    if (this.#sid >= lastSid)
      throw new Fault('STORE_FULL', `The store has had ${lastSid} sessions and can have no more.`);
    const sid = ++this.#sid;
    const owned: Owned = { sid, name, fence: this.#floor + 1, commit: this.#commit };
    const { insertSession } = this.#do;
    const changed = insertSession.run(sid, name, owned.fence, owned.commit, ownedSum(owned));
    if (changed !== 1) throw this.#refusal(name);
    const head = headOf(owned, undefined);
    this.#change(head, 0);
    return { fence: head.fence, next: head.next };
  }

  /** True if exactly this append was written before: its acknowledgement was lost, and it is asked for again. */
  #isWritten({ fence, first, count, body }: Draft, { sid, next }: Head): boolean {
    if (first + count > next) return false;
    const [record] = this.#records.page(sid, first, first + 1);
    return (
      record?.fence === fence &&
      record.count === count &&
      // guard: repeated-append-has-same-body
      record.body === body
    );
  }

  /** False if the record was not written: only the newest claim of its session may, and only the owner. */
  #insert(session: string, sid: number, { first, count, fence, prev, hash, body }: SealedRecord): boolean {
    const { insertRecord } = this.#do;
    try {
      const id = idOf(sid, first);
      insertRecord.run(id, count, this.#at, this.#commit, prev, hash, body, fence);
      return true;
    } catch (error) {
      const code = resultCode(error);
      if (code === constraint && this.#records.page(sid, first, first + 1).length === 0) return false;
      if (code === constraint) throw damagedAt(session, first, 'a record is there already');
      if (code !== tooBig) throw error;
      throw new Fault(
        'STORE_FAILED',
        `Session "${session}" was not written: entry ${first} and its batch are too large.`,
      );
    }
  }
}
