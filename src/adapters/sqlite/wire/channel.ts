/**
 * A channel between two processes: JSON documents, one a line, over a socket. What is sent in one turn of the event loop goes out
 * in one write, so that a group commit of many sessions costs few system calls. A body that is JSON text already travels behind its
 * document, after a tab, which no JSON text contains: it is neither escaped nor read twice.
 */
import { connect, type Socket } from 'node:net';
import { StringDecoder } from 'node:string_decoder';
import { parseMessageWithBody } from './message-header.js';

/** Longer than any append or value that the store accepts; JavaScript has no strings beyond it. */
const MAX_LINE_CHARS = 500_000_000;
/** What is read at a time. */
const READ_BUFFER_BYTES = 64 * 1024;
/** Lines are joined into one write up to this size. */
const MAX_JOINED_WRITE_CHARS = 1024 * 1024;
/** A reader that lags by so much gets no more of what it can do without. */
const DROP_ABOVE_BYTES = 1024 * 1024;
/** A reader that lags by so much has stopped reading. */
const MAX_UNREAD_BYTES = 256 * 1024 * 1024;

export class Channel {
  /** Receives each document; set it before anything can arrive. */
  onMessage: (message: unknown) => void = () => {};
  /** Called once, when nothing more can be sent or received. */
  onClose: () => void = () => {};
  /** The longest line that is accepted. */
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

  /** Connects to an address. What comes is read into one buffer: a stream would take a new one each time. */
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

  /** Sends a document; one that is droppable is left out for a reader that lags behind. False if it is too large or too deep. */
  send(message: object, droppable = false): boolean {
    if (this.isClosed || this.isEnding || (droppable && this.socket.writableLength > DROP_ABOVE_BYTES)) return true;
    return this.enqueue(toLine(message));
  }

  /** Sends a document whose member `body` is JSON text, given apart from it. False if it is too large. */
  sendWithBody(message: object, body: string): boolean {
    return this.isClosed || this.isEnding || this.enqueue(toLine(message, body));
  }

  /** Acknowledges a request by its number alone: the answer that is sent most often. */
  acknowledge(i: number): void {
    if (!this.isClosed && !this.isEnding) this.enqueue(`${i}\n`);
  }

  private enqueue(line: string | undefined): boolean {
    if (line === undefined) return false;
    if (this.queue.push(line) === 1) process.nextTick(() => this.flush());
    this.queuedChars += line.length;
    return true;
  }

  /** Keeps the process alive, or no longer. */
  setKeepAlive(alive: boolean): void {
    if (alive) this.socket.ref();
    else this.socket.unref();
  }

  /** Sends what is queued, then closes; nothing more is received. */
  end(): void {
    if (this.isClosed || this.isEnding) return;
    this.flush();
    this.isEnding = true;
    this.socket.end(() => this.destroy());
  }

  destroy(): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.queue = [];
    this.partialLine = [];
    this.socket.destroy();
    this.onClose();
  }

  /** Sends what is queued, at once. */
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

  /** A line whose beginning came before. */
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
      // Whoever sends this does not speak our protocol: it is cut off, and nothing else is affected.
      this.destroy();
    }
  }
}

/** A document as a line; undefined for one that is too deep or too large to be written. */
function toLine(message: object, body?: string): string | undefined {
  try {
    const line = `${JSON.stringify(message)}${body === undefined ? '' : `\t${body}`}\n`;
    return line.length > MAX_LINE_CHARS ? undefined : line;
  } catch {
    return undefined;
  }
}
