/**
 * Decodes the runs of Base64 and hexadecimal in a text, also those that are wrapped in lines. It is for finding a text, not
 * for reading one: each run is decoded from each place where a group of characters may begin, and bytes become Latin-1.
 */
import { lastIndexAtMost } from './binary-search.js';
import type { DecodedText } from './decode-escapes.js';

interface BinaryCoding {
  readonly name: 'base64' | 'hex';
  readonly runPattern: RegExp;
  /** Shorter runs encode nothing that is searched for. */
  readonly minChars: number;
  /** So many characters stand for so many bytes. */
  readonly groupChars: number;
  readonly groupBytes: number;
}

/** Lines of eight characters and more, and a last one of any length. */
const BASE64_RUN = /(?<![\w+/-])[\w+/-]{8,}(?:\s+[\w+/-]{8,})*(?:\s+[\w+/-]+)?/g;
const HEX_RUN = /(?<![0-9a-fA-F])[0-9a-fA-F]{8,}(?:\s+[0-9a-fA-F]{8,})*(?:\s+[0-9a-fA-F]+)?/g;

const BINARY_CODINGS: readonly BinaryCoding[] = [
  { name: 'base64', runPattern: BASE64_RUN, minChars: 10, groupChars: 4, groupBytes: 3 },
  { name: 'hex', runPattern: HEX_RUN, minChars: 12, groupChars: 2, groupBytes: 1 },
];

/** What stands between two decoded runs. */
const RUN_SEPARATOR = '\0';

/** A text without its white space. */
export interface CompactText {
  readonly text: string;
  /** Where a character of it stood. */
  sourceIndexOf(index: number): number;
}

/** The text without white space; the places are looked up only when one is asked for. */
export function removeWhitespace(text: string): CompactText {
  const squeezed = text.replace(/\s+/g, '');
  if (squeezed.length === text.length) return { text, sourceIndexOf: (index) => index };
  let known: PieceOffsets | undefined;
  const placeOf = (index: number): number => {
    known ??= pieceOffsetsOf(text);
    const last = lastIndexAtMost(known.compactOffsets, index);
    return (known.sourceOffsets[last] ?? 0) + index - (known.compactOffsets[last] ?? 0);
  };
  return { text: squeezed, sourceIndexOf: placeOf };
}

/** Where each piece between white space begins, without and with the white space. */
interface PieceOffsets {
  readonly compactOffsets: readonly number[];
  readonly sourceOffsets: readonly number[];
}

function pieceOffsetsOf(text: string): PieceOffsets {
  const [at, from]: [number[], number[]] = [[], []];
  let length = 0;
  for (const match of text.matchAll(/\S+/g)) {
    at.push(length);
    from.push(match.index);
    length += match[0].length;
  }
  return { compactOffsets: at, sourceOffsets: from };
}

/** A run, and from which of its characters on it is decoded. */
interface RunDecoding {
  readonly coding: BinaryCoding;
  readonly run: CompactText;
  /** Where the run begins in the text. */
  readonly sourceStart: number;
  readonly shift: number;
}

/** All runs of a text that are wanted, decoded into one text; undefined if there are none. */
export function decodeRuns(text: string, isWanted: (from: number, to: number) => boolean): DecodedText | undefined {
  const readings = runDecodingsOf(text, isWanted);
  return readings.length === 0 ? undefined : joinDecodedRuns(readings);
}

/** The run that a text begins or ends with, decoded in each way. */
export function decodeEdgeRun(text: string, edge: 'start' | 'end'): readonly DecodedText[] {
  const end = text.trimEnd().length;
  const start = text.length - text.trimStart().length;
  const isAtEdge = (from: number, to: number): boolean => (edge === 'start' ? from === start : to === end);
  return runDecodingsOf(text, isAtEdge).map((reading) => joinDecodedRuns([reading]));
}

function runDecodingsOf(text: string, isWanted: (from: number, to: number) => boolean): readonly RunDecoding[] {
  const readings: RunDecoding[] = [];
  for (const coding of BINARY_CODINGS) {
    for (const { 0: written, index: from } of text.matchAll(coding.runPattern)) {
      if (written.length < coding.minChars || !isWanted(from, from + written.length)) continue;
      const run = removeWhitespace(written);
      for (let shift = 0; shift < coding.groupChars; shift++) readings.push({ coding, run, sourceStart: from, shift });
    }
  }
  return readings;
}

function joinDecodedRuns(readings: readonly RunDecoding[]): DecodedText {
  const [starts, texts]: [number[], string[]] = [[], []];
  let length = 0;
  for (const { coding, run, shift } of readings) {
    const decoded = Buffer.from(run.text.slice(shift), coding.name).toString('latin1');
    starts.push(length);
    texts.push(decoded);
    length += decoded.length + RUN_SEPARATOR.length;
  }
  const readingAt = (index: number): readonly [RunDecoding, number] => {
    const last = lastIndexAtMost(starts, index);
    return [readings[last] as RunDecoding, starts[last] ?? 0];
  };
  return {
    text: texts.join(RUN_SEPARATOR),
    sourceStartOf: (index) => {
      const [{ coding, run, sourceStart, shift }, at] = readingAt(index);
      return (
        sourceStart + run.sourceIndexOf(shift + Math.floor(((index - at) * coding.groupChars) / coding.groupBytes))
      );
    },
    sourceEndOf: (index) => {
      const [{ coding, run, sourceStart, shift }, at] = readingAt(index - 1);
      return (
        sourceStart +
        run.sourceIndexOf(shift + Math.ceil(((index - at) * coding.groupChars) / coding.groupBytes) - 1) +
        1
      );
    },
  };
}
