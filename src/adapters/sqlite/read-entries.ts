/**
 * Reads a session as a stream that follows the hash chain, from the record with the first requested entry to the head
 * (the end of the chain) that the session had when the read began. Only entries that match the chain are returned, and
 * the last entries only once the chain has reached the head.
 */
import { setImmediate } from 'node:timers/promises';
import { Fault } from '../../base/errors.js';
import type { JournalRecord } from '../../journal/record.js';
import type { Entry } from '../../protocol/entry.js';
import { ChainVerifier } from './chain-verifier.js';
import { damagedSessionFault, type RecordTable } from './record-table.js';
import type { SessionHead, SessionHeads } from './session-heads.js';
import { toReadFault } from './sqlite-faults.js';

/** What a read needs of the store. */
export interface ReadContext {
  readonly path: string;
  readonly heads: SessionHeads;
  readonly records: RecordTable;
  /** Throws if the session may not be read. */
  assertReadable(session: string): void;
  /** Called with the error that ended a read. */
  onError(error: unknown): void;
  /** When a read of this store last yielded to the event loop, by `performance.now`. */
  yieldedAt: number;
}

/** Reads yield to the event loop at this interval, so that timers, commits and other processes are served meanwhile. */
const YIELD_INTERVAL_MS = 10;

/** Yields to the event loop if the last yield was longer ago than `YIELD_INTERVAL_MS`. */
export async function yieldToEventLoop(context: Pick<ReadContext, 'yieldedAt'>): Promise<void> {
  if (performance.now() - context.yieldedAt < YIELD_INTERVAL_MS) return;
  await setImmediate();
  context.yieldedAt = performance.now();
}

/** Returns the entries of a record whose sequence number is at least `from`. */
function entriesOf(record: JournalRecord, from: number): readonly Entry[] {
  const entries = JSON.parse(record.body) as Entry[];
  return from > record.firstSeq ? entries.slice(from - record.firstSeq) : entries;
}

/** Reads the next page of records up to the head. Throws if there is none, because records or the session are gone. */
function readRecordPage(context: ReadContext, head: SessionHead, first: number): readonly JournalRecord[] {
  const page = context.records.readPage(head.sid, first, head.next);
  if (page.length > 0) return page;
  if (context.heads.find(head.name)?.sid !== head.sid) {
    throw new Fault('STORE_FAILED', `Session "${head.name}" was removed while it was read, at entry ${first}.`);
  }
  throw damagedSessionFault(head.name, first, `entries ${first} to ${head.next - 1} are missing`);
}

/** Runs one step of a read and converts SQLite errors into Faults. Throws if the session may not be read. */
function withReadFaults<T>(context: ReadContext, session: string, step: () => T): T {
  context.assertReadable(session);
  try {
    return step();
  } catch (error) {
    throw toReadFault(error, context.path);
  }
}

/**
 * Advances the chain over a page and returns its entries, starting at `from`. Throws at the first record that does not
 * match, and if the chain ends with another record than the head.
 */
function verifiedEntriesOf(
  head: SessionHead,
  chain: ChainVerifier,
  page: readonly JournalRecord[],
  from: number,
): readonly Entry[] {
  const entries: Entry[] = [];
  for (const record of page) {
    const flaw = chain.advance(record);
    if (flaw !== undefined) throw damagedSessionFault(head.name, chain.nextSeq, flaw);
    if (chain.nextSeq > from) entries.push(...entriesOf(record, from));
  }
  const flaw = chain.nextSeq < head.next ? undefined : chain.findEndFlaw();
  if (flaw !== undefined) throw damagedSessionFault(head.name, Math.max(0, head.next - 1), flaw);
  return entries;
}

/**
 * Yields the entries of a session in batches, starting at `from`; none if there is no such session. Throws
 * STORE_DAMAGED where the chain breaks. The records before the one that contains `from` are not verified.
 */
export async function* readEntries(
  context: ReadContext,
  session: string,
  from: number,
): AsyncGenerator<readonly Entry[]> {
  try {
    await yieldToEventLoop(context);
    const head = withReadFaults(context, session, () => context.heads.find(session));
    if (head === undefined) return;
    if (head.next === 0) {
      const flaw = new ChainVerifier(context.records.hasher, head).findEndFlaw();
      if (flaw !== undefined) throw damagedSessionFault(session, 0, flaw);
      return;
    }
    // The last record is always read, even if no entry is requested, to verify that it matches the head.
    const start = Math.max(0, Math.min(from, head.next - 1));
    const first = withReadFaults(context, session, () => context.records.findAtOrBefore(head.sid, start)?.first ?? 0);
    let page = withReadFaults(context, session, () => readRecordPage(context, head, first));
    const chain = new ChainVerifier(context.records.hasher, head, page[0]);
    for (;;) {
      const entries = verifiedEntriesOf(head, chain, page, from);
      if (entries.length > 0) yield entries;
      if (chain.nextSeq >= head.next) return;
      await yieldToEventLoop(context);
      page = withReadFaults(context, session, () => readRecordPage(context, head, chain.nextSeq));
    }
  } catch (error) {
    context.onError(error);
    throw error;
  }
}
