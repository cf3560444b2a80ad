/** A store in memory: the same promises as any other while the process lives, and nothing after it. */
import { Fault } from '../../base/errors.js';
import { soloLeases } from '../../journal/leases.js';
import { stored } from '../../journal/record.js';
import type { Batch, Blobs, Claim, Journal, Listed, Snapshot, Snapshots, Store } from '../../journal/store.js';
import type { Entry } from '../../protocol/entry.js';

interface Stream {
  fence: number;
  next: number;
  readonly batches: Batch[];
  blobs?: Map<string, string>;
  snapshot?: Snapshot;
}

const DONE = Promise.resolve();

class MemoryJournal implements Journal {
  private readonly streams: Map<string, Stream>;
  /** Counts over all sessions, so that a removed session's writer never fits the one that took its name. */
  private claims = 0;

  constructor(streams: Map<string, Stream>) {
    this.streams = streams;
  }

  async claim(session: string): Promise<Claim> {
    const stream = this.streams.get(session) ?? { fence: 0, next: 0, batches: [] };
    this.streams.set(session, stream);
    this.claims += 1;
    // guard: claim-raises-the-fence
    stream.fence = this.claims;
    return { fence: stream.fence, next: stream.next };
  }

  append(batch: Batch): Promise<void> {
    const stream = this.streams.get(batch.session);
    if (
      stream === undefined ||
      // guard: stale-fence-refused
      stream.fence !== batch.fence ||
      // guard: append-only-at-the-end
      stream.next !== batch.first
    ) {
      return isWritten(batch, stream) ? DONE : Promise.reject(staleWriter(batch, stream));
    }
    const large = batch.entries.some((entry) => entry.blob !== undefined);
    stream.batches.push(large ? { ...batch, entries: batch.entries.map(stored) } : batch);
    stream.next += batch.entries.length;
    return DONE;
  }

  async *read(session: string, from: number): AsyncGenerator<readonly Entry[]> {
    const stream = this.streams.get(session);
    if (stream === undefined) return;
    let index = firstHolding(stream.batches, from);
    for (; index < stream.batches.length; index++) {
      const batch = stream.batches[index];
      if (batch !== undefined)
        yield batch.first >= from
          ? batch.entries
          : /* guard: read-starts-at-its-offset */ batch.entries.slice(from - batch.first);
    }
  }

  async list(): Promise<readonly Listed[]> {
    return [...this.streams].map(([session, { next }]) => ({ session, next }));
  }

  async remove(session: string): Promise<void> {
    // guard: removed-session-forgotten
    this.streams.delete(session);
  }
}

/** True if exactly this batch was appended before. */
function isWritten({ first, fence, entries }: Batch, stream: Stream | undefined): boolean {
  const batch = stream?.batches[firstHolding(stream.batches, first)];
  if (batch?.first !== first || batch.fence !== fence) return false;
  return JSON.stringify(batch.entries) === JSON.stringify(entries.map(stored));
}

function staleWriter(batch: Batch, stream: Stream | undefined): Fault {
  const { session, fence, first } = batch;
  const found = stream === undefined ? 'it was removed' : `it stands at fence ${stream.fence}, entry ${stream.next}`;
  return new Fault(
    'STALE_WRITER',
    `Session "${session}": writer ${fence} wanted to write entry ${first}, but ${found}.`,
    {
      session,
      fence,
      first,
    },
  );
}

/** The place of the batch that holds an entry, by halving. */
function firstHolding(batches: readonly Batch[], from: number): number {
  let low = 0;
  let high = batches.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    const batch = batches[middle];
    if (batch !== undefined && batch.first + batch.entries.length <= from) low = middle + 1;
    else high = middle;
  }
  return low;
}

function memoryBlobs(streams: Map<string, Stream>): Blobs {
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

function memorySnapshots(streams: Map<string, Stream>): Snapshots {
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
  const streams = new Map<string, Stream>();
  return {
    journal: new MemoryJournal(streams),
    blobs: memoryBlobs(streams),
    snapshots: memorySnapshots(streams),
    leases: soloLeases,
    close: async () => {},
  };
}
