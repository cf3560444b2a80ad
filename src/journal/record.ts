/**
 * The record: what a durable journal stores for one append of one session. Its hash covers its place, its
 * writer, its bytes and the hash of the record before it, so it is checksum and chain in one: a changed bit, a
 * record taken out, swapped or moved to another session no longer fits.
 */
import { hash } from 'node:crypto';
import { Fault } from '../base/errors.js';
import type { Entry } from '../protocol/entry.js';
import type { Batch } from './store.js';

export interface JournalRecord {
  readonly firstSeq: number;
  readonly count: number;
  readonly fence: number;
  /** Hash of the record before this one; for the first, the session's genesis. */
  readonly prevHash: string;
  readonly hash: string;
  /** The entries as JSON text. */
  readonly body: string;
}

/** SHA-256 as base64url, the one digest of the house. */
export function digestOfText(text: string): string {
  return hash('sha256', text, 'base64url');
}

/** The hash before the first record; `birth` tells apart two sessions that had one name at different times. */
export function genesisHash(session: string, birth: string | number): string {
  return digestOfText(`rondo.session.v1\n${birth}\n${session}`);
}

function recordHash(prev: string, first: number, count: number, fence: number, body: string): string {
  return digestOfText(`${prev}\n${first}\n${count}\n${fence}\n${body}`);
}

/** An entry as it is stored: a value that went to the blobs is not stored twice. */
export function toStoredEntry(entry: Entry): Entry {
  if (entry.blob === undefined) return entry;
  const { value: _, ...rest } = entry;
  return rest;
}

/** An append as it is stored: its entries as JSON text. */
export interface RecordDraft {
  readonly session: string;
  readonly fence: number;
  readonly firstSeq: number;
  readonly count: number;
  readonly body: string;
}

/** The append of a batch; a Fault if an entry is not JSON. */
export function recordDraftOf({ session, fence, firstSeq, entries }: Batch): RecordDraft {
  try {
    const isStored = entries.every(({ blob }) => blob === undefined);
    const body = JSON.stringify(isStored ? entries : entries.map(toStoredEntry));
    return { session, fence, firstSeq, count: entries.length, body };
  } catch (cause) {
    const message = `Session "${session}" was not written: entry ${firstSeq} is not JSON.`;
    throw new Fault('STORE_FAILED', message, { session }, cause);
  }
}

export function createRecord(prev: string, { firstSeq, count, fence, body }: RecordDraft): JournalRecord {
  return { firstSeq, count, fence, prevHash: prev, hash: recordHash(prev, firstSeq, count, fence, body), body };
}

/** The reason why a record cannot be what was written after `prev` at `first`, or undefined if it fits. */
export function findRecordProblem(record: JournalRecord, prev: string, first: number): string | undefined {
  if (record.firstSeq !== first) return `expected entry ${first}, found a record that starts at ${record.firstSeq}`;
  if (record.prevHash !== prev) return 'it does not follow the record before it';
  const { count, fence, body } = record;
  // guard: record-hash-verified
  if (recordHash(prev, first, count, fence, body) !== record.hash) return 'its bytes do not match its hash';
  return undefined;
}

/** The entries of a record that has no flaw; a flawed one is a Fault that tells where it is. */
export function entriesOfRecord(session: string, record: JournalRecord, prev: string, first: number): readonly Entry[] {
  const flaw = findRecordProblem(record, prev, first);
  if (flaw === undefined) return JSON.parse(record.body) as Entry[];
  throw new Fault('STORE_DAMAGED', `Session "${session}" is damaged at entry ${first}: ${flaw}.`, {
    session,
    seq: first,
    flaw,
  });
}
