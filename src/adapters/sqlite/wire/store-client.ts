/**
 * A client's connection to the owner of the store: its requests and their responses, and requests of other processes
 * for a session that this process works on. When the connection breaks, every pending request is rejected with
 * ConnectionLost. Repeating a request is the decision of the caller, which alone can tell that it is safe.
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
import type { HelloReply } from './store-server.js';
import { ConnectionLost, fromWireError, toWireError } from './wire-errors.js';

/** A lease of this process, as it is reported to the owner. */
export interface HeldSession {
  readonly session: string;
  readonly turn: string;
}

/** Options of `StoreClient.open`. */
interface StoreClientOptions {
  readonly owner: OwnerInfo;
  /** The id of this process in the lease table. */
  readonly id: string;
  readonly process: ProcessId;
  /** Returns the leases of this process, for a new owner. */
  heldSessions(): readonly HeldSession[];
  /** Answers a request of another process for one of these sessions. */
  answer(session: string, request: Json, send: (piece: Json, droppable?: boolean) => void): Promise<LeaseReply>;
  /** Called when the owner has not answered for a while. It may be busy. */
  onUnresponsive(state: ProcessState): void;
  /** Returns the error for an owner that is given up. */
  unresponsiveError(state: ProcessState): Error;
  /** Called once, when the connection is closed by either side, before the pending requests are rejected. */
  onClosed(): void;
}

interface PendingRequest {
  /** When the request was sent, in milliseconds of listening time. */
  sentAtMs?: number;
  resolve(value: unknown): void;
  reject(error: Error): void;
  /** Receives the reply of another process while it arrives. */
  readonly sink?: ReplySink | undefined;
  /** True if the owner has forwarded the request to another process. */
  isForwarded?: boolean;
  /** Called with the result if the owner performs the request after it was given up and the request rejected. */
  readonly onLateResponse?: ((value: unknown) => void) | undefined;
}

/** An authenticated connection to the owner. */
export class StoreClient {
  readonly owner: OwnerInfo;
  /** The result of the check when the owner opened the store. */
  report: CheckReport | undefined;
  /** Identifies the key of the store; empty if it has none, or if the owner does not say. */
  keyId = '';
  private readonly options: StoreClientOptions;
  private readonly channel: Channel;
  private readonly watchdog: ResponseWatchdog;
  private readonly pending = new Map<number, PendingRequest>();
  /** The `onLateResponse` of rejected requests, by request number. */
  private readonly lateResponses = new Map<number, (value: unknown) => void>();
  private lastRequestNumber = 0;
  private isLost = false;
  /** True after the handshake. */
  private isAuthenticated = false;
  /** True if the owner was given up and has sent nothing since. New requests are then rejected without waiting. */
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

