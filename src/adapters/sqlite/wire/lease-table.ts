/**
 * The owner's table of processes that use the store and of the sessions that each one works on. A lease belongs to a
 * process, not to its connection: a living process that loses its connection keeps its leases for `RECONNECT_GRACE_MS`.
 * A new owner grants no lease before the surviving processes of the previous owner had time to report theirs.
 */
import type { HeldLease, LeaseReply } from '../../../journal/store.js';
import type { Json } from '../../../protocol/json.js';
import { type ProcessId, processStateOf } from '../owner/process.js';
import type { Channel } from './channel.js';
import type { HeldSession } from './store-client.js';
import { fromWireError, type WireError } from './wire-errors.js';

/** How long a living process may take to reconnect before its leases are released. */
const RECONNECT_GRACE_MS = 3000;
/** How long a new owner waits for a stopped process, which will not reconnect soon. */
const STOPPED_GRACE_MS = 1000;
const POLL_MS = 20;

/** Receives the reply of another process while it arrives. */
export interface ReplySink {
  /** Called with the process that receives the request. */
  asked(process: ProcessId): void;
  /** Called when that process has the request. */
  ack(): void;
  /** Called with each streamed piece of the reply. */
  piece(piece: Json, droppable?: boolean): void;
}

/** A process that can hold leases: a client, or the owner itself. */
export interface StoreProcess {
  readonly id: string;
  readonly process: ProcessId;
  /** Sends a request for a session to this process. */
  ask(session: string, request: Json, sink: ReplySink): Promise<LeaseReply>;
}

/** Stores the processes that may hold leases, for the next owner. */
interface ClientRegistry {
  add(id: string, process: ProcessId): Promise<void>;
  /** Resolves when the process is removed, or cannot be. */
  remove(id: string): Promise<void>;
}

/** The leases of all processes. */
export class LeaseTable {
  private readonly leases = new Map<string, { readonly turn: string; readonly member: StoreProcess }>();
  private readonly clients = new Map<string, ClientProcess>();
  private readonly registry: ClientRegistry;
  /** The surviving processes that have not reconnected yet, by client id. */
  private readonly expectedClients = new Map<string, ProcessId>();
  /** Resolves when the surviving processes have reconnected or their time is up. */
  private pendingRecovery: Promise<void> | undefined;

  /** `survivors` are the processes that held leases under the previous owner. */
  constructor(registry: ClientRegistry, survivors: ReadonlyMap<string, ProcessId>) {
    this.registry = registry;
    for (const [id, process] of survivors) {
      if (processStateOf(process) === 'gone') void registry.remove(id);
      else this.expectedClients.set(id, process);
    }
    if (this.expectedClients.size > 0) this.pendingRecovery = this.waitForSurvivors();
  }

  /** Resolves when leases can be granted; undefined if they already can. */
  get recovery(): Promise<void> | undefined {
    return this.pendingRecovery;
  }

  /** Waits until each surviving process has reconnected, has ended, or has used up its time. */
  private async waitForSurvivors(): Promise<void> {
    const begun = performance.now();
    for (let ms = 0; this.expectedClients.size > 0 && ms < RECONNECT_GRACE_MS; ms = performance.now() - begun) {
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      for (const [id, process] of this.expectedClients) {
        const state = processStateOf(process);
        if (state === 'gone' || (state === 'stopped' && ms > STOPPED_GRACE_MS)) this.forgetSurvivor(id);
      }
    }
    for (const id of this.expectedClients.keys()) this.forgetSurvivor(id);
    this.pendingRecovery = undefined;
  }

  private forgetSurvivor(id: string): void {
    void this.registry.remove(id);
    this.expectedClients.delete(id);
  }

  /**
   * Registers a client that has connected or reconnected. The leases that it reports replace its earlier ones, except
   * for sessions that another process holds. Throws a TypeError if another process uses the id.
   */
  connectClient(id: string, process: ProcessId, channel: Channel, heldSessions: readonly HeldSession[]): ClientProcess {
    const client = this.clients.get(id) ?? new ClientProcess(id, process, () => this.removeClient(id));
    const { pid, start } = client.process;
    if (pid !== process.pid || start !== process.start) throw new TypeError('Another process uses this client id.');
    this.clients.set(id, client);
    client.attachChannel(channel);
    if (this.expectedClients.delete(id)) client.registration = Promise.resolve();
    for (const [session, { member }] of this.leases) if (member.id === id) this.leases.delete(session);
    for (const { session, turn } of heldSessions)
      if (!this.leases.has(session)) this.leases.set(session, { turn, member: client });
    return client;
  }

  /**
   * Acquires a lease for a client, after the recovery and once the client is stored as a lease holder; false if another
   * process holds the session or the client is gone.
   */
  async acquire(session: string, turn: string, client: ClientProcess): Promise<boolean> {
    if (this.pendingRecovery !== undefined) await this.pendingRecovery;
    client.registration ??= this.registry.add(client.id, client.process).catch((error: unknown) => {
      client.registration = undefined;
      throw error;
    });
    await client.registration;
    return client.isGone ? false : this.tryHold(session, turn, client);
  }

  /** Grants a lease to a member at once, even during the recovery; false if another member holds the session. */
  tryHold(session: string, turn: string, member: StoreProcess): boolean {
    const current = this.leases.get(session);
    if (current !== undefined && current.member.id !== member.id) return false;
    this.leases.set(session, { turn, member });
    return true;
  }

