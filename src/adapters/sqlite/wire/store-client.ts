/**
 * The connection of a client to the owner of the store: requests and their answers, and requests of other processes for a session
 * that this one works on. When it breaks, every request that waits is rejected with ConnectionLost; asking again is the caller's
 * decision, since only it knows that its request may be repeated.
 */
import { Fault } from '../../../base/errors.js';
import type { RecordDraft } from '../../../journal/record.js';
import type { LeaseReply } from '../../../journal/store.js';
import type { Json } from '../../../protocol/json.js';
import type { OwnerInfo } from '../owner/owner-file.js';
import { type ProcessId, type ProcessState, processStateOf } from '../owner/process.js';
import type { CheckReport } from '../store-inspection.js';
import { Channel } from './channel.js';
import { authenticateAsClient } from './handshake.js';
import type { ReplySink } from './lease-table.js';
import { type OwnerMessage, parseOwnerMessage } from './messages.js';
import { ResponseWatchdog } from './response-watchdog.js';
import { ConnectionLost, fromWireError, toWireError } from './wire-errors.js';

/** A session that is held, as the owner is told of it. */
export interface HeldSession {
  readonly session: string;
  readonly turn: string;
}

export interface StoreClientOptions {
  readonly owner: OwnerInfo;
  readonly id: string;
  readonly process: ProcessId;
  /** The sessions that this process works on, for an owner that is new. */
  heldSessions(): readonly HeldSession[];
  /** Answers a request of another process for one of them. */
  answer(session: string, request: Json, send: (piece: Json, droppable?: boolean) => void): Promise<LeaseReply>;
  /** The owner has not answered for some time, and may be busy. */
  onUnresponsive(state: ProcessState): void;
  /** The error for an owner that is given up. */
  unresponsiveError(state: ProcessState): Error;
  /** The connection is of no use any more. */
  onClosed(): void;
}

interface PendingRequest {
  /** When it was sent, on the clock of the owner's silence. */
  sentAtMs?: number;
  resolve(value: unknown): void;
  reject(error: Error): void;
  /** Where the answer of another process goes while it comes. */
  readonly sink?: ReplySink | undefined;
  /** The owner has passed the request on to another process. */
  isForwarded?: boolean;
}

export class StoreClient {
  readonly owner: OwnerInfo;
  /** What the owner found when it opened the store. */
  report: CheckReport | undefined;
  private readonly options: StoreClientOptions;
  private readonly channel: Channel;
  private readonly watchdog: ResponseWatchdog;
  private readonly pending = new Map<number, PendingRequest>();
  private lastRequestNumber = 0;
  private isLost = false;
  /** Both sides have proved themselves. */
  private isAuthenticated = false;
  /** The owner was given up and has not been heard of since: what comes now does not wait for it again. */
  private isOwnerUnresponsive = false;
  private rejectAuthentication: ((error: Error) => void) | undefined;

  private constructor(channel: Channel, options: StoreClientOptions) {
    this.owner = options.owner;
    this.options = options;
    this.channel = channel;
    this.watchdog = new ResponseWatchdog({
      oldestPendingMs: () => this.oldestPendingMs(),
      processState: () => processStateOf(options.owner),
      onUnresponsive: (state) => options.onUnresponsive(state),
      onGiveUp: (state) => this.giveUp(state),
    });
  }

  /** Connects and proves itself; rejects if nobody listens there, or somebody else does. */
  static async open(options: StoreClientOptions): Promise<StoreClient> {
    const client = new StoreClient(await Channel.connect(options.owner.socket), options);
    try {
      await client.authenticate();
      const { id, process, heldSessions } = options;
      const { report } = (await client.request('hello', { id, process, held: heldSessions() })) as {
        report: CheckReport;
      };
      client.report = report;
      return client;
    } catch (thrown) {
      client.channel.destroy();
      throw thrown;
    }
  }

  private async authenticate(): Promise<void> {
    const { channel, watchdog } = this;
    watchdog.start();
    try {
      await Promise.race([authenticateAsClient(channel, this.owner.secret), this.rejectionOnGiveUp()]);
    } finally {
      watchdog.stop();
    }
    this.isAuthenticated = true;
    channel.onMessage = (message) => this.receive(message);
    channel.onClose = () => this.handleClose();
  }

  private rejectionOnGiveUp(): Promise<never> {
    return new Promise((_, reject) => {
      this.rejectAuthentication = reject;
    });
  }

