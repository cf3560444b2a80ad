/** A store in memory: the same promises as any other while the process lives, and nothing after it. */
import { Fault } from '../../base/errors.js';
import { singleProcessLeases } from '../../journal/leases.js';
import { toStoredEntry } from '../../journal/record.js';
import type { Batch, Blobs, Claim, Journal, SessionListing, Snapshot, Snapshots, Store } from '../../journal/store.js';
import type { Entry } from '../../protocol/entry.js';

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
  /** Counts over all sessions, so that a removed session's writer never fits the one that took its name. */
  private claimCount = 0;

  constructor(streams: Map<string, MemorySession>) {
    this.sessions = streams;
  }

  async claim(session: string): Promise<Claim> {
    const stream = this.sessions.get(session) ?? { fence: 0, nextSeq: 0, batches: [] };
    this.sessions.set(session, stream);
    this.claimCount += 1;
    // guard: claim-raises-the-fence
    stream.fence = this.claimCount;
    return { fence: stream.fence, nextSeq: stream.nextSeq };
  }

  append(batch: Batch): Promise<void> {
    const stream = this.sessions.get(batch.session);
    if (
      stream === undefined ||
      // guard: stale-fence-refused
      stream.fence !== batch.fence ||
      // guard: append-only-at-the-end
      stream.nextSeq !== batch.firstSeq
    ) {
      return isAlreadyAppended(batch, stream) ? RESOLVED : Promise.reject(staleWriterFault(batch, stream));
    }
    const large = batch.entries.some((entry) => entry.blob !== undefined);
    stream.batches.push(large ? { ...batch, entries: batch.entries.map(toStoredEntry) } : batch);
    stream.nextSeq += batch.entries.length;
    return RESOLVED;
  }

  async *read(session: string, from: number): AsyncGenerator<readonly Entry[]> {
    const stream = this.sessions.get(session);
    if (stream === undefined) return;
    let index = firstBatchIndex(stream.batches, from);
    for (; index < stream.batches.length; index++) {
      const batch = stream.batches[index];
      if (batch !== undefined)
        yield batch.firstSeq >= from
          ? batch.entries
          : /* guard: read-starts-at-its-offset */ batch.entries.slice(from - batch.firstSeq);
    }
  }

  async list(): Promise<readonly SessionListing[]> {
    return [...this.sessions].map(([session, { nextSeq }]) => ({ session, nextSeq }));
  }

  async remove(session: string): Promise<void> {
    // guard: removed-session-forgotten
    this.sessions.delete(session);
  }
}

/** True if exactly this batch was appended before. */
function isAlreadyAppended({ firstSeq, fence, entries }: Batch, stream: MemorySession | undefined): boolean {
  const batch = stream?.batches[firstBatchIndex(stream.batches, firstSeq)];
  if (batch?.firstSeq !== firstSeq || batch.fence !== fence) return false;
  return JSON.stringify(batch.entries) === JSON.stringify(entries.map(toStoredEntry));
}

function staleWriterFault(batch: Batch, stream: MemorySession | undefined): Fault {
  const { session, fence, firstSeq } = batch;
  const found = stream === undefined ? 'it was removed' : `it stands at fence ${stream.fence}, entry ${stream.nextSeq}`;
  return new Fault(
    'STALE_WRITER',
    `Session "${session}": writer ${fence} wanted to write entry ${firstSeq}, but ${found}.`,
    {
      session,
      fence,
      first: firstSeq,
    },
  );
}

/** The place of the batch that holds an entry, by halving. */
function firstBatchIndex(batches: readonly Batch[], from: number): number {
  let low = 0;
  let high = batches.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    const batch = batches[middle];
    if (batch !== undefined && batch.firstSeq + batch.entries.length <= from) low = middle + 1;
    else high = middle;
  }
  return low;
}

function memoryBlobs(streams: Map<string, MemorySession>): Blobs {
  return {
    put: async (session, digest, text) => {
      const stream = streams.get(session);
      if (stream === undefined) return;
      stream.blobs ??= new Map();
      stream.blobs.set(digest, text);
    },
    get: async (session, digest) => streams.get(session)?.blobs?.get(digest),
  };
}

function memorySnapshots(streams: Map<string, MemorySession>): Snapshots {
  return {
    load: async (session) => streams.get(session)?.snapshot,
    save: async (session, snapshot) => {
      const stream = streams.get(session);
      if (stream !== undefined) stream.snapshot = structuredClone(snapshot);
    },
  };
}

/** A new, empty store. */
export function memoryStore(): Store {
  const streams = new Map<string, MemorySession>();
  return {
    journal: new MemoryJournal(streams),
    blobs: memoryBlobs(streams),
    snapshots: memorySnapshots(streams),
    leases: singleProcessLeases,
    close: async () => {},
  };
}
