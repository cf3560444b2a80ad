/**
 * The ports to storage: the journal, its large values and its snapshots.
 * Adapters implement these; the session is their only caller. An adapter keeps appends of one session in
 * the order they were called, and resolves an append only once it is durable by the store's own measure.
 * Any failure is a Fault; after one, the session that met it writes nothing more.
 */
import type { Entry } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';

/** One ordered write: refused whole unless `fence` is the newest claim and `first` is the next sequence number. */
export interface Batch {
  readonly session: string;
  readonly fence: number;
  readonly first: number;
  readonly entries: readonly Entry[];
}

/** The right to write one session. A later claim of the same session makes it stale. */
export interface Claim {
  readonly fence: number;
  /** The sequence number that the next entry will get; 0 for a new session. */
  readonly next: number;
}

/** A session as the journal lists it. */
export interface Listed {
  readonly session: string;
  readonly next: number;
}

export interface Journal {
  claim(session: string): Promise<Claim>;
  append(batch: Batch): Promise<void>;
  /** Whole entries from `from` on, in order, in batches of the adapter's choosing; damage is a Fault with its position. */
  read(session: string, from: number): AsyncIterable<readonly Entry[]>;
  list(): Promise<readonly Listed[]>;
  /** Removes all of a session; a later claim of the same name starts from nothing. */
  remove(session: string): Promise<void>;
}

/** Large values by digest, apart for each session so that retention can remove them with it. */
export interface Blobs {
  /** Durable no later than any append that is called after this resolves. */
  put(session: string, digest: string, text: string): Promise<void>;
  get(session: string, digest: string): Promise<string | undefined>;
}

/** What a session may remember of its own folding: a cache that can be deleted at any time. */
export interface Snapshot {
  readonly next: number;
  /** Digest of the entry before `next`: a snapshot of another past is ignored. */
  readonly tail: string;
  readonly state: Json;
}

export interface Snapshots {
  load(session: string): Promise<Snapshot | undefined>;
  save(session: string, snapshot: Snapshot): Promise<void>;
}

/** Everything a session needs of one store. */
export interface Store {
  readonly journal: Journal;
  readonly blobs: Blobs;
  readonly snapshots: Snapshots;
  close(): Promise<void>;
}
