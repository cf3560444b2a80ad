/** The walk along one session's chain of records. */
import { findRecordProblem, genesisHash } from '../../journal/record.js';
import type { StoredRecord } from './record-table.js';
import type { SessionHead } from './session-heads.js';

/** A walk along a chain up to a head: what was taken so far fits, and `rest` says what the end lacks. */
export class ChainVerifier {
  readonly #head: SessionHead;
  #lastHash: string;
  #nextSeq: number;

  constructor(head: SessionHead, start?: Pick<StoredRecord, 'firstSeq' | 'prevHash'>) {
    this.#head = head;
    const first = start?.firstSeq ?? 0;
    this.#nextSeq = first;
    this.#lastHash = start === undefined || first === 0 ? genesisHash(head.name, head.sid) : start.prevHash;
  }

  /** The entry that the next record must start with. */
  get nextSeq(): number {
    return this.#nextSeq;
  }

  /** Hash of the last record that was taken. */
  get lastHash(): string {
    return this.#lastHash;
  }

  /** Goes on to a record, or tells why it cannot be the next one. */
  advance(record: StoredRecord): string | undefined {
    const flaw = findRecordProblem(record, this.#lastHash, this.#nextSeq);
    if (flaw !== undefined) return flaw;
    if (record.count < 1) return 'it holds no entry';
    this.#nextSeq += record.count;
    this.#lastHash = record.hash;
    return undefined;
  }

  /** What is wrong once no record is left. */
  findEndFlaw(): string | undefined {
    const { next, hash } = this.#head;
    if (this.#nextSeq < next) return `entries ${this.#nextSeq} to ${next - 1} are not there`;
    return this.#lastHash === hash ? undefined : 'the last record is not the one that its session ended with';
  }
}
