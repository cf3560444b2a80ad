/** Collects the output of a command up to a limit: the beginning and the end. */
import { StringDecoder } from 'node:string_decoder';
import { NO_REDACTION, type Redactor } from '../../base/redact.js';

/** Keeps all output up to `maxBytes` bytes; of longer output, the first and the last `maxBytes / 2` bytes. */
export class OutputBuffer {
  /** The total number of bytes printed. */
  totalBytes = 0;
  private readonly halfBytes: number;
  private readonly head: Buffer[] = [];
  private headBytes = 0;
  private tail: Buffer[] = [];
  private tailBytes = 0;

  constructor(maxBytes: number) {
    this.halfBytes = Math.floor(maxBytes / 2);
  }

  /** Appends a chunk of output. */
  append(chunk: Buffer): void {
    this.totalBytes += chunk.length;
    const headRoom = this.halfBytes - this.headBytes;
    // Copied, because a reference to the chunk would keep the larger buffer behind it alive.
    if (headRoom > 0) this.head.push(Buffer.from(chunk.subarray(0, headRoom)));
    this.headBytes += Math.min(headRoom, chunk.length);
    if (chunk.length <= headRoom) return;
    this.tail.push(Buffer.from(chunk.subarray(Math.max(headRoom, chunk.length - this.halfBytes))));
    this.tailBytes += this.tail.at(-1)?.length ?? 0;
    if (this.tailBytes > 2 * this.halfBytes) this.trimTail();
  }

  /** The number of bytes in the middle that are not kept. */
  get omittedBytes(): number {
    return Math.max(0, this.totalBytes - this.headBytes - Math.min(this.tailBytes, this.halfBytes));
  }

  /** Returns the redacted output, with a note in place of omitted bytes. */
  text(redactor: Redactor = NO_REDACTION): string {
    const { omittedBytes } = this;
    this.trimTail();
    if (omittedBytes === 0) return redactor.redactText(Buffer.concat([...this.head, ...this.tail]).toString());
    // Incomplete characters at the cut are dropped from both halves.
    const headText = new StringDecoder('utf8').write(Buffer.concat(this.head));
    const tail = Buffer.concat(this.tail);
    let tailStart = 0;
    while (tailStart < 3 && ((tail[tailStart] ?? 0) & 0xc0) === 0x80) tailStart++;
    const head = redactor.redactText(headText, 'end');
    const rest = redactor.redactText(tail.subarray(tailStart).toString(), 'start');
    return `${head}\n… ${omittedBytes} bytes are omitted …\n${rest}`;
  }

  private trimTail(): void {
    const trimmed = Buffer.concat(this.tail).subarray(-this.halfBytes);
    this.tail = trimmed.length === 0 ? [] : [trimmed];
    this.tailBytes = trimmed.length;
  }
}
