/**
 * Reads the rows of the `records` table. The id of a record is the sid (number) of its session times
 * `MAX_ENTRIES_PER_SESSION` plus the sequence number of its first entry, so each session is one range of ids.
 */
import { Fault } from '../../base/errors.js';
import { findRecordProblem, type JournalRecord, type RecordHasher } from '../../journal/record.js';
import { type Driver, integerColumn, type Row, readInteger, readText, type Statement, textColumn } from './driver.js';

/** Maximum number of entries of a session. */
export const MAX_ENTRIES_PER_SESSION: number = 2 ** 26;
/** Highest sid for which every record id is a safe integer. */
export const MAX_SID: number = 2 ** 27 - 1;

/** Number of records that are read at a time. */
const RECORDS_PER_PAGE = 64;

/** The last record of a session without its body. */
export interface LastRecord {
  /** The sequence number of its first entry. */
  readonly first: number;
  /** Number of its entries. */
  readonly count: number;
  readonly hash: string;
  /** Number of the commit that wrote the record. */
  readonly commitNumber: number;
}

/** Returns the row id of the record that starts with this entry. */
export function recordIdOf(sid: number, first: number): number {
  return sid * MAX_ENTRIES_PER_SESSION + first;
}

/** Creates the Fault for a session whose chain is broken at an entry. */
export function damagedSessionFault(session: string, seq: number, flaw: string): Fault {
  const message = `Session "${session}" is damaged at entry ${seq}: ${flaw}. Restore the store from a backup, or remove the session.`;
  return new Fault('STORE_DAMAGED', message, { session, seq, flaw });
}

function parseRecord(row: Row): JournalRecord {
  return {
    firstSeq: readInteger(row.id) % MAX_ENTRIES_PER_SESSION,
    count: readInteger(row.count),
    fence: readInteger(row.fence),
    committedAt: readInteger(row.at),
    commitNumber: readInteger(row.commit_no),
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

/** Prepared queries of the `records` table. */
export class RecordTable {
  readonly hasher: RecordHasher;
  private readonly selectPage: Statement;
  private readonly selectAtOrBefore: Statement;
  private readonly selectFirstFrom: Statement;
  private readonly selectHighestId: Statement;
  private readonly selectLastRecord: Statement;
  private readonly selectLastRecords: Statement;

  constructor(driver: Driver, hasher: RecordHasher) {
    this.hasher = hasher;
    const integers = ['count', 'fence', 'at', 'commit_no'].map(integerColumn).join(', ');
    const columns = `id, ${integers}, ${textColumn('prev')}, ${textColumn('hash')}, ${textColumn('body')}`;
    this.selectPage = driver.prepare(
      `SELECT ${columns} FROM records WHERE id >= ? AND id < ? ORDER BY id LIMIT ${RECORDS_PER_PAGE}`,
    );
    this.selectAtOrBefore = driver.prepare(
      `SELECT id, ${integerColumn('at')} FROM records WHERE id >= ? AND id <= ? ORDER BY id DESC LIMIT 1`,
    );
    this.selectFirstFrom = driver.prepare(
      `SELECT ${integerColumn('id')} FROM records WHERE records.id >= ? ORDER BY records.id LIMIT 1`,
    );
    const lastRecordColumns = `id, ${integerColumn('count')}, ${textColumn('hash')}, ${integerColumn('commit_no')}`;
    this.selectLastRecord = driver.prepare(
      `SELECT ${lastRecordColumns} FROM records WHERE id >= ? AND id < ? ORDER BY id DESC LIMIT 1`,
    );
    this.selectLastRecords = driver.prepare(
      `SELECT ${lastRecordColumns} FROM records WHERE id IN (SELECT
         (SELECT id FROM records WHERE id >= sid * ${MAX_ENTRIES_PER_SESSION} AND id < (sid + 1) * ${MAX_ENTRIES_PER_SESSION} ORDER BY id DESC LIMIT 1)
       FROM sessions WHERE sid > ? AND sid <= ?)`,
    );
    this.selectHighestId = driver.prepare(
      `SELECT ${integerColumn('id')} FROM records ORDER BY records.id DESC LIMIT 1`,
    );
  }

  /**
   * Returns the records of a session that start from entry `first` (inclusive) to entry `until` (exclusive), in order
   * and one page at most. They are not verified.
   */
  readPage(sid: number, first: number, until: number): readonly JournalRecord[] {
    return this.selectPage.all(recordIdOf(sid, first), recordIdOf(sid, until)).map(parseRecord);
  }

  /** Returns the last record of a session without verifying it; undefined if the session is empty. */
  readLastRecord(sid: number): LastRecord | undefined {
    const [row] = this.selectLastRecord.all(recordIdOf(sid, 0), recordIdOf(sid + 1, 0));
    return row && parseLastRecord(row);
  }

  /**
   * Returns the last records of the sessions with a sid from `after` (exclusive) to `last` (inclusive), by sid and
   * without verifying them. Empty sessions are absent. One query takes a tenth of the time of single ones.
   */
  readLastRecords(after: number, last: number): ReadonlyMap<number, LastRecord> {
    return new Map(
      this.selectLastRecords
        .all(after, last)
        .map((row) => [Math.floor(readInteger(row.id) / MAX_ENTRIES_PER_SESSION), parseLastRecord(row)]),
    );
  }

  /**
   * Returns why a last record is damaged; undefined if its hash matches its content. The record before is not checked.
   */
  findLastRecordFlaw(sid: number, { first, count, hash }: LastRecord): string | undefined {
    const [record] = this.readPage(sid, first, first + 1);
    if (record === undefined || record.count !== count || record.hash !== hash)
      return 'its row changed while it was read';
    return findRecordProblem(this.hasher, record, { sid, prevHash: record.prevHash, firstSeq: first });
  }

  /**
   * Returns the first entry and the commit time of the last record that starts at or before an entry; undefined if
   * there is none. That record contains the entry, unless the entry is missing.
   */
  findAtOrBefore(sid: number, seq: number): { readonly first: number; readonly at: number } | undefined {
    const [row] = this.selectAtOrBefore.all(recordIdOf(sid, 0), recordIdOf(sid, seq));
    return row && { first: readInteger(row.id) % MAX_ENTRIES_PER_SESSION, at: readInteger(row.at) };
  }

  /** Returns the lowest sid, at or above this one, that has a record; undefined if there is none. */
  findSidFrom(sid: number): number | undefined {
    const [row] = this.selectFirstFrom.all(recordIdOf(sid, 0));
    return row && Math.floor(readInteger(row.id) / MAX_ENTRIES_PER_SESSION);
  }

  /** Returns the highest sid that has a record; 0 if there are no records. */
  highestSid(): number {
    const [row] = this.selectHighestId.all();
    return Math.floor(Math.max(0, readInteger(row?.id)) / MAX_ENTRIES_PER_SESSION);
  }
}
