/**
 * Reading a session: a stream that follows the chain from the record that holds the first entry wanted to the head
 * that the session had when the reading began. Nothing is handed out that does not fit the chain, and the last
 * entries only once the chain has met the head.
 */
import { setImmediate } from 'node:timers/promises';
import { Fault } from '../../base/errors.js';
import type { Entry } from '../../protocol/entry.js';
import { Chain } from './chain.js';
import { readFault } from './failure.js';
import type { Head, Heads } from './heads.js';
import { damagedAt, type Records, type StoredRecord } from './records.js';

export interface Source {
  readonly path: string;
  readonly heads: Heads;
  readonly records: Records;
  /** Throws if the session may not be read (any more). */
  guard(session: string): void;
  /** Takes note of what a reading ended with. */
  failed(error: unknown): void;
  /** When a read last yielded to the event loop. */
  yieldedAt: number;
}

/** Reads yield to the event loop this often, so that timers, commits and other processes are served however many sessions are read. */
const SLICE_MS = 10;

export async function yieldToLoop(source: Pick<Source, 'yieldedAt'>): Promise<void> {
  if (performance.now() - source.yieldedAt < SLICE_MS) return;
  await setImmediate();
  source.yieldedAt = performance.now();
}

/** The entries of a record from `from` on. */
function entriesOf(record: StoredRecord, from: number): readonly Entry[] {
  const entries = JSON.parse(record.body) as Entry[];
  return from > record.first ? entries.slice(from - record.first) : entries;
}

function pageAt(source: Source, head: Head, first: number): readonly StoredRecord[] {
  const page = source.records.page(head.sid, first, head.next);
  if (page.length > 0) return page;
  if (source.heads.find(head.name)?.sid !== head.sid) {
    throw new Fault('STORE_FAILED', `Session "${head.name}" was removed while it was read, at entry ${first}.`);
  }
  throw damagedAt(head.name, first, `entries ${first} to ${head.next - 1} are not there`);
}

/** Runs one step of the reading; what SQLite throws becomes a Fault. */
function reading<T>(source: Source, session: string, step: () => T): T {
  source.guard(session);
  try {
    return step();
  } catch (error) {
    throw readFault(error, source.path);
  }
}

function taken(head: Head, chain: Chain, page: readonly StoredRecord[], from: number): readonly Entry[] {
  const entries: Entry[] = [];
  for (const record of page) {
    const flaw = chain.take(record);
    if (flaw !== undefined) throw damagedAt(head.name, chain.next, flaw);
    if (chain.next > from) entries.push(...entriesOf(record, from));
  }
  const flaw = chain.next < head.next ? undefined : chain.rest();
  if (flaw !== undefined) throw damagedAt(head.name, Math.max(0, head.next - 1), flaw);
  return entries;
}

export async function* readEntries(source: Source, session: string, from: number): AsyncGenerator<readonly Entry[]> {
  try {
    await yieldToLoop(source);
    const head = reading(source, session, () => source.heads.find(session));
    if (head === undefined) return;
    if (head.next === 0) {
      const flaw = new Chain(head).rest();
      if (flaw !== undefined) throw damagedAt(session, 0, flaw);
      return;
    }
    // Even when nothing is wanted the last record is read, to tell that it is the one the head names.
    const wanted = Math.max(0, Math.min(from, head.next - 1));
    const first = reading(source, session, () => source.records.before(head.sid, wanted)?.first ?? 0);
    let page = reading(source, session, () => pageAt(source, head, first));
    const chain = new Chain(head, page[0]);
    for (;;) {
      const entries = taken(head, chain, page, from);
      if (entries.length > 0) yield entries;
      if (chain.next >= head.next) return;
      await yieldToLoop(source);
      page = reading(source, session, () => pageAt(source, head, chain.next));
    }
  } catch (error) {
    source.failed(error);
    throw error;
  }
}
