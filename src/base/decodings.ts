/**
 * All decodings of a text that are searched for secrets: escapes and runs of Base64 or hexadecimal, mixed and repeated.
 */

import { decodeEdgeRun, decodeRuns } from './binary-text.js';
import { type DecodedText, decodeEscapes, unfinishedEscapeIndex } from './decode-escapes.js';

/** How many times escapes are decoded, as for JSON in JSON in a URL. */
const MAX_ESCAPE_DECODINGS = 4;
/**
 * How many times Base64 or hexadecimal is decoded. One more level is covered, because secrets are searched in encoded
 * form too.
 */
const MAX_BINARY_DECODINGS = 2;
/** The limit on both together. It bounds the work, because each decoded text is decoded again. */
const MAX_DECODINGS = 5;

/** A range of a text; `to` is exclusive. */
export interface TextRange {
  readonly from: number;
  readonly to: number;
}

/** A text, decoded zero or more times. */
export interface Decoding {
  readonly text: string;
  /** Maps a range of `text` to the range in the original text. */
  sourceOf(range: TextRange): TextRange;
}

/** A decoding, and how often each kind of decoding was applied. */
interface DecodingStep extends Decoding {
  readonly escapeDecodings: number;
  readonly binaryDecodings: number;
  /** True if a run of this text is not a run of the text that it was decoded from. */
  isNewRun(from: number, to: number): boolean;
}

/** Returns the text and all its decodings. */
export function decodingsOf(text: string): readonly Decoding[] {
  return decodeRepeatedly(text, (step) => {
    const decoded = decodeRuns(step.text, step.isNewRun);
    return decoded === undefined ? [] : [decoded];
  });
}

/**
 * Returns the text and its decodings. Of Base64 and hexadecimal, only the run at this edge is decoded. At the edge
 * `end`, an incomplete escape is left out.
 */
export function edgeDecodingsOf(text: string, edge: 'start' | 'end'): readonly Decoding[] {
  return decodeRepeatedly(text, (step) => decodeEdgeRun(step.text, edge), edge);
}

/** Returns the text as it is, and with its escapes decoded once, twice and so on, up to MAX_ESCAPE_DECODINGS times. */
export function unescapedForms(text: string): readonly string[] {
  return decodeRepeatedly(text, () => []).map((step) => step.text);
}

/** Returns the source and all texts decoded from it, within the limits above. */
function decodeRepeatedly(
  source: string,
  decodeBinary: (step: DecodingStep) => readonly DecodedText[],
  edge?: 'start' | 'end',
): readonly DecodingStep[] {
  const withoutUnfinished = (text: string): string =>
    edge === 'end' ? text.slice(0, unfinishedEscapeIndex(text)) : text;
  const steps: DecodingStep[] = [
    {
      text: withoutUnfinished(source),
      escapeDecodings: 0,
      binaryDecodings: 0,
      sourceOf: (range) => range,
      isNewRun: () => true,
    },
  ];
  // The list grows during the iteration.
  for (const step of steps) {
    if (step.escapeDecodings + step.binaryDecodings === MAX_DECODINGS) continue;
    const next = (decoded: DecodedText): Pick<DecodingStep, 'text' | 'sourceOf'> => ({
      text: withoutUnfinished(decoded.text),
      sourceOf: ({ from, to }) => step.sourceOf({ from: decoded.sourceStartOf(from), to: decoded.sourceEndOf(to) }),
    });
    const decoded = step.escapeDecodings === MAX_ESCAPE_DECODINGS ? undefined : decodeEscapes(step.text);
    // guard: url-escapes-decoded
    if (decoded !== undefined) {
      // An escape is longer than the character it encodes, so a run that contains one is new.
      const isNewRun = (from: number, to: number): boolean =>
        decoded.sourceEndOf(to) - decoded.sourceStartOf(from) > to - from;
      steps.push({
        ...next(decoded),
        escapeDecodings: step.escapeDecodings + 1,
        binaryDecodings: step.binaryDecodings,
        isNewRun,
      });
    }
    // guard: nested-base64-decoded
    if (step.binaryDecodings === MAX_BINARY_DECODINGS) continue;
    for (const binary of decodeBinary(step)) {
      steps.push({
        ...next(binary),
        escapeDecodings: step.escapeDecodings,
        binaryDecodings: step.binaryDecodings + 1,
        isNewRun: () => true,
      });
    }
  }
  return steps;
}
