/**
 * One line of the anchor: its checksum (CRC-32), then fields between tabs, which no name of a session has. Every commit writes one, so it is
 * summed and encoded in one pass here: each call into native code takes longer than the pass.
 */
import { crc32 } from 'node:zlib';

const POLYNOMIAL = 0xedb88320;
const SPACE = 0x20;
const NEWLINE = 0x0a;
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

function sumOf(fields: string): number {
  if (fields.length >= scratch.length) return crc32(fields);
  let sum = -1;
  for (let i = 0; i < fields.length; i++) {
    const code = fields.charCodeAt(i);
    if (code > 127) return crc32(fields);
    sum = added(sum, code);
  }
  return ~sum >>> 0;
}

/** The line as text. */
export function lineOf(fields: string): string {
  return `${sumOf(fields)} ${fields}\n`;
}

/** The line as bytes, which are good until the next call. */
export function encodedLine(fields: string): Buffer {
  const end = START + fields.length;
  if (end >= scratch.length) return Buffer.from(lineOf(fields));
  let sum = -1;
  for (let i = 0; i < fields.length; i++) {
    const code = fields.charCodeAt(i);
    if (code > 127) return Buffer.from(lineOf(fields));
    scratch[START + i] = code;
    sum = added(sum, code);
  }
  scratch[end] = NEWLINE;
  return scratch.subarray(writeSum(~sum >>> 0), end + 1);
}

/** Writes the checksum in front of the fields, and returns where it begins. */
function writeSum(sum: number): number {
  let at = START - 1;
  scratch[at] = SPACE;
  let rest = sum;
  do {
    scratch[--at] = 0x30 + (rest % 10);
    rest = Math.floor(rest / 10);
  } while (rest > 0);
  return at;
}

/** The fields of a line; undefined if its checksum does not fit. */
export function fieldsOf(line: string): readonly string[] | undefined {
  const cut = line.indexOf(' ');
  const fields = line.slice(cut + 1);
  return cut > 0 && line.slice(0, cut) === String(sumOf(fields)) ? fields.split('\t') : undefined;
}
