/**
 * The ports to storage: the journal, its large values, its snapshots, and who works on which session.
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
  readonly firstSeq: number;
  readonly entries: readonly Entry[];
}

/** The right to write one session. A later claim of the same session makes it stale. */
export interface Claim {
  readonly fence: number;
  /** The sequence number that the next entry will get; 0 for a new session. */
  readonly nextSeq: number;
}

/** A session as the journal lists it. */
export interface SessionListing {
  readonly session: string;
  readonly nextSeq: number;
}

export interface Journal {
  claim(session: string): Promise<Claim>;
  /** Repeating an append that was written is no error and writes nothing: a lost acknowledgement can be asked for again. */
  append(batch: Batch): Promise<void>;
  /** Whole entries from `from` on, in order, in batches of the adapter's choosing; damage is a Fault with its position. */
  read(session: string, from: number): AsyncIterable<readonly Entry[]>;
  list(): Promise<readonly SessionListing[]>;
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
  readonly nextSeq: number;
  /** Digest of the entry before `next`: a snapshot of another past is ignored. */
  readonly tailDigest: string;
  readonly state: Json;
}

export interface Snapshots {
  load(session: string): Promise<Snapshot | undefined>;
  save(session: string, snapshot: Snapshot): Promise<void>;
}

/** A session that a process is working on, and the turn it works on. */
export interface HeldLease {
  readonly session: string;
  readonly turn: string;
  readonly pid: number;
}

/** Who works on a session: other processes reach it through `answer` for as long as it holds the lease. */
export interface LeaseHolder {
  readonly turn: string;
  /** Answers one request of another process; pieces that may be dropped for a slow reader are marked as such. */
  handleRequest(request: Json, send: (piece: Json, droppable?: boolean) => void): Promise<Json>;
}

export interface Lease {
  release(): void;
}

/** `nobody`: no other process holds the session. `lost`: a process went away, and may have received the request. */
export type LeaseReply =
  | { readonly status: 'answered'; readonly value: Json }
  | { readonly status: 'nobody' }
  | { readonly status: 'lost' };

export interface LeaseRequestOptions {
  readonly onChunk?: (piece: Json) => void;
  /** Gives up after this time, as if the process had gone away. */
  readonly timeoutMs?: number;
}

/**
 * Which process works on which session: one at a time, for the processes that share the store. A lease ends with its
 * process. It keeps processes from disturbing each other; that a stale writer cannot write is the fence's work.
 */
export interface Leases {
  /** The lease, or undefined while another process holds it. A second lease in the same process replaces the first. */
  acquire(session: string, holder: LeaseHolder): Lease | undefined | Promise<Lease | undefined>;
  /** The sessions that processes are working on, this one included. */
  list(): Promise<readonly HeldLease[]>;
  /** Asks the process that holds a session; errors that it answers with are thrown here. */
  request(session: string, request: Json, options?: LeaseRequestOptions): Promise<LeaseReply>;
}

/** Everything a session needs of one store. */
export interface Store {
  readonly journal: Journal;
  readonly blobs: Blobs;
  readonly snapshots: Snapshots;
  readonly leases: Leases;
  close(): Promise<void>;
}