  request(op: string, args: object): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.sendRequest({ resolve, reject }, (i) => this.channel.send({ i, op, ...args }));
    });
  }

  /** An append with the large values that its entries name. */
  append(draft: RecordDraft, blobs?: readonly (readonly [string, string])[]): Promise<void> {
    const { session, fence, firstSeq, count, body } = draft;
    return new Promise((resolve, reject) => {
      this.sendRequest({ resolve: resolve as PendingRequest['resolve'], reject }, (i) =>
        this.channel.sendWithBody({ i, op: 'append', session, fence, firstSeq, count, blobs }, body),
      );
    });
  }

  /** Sends something that is not answered. */
  sendUnanswered(op: string, args: object): void {
    this.channel.send({ ...args, op });
  }

  /** Asks the process that holds a session. */
  ask(session: string, request: Json, sink: ReplySink): Promise<LeaseReply> {
    return new Promise((resolve, reject) => {
      const waiting = { resolve: resolve as PendingRequest['resolve'], reject, sink };
      this.sendRequest(waiting, (i) => this.channel.send({ i, op: 'ask', session, request }));
    });
  }

  /** Says goodbye: what this process held is free at once. */
  close(): void {
    this.sendUnanswered('bye', {});
    this.channel.onClose = () => {};
    this.handleClose();
    this.channel.end();
  }

  /** Sends a request under a number of its own; `send` returns false if it is too large. */
  private sendRequest(waiting: PendingRequest, send: (i: number) => boolean): void {
    if (this.isOwnerUnresponsive)
      return void waiting.reject(this.options.unresponsiveError(processStateOf(this.owner)));
    if (this.isLost) return void waiting.reject(new ConnectionLost('The connection to the owner was closed.'));
    const i = ++this.lastRequestNumber;
    if (!send(i)) return void waiting.reject(requestTooLargeFault());
    this.pending.set(i, waiting);
    if (this.pending.size === 1) this.channel.setKeepAlive(true);
    this.watchdog.start();
    waiting.sentAtMs = this.watchdog.elapsedMs;
  }

  /**
   * When the oldest request was sent that the owner itself has to answer; undefined if there is none. A long wait for another process is
   * not the owner's silence.
   */
  private oldestPendingMs(): number | undefined {
    if (!this.isAuthenticated) return 0;
    for (const { sentAtMs, isForwarded } of this.pending.values()) if (isForwarded !== true) return sentAtMs ?? 0;
    return undefined;
  }

  /** Takes a request off those that wait. */
  private takePending(i: number): PendingRequest | undefined {
    const waiting = this.pending.get(i);
    if (waiting === undefined) return undefined;
    this.pending.delete(i);
    if (this.pending.size === 0) this.channel.setKeepAlive(false);
    return waiting;
  }

  private receive(received: unknown): void {
    this.isOwnerUnresponsive = false;
    if (typeof received === 'number') return void this.takePending(received)?.resolve(null);
    const message = parseOwnerMessage(received);
    // Whoever sends this does not speak our protocol.
    if (message === undefined) return void this.channel.destroy();
    const { i, a } = message;
    if (a !== undefined) return void this.answerForwarded(a, message);
    if (i === undefined) return;
    if ('ok' in message) this.takePending(i)?.resolve(message.ok);
    else if (message.error !== undefined) this.takePending(i)?.reject(fromWireError(message.error));
    else this.handleProgress(i, message);
  }

  private handleProgress(i: number, { asked, ack, piece, droppable }: OwnerMessage): void {
    const waiting = this.pending.get(i);
    if (waiting?.sink === undefined) return;
    if (ack === true) waiting.sink.ack();
    else if (piece !== undefined) waiting.sink.piece(piece, droppable);
    if (asked === undefined || waiting.isForwarded === true) return;
    waiting.isForwarded = true;
    waiting.sink.asked(asked);
  }

  /** Answers a request that another process has for a session of this one. */
  private answerForwarded(a: number, { session = '', request = null }: OwnerMessage): void {
    this.channel.send({ a, ack: true });
    const send = (piece: Json, droppable?: boolean): void => void this.channel.send({ a, piece, droppable }, droppable);
    const fail = (thrown: unknown): void => void this.channel.send({ a, error: toWireError(thrown) });
    this.options.answer(session, request, send).then((reply) => {
      if (!this.channel.send({ a, ok: reply })) fail(new TypeError('The answer is too large.'));
    }, fail);
  }

  private giveUp(state: ProcessState): void {
    // The system closes the socket of a process that is gone; until it has, it is done here.
    if (state === 'gone') return void this.channel.destroy();
    this.isOwnerUnresponsive = true;
    const error = this.options.unresponsiveError(state);
    if (!this.isAuthenticated) return void this.rejectAuthentication?.(error);
    // Its answer says that the owner is back; nothing else is sent until then.
    this.channel.send({ op: 'holdings', i: ++this.lastRequestNumber });
    for (const i of [...this.pending.keys()]) this.takePending(i)?.reject(error);
  }

  private handleClose(): void {
    if (this.isLost) return;
    this.isLost = true;
    this.watchdog.stop();
    this.options.onClosed();
    for (const i of [...this.pending.keys()]) {
      this.takePending(i)?.reject(new ConnectionLost('The connection to the owner was closed.'));
    }
  }
}

function requestTooLargeFault(): Fault {
  return new Fault('STORE_FAILED', 'The request is too large to be handed to the process that owns the store.');
}
