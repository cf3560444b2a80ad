/** The walk along one session's chain of records. */
import { flawOf, genesis } from '../../journal/record.js';
import type { Head } from './heads.js';
import type { StoredRecord } from './records.js';

/** A walk along a chain up to a head: what was taken so far fits, and `rest` says what the end lacks. */
export class Chain {
  readonly #head: Head;
  #prev: string;
  #next: number;

  constructor(head: Head, start?: Pick<StoredRecord, 'first' | 'prev'>) {
    this.#head = head;
    const first = start?.first ?? 0;
    this.#next = first;
    this.#prev = start === undefined || first === 0 ? genesis(head.name, head.sid) : start.prev;
  }

  /** The entry that the next record must start with. */
  get next(): number {
    return this.#next;
  }

  /** Hash of the last record that was taken. */
  get prev(): string {
    return this.#prev;
  }

  /** Goes on to a record, or tells why it cannot be the next one. */
  take(record: StoredRecord): string | undefined {
    const flaw = flawOf(record, this.#prev, this.#next);
    if (flaw !== undefined) return flaw;
    if (record.count < 1) return 'it holds no entry';
    this.#next += record.count;
    this.#prev = record.hash;
    return undefined;
  }

  /** What is wrong once no record is left. */
  rest(): string | undefined {
    const { next, hash } = this.#head;
    if (this.#next < next) return `entries ${this.#next} to ${next - 1} are not there`;
    return this.#prev === hash ? undefined : 'the last record is not the one that its session ended with';
  }
}
