/**
 * The rows of the record table.
 * A record's id is its session's sid times the span plus its first entry, so one range is one session.
 */
import { Fault } from '../../base/errors.js';
import { flawOf, type SealedRecord } from '../../journal/record.js';
import { type Driver, type Row, type Statement, text, textOf, whole, wholeOf } from './driver.js';

/** The most entries that a session can have, and the sids that then fit into a safe integer. */
export const span: number = 2 ** 26;
export const lastSid: number = 2 ** 27 - 1;

/** Records that are read at once. */
export const stride = 64;

export interface StoredRecord extends SealedRecord {
  /** Wall clock of its commit; not covered by the hash, told in reports only. */
  readonly at: number;
}

/** The last record of a session without its bytes. */
export interface Tail {
  readonly first: number;
  readonly count: number;
  readonly hash: string;
  /** Of its commit; not covered by the hash, and nothing but the numbering of commits may rest on it. */
  readonly commit: number;
}

export function idOf(sid: number, first: number): number {
  return sid * span + first;
}

/** The Fault for a chain that cannot be followed past an entry. */
export function damagedAt(session: string, seq: number, flaw: string): Fault {
  const message = `Session "${session}" is damaged at entry ${seq}: ${flaw}. Restore the store from a backup, or remove the session.`;
  return new Fault('STORE_DAMAGED', message, { session, seq, flaw });
}

function recordOf(row: Row): StoredRecord {
  return {
    first: whole(row.id) % span,
    count: whole(row.count),
    fence: whole(row.fence),
    at: whole(row.at),
    prev: text(row.prev),
    hash: text(row.hash),
    body: text(row.body),
  };
}

function tailOf({ id, count, hash, commit_no }: Row): Tail {
  return { first: whole(id) % span, count: whole(count), hash: text(hash), commit: whole(commit_no) };
}

export class Records {
  readonly #page: Statement;
  readonly #before: Statement;
  readonly #from: Statement;
  readonly #last: Statement;
  readonly #tail: Statement;
  readonly #tails: Statement;

  constructor(driver: Driver) {
    const whole3 = ['count', 'fence', 'at'].map(wholeOf).join(', ');
    const columns = `id, ${whole3}, ${textOf('prev')}, ${textOf('hash')}, ${textOf('body')}`;
    this.#page = driver.prepare(`SELECT ${columns} FROM records WHERE id >= ? AND id < ? ORDER BY id LIMIT ${stride}`);
    this.#before = driver.prepare(
      `SELECT id, ${wholeOf('at')} FROM records WHERE id >= ? AND id <= ? ORDER BY id DESC LIMIT 1`,
    );
    this.#from = driver.prepare(
      `SELECT ${wholeOf('id')} FROM records WHERE records.id >= ? ORDER BY records.id LIMIT 1`,
    );
    const tail = `id, ${wholeOf('count')}, ${textOf('hash')}, ${wholeOf('commit_no')}`;
    this.#tail = driver.prepare(`SELECT ${tail} FROM records WHERE id >= ? AND id < ? ORDER BY id DESC LIMIT 1`);
    this.#tails = driver.prepare(
      `SELECT ${tail} FROM records WHERE id IN (SELECT
         (SELECT id FROM records WHERE id >= sid * ${span} AND id < (sid + 1) * ${span} ORDER BY id DESC LIMIT 1)
       FROM sessions WHERE sid > ? AND sid <= ?)`,
    );
    this.#last = driver.prepare(`SELECT ${wholeOf('id')} FROM records ORDER BY records.id DESC LIMIT 1`);
  }

  /** The next records of a session from `first` up to, not including, entry `until`. */
  page(sid: number, first: number, until: number): readonly StoredRecord[] {
    return this.#page.all(idOf(sid, first), idOf(sid, until)).map(recordOf);
  }

  /** The last record of a session, as its row says. */
  tail(sid: number): Tail | undefined {
    const [row] = this.#tail.all(idOf(sid, 0), idOf(sid + 1, 0));
    return row && tailOf(row);
  }

  /** The last records of sessions, by their sids. One question for many takes a tenth of the time. */
  tails(after: number, last: number): ReadonlyMap<number, Tail> {
    return new Map(this.#tails.all(after, last).map((row) => [Math.floor(whole(row.id) / span), tailOf(row)]));
  }

  /** Why a last record is not to be believed; undefined if it is what was written, as far as it can tell itself. */
  flawOf(sid: number, { first, count, hash }: Tail): string | undefined {
    const [record] = this.page(sid, first, first + 1);
    if (record === undefined || record.count !== count || record.hash !== hash)
      return 'its row changed while it was read';
    return flawOf(record, record.prev, first);
  }

  /** The record that starts at or before an entry: where it starts and when it was written. */
  before(sid: number, seq: number): { readonly first: number; readonly at: number } | undefined {
    const [row] = this.#before.all(idOf(sid, 0), idOf(sid, seq));
    return row && { first: whole(row.id) % span, at: whole(row.at) };
  }

  /** The sid of the first record that this session or a later one has. */
  sidFrom(sid: number): number | undefined {
    const [row] = this.#from.all(idOf(sid, 0));
    return row && Math.floor(whole(row.id) / span);
  }

  /** The highest sid that has a record, or 0. */
  lastSid(): number {
    const [row] = this.#last.all();
    return Math.floor(Math.max(0, whole(row?.id)) / span);
  }
}
