/**
 * The rows of the record table.
 * A record's id is its session's sid times the span plus its first entry, so one range is one session.
 */
import { Fault } from '../../base/errors.js';
import { findRecordProblem, type JournalRecord } from '../../journal/record.js';
import { type Driver, integerColumn, type Row, readInteger, readText, type Statement, textColumn } from './driver.js';

/** The most entries that a session can have, and the sids that then fit into a safe integer. */
export const MAX_ENTRIES_PER_SESSION: number = 2 ** 26;
export const MAX_SID: number = 2 ** 27 - 1;

/** Records that are read at once. */
export const RECORDS_PER_PAGE = 64;

export interface StoredRecord extends JournalRecord {
  /** Wall clock of its commit; not covered by the hash, told in reports only. */
  readonly committedAt: number;
}

/** The last record of a session without its bytes. */
export interface LastRecord {
  readonly first: number;
  readonly count: number;
  readonly hash: string;
  /** Of its commit; not covered by the hash, and nothing but the numbering of commits may rest on it. */
  readonly commitNumber: number;
}

export function recordIdOf(sid: number, first: number): number {
  return sid * MAX_ENTRIES_PER_SESSION + first;
}

/** The Fault for a chain that cannot be followed past an entry. */
export function damagedSessionFault(session: string, seq: number, flaw: string): Fault {
  const message = `Session "${session}" is damaged at entry ${seq}: ${flaw}. Restore the store from a backup, or remove the session.`;
  return new Fault('STORE_DAMAGED', message, { session, seq, flaw });
}

function parseRecord(row: Row): StoredRecord {
  return {
    firstSeq: readInteger(row.id) % MAX_ENTRIES_PER_SESSION,
    count: readInteger(row.count),
    fence: readInteger(row.fence),
    committedAt: readInteger(row.at),
    prevHash: readText(row.prev),
    hash: readText(row.hash),
    body: readText(row.body),
  };
}

function parseLastRecord({ id, count, hash, commit_no }: Row): LastRecord {
  return {
    first: readInteger(id) % MAX_ENTRIES_PER_SESSION,
    count: readInteger(count),
    hash: readText(hash),
    commitNumber: readInteger(commit_no),
  };
}

export class RecordTable {
  readonly #selectPage: Statement;
  readonly #selectAtOrBefore: Statement;
  readonly #selectFirstFrom: Statement;
  readonly #selectHighestId: Statement;
  readonly #selectLastRecord: Statement;
  readonly #selectLastRecords: Statement;

  constructor(driver: Driver) {
    const whole3 = ['count', 'fence', 'at'].map(integerColumn).join(', ');
    const columns = `id, ${whole3}, ${textColumn('prev')}, ${textColumn('hash')}, ${textColumn('body')}`;
    this.#selectPage = driver.prepare(
      `SELECT ${columns} FROM records WHERE id >= ? AND id < ? ORDER BY id LIMIT ${RECORDS_PER_PAGE}`,
    );
    this.#selectAtOrBefore = driver.prepare(
      `SELECT id, ${integerColumn('at')} FROM records WHERE id >= ? AND id <= ? ORDER BY id DESC LIMIT 1`,
    );
    this.#selectFirstFrom = driver.prepare(
      `SELECT ${integerColumn('id')} FROM records WHERE records.id >= ? ORDER BY records.id LIMIT 1`,
    );
    const tail = `id, ${integerColumn('count')}, ${textColumn('hash')}, ${integerColumn('commit_no')}`;
    this.#selectLastRecord = driver.prepare(
      `SELECT ${tail} FROM records WHERE id >= ? AND id < ? ORDER BY id DESC LIMIT 1`,
    );
    this.#selectLastRecords = driver.prepare(
      `SELECT ${tail} FROM records WHERE id IN (SELECT
         (SELECT id FROM records WHERE id >= sid * ${MAX_ENTRIES_PER_SESSION} AND id < (sid + 1) * ${MAX_ENTRIES_PER_SESSION} ORDER BY id DESC LIMIT 1)
       FROM sessions WHERE sid > ? AND sid <= ?)`,
    );
    this.#selectHighestId = driver.prepare(
      `SELECT ${integerColumn('id')} FROM records ORDER BY records.id DESC LIMIT 1`,
    );
  }

  /** The next records of a session from `first` up to, not including, entry `until`. */
  readPage(sid: number, first: number, until: number): readonly StoredRecord[] {
    return this.#selectPage.all(recordIdOf(sid, first), recordIdOf(sid, until)).map(parseRecord);
  }

  /** The last record of a session, as its row says. */
  readLastRecord(sid: number): LastRecord | undefined {
    const [row] = this.#selectLastRecord.all(recordIdOf(sid, 0), recordIdOf(sid + 1, 0));
    return row && parseLastRecord(row);
  }

  /** The last records of sessions, by their sids. One question for many takes a tenth of the time. */
  readLastRecords(after: number, last: number): ReadonlyMap<number, LastRecord> {
    return new Map(
      this.#selectLastRecords
        .all(after, last)
        .map((row) => [Math.floor(readInteger(row.id) / MAX_ENTRIES_PER_SESSION), parseLastRecord(row)]),
    );
  }

  /** Why a last record is not to be believed; undefined if it is what was written, as far as it can tell itself. */
  findLastRecordFlaw(sid: number, { first, count, hash }: LastRecord): string | undefined {
    const [record] = this.readPage(sid, first, first + 1);
    if (record === undefined || record.count !== count || record.hash !== hash)
      return 'its row changed while it was read';
    return findRecordProblem(record, record.prevHash, first);
  }

  /** The record that starts at or before an entry: where it starts and when it was written. */
  findAtOrBefore(sid: number, seq: number): { readonly first: number; readonly at: number } | undefined {
    const [row] = this.#selectAtOrBefore.all(recordIdOf(sid, 0), recordIdOf(sid, seq));
    return row && { first: readInteger(row.id) % MAX_ENTRIES_PER_SESSION, at: readInteger(row.at) };
  }

  /** The sid of the first record that this session or a later one has. */
  findSidFrom(sid: number): number | undefined {
    const [row] = this.#selectFirstFrom.all(recordIdOf(sid, 0));
    return row && Math.floor(readInteger(row.id) / MAX_ENTRIES_PER_SESSION);
  }

  /** The highest sid that has a record, or 0. */
  highestSid(): number {
    const [row] = this.#selectHighestId.all();
    return Math.floor(Math.max(0, readInteger(row?.id)) / MAX_ENTRIES_PER_SESSION);
  }
}
