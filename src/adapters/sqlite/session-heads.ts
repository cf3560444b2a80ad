/**
 * The head of each session: its row names the current writer (the fence), its last record is the end of its chain.
 * Invariants: `SessionHeads` returns no head of a row with a wrong checksum or of a last record with a wrong hash. Its
 * cache holds committed heads only and is bounded, because a head can always be read again.
 */
import { crc32 } from 'node:zlib';
import { Fault } from '../../base/errors.js';
import { genesisHash, type RecordHasher } from '../../journal/record.js';
import { type Driver, integerColumn, type Row, readInteger, readText, type Statement, textColumn } from './driver.js';
import { damagedSessionFault, type LastRecord, type RecordTable } from './record-table.js';

/** A row of the `sessions` table. */
export interface SessionRow {
  /** The number of the session, which is never reused. */
  readonly sid: number;
  readonly name: string;
  readonly fence: number;
  /** Number of the last commit that claimed the session. */
  readonly commitNumber: number;
}

/** A session's row together with the end of its chain. */
export interface SessionHead extends SessionRow {
  /** The sequence number of the next entry. */
  readonly next: number;
  /** Hash of the last record, or the genesis hash of an empty session. */
  readonly hash: string;
  /** Number of the last commit that claimed or appended to the session. */
  readonly commitNumber: number;
}

/** The select list that `parseSessionRow` expects. */
export const SESSION_COLUMNS: string = [
  integerColumn('sid'),
  textColumn('name'),
  integerColumn('fence'),
  integerColumn('commit_no'),
  textColumn('checksum'),
].join(', ');

const MAX_CACHED_HEADS = 10_000;

/** Returns the checksum of a row. Without a key it detects damage only, for which a CRC is enough. */
export function sessionRowChecksum(hasher: RecordHasher, { sid, name, fence, commitNumber }: SessionRow): string {
  return hasher.checksumOf('row', `${sid} ${fence} ${commitNumber} ${name}`, (text) => crc32(text).toString(36));
}

/** Parses a row of `SESSION_COLUMNS`. `isIntact` is true if its checksum matches. */
export function parseSessionRow(
  hasher: RecordHasher,
  row: Row,
): { readonly sessionRow: SessionRow; readonly isIntact: boolean } {
  const sessionRow: SessionRow = {
    sid: readInteger(row.sid),
    name: readText(row.name),
    fence: readInteger(row.fence),
    commitNumber: readInteger(row.commit_no),
  };
  return { sessionRow, isIntact: sessionRowChecksum(hasher, sessionRow) === readText(row.checksum) };
}

/** Returns the head of a session from its row and its last record, without verifying them. */
export function sessionHeadOf(row: SessionRow, lastRecord: LastRecord | undefined): SessionHead {
  if (lastRecord === undefined) return { ...row, next: 0, hash: genesisHash(row.name, row.sid) };
  const { first, count, hash, commitNumber } = lastRecord;
  return { ...row, next: first + count, hash, commitNumber: Math.max(row.commitNumber, commitNumber) };
}

/** Reads and caches the committed heads of sessions. */
export class SessionHeads {
  private readonly cached = new Map<string, SessionHead>();
  private readonly selectSession: Statement;
  private readonly records: RecordTable;

  constructor(driver: Driver, records: RecordTable) {
    this.selectSession = driver.prepare(`SELECT ${SESSION_COLUMNS} FROM sessions WHERE sessions.name = ?`);
    this.records = records;
  }

  /**
   * Returns the committed head of a session; undefined if there is no such session. Throws if its row or its last
   * record is damaged.
   */
  find(name: string): SessionHead | undefined {
    const cached = this.cached.get(name);
    const head = cached ?? this.load(name);
    if (head === undefined) return undefined;
    // The order of use matters only when the cache is full and must evict a head.
    if (cached !== undefined && this.cached.size < MAX_CACHED_HEADS) return head;
    if (cached !== undefined) this.cached.delete(name);
    this.cache(head);
    return head;
  }

  /** Caches a committed head, and evicts the oldest one if the cache is full. A use renews a head of a full cache. */
  cache(head: SessionHead): void {
    this.cached.set(head.name, head);
    if (this.cached.size <= MAX_CACHED_HEADS) return;
    const [oldest] = this.cached.keys();
    if (oldest !== undefined) this.cached.delete(oldest);
  }

  /** Removes a session from the cache. */
  evict(name: string): void {
    this.cached.delete(name);
  }

  private load(name: string): SessionHead | undefined {
    const [row] = this.selectSession.all(name);
    if (row === undefined) return undefined;
    const { sessionRow, isIntact } = parseSessionRow(this.records.hasher, row);
    if (!isIntact || sessionRow.name !== name) {
      const message = `The row of session "${name}" is damaged: its checksum does not match. Restore the store from a backup.`;
      throw new Fault('STORE_DAMAGED', message, { session: name, seq: 0 });
    }
    const lastRecord = this.records.readLastRecord(sessionRow.sid);
    const flaw = lastRecord && this.records.findLastRecordFlaw(sessionRow.sid, lastRecord);
    // guard: last-record-verified-on-claim
    if (flaw !== undefined) throw damagedSessionFault(name, lastRecord?.first ?? 0, flaw);
    return sessionHeadOf(sessionRow, lastRecord);
  }
}
