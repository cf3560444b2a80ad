/**
 * The head of each session: the row that says where its chain ends and who may write it.
 * Invariants: a row whose checksum does not fit is never believed; the cache holds committed heads only and is
 * bounded, since the row can always be read again.
 */
import { crc32 } from 'node:zlib';
import { Fault } from '../../journal/errors.js';
import { type Driver, type Row, type Statement, text, textOf, whole, wholeOf } from './driver.js';

export interface Head {
  readonly sid: number;
  readonly name: string;
  readonly fence: number;
  readonly next: number;
  /** Hash of the last record, or the genesis. */
  readonly hash: string;
  /** The last commit that touched it. */
  readonly commit: number;
}

/** The columns that `headOf` reads. */
export const headColumns: string = [
  wholeOf('sid'),
  textOf('name'),
  wholeOf('fence'),
  wholeOf('next'),
  textOf('head'),
  wholeOf('commit_no'),
  textOf('check_sum'),
].join(', ');

const limit = 10_000;

/** Against damage only, and on the way of every append: hence not a digest. */
export function headSum({ sid, name, fence, next, hash, commit }: Head): string {
  return crc32(`${sid} ${fence} ${next} ${commit} ${hash} ${name}`).toString(36);
}

/** A row as a head, and whether its checksum fits. */
export function headOf(row: Row): { readonly head: Head; readonly sound: boolean } {
  const head: Head = {
    sid: whole(row.sid),
    name: text(row.name),
    fence: whole(row.fence),
    next: whole(row.next),
    hash: text(row.head),
    commit: whole(row.commit_no),
  };
  return { head, sound: headSum(head) === text(row.check_sum) };
}

export class Heads {
  readonly #cache = new Map<string, Head>();
  readonly #select: Statement;

  constructor(driver: Driver) {
    this.#select = driver.prepare(`SELECT ${headColumns} FROM sessions WHERE sessions.name = ?`);
  }

  /** The committed head; undefined if there is no such session. */
  find(name: string): Head | undefined {
    const cached = this.#cache.get(name);
    const head = cached ?? this.#load(name);
    if (head === undefined) return undefined;
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
    const { head, sound } = headOf(row);
    if (sound && head.name === name) return head;
    const message = `The head of session "${name}" is damaged: its checksum does not fit. Restore the store from a backup.`;
    throw new Fault('STORE_DAMAGED', message, { session: name, seq: 0 });
  }
}
