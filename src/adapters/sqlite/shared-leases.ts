/**
 * The leases of this process: the sessions that it works on, and the handler that answers requests for each. The owner
 * keeps the table of all processes (wire/lease-table.ts). Every process also keeps its own leases, to report them to
 * the next owner, or to enter them itself if it becomes the owner.
 */
import { setTimeout } from 'node:timers/promises';
import type { HeldLease, Lease, LeaseHolder, LeaseReply, LeaseRequestOptions, Leases } from '../../journal/store.js';
import type { Json } from '../../protocol/json.js';
import type { LocalStore } from './local-store.js';
import { type ProcessId, type ProcessState, processStateOf, thisProcess } from './owner/process.js';
import { describeUnresponsiveHolder, unresponsiveHolderFault } from './owner/unresponsive-messages.js';
import type { LeaseTable, ReplySink, StoreProcess } from './wire/lease-table.js';
import { REPORT_AFTER_MS, ResponseWatchdog } from './wire/response-watchdog.js';
import type { HeldSession, StoreClient } from './wire/store-client.js';
import { ConnectionLost } from './wire/wire-errors.js';

/** How often the state of a process that has acknowledged a request is checked. */
const STATE_POLL_MS = 500;
/** Delay before an unanswered request is reported, so that callers that retry do not spin. */
const RETRY_DELAY_MS = 20;

/** How leases reach the lease table: in this process if it is the owner, otherwise through its connection. */
export interface LeaseRoute {
  /** The table while this process is the owner; otherwise undefined. */
  readonly leaseTable: LeaseTable | undefined;
  /** The connection to the owner while this process is a client; otherwise undefined. */
  readonly client: StoreClient | undefined;
  /** Performs an operation in the owner, here or remotely. */
  perform<T>(local: (store: LocalStore) => Promise<T>, remote: (client: StoreClient) => Promise<T>): Promise<T>;
  /** Passes a message to the operator. */
  notify(message: string): void;
}

/** The leases of a store that processes share. */
export class SharedLeases implements Leases {
  /** The id of this process in the lease table. */
  readonly id: string;
  /** This process as a member of the lease table while it is the owner. */
  readonly selfProcess: StoreProcess;
  /** True if an owner may have stored this process as a lease holder. Later owners wait for such a process. */
  isStoredAsHolder = false;
  private readonly route: LeaseRoute;
  private readonly ownHolders = new Map<string, LeaseHolder>();
  /** The sessions that are being acquired, once for each request. */
  private readonly acquiring: string[] = [];

  constructor(id: string, route: LeaseRoute) {
    this.id = id;
    this.route = route;
    const ask = (session: string, request: Json, sink: ReplySink): Promise<LeaseReply> => {
      sink.ack();
      return this.answer(session, request, (piece, droppable) => sink.piece(piece, droppable));
    };
    this.selfProcess = { id, process: thisProcess(), ask };
  }

  acquire(session: string, holder: LeaseHolder): Lease | undefined | Promise<Lease | undefined> {
    const { leaseTable } = this.route;
    if (leaseTable === undefined || leaseTable.recovery !== undefined) return this.acquireAsync(session, holder);
    return leaseTable.tryHold(session, holder.turn, this.selfProcess) ? this.createLease(session, holder) : undefined;
  }

  private async acquireAsync(session: string, holder: LeaseHolder): Promise<Lease | undefined> {
    const { turn } = holder;
    this.acquiring.push(session);
    try {
      const isHeld = await this.route.perform(
        async () => {
          const { leaseTable } = this.route;
          if (leaseTable?.recovery !== undefined) await leaseTable.recovery;
          return leaseTable?.tryHold(session, turn, this.selfProcess) === true;
        },
        async (client) => {
          this.isStoredAsHolder = true;
          const onLateResponse = (value: unknown): void => this.releaseLateGrant(session, client, value === true);
          return (await client.request('acquire', { session, turn }, onLateResponse)) === true;
        },
      );
      return isHeld ? this.createLease(session, holder) : undefined;
    } finally {
      this.acquiring.splice(this.acquiring.indexOf(session), 1);
    }
  }

  /**
   * Releases a lease that the owner granted after this process had given up the request, unless this process has
   * acquired the session since or is acquiring it.
   */
  private releaseLateGrant(session: string, client: StoreClient, isGranted: boolean): void {
    if (!isGranted || this.ownHolders.has(session) || this.acquiring.includes(session)) return;
    client.sendUnanswered('release', { session });
  }

  /**
   * Registers a holder and returns its lease. A second lease of this process for a session replaces the first, whose
   * release then has no effect.
   */
  private createLease(session: string, holder: LeaseHolder): Lease {
    const ownHolder: LeaseHolder = { ...holder, handleRequest: (request, send) => holder.handleRequest(request, send) };
    this.ownHolders.set(session, ownHolder);
    return {
      release: () => {
        if (this.ownHolders.get(session) !== ownHolder) return;
        this.ownHolders.delete(session);
        const { leaseTable, client } = this.route;
        if (leaseTable !== undefined) leaseTable.release(session, this.id);
        else client?.sendUnanswered('release', { session });
      },
    };
  }