  /**
   * Connects and authenticates. Rejects if there is no listener, or if the listener is not the owner, runs another
   * version or is unresponsive.
   */
  static async open(options: StoreClientOptions): Promise<StoreClient> {
    const client = new StoreClient(await Channel.connect(options.owner.socket), options);
    try {
      await client.authenticate();
      const { id, process, heldSessions } = options;
      const { report, keyId = '' } = (await client.request('hello', {
        id,
        process,
        held: heldSessions(),
      })) as HelloReply;
      client.report = report;
      client.keyId = keyId;
      return client;
    } catch (error) {
      client.channel.destroy();
      throw error;
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

  /** Returns a promise that rejects if the owner is given up before the handshake ends. */
  private rejectionOnGiveUp(): Promise<never> {
    return new Promise((_, reject) => {
      this.rejectAuthentication = reject;
    });
  }

  /**
   * Sends a request and resolves with its result. `onLateResponse` is called with the result if the owner was given up,
   * so that the request is already rejected, and performs the request nevertheless once it is responsive again.
   */
  request(op: string, args: object, onLateResponse?: (value: unknown) => void): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.sendRequest({ resolve, reject, onLateResponse }, (i) => this.channel.send({ i, op, ...args }));
    });
  }

  /** Sends an append, with the blobs that are to be stored together with it. */
  append(draft: RecordDraft, blobs?: readonly (readonly [string, string])[]): Promise<void> {
    const { session, fence, firstSeq, count, body, due } = draft;
    return new Promise((resolve, reject) => {
      this.sendRequest({ resolve: resolve as PendingRequest['resolve'], reject }, (i) =>
        this.channel.sendWithBody({ i, op: 'append', session, fence, firstSeq, count, blobs, due }, body),
      );
    });
  }

  /** Sends a message that has no response. */
  sendUnanswered(op: string, args: object): void {
    this.channel.send({ ...args, op });
  }

  /** Sends a request to the process that holds a session. */
  ask(session: string, request: Json, sink: ReplySink): Promise<LeaseReply> {
    return new Promise((resolve, reject) => {
      const pending = { resolve: resolve as PendingRequest['resolve'], reject, sink };
      this.sendRequest(pending, (i) => this.channel.send({ i, op: 'ask', session, request }));
    });
  }

  /** Closes the connection and releases the leases of this process at once. Rejects the pending requests. */
  close(): void {
    this.sendUnanswered('bye', {});
    this.channel.onClose = () => {};
    this.handleClose();
    this.channel.end();
  }

  /** Sends a request under a new number, or rejects it. `send` returns false if the request is too large. */
  private sendRequest(pending: PendingRequest, send: (i: number) => boolean): void {
    if (this.isOwnerUnresponsive)
      return void pending.reject(this.options.unresponsiveError(processStateOf(this.owner)));
    if (this.isLost) return void pending.reject(new ConnectionLost('The connection to the owner was closed.'));
    const i = ++this.lastRequestNumber;
    if (!send(i)) return void pending.reject(requestTooLargeFault());
    this.pending.set(i, pending);
    if (this.pending.size === 1) this.channel.setKeepAlive(true);
    this.watchdog.start();
    pending.sentAtMs = this.watchdog.elapsedMs;
  }

  /**
   * Returns when the oldest request was sent that the owner itself must answer; undefined if there is none. A forwarded
   * request that waits for another process does not make the owner unresponsive.
   */
  private oldestPendingMs(): number | undefined {
    if (!this.isAuthenticated) return 0;
    for (const { sentAtMs, isForwarded } of this.pending.values()) if (isForwarded !== true) return sentAtMs ?? 0;
    return undefined;
  }

  /** Removes and returns a pending request. */
  private takePending(i: number): PendingRequest | undefined {
    const pending = this.pending.get(i);
    if (pending === undefined) return undefined;
    this.pending.delete(i);
    if (this.pending.size === 0) this.channel.setKeepAlive(false);
    return pending;
  }

  private receive(received: unknown): void {
    this.isOwnerUnresponsive = false;
    if (typeof received === 'number') return void this.takePending(received)?.resolve(null);
    const message = parseOwnerMessage(received);
    // The sender does not follow the protocol.
    if (message === undefined) return void this.channel.destroy();
    const { i, a } = message;
    if (a !== undefined) return void this.answerForwarded(a, message);
    if (i === undefined) return;
    if ('ok' in message) this.receiveResult(i, message.ok);
    else if (message.error !== undefined) this.receiveError(i, fromWireError(message.error));
    else this.handleProgress(i, message);
  }

  private receiveResult(i: number, value: unknown): void {
    this.takePending(i)?.resolve(value);
    this.lateResponses.get(i)?.(value);
    this.lateResponses.delete(i);
  }

  private receiveError(i: number, error: Error): void {
    this.takePending(i)?.reject(error);
    this.lateResponses.delete(i);
  }

  private handleProgress(i: number, { asked, ack, piece, droppable }: OwnerMessage): void {
    const pending = this.pending.get(i);
    if (pending?.sink === undefined) return;
    if (ack === true) pending.sink.ack();
    else if (piece !== undefined) pending.sink.piece(piece, droppable);
    if (asked === undefined || pending.isForwarded === true) return;
    pending.isForwarded = true;
    pending.sink.asked(asked);
  }

  /** Answers a request of another process for a session of this one. */
  private answerForwarded(a: number, { session = '', request = null }: OwnerMessage): void {
    this.channel.send({ a, ack: true });
    const send = (piece: Json, droppable?: boolean): void => void this.channel.send({ a, piece, droppable }, droppable);
    const fail = (error: unknown): void => void this.channel.send({ a, error: toWireError(error) });
    this.options.answer(session, request, send).then((reply) => {
      if (!this.channel.send({ a, ok: reply })) fail(new TypeError('The answer is too large.'));
    }, fail);
  }

  /** Gives up the owner: rejects all pending requests, or closes the connection if the owner has ended. */
  private giveUp(state: ProcessState): void {
    // The system closes the socket of a process that has ended, possibly later than this.
    if (state === 'gone') return void this.channel.destroy();
    this.isOwnerUnresponsive = true;
    const error = this.options.unresponsiveError(state);
    if (!this.isAuthenticated) return void this.rejectAuthentication?.(error);
    // A probe: its response shows that the owner is responsive again. No other request is sent until then.
    this.channel.send({ op: 'holdings', i: ++this.lastRequestNumber });
    for (const [i, { onLateResponse }] of [...this.pending]) {
      if (onLateResponse !== undefined) this.lateResponses.set(i, onLateResponse);
      this.takePending(i)?.reject(error);
    }
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
  return new Fault('STORE_FAILED', 'The request is too large to be sent to the process that owns the store.');
}
