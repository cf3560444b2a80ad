/**
 * The processes that use the store, and which of them works on which session. A lease belongs to a process, not to its
 * connection: one that lost its connection keeps its leases for as long as it lives and may come back, and a new owner gives
 * none away before the processes that survived the last one had the time to say what they hold.
 */
import type { Holding, Reply } from '../../../journal/store.js';
import type { Json } from '../../../protocol/json.js';
import { type ProcessId, stateOf } from '../owner/process.js';
import type { Channel } from './channel.js';
import type { HeldSession } from './client.js';
import { fromWire, type WireError } from './errors.js';

/** How long a process that lives may take to come back before its leases are free; one that is stopped will not come soon. */
const RETURN_MS = 3000;
const STOPPED_MS = 1000;
const POLL_MS = 20;

/** Receives the answer of another process: who was asked, that it has the request, and pieces. */
export interface Sink {
  asked(process: ProcessId): void;
  ack(): void;
  piece(piece: Json, droppable?: boolean): void;
}

/** A process that can hold sessions: a client, or the owner itself. */
export interface Member {
  readonly id: string;
  readonly process: ProcessId;
  ask(session: string, request: Json, sink: Sink): Promise<Reply>;
}

/** Keeps the list of processes that the next owner waits for. */
export interface PeerRegister {
  add(id: string, process: ProcessId): Promise<void>;
  remove(id: string): void;
}

export class Peers {
  private readonly held = new Map<string, { readonly turn: string; readonly member: Member }>();
  private readonly peers = new Map<string, Peer>();
  private readonly register: PeerRegister;
  private readonly expected = new Map<string, ProcessId>();
  /** Resolves when the processes that survived the last owner are back, or had their time. */
  private settling: Promise<void> | undefined;

  /** `survivors`: the processes that used the store under the last owner. */
  constructor(register: PeerRegister, survivors: ReadonlyMap<string, ProcessId>) {
    this.register = register;
    for (const [id, process] of survivors) {
      if (stateOf(process) === 'gone') register.remove(id);
      else this.expected.set(id, process);
    }
    if (this.expected.size > 0) this.settling = this.settle();
  }

  /** Undefined once leases can be given away. */
  get settled(): Promise<void> | undefined {
    return this.settling;
  }

  private async settle(): Promise<void> {
    const begun = performance.now();
    for (let ms = 0; this.expected.size > 0 && ms < RETURN_MS; ms = performance.now() - begun) {
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      for (const [id, process] of this.expected) {
        const state = stateOf(process);
        if (state === 'gone' || (state === 'stopped' && ms > STOPPED_MS)) this.forget(id);
      }
    }
    for (const id of this.expected.keys()) this.forget(id);
    this.settling = undefined;
  }

  private forget(id: string): void {
    this.register.remove(id);
    this.expected.delete(id);
  }

  /** A client has connected, for the first time or again, and says what it holds. */
  greet(id: string, process: ProcessId, channel: Channel, held: readonly HeldSession[]): Peer {
    const peer = this.peers.get(id) ?? new Peer(id, process, () => this.dismiss(id));
    const { pid, start } = peer.process;
    if (pid !== process.pid || start !== process.start) throw new TypeError('Another process has this id.');
    this.peers.set(id, peer);
    peer.connected(channel);
    if (this.expected.delete(id)) peer.recorded = Promise.resolve();
    for (const [session, { member }] of this.held) if (member.id === id) this.held.delete(session);
    for (const { session, turn } of held) if (!this.held.has(session)) this.held.set(session, { turn, member: peer });
    return peer;
  }

  /** True if the session is now held by this client. */
  async acquire(session: string, turn: string, peer: Peer): Promise<boolean> {
    if (this.settling !== undefined) await this.settling;
    peer.recorded ??= this.register.add(peer.id, peer.process);
    await peer.recorded;
    return peer.gone ? false : this.hold(session, turn, peer);
  }

  /** Gives a session to a member, unless another has it. */
  hold(session: string, turn: string, member: Member): boolean {
    const found = this.held.get(session);
    if (found !== undefined && found.member.id !== member.id) return false;
    this.held.set(session, { turn, member });
    return true;
  }