  list(): Promise<readonly HeldLease[]> {
    return this.route.perform(
      async () => this.route.leaseTable?.list() ?? [],
      (client) => client.request('holdings', {}) as Promise<readonly HeldLease[]>,
    );
  }

  /** Returns the sessions that this process holds, for a new owner. */
  heldSessions(): readonly HeldSession[] {
    return Array.from(this.ownHolders, ([session, { turn }]) => ({ session, turn }));
  }

  /** Answers a request of another process for a session; `not-held` if this process does not hold it. */
  async answer(session: string, request: Json, send: (piece: Json, droppable?: boolean) => void): Promise<LeaseReply> {
    const holder = this.ownHolders.get(session);
    if (holder === undefined) return { status: 'not-held' };
    return { status: 'answered', value: await holder.handleRequest(request, send) };
  }

  async request(session: string, request: Json, { onChunk, timeoutMs }: LeaseRequestOptions = {}): Promise<LeaseReply> {
    const watchdog = new HolderWatchdog((message) => this.route.notify(message));
    const sink: ReplySink = {
      asked: (process) => watchdog.start(process),
      ack: () => watchdog.acknowledge(),
      piece: (piece) => onChunk?.(piece),
    };
    const pendingReply = this.route.perform(
      async (): Promise<LeaseReply> =>
        this.route.leaseTable?.ask(session, request, this.id, sink) ?? { status: 'not-held' },
      // A lost request is not repeated here: only the caller can decide whether it may be performed twice.
      (client) => client.ask(session, request, sink).catch(toLostReply),
    );
    try {
      const timeout = timeoutMs === undefined ? [] : [watchdog.lostAfter(timeoutMs)];
      const reply = await Promise.race([pendingReply, watchdog.unresponsive, ...timeout]);
      // A caller that retries immediately must not spin.
      if (reply.status !== 'answered' && watchdog.askedProcess !== undefined) await setTimeout(RETRY_DELAY_MS);
      return reply;
    } finally {
      watchdog.close();
      pendingReply.catch(() => undefined);
    }
  }
}

function toLostReply(error: unknown): LeaseReply {
  if (error instanceof ConnectionLost) return { status: 'lost' };
  throw error;
}

/**
 * Detects that the process that receives a request is unresponsive: it does not acknowledge the request in time, or it
 * is stopped afterwards.
 */
class HolderWatchdog {
  /** Rejects with SESSION_BUSY when the process is given up. Never resolves. */
  readonly unresponsive: Promise<never>;
  private reject: (error: Error) => void = () => {};
  private watchdog: ResponseWatchdog | undefined;
  private stoppedPoll: NodeJS.Timeout | undefined;
  /** The process that received the request, once the owner has named it. */
  askedProcess: ProcessId | undefined;
  private timeoutTimer: NodeJS.Timeout | undefined;
  /** Keeps this process alive while it waits, because the sockets of an owner are unreferenced. */
  private readonly keepAliveTimer = setInterval(() => {}, 2 ** 30);
  private readonly notify: (message: string) => void;

  constructor(notify: (message: string) => void) {
    this.notify = notify;
    this.unresponsive = new Promise((_, reject) => {
      this.reject = reject;
    });
    this.unresponsive.catch(() => undefined);
  }

  /** Starts the timeout for the acknowledgement of this process. */
  start(process: ProcessId): void {
    this.askedProcess = process;
    this.watchdog ??= new ResponseWatchdog({
      oldestPendingMs: () => 0,
      processState: () => processStateOf(process),
      onUnresponsive: (state: ProcessState) => this.notify(describeUnresponsiveHolder(process, state)),
      onGiveUp: (state: ProcessState) => this.reject(unresponsiveHolderFault(process, state)),
    });
    this.watchdog.start();
  }

  /**
   * Ends the timeout, because the process has the request. From now on the process is given up only if it is stopped
   * for `REPORT_AFTER_MS`.
   */
  acknowledge(): void {
    this.watchdog?.stop();
    const { askedProcess } = this;
    if (askedProcess === undefined || this.stoppedPoll !== undefined) return;
    let stoppedSince = performance.now();
    this.stoppedPoll = setInterval(() => {
      const now = performance.now();
      if (processStateOf(askedProcess) !== 'stopped') stoppedSince = now;
      else if (now - stoppedSince >= REPORT_AFTER_MS) this.reject(unresponsiveHolderFault(askedProcess, 'stopped'));
    }, STATE_POLL_MS);
  }

  /** Resolves with a lost reply after this time. */
  lostAfter(ms: number): Promise<LeaseReply> {
    return new Promise((resolve) => {
      this.timeoutTimer = globalThis.setTimeout(() => resolve({ status: 'lost' }), ms);
    });
  }

  /** Stops all timers. */
  close(): void {
    this.watchdog?.stop();
    clearTimeout(this.timeoutTimer);
    clearInterval(this.stoppedPoll);
    clearInterval(this.keepAliveTimer);
  }
}
