/**
 * The connection of a client to the owner of the store: requests and their answers, and requests of other processes for a session
 * that this one works on. When it breaks, every request that waits is rejected with ConnectionLost; asking again is the caller's
 * decision, since only it knows that its request may be repeated.
 */
import { Fault } from '../../../base/errors.js';
import type { Draft } from '../../../journal/record.js';
import type { Reply } from '../../../journal/store.js';
import type { Json } from '../../../protocol/json.js';
import type { Report } from '../check.js';
import { type ProcessId, type ProcessState, stateOf } from '../owner/process.js';
import type { OwnerRecord } from '../owner/record.js';
import { Channel } from './channel.js';
import { ConnectionLost, fromWire, toWire } from './errors.js';
import { proveToOwner } from './handshake.js';
import type { Sink } from './peers.js';
import { type Incoming, incomingOf } from './requests.js';
import { Silence } from './silence.js';

/** A session that is held, as the owner is told of it. */
export interface HeldSession {
  readonly session: string;
  readonly turn: string;
}

export interface ClientOptions {
  readonly owner: OwnerRecord;
  readonly id: string;
  readonly process: ProcessId;
  /** The sessions that this process works on, for an owner that is new. */
  held(): readonly HeldSession[];
  /** Answers a request of another process for one of them. */
  answer(session: string, request: Json, send: (piece: Json, droppable?: boolean) => void): Promise<Reply>;
  /** The owner has not answered for some time, and may be busy. */
  report(state: ProcessState): void;
  /** The error for an owner that is given up. */
  silent(state: ProcessState): Error;
  /** The connection is of no use any more. */
  closed(): void;
}

interface Waiting {
  /** When it was sent, on the clock of the owner's silence. */
  since?: number;
  resolve(value: unknown): void;
  reject(error: Error): void;
  /** Where the answer of another process goes while it comes. */
  readonly sink?: Sink | undefined;
  /** The owner has passed the request on to another process. */
  passedOn?: boolean;
}

export class Client {
  readonly owner: OwnerRecord;
  /** What the owner found when it opened the store. */
  report: Report | undefined;
  private readonly options: ClientOptions;
  private readonly channel: Channel;
  private readonly silence: Silence;
  private readonly waiting = new Map<number, Waiting>();
  private count = 0;
  private lost = false;
  /** Both sides have proved themselves. */
  private proved = false;
  /** The owner was given up and has not been heard of since: what comes now does not wait for it again. */
  private isSilent = false;
  private failed: ((error: Error) => void) | undefined;

  private constructor(channel: Channel, options: ClientOptions) {
    this.owner = options.owner;
    this.options = options;
    this.channel = channel;
    this.silence = new Silence({
      since: () => this.oldest(),
      state: () => stateOf(options.owner),
      report: (state) => options.report(state),
      giveUp: (state) => this.giveUp(state),
    });
  }

  /** Connects and proves itself; rejects if nobody listens there, or somebody else does. */
  static async open(options: ClientOptions): Promise<Client> {
    const client = new Client(await Channel.connect(options.owner.socket), options);
    try {
      await client.prove();
      const { id, process, held } = options;
      const { report } = (await client.request('hello', { id, process, held: held() })) as { report: Report };
      client.report = report;
      return client;
    } catch (thrown) {
      client.channel.destroy();
      throw thrown;
    }
  }

  private async prove(): Promise<void> {
    const { channel, silence } = this;
    silence.start();
    try {
      await Promise.race([proveToOwner(channel, this.owner.secret), this.givenUp()]);
    } finally {
      silence.stop();
    }
    this.proved = true;
    channel.onMessage = (message) => this.receive(message);
    channel.onClose = () => this.lose();
  }

  private givenUp(): Promise<never> {
    return new Promise((_, reject) => {
      this.failed = reject;
    });
  }