  release(session: string, id: string): void {
    if (this.held.get(session)?.member.id === id) this.held.delete(session);
  }

  async list(): Promise<readonly Holding[]> {
    if (this.settling !== undefined) await this.settling;
    return Array.from(this.held, ([session, { turn, member }]) => ({ session, turn, pid: member.process.pid }));
  }

  /** Puts a request to the process that holds a session, unless that is the one who asks. */
  async ask(session: string, request: Json, from: string, sink: Sink): Promise<Reply> {
    if (this.settling !== undefined) await this.settling;
    const member = this.held.get(session)?.member;
    if (member === undefined || member.id === from) return { status: 'nobody' };
    sink.asked(member.process);
    return member.ask(session, request, sink);
  }

  private dismiss(id: string): void {
    const peer = this.peers.get(id);
    this.peers.delete(id);
    for (const [session, { member }] of this.held) if (member.id === id) this.held.delete(session);
    if (peer?.recorded !== undefined) this.register.remove(id);
  }
}

/** What a client sends about a request that was put to it. */
interface Answer {
  readonly ok?: Reply;
  readonly error?: WireError;
  readonly piece?: Json;
  readonly droppable?: boolean;
  readonly ack?: boolean;
}

interface Asked {
  readonly sink: Sink;
  resolve(reply: Reply): void;
  reject(error: Error): void;
}

/** A client process, connected or about to return. */
export class Peer implements Member {
  readonly id: string;
  readonly process: ProcessId;
  /** Set once it is on the list of processes that hold leases. */
  recorded: Promise<void> | undefined;
  gone = false;
  private channel: Channel | undefined;
  private readonly dismissed: () => void;
  private readonly asked = new Map<number, Asked>();
  private readonly returning = new Set<() => void>();
  private count = 0;

  constructor(id: string, process: ProcessId, dismissed: () => void) {
    this.id = id;
    this.process = process;
    this.dismissed = dismissed;
  }

  connected(channel: Channel): void {
    const before = this.channel;
    this.channel = channel;
    before?.destroy();
    this.wake();
  }

  /** The connection broke. A process that has ended is dismissed at once, one that lives may return. */
  disconnected(channel: Channel): void {
    if (this.channel !== channel) return;
    this.channel = undefined;
    for (const { resolve } of this.asked.values()) resolve({ status: 'lost' });
    this.asked.clear();
    const until = performance.now() + RETURN_MS;
    const look = (): void => {
      if (this.channel !== undefined || this.gone) return;
      if (stateOf(this.process) === 'gone' || performance.now() > until) this.leave();
      else setTimeout(look, POLL_MS).unref();
    };
    look();
  }

  /** It is not coming back: what it held is free. */
  leave(): void {
    if (this.gone) return;
    this.gone = true;
    this.dismissed();
    this.wake();
  }

  async ask(session: string, request: Json, sink: Sink): Promise<Reply> {
    while (this.channel === undefined && !this.gone) {
      await new Promise<void>((resolve) => this.returning.add(resolve));
    }
    const { channel } = this;
    if (channel === undefined) return { status: 'lost' };
    const a = ++this.count;
    return new Promise((resolve, reject) => {
      this.asked.set(a, { sink, resolve, reject });
      channel.send({ a, session, request });
    });
  }

  /** What the client says about a request that was put to it. */
  receive(a: number, message: Answer): void {
    const asked = this.asked.get(a);
    if (asked === undefined) return;
    const { ok, error, piece, droppable, ack } = message;
    if (ack === true) return void asked.sink.ack();
    if (piece !== undefined) return void asked.sink.piece(piece, droppable);
    this.asked.delete(a);
    if (error !== undefined) asked.reject(fromWire(error));
    else asked.resolve(ok ?? { status: 'lost' });
  }

  private wake(): void {
    const waiting = [...this.returning];
    this.returning.clear();
    for (const resolve of waiting) resolve();
  }
}
