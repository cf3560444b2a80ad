/**
 * A message channel between two processes: JSON documents over a socket, one per line. Messages that are sent together
 * go out in one write, so that a group commit of many sessions costs few system calls. A body that is already JSON text
 * follows its document after a tab, which `JSON.stringify` never writes, so that the body is neither escaped nor parsed
 * twice.
 */
import { connect, type Socket } from 'node:net';
import { StringDecoder } from 'node:string_decoder';
import { parseMessageWithBody } from './message-header.js';

/** Maximum length of a line: more than that of a blob, and close to the maximum length of a string in V8. */
const MAX_LINE_CHARS = 500_000_000;
/** Size of the read buffer. */
const READ_BUFFER_BYTES = 64 * 1024;
/** Queued lines are joined into one write up to this total length; beyond it, each line is one write. */
const MAX_JOINED_WRITE_CHARS = 1024 * 1024;
/** Backpressure: a reader that lags behind by this much receives no more droppable messages. */
const DROP_ABOVE_BYTES = 1024 * 1024;
/** Backpressure: a reader that lags behind by more than this is disconnected at the next write. */
const MAX_UNREAD_BYTES = 256 * 1024 * 1024;

/** Sends and receives messages over a socket. */
export class Channel {
  /** Receives each message. Set it before a message can arrive. If it throws, the channel is closed. */
  onMessage: (message: unknown) => void = () => {};
  /** Called once, when the channel is closed. */
  onClose: () => void = () => {};
  /** Maximum length of a received line. A longer line closes the channel. */
  maxLineChars: number = MAX_LINE_CHARS;
  private readonly socket: Socket;
  private queue: string[] = [];
  private queuedChars = 0;
  private partialLine: string[] = [];
  private partialLineChars = 0;
  private isClosed = false;
  private isEnding = false;

  constructor(socket: Socket) {
    this.socket = socket;
    socket.setEncoding('utf8');
    socket.on('data', (chunk: string) => this.receive(chunk));
    socket.on('error', () => this.destroy());
    socket.on('close', () => this.destroy());
    socket.on('end', () => this.destroy());
  }

  /**
   * Connects to an address. All reads of the channel share one buffer, whereas a plain stream allocates one per read.
   */
  static connect(path: string): Promise<Channel> {
    return new Promise((resolve, reject) => {
      const decoder = new StringDecoder('utf8');
      const callback = (bytes: number, buffer: Uint8Array): boolean => {
        channel.receive(decoder.write(Buffer.from(buffer.buffer, buffer.byteOffset, bytes)));
        return true;
      };
      const socket = connect({ path, onread: { buffer: Buffer.allocUnsafeSlow(READ_BUFFER_BYTES), callback } });
      const channel = new Channel(socket);
      socket.once('error', reject);
      socket.once('connect', () => resolve(channel));
    });
  }

  /**
   * Queues a message. Returns false if it is too large or cannot be serialized. A droppable message is omitted if the
   * reader lags behind, and every message if the channel is closed; the result is then true.
   */
  send(message: object, droppable = false): boolean {
    if (this.isClosed || this.isEnding || (droppable && this.socket.writableLength > DROP_ABOVE_BYTES)) return true;
    return this.enqueue(toLine(message));
  }

  /** Like `send`, for a message whose member `body` is JSON text. */
  sendWithBody(message: object, body: string): boolean {
    return this.isClosed || this.isEnding || this.enqueue(toLine(message, body));
  }

  /** Acknowledges request number `i` by sending its number alone, which is the most frequent message. */
  acknowledge(i: number): void {
    if (!this.isClosed && !this.isEnding) this.enqueue(`${i}\n`);
  }

  private enqueue(line: string | undefined): boolean {
    if (line === undefined) return false;
    if (this.queue.push(line) === 1) process.nextTick(() => this.flush());
    this.queuedChars += line.length;
    return true;
  }

  /** Sets whether this channel keeps the process alive. */
  setKeepAlive(keepsAlive: boolean): void {
    if (keepsAlive) this.socket.ref();
    else this.socket.unref();
  }

  /** Sends the queued messages, then closes. Messages that arrive later are ignored. */
  end(): void {
    if (this.isClosed || this.isEnding) return;
    this.flush();
    this.isEnding = true;
    this.socket.end(() => this.destroy());
  }

  /** Closes immediately, discards queued messages and calls `onClose`. */
  destroy(): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.queue = [];
    this.partialLine = [];
    this.socket.destroy();
    this.onClose();
  }

  /** Sends the queued messages immediately, or closes the channel if its reader lags too far behind. */
  flush(): void {
    const { queue, queuedChars } = this;
    this.queue = [];
    this.queuedChars = 0;
    if (this.isClosed || queue.length === 0) return;
    if (this.socket.writableLength > MAX_UNREAD_BYTES) return void this.destroy();
    if (queuedChars <= MAX_JOINED_WRITE_CHARS) this.socket.write(queue.join(''));
    else for (const line of queue) this.socket.write(line);
  }

  private receive(chunk: string): void {
    let from = 0;
    for (let end = chunk.indexOf('\n'); end !== -1; end = chunk.indexOf('\n', from)) {
      if (this.isClosed || this.isEnding) return;
      const line = chunk.slice(from, end);
      from = end + 1;
      this.handleLine(this.partialLine.length === 0 ? line : this.completeLine(line));
    }
    if (from === chunk.length || this.isEnding) return;
    this.partialLine.push(chunk.slice(from));
    this.partialLineChars += chunk.length - from;
    if (this.partialLineChars > this.maxLineChars) this.destroy();
  }

  /** Joins the end of a line with the parts that arrived before. */
  private completeLine(end: string): string {
    const line = this.partialLine.join('') + end;
    this.partialLine = [];
    this.partialLineChars = 0;
    return line;
  }

  private handleLine(line: string): void {
    try {
      if (line.length > this.maxLineChars) throw new RangeError('too long');
      const end = line.indexOf('\t');
      this.onMessage(end === -1 ? JSON.parse(line) : parseMessageWithBody(line.slice(0, end), line.slice(end + 1)));
    } catch {
      // The sender does not follow the protocol. Only its own connection is closed.
      this.destroy();
    }
  }
}

/** Serializes a message as a line; undefined if it is too large or cannot be serialized. */
function toLine(message: object, body?: string): string | undefined {
  try {
    const line = `${JSON.stringify(message)}${body === undefined ? '' : `\t${body}`}\n`;
    return line.length > MAX_LINE_CHARS ? undefined : line;
  } catch {
    return undefined;
  }
}
