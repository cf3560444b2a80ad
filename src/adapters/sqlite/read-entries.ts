/**
 * Reading a session: a stream that follows the chain from the record that holds the first entry wanted to the head
 * that the session had when the reading began. Nothing is handed out that does not fit the chain, and the last
 * entries only once the chain has met the head.
 */
import { setImmediate } from 'node:timers/promises';
import { Fault } from '../../base/errors.js';
import type { Entry } from '../../protocol/entry.js';
import { ChainVerifier } from './chain-verifier.js';
import { damagedSessionFault, type RecordTable, type StoredRecord } from './record-table.js';
import type { SessionHead, SessionHeads } from './session-heads.js';
import { toReadFault } from './sqlite-faults.js';

export interface ReadContext {
  readonly path: string;
  readonly heads: SessionHeads;
  readonly records: RecordTable;
  /** Throws if the session may not be read (any more). */
  assertReadable(session: string): void;
  /** Takes note of what a reading ended with. */
  onError(error: unknown): void;
  /** When a read last yielded to the event loop. */
  yieldedAt: number;
}

/** Reads yield to the event loop this often, so that timers, commits and other processes are served however many sessions are read. */
const YIELD_INTERVAL_MS = 10;

export async function yieldToEventLoop(source: Pick<ReadContext, 'yieldedAt'>): Promise<void> {
  if (performance.now() - source.yieldedAt < YIELD_INTERVAL_MS) return;
  await setImmediate();
  source.yieldedAt = performance.now();
}

/** The entries of a record from `from` on. */
function entriesOf(record: StoredRecord, from: number): readonly Entry[] {
  const entries = JSON.parse(record.body) as Entry[];
  return from > record.firstSeq ? entries.slice(from - record.firstSeq) : entries;
}

function readRecordPage(source: ReadContext, head: SessionHead, first: number): readonly StoredRecord[] {
  const page = source.records.readPage(head.sid, first, head.next);
  if (page.length > 0) return page;
  if (source.heads.find(head.name)?.sid !== head.sid) {
    throw new Fault('STORE_FAILED', `Session "${head.name}" was removed while it was read, at entry ${first}.`);
  }
  throw damagedSessionFault(head.name, first, `entries ${first} to ${head.next - 1} are not there`);
}

/** Runs one step of the reading; what SQLite throws becomes a Fault. */
function withReadFaults<T>(source: ReadContext, session: string, step: () => T): T {
  source.assertReadable(session);
  try {
    return step();
  } catch (error) {
    throw toReadFault(error, source.path);
  }
}

function verifiedEntriesOf(
  head: SessionHead,
  chain: ChainVerifier,
  page: readonly StoredRecord[],
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

export async function* readEntries(
  source: ReadContext,
  session: string,
  from: number,
): AsyncGenerator<readonly Entry[]> {
  try {
    await yieldToEventLoop(source);
    const head = withReadFaults(source, session, () => source.heads.find(session));
    if (head === undefined) return;
    if (head.next === 0) {
      const flaw = new ChainVerifier(head).findEndFlaw();
      if (flaw !== undefined) throw damagedSessionFault(session, 0, flaw);
      return;
    }
    // Even when nothing is wanted the last record is read, to tell that it is the one the head names.
    const wanted = Math.max(0, Math.min(from, head.next - 1));
    const first = withReadFaults(source, session, () => source.records.findAtOrBefore(head.sid, wanted)?.first ?? 0);
    let page = withReadFaults(source, session, () => readRecordPage(source, head, first));
    const chain = new ChainVerifier(head, page[0]);
    for (;;) {
      const entries = verifiedEntriesOf(head, chain, page, from);
      if (entries.length > 0) yield entries;
      if (chain.nextSeq >= head.next) return;
      await yieldToEventLoop(source);
      page = withReadFaults(source, session, () => readRecordPage(source, head, chain.nextSeq));
    }
  } catch (error) {
    source.onError(error);
    throw error;
  }
}