  /** Releases the lease of a session if this member holds it. */
  release(session: string, id: string): void {
    if (this.leases.get(session)?.member.id === id) this.leases.delete(session);
  }

  /** Returns all leases, after the recovery. */
  async list(): Promise<readonly HeldLease[]> {
    if (this.pendingRecovery !== undefined) await this.pendingRecovery;
    return Array.from(this.leases, ([session, { turn, member }]) => ({ session, turn, pid: member.process.pid }));
  }

  /**
   * Forwards a request to the process that holds a session, after the recovery. Replies `not-held` if there is none or
   * it is the requester.
   */
  async ask(session: string, request: Json, from: string, sink: ReplySink): Promise<LeaseReply> {
    if (this.pendingRecovery !== undefined) await this.pendingRecovery;
    const member = this.leases.get(session)?.member;
    if (member === undefined || member.id === from) return { status: 'not-held' };
    sink.asked(member.process);
    return member.ask(session, request, sink);
  }

  private async removeClient(id: string): Promise<void> {
    const client = this.clients.get(id);
    this.clients.delete(id);
    for (const [session, { member }] of this.leases) if (member.id === id) this.leases.delete(session);
    if (client?.registration !== undefined) await this.registry.remove(id);
  }
}

/** A client's message about a request that was forwarded to it. */
interface ClientAnswerContent {
  readonly ok?: LeaseReply;
  readonly error?: WireError;
  readonly piece?: Json;
  readonly droppable?: boolean;
  readonly ack?: boolean;
}

interface ForwardedRequest {
  readonly sink: ReplySink;
  resolve(reply: LeaseReply): void;
  reject(error: Error): void;
}

/** A client process, connected or within its time to reconnect. */
export class ClientProcess implements StoreProcess {
  readonly id: string;
  readonly process: ProcessId;
  /** Resolves once the process is stored as a lease holder (see `ClientRegistry`); undefined before its first lease. */
  registration: Promise<void> | undefined;
  /** Resolves once a process that has ended or left is no longer stored as a lease holder; undefined before its end. */
  private removal: Promise<void> | undefined;
  private channel: Channel | undefined;
  private readonly onGone: () => Promise<void>;
  private readonly forwarded = new Map<number, ForwardedRequest>();
  private readonly reconnectWaiters = new Set<() => void>();
  private lastRequestNumber = 0;

  constructor(id: string, process: ProcessId, onGone: () => Promise<void>) {
    this.id = id;
    this.process = process;
    this.onGone = onGone;
  }

  /** True if the process has ended or will not reconnect. */
  get isGone(): boolean {
    return this.removal !== undefined;
  }

  /** Uses a new connection and closes the previous one. */
  attachChannel(channel: Channel): void {
    const previous = this.channel;
    this.channel = channel;
    previous?.destroy();
    this.wakeWaiters();
  }

  /**
   * Handles a lost connection. Requests that were forwarded over it are answered as `lost`. A process that has ended is
   * removed at once; a living one may reconnect within `RECONNECT_GRACE_MS`.
   */
  detachChannel(channel: Channel): void {
    if (this.channel !== channel) return;
    this.channel = undefined;
    for (const { resolve } of this.forwarded.values()) resolve({ status: 'lost' });
    this.forwarded.clear();
    const deadline = performance.now() + RECONNECT_GRACE_MS;
    const poll = (): void => {
      if (this.channel !== undefined || this.isGone) return;
      if (processStateOf(this.process) === 'gone' || performance.now() > deadline) void this.markGone();
      else setTimeout(poll, POLL_MS).unref();
    };
    poll();
  }

  /** Marks the process as gone and releases its leases. Resolves once it is no longer stored as a lease holder. */
  markGone(): Promise<void> {
    if (this.removal === undefined) {
      this.removal = this.onGone();
      this.wakeWaiters();
    }
    return this.removal;
  }

  /** Sends a request to the process, after it has reconnected if necessary. Replies `lost` if the process is gone. */
  async ask(session: string, request: Json, sink: ReplySink): Promise<LeaseReply> {
    while (this.channel === undefined && !this.isGone) {
      await new Promise<void>((resolve) => this.reconnectWaiters.add(resolve));
    }
    const { channel } = this;
    if (channel === undefined) return { status: 'lost' };
    const a = ++this.lastRequestNumber;
    return new Promise((resolve, reject) => {
      this.forwarded.set(a, { sink, resolve, reject });
      channel.send({ a, session, request });
    });
  }

  /** Handles a message of the client about a forwarded request. Ignores a request that is no longer pending. */
  receiveAnswer(a: number, message: ClientAnswerContent): void {
    const pending = this.forwarded.get(a);
    if (pending === undefined) return;
    const { ok, error, piece, droppable, ack } = message;
    if (ack === true) return void pending.sink.ack();
    if (piece !== undefined) return void pending.sink.piece(piece, droppable);
    this.forwarded.delete(a);
    if (error !== undefined) pending.reject(fromWireError(error));
    else pending.resolve(ok ?? { status: 'lost' });
  }

  private wakeWaiters(): void {
    const waiters = [...this.reconnectWaiters];
    this.reconnectWaiters.clear();
    for (const resolve of waiters) resolve();
  }
}
