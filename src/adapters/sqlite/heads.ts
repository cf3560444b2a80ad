/**
 * The head of each session: who may write it, told by its row, and where its chain ends, told by its last record.
 * Invariants: a row whose checksum does not fit and a last record whose hash does not fit are never believed; the
 * cache holds committed heads only and is bounded, since a head can always be read again.
 */
import { crc32 } from 'node:zlib';
import { Fault } from '../../base/errors.js';
import { genesis } from '../../journal/record.js';
import { type Driver, type Row, type Statement, text, textOf, whole, wholeOf } from './driver.js';
import { damagedAt, type Records, type Tail } from './records.js';

/** A session's row. */
export interface Owned {
  readonly sid: number;
  readonly name: string;
  readonly fence: number;
  /** The last commit that claimed it. */
  readonly commit: number;
}

export interface Head extends Owned {
  readonly next: number;
  /** Hash of the last record, or the genesis. */
  readonly hash: string;
  /** The last commit that touched it. */
  readonly commit: number;
}

/** The columns that `ownedOf` reads. */
export const ownedColumns: string = [
  wholeOf('sid'),
  textOf('name'),
  wholeOf('fence'),
  wholeOf('commit_no'),
  textOf('check_sum'),
].join(', ');

const limit = 10_000;

/** Against damage only: hence not a digest. */
export function ownedSum({ sid, name, fence, commit }: Owned): string {
  return crc32(`${sid} ${fence} ${commit} ${name}`).toString(36);
}

/** What a row says, and whether its checksum fits. */
export function ownedOf(row: Row): { readonly owned: Owned; readonly sound: boolean } {
  const owned: Owned = {
    sid: whole(row.sid),
    name: text(row.name),
    fence: whole(row.fence),
    commit: whole(row.commit_no),
  };
  return { owned, sound: ownedSum(owned) === text(row.check_sum) };
}

export function headOf(owned: Owned, tail: Tail | undefined): Head {
  if (tail === undefined) return { ...owned, next: 0, hash: genesis(owned.name, owned.sid) };
  const { first, count, hash, commit } = tail;
  return { ...owned, next: first + count, hash, commit: Math.max(owned.commit, commit) };
}

export class Heads {
  readonly #cache = new Map<string, Head>();
  readonly #select: Statement;
  readonly #records: Records;

  constructor(driver: Driver, records: Records) {
    this.#select = driver.prepare(`SELECT ${ownedColumns} FROM sessions WHERE sessions.name = ?`);
    this.#records = records;
  }

  /** The committed head; undefined if there is no such session. */
  find(name: string): Head | undefined {
    const cached = this.#cache.get(name);
    const head = cached ?? this.#load(name);
    if (head === undefined) return undefined;
    // Who was used last matters only once one of them has to go.
    if (cached !== undefined && this.#cache.size < limit) return head;
    if (cached !== undefined) this.#cache.delete(name);
    this.keep(head);
    return head;
  }

  keep(head: Head): void {
    this.#cache.set(head.name, head);
    if (this.#cache.size <= limit) return;
    const [oldest] = this.#cache.keys();
    if (oldest !== undefined) this.#cache.delete(oldest);
  }

  forget(name: string): void {
    this.#cache.delete(name);
  }

  #load(name: string): Head | undefined {
    const [row] = this.#select.all(name);
    if (row === undefined) return undefined;
    const { owned, sound } = ownedOf(row);
    if (!sound || owned.name !== name) {
      const message = `The row of session "${name}" is damaged: its checksum does not fit. Restore the store from a backup.`;
      throw new Fault('STORE_DAMAGED', message, { session: name, seq: 0 });
    }
    const tail = this.#records.tail(owned.sid);
    const flaw = tail && this.#records.flawOf(owned.sid, tail);
    // guard: last-record-verified-on-claim
    if (flaw !== undefined) throw damagedAt(name, tail?.first ?? 0, flaw);
    return headOf(owned, tail);
  }
}
