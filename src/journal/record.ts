/**
 * Records: the stored form of one append to one session. The hash of a record covers its position, the fence of its
 * writer, its time and commit, its bytes and the hash of the previous record. It detects changed bytes, and records that were reordered,
 * moved to another session, or removed before the last one; with a key, also when the hashes are made anew. It does not
 * detect that the last records are missing; a store must check that by other means.
 */
import { hash } from 'node:crypto';
import { Fault } from '../base/errors.js';
import type { Entry } from '../protocol/entry.js';
import type { DueChange } from './due-turns.js';
import type { Batch } from './store.js';

/** A stored append with its place in the hash chain of its session. */
export interface JournalRecord {
  readonly firstSeq: number;
  readonly count: number;
  /** The fence of the writer: the number that it got when it opened the session. */
  readonly fence: number;
  /** When it was committed, in milliseconds since the epoch. */
  readonly committedAt: number;
  /** The number of the commit that wrote it. */
  readonly commitNumber: number;
  /** The hash of the previous record; for the first record, the genesis hash of the session. */
  readonly prevHash: string;
  readonly hash: string;
  /** The entries as JSON text. */
  readonly body: string;
}

/** Returns the SHA-256 digest of a text as base64url. All digests of the journal have this form. */
export function digestOfText(text: string): string {
  return hash('sha256', text, 'base64url');
}

/**
 * Returns the `prevHash` of the first record. `sid`, the number of the session in its store, distinguishes sessions
 * that had the same name at different times.
 */
export function genesisHash(session: string, sid: number): string {
  return digestOfText(`rondo.session.v1\n${sid}\n${session}`);
}

/**
 * Makes the hashes of a store. Without a key they detect damage. With one, a process without the key cannot make them,
 * so they detect changes on purpose as well.
 */
export class RecordHasher {
  private readonly key: string | undefined;

  /** `key` is a secret of at least 256 bits, as text. */
  constructor(key?: string) {
    this.key = key;
  }

  /** True if the hashes depend on a key. */
  get isKeyed(): boolean {
    return this.key !== undefined;
  }

  /** Returns the hash of a record of the session with the number `sid`. */
  hashOfRecord(sid: number, record: Omit<JournalRecord, 'hash'>): string {
    const { committedAt, commitNumber } = record;
    return this.digestOf(sid, `v2\n${committedAt}\n${commitNumber}\n${textOf(record)}`);
  }

  /** Returns the hash that a record has if an earlier version wrote it. It does not cover the time and the commit. */
  hashOfEarlierRecord(sid: number, record: Omit<JournalRecord, 'hash'>): string {
    return this.digestOf(sid, textOf(record));
  }

  private digestOf(sid: number, text: string): string {
    return this.key === undefined ? digestOfText(text) : keyedDigest(this.key, `record ${sid}\n${text}`);
  }

  /** Returns the checksum of something else that the store keeps, or that of `plain` if there is no key. */
  checksumOf(kind: 'row' | 'snapshot' | 'key' | 'removal', text: string, plain: (text: string) => string): string {
    return this.key === undefined ? plain(text) : keyedDigest(this.key, `${kind} ${text}`).slice(0, 22);
  }
}

function textOf({ prevHash, firstSeq, count, fence, body }: Omit<JournalRecord, 'hash'>): string {
  return `${prevHash}\n${firstSeq}\n${count}\n${fence}\n${body}`;
}

/** The second digest prevents that a text is continued without the key. */
function keyedDigest(key: string, text: string): string {
  return digestOfText(`${key}\n${digestOfText(`${key}\n${text}`)}`);
}

/** Returns an entry in its stored form: without its value if the value is stored as a blob. */
export function toStoredEntry(entry: Entry): Entry {
  if (entry.blob === undefined) return entry;
  const { value: _, ...rest } = entry;
  return rest;
}

/** An append in its stored form, before it gets its place in the hash chain. */
export interface RecordDraft {
  readonly session: string;
  readonly fence: number;
  readonly firstSeq: number;
  readonly count: number;
  /** The entries as JSON text. */
  readonly body: string;
  /** Changes of the index of due turns. They are not part of the record. */
  readonly due?: readonly DueChange[] | undefined;
}

/** Converts a batch to its stored form; throws a Fault if an entry cannot be converted to JSON. */
export function recordDraftOf({ session, fence, firstSeq, entries, due }: Batch): RecordDraft {
  try {
    const hasNoBlobs = entries.every(({ blob }) => blob === undefined);
    const body = JSON.stringify(hasNoBlobs ? entries : entries.map(toStoredEntry));
    return { session, fence, firstSeq, count: entries.length, body, due };
  } catch (cause) {
    const message = `Session "${session}" was not written: the batch at entry ${firstSeq} cannot be converted to JSON.`;
    throw new Fault('STORE_FAILED', message, { session }, cause);
  }
}

/**
 * Creates the record that follows the record with this hash, in the session with the number `sid` and with this commit.
 */
export function createRecord(
  hasher: RecordHasher,
  sid: number,
  prevHash: string,
  { firstSeq, count, fence, body }: RecordDraft,
  { committedAt, commitNumber }: Pick<JournalRecord, 'committedAt' | 'commitNumber'>,
): JournalRecord {
  const record = { firstSeq, count, fence, committedAt, commitNumber, prevHash, hash: '', body };
  record.hash = hasher.hashOfRecord(sid, record);
  return record;
}

/** The place in which a record must fit. */
export interface RecordPlace {
  /** The number of the session. */
  readonly sid: number;
  /** The hash of the record before. */
  readonly prevHash: string;
  readonly firstSeq: number;
}

/** Returns why a record cannot be the one that was written at this place; undefined if it fits. */
export function findRecordProblem(
  hasher: RecordHasher,
  record: JournalRecord,
  { sid, prevHash, firstSeq }: RecordPlace,
): string | undefined {
  if (record.firstSeq !== firstSeq)
    return `expected entry ${firstSeq}, found a record that starts at ${record.firstSeq}`;
  if (record.prevHash !== prevHash) return 'it does not follow the record before it';
  const isHashed =
    hasher.hashOfRecord(sid, record) === record.hash || hasher.hashOfEarlierRecord(sid, record) === record.hash;
  // guard: record-hash-verified
  if (!isHashed) return 'its bytes do not match its hash';
  return undefined;
}
