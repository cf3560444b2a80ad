/**
 * The head of each session: who may write it, told by its row, and where its chain ends, told by its last record.
 * Invariants: a row whose checksum does not fit and a last record whose hash does not fit are never believed; the
 * cache holds committed heads only and is bounded, since a head can always be read again.
 */
import { crc32 } from 'node:zlib';
import { Fault } from '../../base/errors.js';
import { genesisHash } from '../../journal/record.js';
import { type Driver, integerColumn, type Row, readInteger, readText, type Statement, textColumn } from './driver.js';
import { damagedSessionFault, type LastRecord, type RecordTable } from './record-table.js';

/** A session's row. */
export interface SessionRow {
  readonly sid: number;
  readonly name: string;
  readonly fence: number;
  /** The last commit that claimed it. */
  readonly commitNumber: number;
}

export interface SessionHead extends SessionRow {
  readonly next: number;
  /** Hash of the last record, or the genesis. */
  readonly hash: string;
  /** The last commit that touched it. */
  readonly commitNumber: number;
}

/** The columns that `ownedOf` reads. */
export const SESSION_COLUMNS: string = [
  integerColumn('sid'),
  textColumn('name'),
  integerColumn('fence'),
  integerColumn('commit_no'),
  textColumn('checksum'),
].join(', ');

const MAX_CACHED_HEADS = 10_000;

/** Against damage only: hence not a digest. */
export function sessionRowChecksum({ sid, name, fence, commitNumber }: SessionRow): string {
  return crc32(`${sid} ${fence} ${commitNumber} ${name}`).toString(36);
}

/** What a row says, and whether its checksum fits. */
export function parseSessionRow(row: Row): { readonly owned: SessionRow; readonly sound: boolean } {
  const owned: SessionRow = {
    sid: readInteger(row.sid),
    name: readText(row.name),
    fence: readInteger(row.fence),
    commitNumber: readInteger(row.commit_no),
  };
  return { owned, sound: sessionRowChecksum(owned) === readText(row.checksum) };
}

export function sessionHeadOf(owned: SessionRow, tail: LastRecord | undefined): SessionHead {
  if (tail === undefined) return { ...owned, next: 0, hash: genesisHash(owned.name, owned.sid) };
  const { first, count, hash, commitNumber } = tail;
  return { ...owned, next: first + count, hash, commitNumber: Math.max(owned.commitNumber, commitNumber) };
}

export class SessionHeads {
  readonly #cache = new Map<string, SessionHead>();
  readonly #selectSession: Statement;
  readonly #records: RecordTable;

  constructor(driver: Driver, records: RecordTable) {
    this.#selectSession = driver.prepare(`SELECT ${SESSION_COLUMNS} FROM sessions WHERE sessions.name = ?`);
    this.#records = records;
  }

  /** The committed head; undefined if there is no such session. */
  find(name: string): SessionHead | undefined {
    const cached = this.#cache.get(name);
    const head = cached ?? this.#load(name);
    if (head === undefined) return undefined;
    // Who was used last matters only once one of them has to go.
    if (cached !== undefined && this.#cache.size < MAX_CACHED_HEADS) return head;
    if (cached !== undefined) this.#cache.delete(name);
    this.cache(head);
    return head;
  }

  cache(head: SessionHead): void {
    this.#cache.set(head.name, head);
    if (this.#cache.size <= MAX_CACHED_HEADS) return;
    const [oldest] = this.#cache.keys();
    if (oldest !== undefined) this.#cache.delete(oldest);
  }

  evict(name: string): void {
    this.#cache.delete(name);
  }

  #load(name: string): SessionHead | undefined {
    const [row] = this.#selectSession.all(name);
    if (row === undefined) return undefined;
    const { owned, sound } = parseSessionRow(row);
    if (!sound || owned.name !== name) {
      const message = `The row of session "${name}" is damaged: its checksum does not fit. Restore the store from a backup.`;
      throw new Fault('STORE_DAMAGED', message, { session: name, seq: 0 });
    }
    const tail = this.#records.readLastRecord(owned.sid);
    const flaw = tail && this.#records.findLastRecordFlaw(owned.sid, tail);
    // guard: last-record-verified-on-claim
    if (flaw !== undefined) throw damagedSessionFault(name, tail?.first ?? 0, flaw);
    return sessionHeadOf(owned, tail);
  }
}
