/** Verification of one session's hash chain, record by record. Each record contains the hash of the one before it. */
import { findRecordProblem, genesisHash, type JournalRecord, type RecordHasher } from '../../journal/record.js';
import type { SessionHead } from './session-heads.js';

/** Verifies a chain of records up to a head. */
export class ChainVerifier {
  private readonly hasher: RecordHasher;
  private readonly head: SessionHead;
  private tailHash: string;
  private expectedSeq: number;

  /** Starts at the first record, or at one in the middle of the chain, whose `prevHash` is then trusted. */
  constructor(hasher: RecordHasher, head: SessionHead, start?: Pick<JournalRecord, 'firstSeq' | 'prevHash'>) {
    this.hasher = hasher;
    this.head = head;
    const first = start?.firstSeq ?? 0;
    this.expectedSeq = first;
    this.tailHash = start === undefined || first === 0 ? genesisHash(head.name, head.sid) : start.prevHash;
  }

  /** The sequence number that the next record must start with. */
  get nextSeq(): number {
    return this.expectedSeq;
  }

  /** Hash of the last verified record; before the first one, the `prevHash` that it must have. */
  get lastHash(): string {
    return this.tailHash;
  }

  /** Advances over the next record. If it does not match, stays where it is and returns the reason. */
  advance(record: JournalRecord): string | undefined {
    const place = { sid: this.head.sid, prevHash: this.tailHash, firstSeq: this.expectedSeq };
    const flaw = findRecordProblem(this.hasher, record, place);
    if (flaw !== undefined) return flaw;
    if (record.count < 1) return 'it holds no entry';
    this.expectedSeq += record.count;
    this.tailHash = record.hash;
    return undefined;
  }

  /** Returns why the records so far do not end with the head; undefined if they do. */
  findEndFlaw(): string | undefined {
    const { next, hash } = this.head;
    if (this.expectedSeq < next) return `entries ${this.expectedSeq} to ${next - 1} are missing`;
    return this.tailHash === hash ? undefined : 'the last record is not the one that the session ended with';
  }
}
