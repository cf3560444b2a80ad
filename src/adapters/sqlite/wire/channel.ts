/**
 * A channel between two processes: JSON documents, one a line, over a socket. What is sent in one turn of the event loop goes out
 * in one write, so that a group commit of many sessions costs few system calls.
 */
import type { Socket } from 'node:net';

/** Longer than any append or value that the store accepts; JavaScript has no strings beyond it. */
const MAX_LINE_CHARS = 500_000_000;
/** Lines are joined into one write up to this size. */
const JOIN_CHARS = 1024 * 1024;
/** A reader that lags by so much gets no more of what it can do without. */
const DROP_BYTES = 1024 * 1024;
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
  private queued = 0;
  private rest: string[] = [];
  private restChars = 0;
  private closed = false;
  private ending = false;

  constructor(socket: Socket) {
    this.socket = socket;
    socket.setEncoding('utf8');
    socket.on('data', (chunk: string) => this.receive(chunk));
    socket.on('error', () => this.destroy());
    socket.on('close', () => this.destroy());
    socket.on('end', () => this.destroy());
  }

  /** Sends a document; one that is droppable is left out for a reader that lags behind. False if it is too large or too deep. */
  send(message: object, droppable = false): boolean {
    if (this.closed || this.ending || (droppable && this.socket.writableLength > DROP_BYTES)) return true;
    const line = lineOf(message);
    if (line === undefined) return false;
    if (this.queue.push(line) === 1) process.nextTick(() => this.flush());
    this.queued += line.length;
    return true;
  }

  /** Keeps the process alive, or no longer. */
  hold(alive: boolean): void {
    if (alive) this.socket.ref();
    else this.socket.unref();
  }

  /** Sends what is queued, then closes; nothing more is received. */
  end(): void {
    if (this.closed || this.ending) return;
    this.flush();
    this.ending = true;
    this.socket.end(() => this.destroy());
  }

  destroy(): void {
    if (this.closed) return;
    this.closed = true;
    this.queue = [];
    this.rest = [];
    this.socket.destroy();
    this.onClose();
  }

  private flush(): void {
    const { queue, queued } = this;
    this.queue = [];
    this.queued = 0;
    if (this.closed || queue.length === 0) return;
    if (this.socket.writableLength > MAX_UNREAD_BYTES) return void this.destroy();
    if (queued <= JOIN_CHARS) this.socket.write(queue.join(''));
    else for (const line of queue) this.socket.write(line);
  }

  private receive(chunk: string): void {
    if (this.ending) return;
    const lines = chunk.split('\n');
    const last = lines.pop() ?? '';
    for (const line of lines) {
      if (this.closed) return;
      if (this.rest.length === 0) this.take(line);
      else {
        const whole = this.rest.join('') + line;
        this.rest = [];
        this.restChars = 0;
        this.take(whole);
      }
    }
    if (last === '') return;
    this.rest.push(last);
    this.restChars += last.length;
    if (this.restChars > this.maxLineChars) this.destroy();
  }

  private take(line: string): void {
    try {
      if (line.length > this.maxLineChars) throw new RangeError('too long');
      this.onMessage(JSON.parse(line));
    } catch {
      // Whoever sends this does not speak our protocol: it is cut off, and nothing else is affected.
      this.destroy();
    }
  }
}

/** A document as a line; undefined for one that is too deep or too large to be written. */
function lineOf(message: object): string | undefined {
  try {
    const line = `${JSON.stringify(message)}\n`;
    return line.length > MAX_LINE_CHARS ? undefined : line;
  } catch {
    return undefined;
  }
}
