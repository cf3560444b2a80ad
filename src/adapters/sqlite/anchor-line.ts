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
const MAX_HERE = 4096;
/** A checksum has at most ten digits, and a space follows it. */
const START = 11;

const table = Int32Array.from({ length: 256 }, (_, byte) => {
  let sum = byte;
  for (let bit = 0; bit < 8; bit++) sum = (sum & 1) === 0 ? sum >>> 1 : POLYNOMIAL ^ (sum >>> 1);
  return sum;
});

const scratch = Buffer.alloc(16 * 1024);

/** The checksum with one more byte. */
function added(sum: number, byte: number): number {
  return (table[(sum ^ byte) & 0xff] as number) ^ (sum >>> 8);
}

/** The checksum of a part of a text. */
function sumOf(text: string, from: number, to: number): number {
  if (to - from > MAX_HERE) return crc32(text.slice(from, to));
  let sum = -1;
  for (let i = from; i < to; i++) {
    const code = text.charCodeAt(i);
    if (code > MAX_ASCII) return crc32(text.slice(from, to));
    sum = added(sum, code);
  }
  return ~sum >>> 0;
}

/** The line as text. */
export function lineOf(fields: string): string {
  return `${sumOf(fields, 0, fields.length)} ${fields}\n`;
}

/** Bytes of a buffer, from one place to before another. */
export interface Span {
  readonly bytes: Buffer;
  readonly from: number;
  readonly to: number;
}

function encoded(line: string): Span {
  const bytes = Buffer.from(line);
  return { bytes, from: 0, to: bytes.length };
}

/** The line as bytes, which are good until the next call. */
export function encodedLine(fields: string): Span {
  const end = START + fields.length;
  if (end >= scratch.length) return encoded(lineOf(fields));
  let sum = -1;
  for (let i = 0; i < fields.length; i++) {
    const code = fields.charCodeAt(i);
    if (code > MAX_ASCII) return encoded(lineOf(fields));
    scratch[START + i] = code;
    sum = added(sum, code);
  }
  scratch[end] = NEWLINE;
  return { bytes: scratch, from: writeSum(~sum >>> 0), to: end + 1 };
}

/** Writes the checksum in front of the fields, and returns where it begins. */
function writeSum(sum: number): number {
  let at = START - 1;
  scratch[at] = SPACE;
  scratch[--at] = ZERO + (sum % 10);
  // Without its last digit it is a small integer, which is divided faster.
  for (let rest = (sum / 10) | 0; rest > 0; rest = (rest / 10) | 0) scratch[--at] = ZERO + (rest % 10);
  return at;
}

/** Reads the fields of one line after the other. A text of a million lines is neither cut up nor copied for it. */
export class LineReader {
  readonly #text: string;
  #at = 0;
  #end = 0;
  #next = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** Goes to the next line; false if there is none. */
  advance(): boolean {
    this.#at = this.#next;
    const newline = this.#text.indexOf('\n', this.#at);
    this.#end = newline === -1 ? this.#text.length : newline;
    this.#next = this.#end + 1;
    return this.#at < this.#text.length;
  }

  /** Passes over the checksum; false if it is not that of the line, and then nothing else can be read of it. */
  check(): boolean {
    const from = this.#at;
    const stated = this.number();
    const digits = this.#at - 1 - from;
    const isPadded = digits > 1 && this.#text.charCodeAt(from) === ZERO;
    const isNumber = digits > 0 && !isPadded && this.#text.charCodeAt(this.#at - 1) === SPACE;
    return isNumber && sumOf(this.#text, this.#at, this.#end) === stated;
  }

  /** True if there is a field that was not read yet. */
  get hasMore(): boolean {
    return this.#at < this.#end;
  }

  /** Passes over a field, or the beginning of one; false if another one is there. */
  skip(expected: string): boolean {
    if (!this.#text.startsWith(expected, this.#at)) return false;
    this.#at += expected.length;
    return true;
  }

  /** The number up to the next blank or tab. */
  number(): number {
    const from = this.#at;
    let value = 0;
    let isWhole = true;
    let end = this.#end;
    while (this.#at < this.#end) {
      const code = this.#text.charCodeAt(this.#at++);
      if (code === SPACE || code === TAB) {
        end = this.#at - 1;
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
  word(): string {
    return this.#upTo(' ');
  }

  /** The text up to the end of the field. */
  rest(): string {
    return this.#upTo('\t');
  }

  #upTo(mark: string): string {
    const from = this.#at;
    const found = this.#text.indexOf(mark, from);
    const end = found === -1 || found > this.#end ? this.#end : found;
    this.#at = end + 1;
    return this.#text.slice(from, end);
  }
}
