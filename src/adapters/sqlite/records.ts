/**
 * The rows of the record table, and the walk along one session's chain.
 * A record's id is its session's sid times the span plus its first entry, so one range is one session.
 */
import { Fault } from '../../journal/errors.js';
import { flawOf, genesis, type SealedRecord } from '../../journal/record.js';
import { type Driver, type Row, type Statement, text, textOf, whole, wholeOf } from './driver.js';
import type { Head } from './heads.js';

/** The most entries that a session can have, and the sids that then fit into a safe integer. */
export const span: number = 2 ** 26;
export const lastSid: number = 2 ** 27 - 1;

/** Records that are read at once. */
export const stride = 64;

export interface StoredRecord extends SealedRecord {
  /** Wall clock of its commit; not covered by the hash, told in reports only. */
  readonly at: number;
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

export class Records {
  readonly #page: Statement;
  readonly #before: Statement;
  readonly #from: Statement;
  readonly #last: Statement;

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
    this.#last = driver.prepare(`SELECT ${wholeOf('id')} FROM records ORDER BY records.id DESC LIMIT 1`);
  }

  /** The next records of a session from `first` up to, not including, entry `until`. */
  page(sid: number, first: number, until: number): readonly StoredRecord[] {
    return this.#page.all(idOf(sid, first), idOf(sid, until)).map(recordOf);
  }

  /** The record that starts at or before an entry: where it starts and when it was written. */
  before(sid: number, seq: number): { readonly first: number; readonly at: number } | undefined {
    const [row] = this.#before.all(idOf(sid, 0), idOf(sid, seq));
    return row && { first: whole(row.id) % span, at: whole(row.at) };
  }

  /** The sid of the first record that a session has from entry `seq` on, or that a later session has. */
  sidFrom(sid: number, seq = 0): number | undefined {
    const [row] = this.#from.all(idOf(sid, seq));
    return row && Math.floor(whole(row.id) / span);
  }

  /** The highest sid that has a record, or 0. */
  lastSid(): number {
    const [row] = this.#last.all();
    return Math.floor(Math.max(0, whole(row?.id)) / span);
  }
}

/** A walk along a chain up to a head: what was taken so far fits, and `rest` says what the end lacks. */
export class Chain {
  readonly #head: Head;
  #prev: string;
  #next: number;

  constructor(head: Head, start?: StoredRecord) {
    this.#head = head;
    const first = start?.first ?? 0;
    this.#next = first;
    this.#prev = start === undefined || first === 0 ? genesis(head.name, head.sid) : start.prev;
  }

  /** The entry that the next record must start with. */
  get next(): number {
    return this.#next;
  }

  /** Goes on to a record, or tells why it cannot be the next one. */
  take(record: StoredRecord): string | undefined {
    const flaw = flawOf(record, this.#prev, this.#next);
    if (flaw !== undefined) return flaw;
    if (record.count < 1) return 'it holds no entry';
    if (this.#next + record.count > this.#head.next) return 'it goes past the end that its session has';
    this.#next += record.count;
    this.#prev = record.hash;
    return undefined;
  }

  /** What is wrong once no record is left. */
  rest(): string | undefined {
    const { next, hash } = this.#head;
    if (this.#next < next) return `entries ${this.#next} to ${next - 1} are not there`;
    return this.#prev === hash ? undefined : 'the last record is not the one that its session names';
  }
}
