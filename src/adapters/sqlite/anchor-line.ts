/**
 * One line of the anchor: its checksum (CRC-32), then fields between tabs, which no name of a session has. Every commit writes one, so it is
 * summed and encoded in one pass here: each call into native code takes longer than the pass.
 */
import { crc32 } from 'node:zlib';

const POLYNOMIAL = 0xedb88320;
const SPACE = 0x20;
const TAB = 0x09;
const NEWLINE = 0x0a;
const ZERO = 0x30;
const MAX_ASCII = 0x7f;
/** Longer texts are summed faster by native code. */
const MAX_JS_CHECKSUM_CHARS = 4096;
/** A checksum has at most ten digits, and a space follows it. */
const FIELDS_OFFSET = 11;

const CRC_TABLE = Int32Array.from({ length: 256 }, (_, byte) => {
  let sum = byte;
  for (let bit = 0; bit < 8; bit++) sum = (sum & 1) === 0 ? sum >>> 1 : POLYNOMIAL ^ (sum >>> 1);
  return sum;
});

const scratchBuffer = Buffer.alloc(16 * 1024);

/** The checksum with one more byte. */
function updateChecksum(sum: number, byte: number): number {
  return (CRC_TABLE[(sum ^ byte) & 0xff] as number) ^ (sum >>> 8);
}

/** The checksum of a part of a text. */
function checksumOf(text: string, from: number, to: number): number {
  if (to - from > MAX_JS_CHECKSUM_CHARS) return crc32(text.slice(from, to));
  let sum = -1;
  for (let i = from; i < to; i++) {
    const code = text.charCodeAt(i);
    if (code > MAX_ASCII) return crc32(text.slice(from, to));
    sum = updateChecksum(sum, code);
  }
  return ~sum >>> 0;
}

/** The line as text. */
export function formatLine(fields: string): string {
  return `${checksumOf(fields, 0, fields.length)} ${fields}\n`;
}

/** Bytes of a buffer, from one place to before another. */
export interface ByteRange {
  readonly bytes: Buffer;
  readonly from: number;
  readonly to: number;
}

function toByteRange(line: string): ByteRange {
  const bytes = Buffer.from(line);
  return { bytes, from: 0, to: bytes.length };
}

/** The line as bytes, which are good until the next call. */
export function encodeLine(fields: string): ByteRange {
  const end = FIELDS_OFFSET + fields.length;
  if (end >= scratchBuffer.length) return toByteRange(formatLine(fields));
  let sum = -1;
  for (let i = 0; i < fields.length; i++) {
    const code = fields.charCodeAt(i);
    if (code > MAX_ASCII) return toByteRange(formatLine(fields));
    scratchBuffer[FIELDS_OFFSET + i] = code;
    sum = updateChecksum(sum, code);
  }
  scratchBuffer[end] = NEWLINE;
  return { bytes: scratchBuffer, from: writeChecksum(~sum >>> 0), to: end + 1 };
}

/** Writes the checksum in front of the fields, and returns where it begins. */
function writeChecksum(sum: number): number {
  let at = FIELDS_OFFSET - 1;
  scratchBuffer[at] = SPACE;
  scratchBuffer[--at] = ZERO + (sum % 10);
  // Without its last digit it is a small integer, which is divided faster.
  for (let rest = (sum / 10) | 0; rest > 0; rest = (rest / 10) | 0) scratchBuffer[--at] = ZERO + (rest % 10);
  return at;
}

/** Reads the fields of one line after the other. A text of a million lines is neither cut up nor copied for it. */
export class AnchorLineReader {
  readonly #text: string;
  #position = 0;
  #lineEnd = 0;
  #nextLineStart = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** Goes to the next line; false if there is none. */
  nextLine(): boolean {
    this.#position = this.#nextLineStart;
    const newline = this.#text.indexOf('\n', this.#position);
    this.#lineEnd = newline === -1 ? this.#text.length : newline;
    this.#nextLineStart = this.#lineEnd + 1;
    return this.#position < this.#text.length;
  }

  /** Passes over the checksum; false if it is not that of the line, and then nothing else can be read of it. */
  verifyChecksum(): boolean {
    const from = this.#position;
    const stated = this.readNumber();
    const digits = this.#position - 1 - from;
    const isPadded = digits > 1 && this.#text.charCodeAt(from) === ZERO;
    const isNumber = digits > 0 && !isPadded && this.#text.charCodeAt(this.#position - 1) === SPACE;
    return isNumber && checksumOf(this.#text, this.#position, this.#lineEnd) === stated;
  }

  /** True if there is a field that was not read yet. */
  get hasMoreFields(): boolean {
    return this.#position < this.#lineEnd;
  }

  /** Passes over a field, or the beginning of one; false if another one is there. */
  skipIfNext(expected: string): boolean {
    if (!this.#text.startsWith(expected, this.#position)) return false;
    this.#position += expected.length;
    return true;
  }

  /** The number up to the next blank or tab. */
  readNumber(): number {
    const from = this.#position;
    let value = 0;
    let isWhole = true;
    let end = this.#lineEnd;
    while (this.#position < this.#lineEnd) {
      const code = this.#text.charCodeAt(this.#position++);
      if (code === SPACE || code === TAB) {
        end = this.#position - 1;
        break;
      }
      const digit = code - ZERO;
      isWhole &&= digit >= 0 && digit <= 9;
      value = value * 10 + digit;
    }
    // A time may have a sign, a fraction or more digits than a sum of them is exact for.
    return isWhole && value <= Number.MAX_SAFE_INTEGER ? value : Number(this.#text.slice(from, end));
  }

  /** The text up to the next blank. */
  readWord(): string {
    return this.#readUntil(' ');
  }

  /** The text up to the end of the field. */
  readField(): string {
    return this.#readUntil('\t');
  }

  #readUntil(mark: string): string {
    const from = this.#position;
    const found = this.#text.indexOf(mark, from);
    const end = found === -1 || found > this.#lineEnd ? this.#lineEnd : found;
    this.#position = end + 1;
    return this.#text.slice(from, end);
  }
}
