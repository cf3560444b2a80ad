/**
 * Decodes runs of Base64 and hexadecimal in a text, including runs that are wrapped in lines. The result is meant to be
 * searched, not read: each run is decoded at every possible alignment, and bytes become Latin-1 characters.
 */
import { lastIndexAtMost } from './binary-search.js';
import type { DecodedText } from './decode-escapes.js';

interface BinaryCoding {
  readonly name: 'base64' | 'hex';
  readonly runPattern: RegExp;
  /** Shorter runs are not decoded. The redactor finds the shortest encoded secrets by their encoded form instead. */
  readonly minChars: number;
  /** A group of this many characters encodes `groupBytes` bytes. */
  readonly groupChars: number;
  readonly groupBytes: number;
}

/**
 * Runs of Base64 and of hexadecimal: pieces of eight or more characters, separated by white space, and optionally a last
 * piece of any length.
 */
const BASE64_RUN = /(?<![\w+/-])[\w+/-]{8,}(?:\s+[\w+/-]{8,})*(?:\s+[\w+/-]+)?/g;
const HEX_RUN = /(?<![0-9a-fA-F])[0-9a-fA-F]{8,}(?:\s+[0-9a-fA-F]{8,})*(?:\s+[0-9a-fA-F]+)?/g;

const BINARY_CODINGS: readonly BinaryCoding[] = [
  { name: 'base64', runPattern: BASE64_RUN, minChars: 10, groupChars: 4, groupBytes: 3 },
  { name: 'hex', runPattern: HEX_RUN, minChars: 12, groupChars: 2, groupBytes: 1 },
];

/** Separates decoded runs, so that no match spans two of them. */
const RUN_SEPARATOR = '\0';

/** A text without its white space. */
interface CompactText {
  readonly text: string;
  /** Maps an index in `text` to the index in the original text. */
  sourceIndexOf(index: number): number;
}

/** Removes white space. The index mapping is computed on first use. */
export function removeWhitespace(text: string): CompactText {
  const compact = text.replace(/\s+/g, '');
  if (compact.length === text.length) return { text, sourceIndexOf: (index) => index };
  let offsets: PieceOffsets | undefined;
  const sourceIndexOf = (index: number): number => {
    offsets ??= pieceOffsetsOf(text);
    const last = lastIndexAtMost(offsets.compactOffsets, index);
    return (offsets.sourceOffsets[last] ?? 0) + index - (offsets.compactOffsets[last] ?? 0);
  };
  return { text: compact, sourceIndexOf };
}

/** The start of each piece between white space, in the compact and in the original text. */
interface PieceOffsets {
  readonly compactOffsets: readonly number[];
  readonly sourceOffsets: readonly number[];
}

function pieceOffsetsOf(text: string): PieceOffsets {
  const [compactOffsets, sourceOffsets]: [number[], number[]] = [[], []];
  let length = 0;
  for (const match of text.matchAll(/\S+/g)) {
    compactOffsets.push(length);
    sourceOffsets.push(match.index);
    length += match[0].length;
  }
  return { compactOffsets, sourceOffsets };
}

/** How a run is decoded: from its character `shift` on. */
interface RunDecoding {
  readonly coding: BinaryCoding;
  readonly run: CompactText;
  /** The index of the run in the original text. */
  readonly sourceStart: number;
  readonly shift: number;
}

/**
 * Decodes the runs that `isWanted` selects, each at every alignment, and joins the results into one text. Returns
 * undefined if there are none.
 */
export function decodeRuns(text: string, isWanted: (from: number, to: number) => boolean): DecodedText | undefined {
  const decodings = runDecodingsOf(text, isWanted);
  return decodings.length === 0 ? undefined : joinDecodedRuns(decodings);
}

/** Decodes the run at the start or the end of a text, white space aside, once for each coding and alignment. */
export function decodeEdgeRun(text: string, edge: 'start' | 'end'): readonly DecodedText[] {
  const end = text.trimEnd().length;
  const start = text.length - text.trimStart().length;
  const isAtEdge = (from: number, to: number): boolean => (edge === 'start' ? from === start : to === end);
  return runDecodingsOf(text, isAtEdge).map((decoding) => joinDecodedRuns([decoding]));
}

function runDecodingsOf(text: string, isWanted: (from: number, to: number) => boolean): readonly RunDecoding[] {
  const decodings: RunDecoding[] = [];
  for (const coding of BINARY_CODINGS) {
    for (const { 0: encoded, index: from } of text.matchAll(coding.runPattern)) {
      if (encoded.length < coding.minChars || !isWanted(from, from + encoded.length)) continue;
      const run = removeWhitespace(encoded);
      for (let shift = 0; shift < coding.groupChars; shift++) decodings.push({ coding, run, sourceStart: from, shift });
    }
  }
  return decodings;
}

function joinDecodedRuns(decodings: readonly RunDecoding[]): DecodedText {
  const [starts, texts]: [number[], string[]] = [[], []];
  let length = 0;
  for (const { coding, run, shift } of decodings) {
    const decoded = Buffer.from(run.text.slice(shift), coding.name).toString('latin1');
    starts.push(length);
    texts.push(decoded);
    length += decoded.length + RUN_SEPARATOR.length;
  }
  const decodingAt = (index: number): readonly [RunDecoding, number] => {
    const last = lastIndexAtMost(starts, index);
    return [decodings[last] as RunDecoding, starts[last] ?? 0];
  };
  return {
    text: texts.join(RUN_SEPARATOR),
    sourceStartOf: (index) => {
      const [{ coding, run, sourceStart, shift }, at] = decodingAt(index);
      return (
        sourceStart + run.sourceIndexOf(shift + Math.floor(((index - at) * coding.groupChars) / coding.groupBytes))
      );
    },
    sourceEndOf: (index) => {
      const [{ coding, run, sourceStart, shift }, at] = decodingAt(index - 1);
      return (
        sourceStart +
        run.sourceIndexOf(shift + Math.ceil(((index - at) * coding.groupChars) / coding.groupBytes) - 1) +
        1
      );
    },
  };
}
