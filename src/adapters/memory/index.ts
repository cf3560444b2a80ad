/** A store in memory, for one process. Until that process ends, it behaves as `journalCases` demands of every store. */
import { Fault } from '../../base/errors.js';
import { singleProcessLeases } from '../../journal/leases.js';
import { toStoredEntry } from '../../journal/record.js';
import type { Batch, Blobs, Claim, Journal, SessionListing, Snapshot, Snapshots, Store } from '../../journal/store.js';
import type { Entry } from '../../protocol/entry.js';
import { MemoryDueTurns } from './memory-due-turns.js';

/** One session. `batches` are its appends in order. */
interface MemorySession {
  fence: number;
  nextSeq: number;
  readonly batches: Batch[];
  blobs?: Map<string, string>;
  snapshot?: Snapshot;
}

const RESOLVED = Promise.resolve();

class MemoryJournal implements Journal {
  private readonly sessions: Map<string, MemorySession>;
  private readonly dueTurns: MemoryDueTurns;
  /**
   * Number of claims of all sessions. Each claim gets it as its fence, so no fence is used twice, and the writer of a
   * removed session is stale for a new session of the same name.
   */
  private claimCount = 0;

  constructor(sessions: Map<string, MemorySession>, dueTurns: MemoryDueTurns) {
    this.sessions = sessions;
    this.dueTurns = dueTurns;
  }

  async claim(name: string): Promise<Claim> {
    const session = this.sessions.get(name) ?? { fence: 0, nextSeq: 0, batches: [] };
    this.sessions.set(name, session);
    this.claimCount += 1;
    // guard: claim-raises-the-fence
    session.fence = this.claimCount;
    return { fence: session.fence, nextSeq: session.nextSeq };
  }

  append(batch: Batch): Promise<void> {
    const session = this.sessions.get(batch.session);
    if (
      session === undefined ||
      // guard: stale-fence-refused
      session.fence !== batch.fence ||
      // guard: append-only-at-the-end
      session.nextSeq !== batch.firstSeq
    ) {
      return isAlreadyAppended(batch, session) ? RESOLVED : Promise.reject(staleWriterFault(batch, session));
    }
    // guard: due-turns-written-with-entries
    if (batch.due !== undefined) this.dueTurns.apply(batch.session, batch.due);
    if (batch.entries.length === 0) return RESOLVED;
    const hasBlobs = batch.entries.some((entry) => entry.blob !== undefined);
    session.batches.push(hasBlobs ? { ...batch, entries: batch.entries.map(toStoredEntry) } : batch);
    session.nextSeq += batch.entries.length;
    return RESOLVED;
  }

  async *read(name: string, from: number): AsyncGenerator<readonly Entry[]> {
    const session = this.sessions.get(name);
    if (session === undefined) return;
    let index = firstBatchIndex(session.batches, from);
    for (; index < session.batches.length; index++) {
      const batch = session.batches[index];
      if (batch !== undefined)
        yield batch.firstSeq >= from
          ? batch.entries
          : /* guard: read-starts-at-its-offset */ batch.entries.slice(from - batch.firstSeq);
    }
  }

  async list(): Promise<readonly SessionListing[]> {
    return [...this.sessions].map(([session, { nextSeq }]) => ({ session, nextSeq }));
  }

  async remove(name: string): Promise<void> {
    // guard: removed-session-forgotten
    this.sessions.delete(name);
    this.dueTurns.removeSession(name);
  }
}

/** True if exactly this batch was appended before: same position, fence and entries. */
function isAlreadyAppended({ firstSeq, fence, entries }: Batch, session: MemorySession | undefined): boolean {
  const batch = session?.batches[firstBatchIndex(session.batches, firstSeq)];
  if (batch?.firstSeq !== firstSeq || batch.fence !== fence) return false;
  return JSON.stringify(batch.entries) === JSON.stringify(entries.map(toStoredEntry));
}

function staleWriterFault({ session: name, fence, firstSeq }: Batch, session: MemorySession | undefined): Fault {
  const state =
    session === undefined
      ? 'the session was removed'
      : `the session is at fence ${session.fence}, entry ${session.nextSeq}`;
  const message = `Session "${name}": a writer with fence ${fence} tried to write entry ${firstSeq}, but ${state}.`;
  return new Fault('STALE_WRITER', message, { session: name, fence, first: firstSeq });
}

/** Returns the index of the batch that contains an entry, by binary search; the number of batches if none does. */
function firstBatchIndex(batches: readonly Batch[], seq: number): number {
  let low = 0;
  let high = batches.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    const batch = batches[middle];
    if (batch !== undefined && batch.firstSeq + batch.entries.length <= seq) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Creates the blobs of a store. A blob of a session that does not exist is not stored. */
function memoryBlobs(sessions: Map<string, MemorySession>): Blobs {
  return {
    put: async (name, digest, text) => {
      const session = sessions.get(name);
      if (session === undefined) return;
      session.blobs ??= new Map();
      session.blobs.set(digest, text);
    },
    get: async (name, digest) => sessions.get(name)?.blobs?.get(digest),
  };
}

/** Creates the snapshots of a store. A snapshot of a session that does not exist is not stored. */
function memorySnapshots(sessions: Map<string, MemorySession>): Snapshots {
  return {
    load: async (name) => sessions.get(name)?.snapshot,
    save: async (name, snapshot) => {
      const session = sessions.get(name);
      if (session !== undefined) session.snapshot = structuredClone(snapshot);
    },
  };
}

async function closeNothing(): Promise<void> {}

/**
 * Creates an empty store in memory. Closing it has no effect.
 *
 * @example
 * const session = await Session.open('ada', { store: memoryStore(), clock: systemClock, ids: systemIds });
 */
export function memoryStore(): Store {
  const sessions = new Map<string, MemorySession>();
  const dueTurns = new MemoryDueTurns(sessions);
  return {
    journal: new MemoryJournal(sessions, dueTurns),
    blobs: memoryBlobs(sessions),
    snapshots: memorySnapshots(sessions),
    leases: singleProcessLeases,
    dueTurns,
    close: closeNothing,
  };
}
