/** A text decoded in all ways that are looked through: escapes and runs of Base64 or hexadecimal, mixed and repeated. */

import { decodeEdgeRun, decodeRuns } from './binary-text.js';
import { type DecodedText, decodeEscapes, unfinishedEscapeIndex } from './decode-escapes.js';

/** How many times escapes are undone: JSON in JSON in a URL. */
const MAX_ESCAPE_DECODINGS = 4;
/** How many times Base64 or hexadecimal is decoded. What it is decoded to may hold one more, which is searched for as such. */
const MAX_BINARY_DECODINGS = 2;
/** Both together. It bounds the work: each text has at most two that are decoded from it. */
const MAX_DECODINGS = 5;

/** A stretch of a text. */
export interface TextRange {
  readonly from: number;
  readonly to: number;
}

/** A text as it is, or decoded some times. */
export interface Decoding {
  readonly text: string;
  /** Where a stretch of it stood in the text as it was. */
  sourceOf(range: TextRange): TextRange;
}

/** A round, what it was decoded with, and which runs in it the round before did not have. */
interface DecodingStep extends Decoding {
  readonly escapeDecodings: number;
  readonly binaryDecodings: number;
  isNewRun(from: number, to: number): boolean;
}

/** The text, and all that it may be decoded to. */
export function decodingsOf(text: string): readonly Decoding[] {
  return decodeRepeatedly(text, (step) => {
    const unpacked = decodeRuns(step.text, step.isNewRun);
    return unpacked === undefined ? [] : [unpacked];
  });
}

/** The text, and all that its beginning or end may be decoded to. Each ends before an escape that it is cut in the middle of. */
export function edgeDecodingsOf(text: string, edge: 'start' | 'end'): readonly Decoding[] {
  return decodeRepeatedly(text, (step) => decodeEdgeRun(step.text, edge), edge);
}

/** The text, and what is left of it when its escapes are undone once, twice and so on. */
export function unescapedForms(text: string): readonly string[] {
  return decodeRepeatedly(text, () => []).map((step) => step.text);
}

function decodeRepeatedly(
  source: string,
  unpackedOf: (step: DecodingStep) => readonly DecodedText[],
  edge?: 'start' | 'end',
): readonly DecodingStep[] {
  const known = (text: string): string => (edge === 'end' ? text.slice(0, unfinishedEscapeIndex(text)) : text);
  const all: DecodingStep[] = [
    { text: known(source), escapeDecodings: 0, binaryDecodings: 0, sourceOf: (range) => range, isNewRun: () => true },
  ];
  // The list grows while it is gone through.
  for (const step of all) {
    if (step.escapeDecodings + step.binaryDecodings === MAX_DECODINGS) continue;
    const next = (decoded: DecodedText): Pick<DecodingStep, 'text' | 'sourceOf'> => ({
      text: known(decoded.text),
      sourceOf: ({ from, to }) => step.sourceOf({ from: decoded.sourceStartOf(from), to: decoded.sourceEndOf(to) }),
    });
    const decoded = step.escapeDecodings === MAX_ESCAPE_DECODINGS ? undefined : decodeEscapes(step.text);
    // guard: url-escapes-decoded
    if (decoded !== undefined) {
      // An escape is longer than what it stands for.
      const isNew = (from: number, to: number): boolean =>
        decoded.sourceEndOf(to) - decoded.sourceStartOf(from) > to - from;
      all.push({
        ...next(decoded),
        escapeDecodings: step.escapeDecodings + 1,
        binaryDecodings: step.binaryDecodings,
        isNewRun: isNew,
      });
    }
    // guard: nested-base64-decoded
    if (step.binaryDecodings === MAX_BINARY_DECODINGS) continue;
    for (const unpacked of unpackedOf(step)) {
      all.push({
        ...next(unpacked),
        escapeDecodings: step.escapeDecodings,
        binaryDecodings: step.binaryDecodings + 1,
        isNewRun: () => true,
      });
    }
  }
  return all;
}
