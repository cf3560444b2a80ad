/**
 * The processes that use the store, and which of them works on which session. A lease belongs to a process, not to its
 * connection: one that lost its connection keeps its leases for as long as it lives and may come back, and a new owner gives
 * none away before the processes that survived the last one had the time to say what they hold.
 */
import type { HeldLease, LeaseReply } from '../../../journal/store.js';
import type { Json } from '../../../protocol/json.js';
import { type ProcessId, processStateOf } from '../owner/process.js';
import type { Channel } from './channel.js';
import type { HeldSession } from './store-client.js';
import { fromWireError, type WireError } from './wire-errors.js';

/** How long a process that lives may take to come back before its leases are free; one that is stopped will not come soon. */
const RECONNECT_GRACE_MS = 3000;
const STOPPED_GRACE_MS = 1000;
const POLL_MS = 20;

/** Receives the answer of another process: who was asked, that it has the request, and pieces. */
export interface ReplySink {
  asked(process: ProcessId): void;
  ack(): void;
  piece(piece: Json, droppable?: boolean): void;
}

/** A process that can hold sessions: a client, or the owner itself. */
export interface StoreProcess {
  readonly id: string;
  readonly process: ProcessId;
  ask(session: string, request: Json, sink: ReplySink): Promise<LeaseReply>;
}

/** Keeps the list of processes that the next owner waits for. */
export interface ClientRegistry {
  add(id: string, process: ProcessId): Promise<void>;
  remove(id: string): void;
}

export class LeaseTable {
  private readonly leases = new Map<string, { readonly turn: string; readonly member: StoreProcess }>();
  private readonly clients = new Map<string, ClientProcess>();
  private readonly registry: ClientRegistry;
  private readonly expectedClients = new Map<string, ProcessId>();
  /** Resolves when the processes that survived the last owner are back, or had their time. */
  private pendingRecovery: Promise<void> | undefined;

  /** `survivors`: the processes that used the store under the last owner. */
  constructor(register: ClientRegistry, survivors: ReadonlyMap<string, ProcessId>) {
    this.registry = register;
    for (const [id, process] of survivors) {
      if (processStateOf(process) === 'gone') register.remove(id);
      else this.expectedClients.set(id, process);
    }
    if (this.expectedClients.size > 0) this.pendingRecovery = this.waitForSurvivors();
  }

  /** Undefined once leases can be given away. */
  get recovery(): Promise<void> | undefined {
    return this.pendingRecovery;
  }

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
    this.registry.remove(id);
    this.expectedClients.delete(id);
  }

  /** A client has connected, for the first time or again, and says what it holds. */
  connectClient(id: string, process: ProcessId, channel: Channel, held: readonly HeldSession[]): ClientProcess {
    const peer = this.clients.get(id) ?? new ClientProcess(id, process, () => this.removeClient(id));
    const { pid, start } = peer.process;
    if (pid !== process.pid || start !== process.start) throw new TypeError('Another process has this id.');
    this.clients.set(id, peer);
    peer.attachChannel(channel);
    if (this.expectedClients.delete(id)) peer.registration = Promise.resolve();
    for (const [session, { member }] of this.leases) if (member.id === id) this.leases.delete(session);
    for (const { session, turn } of held)
      if (!this.leases.has(session)) this.leases.set(session, { turn, member: peer });
    return peer;
  }

  /** True if the session is now held by this client. */
  async acquire(session: string, turn: string, peer: ClientProcess): Promise<boolean> {
    if (this.pendingRecovery !== undefined) await this.pendingRecovery;
    peer.registration ??= this.registry.add(peer.id, peer.process);
    await peer.registration;
    return peer.isGone ? false : this.tryHold(session, turn, peer);
  }

  /** Gives a session to a member, unless another has it. */
  tryHold(session: string, turn: string, member: StoreProcess): boolean {
    const found = this.leases.get(session);
    if (found !== undefined && found.member.id !== member.id) return false;
    this.leases.set(session, { turn, member });
    return true;
  }

  release(session: string, id: string): void {
    if (this.leases.get(session)?.member.id === id) this.leases.delete(session);
  }

  async list(): Promise<readonly HeldLease[]> {
    if (this.pendingRecovery !== undefined) await this.pendingRecovery;
    return Array.from(this.leases, ([session, { turn, member }]) => ({ session, turn, pid: member.process.pid }));
  }

  /** Puts a request to the process that holds a session, unless that is the one who asks. */
  async ask(session: string, request: Json, from: string, sink: ReplySink): Promise<LeaseReply> {
    if (this.pendingRecovery !== undefined) await this.pendingRecovery;
    const member = this.leases.get(session)?.member;
    if (member === undefined || member.id === from) return { status: 'nobody' };
    sink.asked(member.process);
    return member.ask(session, request, sink);
  }

  private removeClient(id: string): void {
    const peer = this.clients.get(id);
    this.clients.delete(id);
    for (const [session, { member }] of this.leases) if (member.id === id) this.leases.delete(session);
    if (peer?.registration !== undefined) this.registry.remove(id);
  }
}

/** What a client sends about a request that was put to it. */
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

/** A client process, connected or about to return. */
export class ClientProcess implements StoreProcess {
  readonly id: string;
  readonly process: ProcessId;
  /** Set once it is on the list of processes that hold leases. */
  registration: Promise<void> | undefined;
  isGone = false;
  private channel: Channel | undefined;
  private readonly onGone: () => void;
  private readonly forwarded = new Map<number, ForwardedRequest>();
  private readonly reconnectWaiters = new Set<() => void>();
  private lastRequestNumber = 0;

  constructor(id: string, process: ProcessId, dismissed: () => void) {
    this.id = id;
    this.process = process;
    this.onGone = dismissed;
  }

  attachChannel(channel: Channel): void {
    const before = this.channel;
    this.channel = channel;
    before?.destroy();
    this.wakeWaiters();
  }

  /** The connection broke. A process that has ended is dismissed at once, one that lives may return. */
  detachChannel(channel: Channel): void {
    if (this.channel !== channel) return;
    this.channel = undefined;
    for (const { resolve } of this.forwarded.values()) resolve({ status: 'lost' });
    this.forwarded.clear();
    const until = performance.now() + RECONNECT_GRACE_MS;
    const look = (): void => {
      if (this.channel !== undefined || this.isGone) return;
      if (processStateOf(this.process) === 'gone' || performance.now() > until) this.markGone();
      else setTimeout(look, POLL_MS).unref();
    };
    look();
  }

  /** It is not coming back: what it held is free. */
  markGone(): void {
    if (this.isGone) return;
    this.isGone = true;
    this.onGone();
    this.wakeWaiters();
  }

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

  /** What the client says about a request that was put to it. */
  receiveAnswer(a: number, message: ClientAnswerContent): void {
    const asked = this.forwarded.get(a);
    if (asked === undefined) return;
    const { ok, error, piece, droppable, ack } = message;
    if (ack === true) return void asked.sink.ack();
    if (piece !== undefined) return void asked.sink.piece(piece, droppable);
    this.forwarded.delete(a);
    if (error !== undefined) asked.reject(fromWireError(error));
    else asked.resolve(ok ?? { status: 'lost' });
  }

  private wakeWaiters(): void {
    const waiting = [...this.reconnectWaiters];
    this.reconnectWaiters.clear();
    for (const resolve of waiting) resolve();
  }
}
