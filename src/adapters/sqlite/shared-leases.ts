/**
 * The leases of this process: which sessions it works on, and who in it answers for each. The owner keeps the table of all
 * processes; a client keeps its own part, to tell it to the next owner.
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

/** How often the state of a process that was asked is looked at, and the pause before it is asked again. */
const STATE_POLL_MS = 500;
const RETRY_DELAY_MS = 20;

/** How leases reach the table: in this process if it is the owner, else through its client. */
export interface LeaseRoute {
  /** The table, while this process is the owner. */
  readonly leaseTable: LeaseTable | undefined;
  readonly client: StoreClient | undefined;
  perform<T>(local: (store: LocalStore) => Promise<T>, remote: (client: StoreClient) => Promise<T>): Promise<T>;
  notify(message: string): void;
}

export class SharedLeases implements Leases {
  readonly id: string;
  /** This process as the table knows it while it is the owner. */
  readonly selfProcess: StoreProcess;
  private readonly route: LeaseRoute;
  private readonly ownHolders = new Map<string, LeaseHolder>();

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
    const held = await this.route.perform(
      async () => {
        const { leaseTable } = this.route;
        if (leaseTable?.recovery !== undefined) await leaseTable.recovery;
        return leaseTable?.tryHold(session, turn, this.selfProcess) === true;
      },
      async (client) => (await client.request('acquire', { session, turn })) === true,
    );
    return held ? this.createLease(session, holder) : undefined;
  }

  /** A second lease of this process replaces the first, whose release then does nothing. */
  private createLease(session: string, holder: LeaseHolder): Lease {
    const own: LeaseHolder = { ...holder, handleRequest: (request, send) => holder.handleRequest(request, send) };
    this.ownHolders.set(session, own);
    return {
      release: () => {
        if (this.ownHolders.get(session) !== own) return;
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

  /** What this process holds, for a new owner. */
  heldSessions(): readonly HeldSession[] {
    return Array.from(this.ownHolders, ([session, { turn }]) => ({ session, turn }));
  }

  /** Answers a request of another process for a session that this one holds. */
  async answer(session: string, request: Json, send: (piece: Json, droppable?: boolean) => void): Promise<LeaseReply> {
    const own = this.ownHolders.get(session);
    if (own === undefined) return { status: 'nobody' };
    return { status: 'answered', value: await own.handleRequest(request, send) };
  }

  async request(session: string, request: Json, { onChunk, timeoutMs }: LeaseRequestOptions = {}): Promise<LeaseReply> {
    const watch = new HolderWatchdog((message) => this.route.notify(message));
    const sink: ReplySink = {
      asked: (process) => watch.start(process),
      ack: () => watch.acknowledge(),
      piece: (piece) => onChunk?.(piece),
    };
    const asking = this.route.perform(
      async (): Promise<LeaseReply> =>
        this.route.leaseTable?.ask(session, request, this.id, sink) ?? { status: 'nobody' },
      // Whether a request that was lost on its way may be repeated is for the one who asks to say.
      (client) => client.ask(session, request, sink).catch(toLostReply),
    );
    try {
      const ends = [asking, watch.unresponsive, ...(timeoutMs === undefined ? [] : [watch.lostAfter(timeoutMs)])];
      const reply = await Promise.race(ends);
      // Whoever asks again is not to do so without a pause.
      if (reply.status !== 'answered' && watch.askedProcess !== undefined) await setTimeout(RETRY_DELAY_MS);
      return reply;
    } finally {
      watch.close();
      asking.catch(() => undefined);
    }
  }
}

function toLostReply(thrown: unknown): LeaseReply {
  if (thrown instanceof ConnectionLost) return { status: 'lost' };
  throw thrown;
}

/** Watches a process that was asked, until it says that it has the request. */
class HolderWatchdog {
  readonly unresponsive: Promise<never>;
  private reject: (error: Error) => void = () => {};
  private watchdog: ResponseWatchdog | undefined;
  private stoppedPoll: NodeJS.Timeout | undefined;
  /** The process that was asked, once the owner has said which it is. */
  askedProcess: ProcessId | undefined;
  private timeoutTimer: NodeJS.Timeout | undefined;
  /** Keeps the process alive while it waits: the sockets of an owner do not. */
  private readonly keepAliveTimer = setInterval(() => {}, 2 ** 30);
  private readonly notify: (message: string) => void;

  constructor(notify: (message: string) => void) {
    this.notify = notify;
    this.unresponsive = new Promise((_, reject) => {
      this.reject = reject;
    });
    this.unresponsive.catch(() => undefined);
  }

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

  /** The process has the request, and may take its time; but one that is stopped does nothing. */
  acknowledge(): void {
    this.watchdog?.stop();
    const { askedProcess } = this;
    if (askedProcess === undefined || this.stoppedPoll !== undefined) return;
    let since = performance.now();
    this.stoppedPoll = setInterval(() => {
      const now = performance.now();
      if (processStateOf(askedProcess) !== 'stopped') since = now;
      else if (now - since >= REPORT_AFTER_MS) this.reject(unresponsiveHolderFault(askedProcess, 'stopped'));
    }, STATE_POLL_MS);
  }

  lostAfter(ms: number): Promise<LeaseReply> {
    return new Promise((resolve) => {
      this.timeoutTimer = globalThis.setTimeout(() => resolve({ status: 'lost' }), ms);
    });
  }

  close(): void {
    this.watchdog?.stop();
    clearTimeout(this.timeoutTimer);
    clearInterval(this.stoppedPoll);
    clearInterval(this.keepAliveTimer);
  }
}