  request(op: string, args: object): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.post({ resolve, reject }, (i) => this.channel.send({ i, op, ...args }));
    });
  }

  /** An append with the large values that its entries name. */
  append(draft: Draft, blobs?: readonly (readonly [string, string])[]): Promise<void> {
    const { session, fence, first, count, body } = draft;
    return new Promise((resolve, reject) => {
      this.post({ resolve: resolve as Waiting['resolve'], reject }, (i) =>
        this.channel.sendWithBody({ i, op: 'append', session, fence, first, count, blobs }, body),
      );
    });
  }

  /** Sends something that is not answered. */
  tell(op: string, args: object): void {
    this.channel.send({ ...args, op });
  }

  /** Asks the process that holds a session. */
  ask(session: string, request: Json, sink: Sink): Promise<Reply> {
    return new Promise((resolve, reject) => {
      const waiting = { resolve: resolve as Waiting['resolve'], reject, sink };
      this.post(waiting, (i) => this.channel.send({ i, op: 'ask', session, request }));
    });
  }

  /** Says goodbye: what this process held is free at once. */
  close(): void {
    this.tell('bye', {});
    this.channel.onClose = () => {};
    this.lose();
    this.channel.end();
  }

  /** Sends a request under a number of its own; `send` returns false if it is too large. */
  private post(waiting: Waiting, send: (i: number) => boolean): void {
    if (this.isSilent) return void waiting.reject(this.options.silent(stateOf(this.owner)));
    if (this.lost) return void waiting.reject(new ConnectionLost('The connection to the owner was closed.'));
    const i = ++this.count;
    if (!send(i)) return void waiting.reject(tooLarge());
    this.waiting.set(i, waiting);
    if (this.waiting.size === 1) this.channel.hold(true);
    this.silence.start();
    waiting.since = this.silence.now;
  }

  /**
   * When the oldest request was sent that the owner itself has to answer; undefined if there is none. A long wait for another process is
   * not the owner's silence.
   */
  private oldest(): number | undefined {
    if (!this.proved) return 0;
    for (const { since, passedOn } of this.waiting.values()) if (passedOn !== true) return since ?? 0;
    return undefined;
  }

  /** Takes a request off those that wait. */
  private settle(i: number): Waiting | undefined {
    const waiting = this.waiting.get(i);
    if (waiting === undefined) return undefined;
    this.waiting.delete(i);
    if (this.waiting.size === 0) this.channel.hold(false);
    return waiting;
  }

  private receive(received: unknown): void {
    this.isSilent = false;
    if (typeof received === 'number') return void this.settle(received)?.resolve(null);
    const message = incomingOf(received);
    // Whoever sends this does not speak our protocol.
    if (message === undefined) return void this.channel.destroy();
    const { i, a } = message;
    if (a !== undefined) return void this.serve(a, message);
    if (i === undefined) return;
    if ('ok' in message) this.settle(i)?.resolve(message.ok);
    else if (message.error !== undefined) this.settle(i)?.reject(fromWire(message.error));
    else this.progress(i, message);
  }

  private progress(i: number, { asked, ack, piece, droppable }: Incoming): void {
    const waiting = this.waiting.get(i);
    if (waiting?.sink === undefined) return;
    if (ack === true) waiting.sink.ack();
    else if (piece !== undefined) waiting.sink.piece(piece, droppable);
    if (asked === undefined || waiting.passedOn === true) return;
    waiting.passedOn = true;
    waiting.sink.asked(asked);
  }

  /** Answers a request that another process has for a session of this one. */
  private serve(a: number, { session = '', request = null }: Incoming): void {
    this.channel.send({ a, ack: true });
    const send = (piece: Json, droppable?: boolean): void => void this.channel.send({ a, piece, droppable }, droppable);
    const fail = (thrown: unknown): void => void this.channel.send({ a, error: toWire(thrown) });
    this.options.answer(session, request, send).then((reply) => {
      if (!this.channel.send({ a, ok: reply })) fail(new TypeError('The answer is too large.'));
    }, fail);
  }

  private giveUp(state: ProcessState): void {
    // The system closes the socket of a process that is gone; until it has, it is done here.
    if (state === 'gone') return void this.channel.destroy();
    this.isSilent = true;
    const error = this.options.silent(state);
    if (!this.proved) return void this.failed?.(error);
    // Its answer says that the owner is back; nothing else is sent until then.
    this.channel.send({ op: 'holdings', i: ++this.count });
    for (const i of [...this.waiting.keys()]) this.settle(i)?.reject(error);
  }

  private lose(): void {
    if (this.lost) return;
    this.lost = true;
    this.silence.stop();
    this.options.closed();
    for (const i of [...this.waiting.keys()]) {
      this.settle(i)?.reject(new ConnectionLost('The connection to the owner was closed.'));
    }
  }
}

function tooLarge(): Fault {
  return new Fault('STORE_FAILED', 'The request is too large to be handed to the process that owns the store.');
}
