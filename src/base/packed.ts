/**
 * Decodes the runs of Base64 and hexadecimal in a text, also those that are wrapped in lines. It is for finding a text, not
 * for reading one: each run is decoded from each place where a group of characters may begin, and bytes become Latin-1.
 */
import { lastNotAbove } from './ascending.js';
import type { Decoded } from './decode.js';

interface Coding {
  readonly name: 'base64' | 'hex';
  readonly runs: RegExp;
  /** Shorter runs encode nothing that is searched for. */
  readonly least: number;
  /** So many characters stand for so many bytes. */
  readonly chars: number;
  readonly bytes: number;
}

/** Lines of eight characters and more, and a last one of any length. */
const BASE64 = /(?<![\w+/-])[\w+/-]{8,}(?:\s+[\w+/-]{8,})*(?:\s+[\w+/-]+)?/g;
const HEX = /(?<![0-9a-fA-F])[0-9a-fA-F]{8,}(?:\s+[0-9a-fA-F]{8,})*(?:\s+[0-9a-fA-F]+)?/g;

const CODINGS: readonly Coding[] = [
  { name: 'base64', runs: BASE64, least: 10, chars: 4, bytes: 3 },
  { name: 'hex', runs: HEX, least: 12, chars: 2, bytes: 1 },
];

/** What stands between two decoded runs. */
const BETWEEN = '\0';

/** A text without its white space. */
export interface Squeezed {
  readonly text: string;
  /** Where a character of it stood. */
  placeOf(index: number): number;
}

/** The text without white space; the places are looked up only when one is asked for. */
export function squeeze(text: string): Squeezed {
  const squeezed = text.replace(/\s+/g, '');
  if (squeezed.length === text.length) return { text, placeOf: (index) => index };
  let known: Pieces | undefined;
  const placeOf = (index: number): number => {
    known ??= piecesOf(text);
    const last = lastNotAbove(known.at, index);
    return (known.from[last] ?? 0) + index - (known.at[last] ?? 0);
  };
  return { text: squeezed, placeOf };
}

/** Where each piece between white space begins, without and with the white space. */
interface Pieces {
  readonly at: readonly number[];
  readonly from: readonly number[];
}

function piecesOf(text: string): Pieces {
  const [at, from]: [number[], number[]] = [[], []];
  let length = 0;
  for (const match of text.matchAll(/\S+/g)) {
    at.push(length);
    from.push(match.index);
    length += match[0].length;
  }
  return { at, from };
}

/** A run, and from which of its characters on it is decoded. */
interface Reading {
  readonly coding: Coding;
  readonly run: Squeezed;
  /** Where the run begins in the text. */
  readonly from: number;
  readonly shift: number;
}

/** All runs of a text that are wanted, decoded into one text; undefined if there are none. */
export function unpack(text: string, isWanted: (from: number, to: number) => boolean): Decoded | undefined {
  const readings = readingsOf(text, isWanted);
  return readings.length === 0 ? undefined : decodedOf(readings);
}

/** The run that a text begins or ends with, decoded in each way. */
export function unpackEdge(text: string, edge: 'start' | 'end'): readonly Decoded[] {
  const end = text.trimEnd().length;
  const start = text.length - text.trimStart().length;
  const isAtEdge = (from: number, to: number): boolean => (edge === 'start' ? from === start : to === end);
  return readingsOf(text, isAtEdge).map((reading) => decodedOf([reading]));
}

function readingsOf(text: string, isWanted: (from: number, to: number) => boolean): readonly Reading[] {
  const readings: Reading[] = [];
  for (const coding of CODINGS) {
    for (const { 0: written, index: from } of text.matchAll(coding.runs)) {
      if (written.length < coding.least || !isWanted(from, from + written.length)) continue;
      const run = squeeze(written);
      for (let shift = 0; shift < coding.chars; shift++) readings.push({ coding, run, from, shift });
    }
  }
  return readings;
}

function decodedOf(readings: readonly Reading[]): Decoded {
  const [starts, texts]: [number[], string[]] = [[], []];
  let length = 0;
  for (const { coding, run, shift } of readings) {
    const decoded = Buffer.from(run.text.slice(shift), coding.name).toString('latin1');
    starts.push(length);
    texts.push(decoded);
    length += decoded.length + BETWEEN.length;
  }
  const readingAt = (index: number): readonly [Reading, number] => {
    const last = lastNotAbove(starts, index);
    return [readings[last] as Reading, starts[last] ?? 0];
  };
  return {
    text: texts.join(BETWEEN),
    startOf: (index) => {
      const [{ coding, run, from, shift }, at] = readingAt(index);
      return from + run.placeOf(shift + Math.floor(((index - at) * coding.chars) / coding.bytes));
    },
    endOf: (index) => {
      const [{ coding, run, from, shift }, at] = readingAt(index - 1);
      return from + run.placeOf(shift + Math.ceil(((index - at) * coding.chars) / coding.bytes) - 1) + 1;
    },
  };
}
