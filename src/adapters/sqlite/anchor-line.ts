/**
 * One line of the anchor file (anchor-file.ts): a CRC-32 checksum in decimal, a space, then fields separated by tabs,
 * which a session name cannot contain. Almost every commit writes a line, so checksum and encoding share one pass in
 * JavaScript: a call into native code takes longer.
 */
import { crc32 } from 'node:zlib';

const POLYNOMIAL = 0xedb88320;
const SPACE = 0x20;
const TAB = 0x09;
const NEWLINE = 0x0a;
const ZERO = 0x30;
const MAX_ASCII = 0x7f;
/**
 * Maximum length of a text whose checksum `checksumOf` computes in JavaScript. Native code is faster for longer ones.
 */
const MAX_JS_CHECKSUM_CHARS = 4096;
/** Where the fields start in `scratchBuffer`: after a checksum of at most ten digits and a space. */
const FIELDS_OFFSET = 11;

const CRC_TABLE = Int32Array.from({ length: 256 }, (_, byte) => {
  let sum = byte;
  for (let bit = 0; bit < 8; bit++) sum = (sum & 1) === 0 ? sum >>> 1 : POLYNOMIAL ^ (sum >>> 1);
  return sum;
});

/** The buffer in which `encodeLine` builds its lines. */
const scratchBuffer = Buffer.alloc(16 * 1024);

/** Returns the CRC state after one more byte. */
function updateChecksum(sum: number, byte: number): number {
  return (CRC_TABLE[(sum ^ byte) & 0xff] as number) ^ (sum >>> 8);
}

/** Returns the CRC-32 of a range of a text in UTF-8. */
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

/** Returns the line for these fields as text. */
export function formatLine(fields: string): string {
  return `${checksumOf(fields, 0, fields.length)} ${fields}\n`;
}

/** A range of a buffer: `from` is inclusive, `to` exclusive. */
export interface ByteRange {
  readonly bytes: Buffer;
  readonly from: number;
  readonly to: number;
}

function toByteRange(line: string): ByteRange {
  const bytes = Buffer.from(line);
  return { bytes, from: 0, to: bytes.length };
}

/** Returns the line for these fields as bytes. The bytes are valid until the next call. */
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

/** Writes the checksum in front of the fields and returns its offset. */
function writeChecksum(sum: number): number {
  let at = FIELDS_OFFSET - 1;
  scratchBuffer[at] = SPACE;
  scratchBuffer[--at] = ZERO + (sum % 10);
  // Without its last digit the value is a 32-bit integer, which V8 divides faster.
  for (let rest = (sum / 10) | 0; rest > 0; rest = (rest / 10) | 0) scratchBuffer[--at] = ZERO + (rest % 10);
  return at;
}

/** Reads an anchor line by line, without splitting or copying the text, which can have a million lines. */
export class AnchorLineReader {
  private readonly text: string;
  private position = 0;
  private lineEnd = 0;
  private nextLineStart = 0;

  constructor(text: string) {
    this.text = text;
  }

  /** Moves to the next line; false at the end of the text. */
  nextLine(): boolean {
    this.position = this.nextLineStart;
    const newline = this.text.indexOf('\n', this.position);
    this.lineEnd = newline === -1 ? this.text.length : newline;
    this.nextLineStart = this.lineEnd + 1;
    return this.position < this.text.length;
  }

  /** Reads the checksum; false if it does not match the line, in which case no field of the line may be read. */
  verifyChecksum(): boolean {
    const from = this.position;
    const expected = this.readNumber();
    const digits = this.position - 1 - from;
    const isPadded = digits > 1 && this.text.charCodeAt(from) === ZERO;
    const isNumber = digits > 0 && !isPadded && this.text.charCodeAt(this.position - 1) === SPACE;
    return isNumber && checksumOf(this.text, this.position, this.lineEnd) === expected;
  }

  /** True if the line has a field that was not read yet. */
  get hasMoreFields(): boolean {
    return this.position < this.lineEnd;
  }

  /** Skips this text if it comes next, and returns true; otherwise returns false. */
  skipIfNext(expected: string): boolean {
    if (!this.text.startsWith(expected, this.position)) return false;
    this.position += expected.length;
    return true;
  }

  /**
   * Reads the number up to the next space, tab or end of the line, and skips the separator. 0 if it is empty, NaN
   * if it is not a number.
   */
  readNumber(): number {
    const from = this.position;
    let value = 0;
    let hasOnlyDigits = true;
    let end = this.lineEnd;
    while (this.position < this.lineEnd) {
      const code = this.text.charCodeAt(this.position++);
      if (code === SPACE || code === TAB) {
        end = this.position - 1;
        break;
      }
      const digit = code - ZERO;
      hasOnlyDigits &&= digit >= 0 && digit <= 9;
      value = value * 10 + digit;
    }
    // A timestamp may have a sign, a fraction or more digits than adding them up represents exactly.
    return hasOnlyDigits && value <= Number.MAX_SAFE_INTEGER ? value : Number(this.text.slice(from, end));
  }

  /** Reads the text up to the next space or end of the line, and skips the space. */
  readWord(): string {
    return this.readUntil(' ');
  }

  /** Reads the text up to the end of the field, and skips the tab after it. */
  readField(): string {
    return this.readUntil('\t');
  }

  private readUntil(separator: string): string {
    const from = this.position;
    const index = this.text.indexOf(separator, from);
    const end = index === -1 || index > this.lineEnd ? this.lineEnd : index;
    this.position = end + 1;
    return this.text.slice(from, end);
  }
}
