/**
 * The ports to storage: journal, blobs, snapshots, leases and due turns (due-turns.ts). Adapters implement them. An
 * adapter performs the appends of one session in the order of the calls, and resolves an append only once it is as
 * durable as the store can make it. Every failure is a Fault; the session that gets it writes nothing after it.
 */
import type { Entry } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import type { DueChange, DueTurns } from './due-turns.js';

/** One append. It is refused unless `fence` is that of the newest claim and `firstSeq` is the next sequence number. */
export interface Batch {
  readonly session: string;
  readonly fence: number;
  readonly firstSeq: number;
  readonly entries: readonly Entry[];
  /**
   * Changes of the index of due turns, written in the same commit as the entries. A batch with changes may have no
   * entries.
   */
  readonly due?: readonly DueChange[] | undefined;
}

/** The right to write to one session. A later claim of the session makes it stale. */
export interface Claim {
  readonly fence: number;
  /** The sequence number that the next entry will get; 0 for a new session. */
  readonly nextSeq: number;
}

/** A session in the list of a journal. */
export interface SessionListing {
  readonly session: string;
  /** The sequence number that its next entry will get. */
  readonly nextSeq: number;
}

/** The append-only entries of all sessions. */
export interface Journal {
  /** Claims a session and creates it if necessary. Earlier claims of the session become stale. */
  claim(session: string): Promise<Claim>;
  /**
   * Appends a batch. An append that repeats an earlier one succeeds and writes nothing, so it can be retried after a
   * lost reply.
   */
  append(batch: Batch): Promise<void>;
  /** Yields the entries from `from` on, in order, in batches of any size. Damage is a Fault with its position. */
  read(session: string, from: number): AsyncIterable<readonly Entry[]>;
  /** Lists all sessions. */
  list(): Promise<readonly SessionListing[]>;
  /** Removes a session with its blobs, its snapshot and its due turns. A later claim of the name creates an empty session. */
  remove(session: string): Promise<void>;
}

/** Large values by digest, separate for each session, so that they are removed with it. */
export interface Blobs {
  /** Stores a blob. It is durable no later than any append that is called after this resolves. */
  put(session: string, digest: string, text: string): Promise<void>;
  /** Returns the text of a blob, or undefined if it is missing. */
  get(session: string, digest: string): Promise<string | undefined>;
}

/** The folded state of a session at one entry. Snapshots are a cache and can be deleted at any time. */
export interface Snapshot {
  /** The sequence number after the last entry that the state includes. */
  readonly nextSeq: number;
  /**
   * The digest of the position, time, type and key of the entry before `nextSeq`. A snapshot that does not match the
   * journal is ignored.
   */
  readonly tailDigest: string;
  readonly state: Json;
}

/** The latest snapshot of each session. Saving replaces the one before. */
export interface Snapshots {
  /** Returns the snapshot of a session; undefined if there is none. */
  load(session: string): Promise<Snapshot | undefined>;
  /** Replaces the snapshot of a session. */
  save(session: string, snapshot: Snapshot): Promise<void>;
}

/** A lease that a process holds, with the turn that it runs. */
export interface HeldLease {
  readonly session: string;
  readonly turn: string;
  readonly pid: number;
}

/** The holder of a lease. Other processes send it requests as long as it holds the lease. */
export interface LeaseHolder {
  readonly turn: string;
  /** Answers one request of another process. A chunk that is droppable may be left out for a slow reader. */
  handleRequest(request: Json, send: (chunk: Json, isDroppable?: boolean) => void): Promise<Json>;
}

/** A lease on one session. */
export interface Lease {
  /** Gives the lease up, so that another process can acquire it. */
  release(): void;
}

/**
 * The reply to a request. `not-held`: no process holds the session. `lost`: the holder went away and may have received
 * the request.
 */
export type LeaseReply =
  | { readonly status: 'answered'; readonly value: Json }
  | { readonly status: 'not-held' }
  | { readonly status: 'lost' };

/** Options of a request to the holder of a lease. */
export interface LeaseRequestOptions {
  /** Called with each chunk that the holder sends before its answer. */
  readonly onChunk?: (chunk: Json) => void;
  /** The request is given up as `lost` after this many milliseconds. @default no timeout */
  readonly timeoutMs?: number;
}

/**
 * Leases on sessions, among the processes that share a store: one process at a time runs the turns of a session. A
 * lease ends with its process. Leases coordinate processes; safety against a stale writer comes from the fence.
 */
export interface Leases {
  /** Returns the lease, or undefined while another process holds it. This process replaces its own lease. */
  acquire(session: string, holder: LeaseHolder): Lease | undefined | Promise<Lease | undefined>;
  /** Lists the leases of all processes, this one included. */
  list(): Promise<readonly HeldLease[]>;
  /** Sends a request to the process that holds a session. Errors of the holder are thrown here. */
  request(session: string, request: Json, options?: LeaseRequestOptions): Promise<LeaseReply>;
}

/** A store: the five ports together. */
export interface Store {
  readonly journal: Journal;
  readonly blobs: Blobs;
  readonly snapshots: Snapshots;
  readonly leases: Leases;
  readonly dueTurns: DueTurns;
  /** Closes the store. It must not be used afterwards. */
  close(): Promise<void>;
}
