/** What a command prints, as far as it is kept: the beginning and the end. */
import { StringDecoder } from 'node:string_decoder';
import { NO_REDACTION, type Redactor } from '../../base/redact.js';

export class OutputBuffer {
  /** All that was printed, in bytes. */
  totalBytes = 0;
  private readonly halfBytes: number;
  private readonly head: Buffer[] = [];
  private headBytes = 0;
  private tail: Buffer[] = [];
  private tailBytes = 0;

  constructor(maxBytes: number) {
    this.halfBytes = Math.floor(maxBytes / 2);
  }

  append(piece: Buffer): void {
    this.totalBytes += piece.length;
    const room = this.halfBytes - this.headBytes;
    // Copied: a piece is a part of a larger buffer, which would be kept whole.
    if (room > 0) this.head.push(Buffer.from(piece.subarray(0, room)));
    this.headBytes += Math.min(room, piece.length);
    if (piece.length <= room) return;
    this.tail.push(Buffer.from(piece.subarray(Math.max(room, piece.length - this.halfBytes))));
    this.tailBytes += this.tail.at(-1)?.length ?? 0;
    if (this.tailBytes > 2 * this.halfBytes) this.trimTail();
  }

  /** How many bytes are left out. */
  get omittedBytes(): number {
    return Math.max(0, this.totalBytes - this.headBytes - Math.min(this.tailBytes, this.halfBytes));
  }

  text(secrets: Redactor = NO_REDACTION): string {
    const cut = this.omittedBytes;
    this.trimTail();
    if (cut === 0) return secrets.redactText(Buffer.concat([...this.head, ...this.tail]).toString());
    // Neither half may begin or end within a character.
    const head = new StringDecoder('utf8').write(Buffer.concat(this.head));
    const tail = Buffer.concat(this.tail);
    let from = 0;
    while (from < 3 && ((tail[from] ?? 0) & 0xc0) === 0x80) from++;
    const [begun, ended] = [
      secrets.redactText(head, 'end'),
      secrets.redactText(tail.subarray(from).toString(), 'start'),
    ];
    return `${begun}\n… ${cut} bytes are left out …\n${ended}`;
  }

  private trimTail(): void {
    const kept = Buffer.concat(this.tail).subarray(-this.halfBytes);
    this.tail = kept.length === 0 ? [] : [kept];
    this.tailBytes = kept.length;
  }
}
