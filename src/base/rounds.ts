/** A text decoded in all ways that are looked through: escapes and runs of Base64 or hexadecimal, mixed and repeated. */
import { type Decoded, decode, unfinishedEscape } from './decode.js';
import { unpack, unpackEdge } from './packed.js';

/** How many times escapes are undone: JSON in JSON in a URL. */
const MAX_ESCAPED = 4;
/** How many times Base64 or hexadecimal is decoded. What it is decoded to may hold one more, which is searched for as such. */
const MAX_PACKED = 2;
/** Both together. It bounds the work: each text has at most two that are decoded from it. */
const MAX_ROUNDS = 5;

/** A stretch of a text. */
export interface Range {
  readonly from: number;
  readonly to: number;
}

/** A text as it is, or decoded some times. */
export interface Round {
  readonly text: string;
  /** Where a stretch of it stood in the text as it was. */
  sourceOf(range: Range): Range;
}

/** A round, what it was decoded with, and which runs in it the round before did not have. */
interface Step extends Round {
  readonly escaped: number;
  readonly packed: number;
  isNew(from: number, to: number): boolean;
}

/** The text, and all that it may be decoded to. */
export function roundsOf(text: string): readonly Round[] {
  return stepsFrom(text, (step) => {
    const unpacked = unpack(step.text, step.isNew);
    return unpacked === undefined ? [] : [unpacked];
  });
}

/** The text, and all that its beginning or end may be decoded to. Each ends before an escape that it is cut in the middle of. */
export function edgeRoundsOf(text: string, edge: 'start' | 'end'): readonly Round[] {
  return stepsFrom(text, (step) => unpackEdge(step.text, edge), edge);
}

/** The text, and what is left of it when its escapes are undone once, twice and so on. */
export function withoutEscapes(text: string): readonly string[] {
  return stepsFrom(text, () => []).map((step) => step.text);
}

function stepsFrom(
  source: string,
  unpackedOf: (step: Step) => readonly Decoded[],
  edge?: 'start' | 'end',
): readonly Step[] {
  const known = (text: string): string => (edge === 'end' ? text.slice(0, unfinishedEscape(text)) : text);
  const all: Step[] = [{ text: known(source), escaped: 0, packed: 0, sourceOf: (range) => range, isNew: () => true }];
  // The list grows while it is gone through.
  for (const step of all) {
    if (step.escaped + step.packed === MAX_ROUNDS) continue;
    const next = (decoded: Decoded): Pick<Step, 'text' | 'sourceOf'> => ({
      text: known(decoded.text),
      sourceOf: ({ from, to }) => step.sourceOf({ from: decoded.startOf(from), to: decoded.endOf(to) }),
    });
    const decoded = step.escaped === MAX_ESCAPED ? undefined : decode(step.text);
    // guard: url-escapes-decoded
    if (decoded !== undefined) {
      // An escape is longer than what it stands for.
      const isNew = (from: number, to: number): boolean => decoded.endOf(to) - decoded.startOf(from) > to - from;
      all.push({ ...next(decoded), escaped: step.escaped + 1, packed: step.packed, isNew });
    }
    // guard: nested-base64-decoded
    if (step.packed === MAX_PACKED) continue;
    for (const unpacked of unpackedOf(step)) {
      all.push({ ...next(unpacked), escaped: step.escaped, packed: step.packed + 1, isNew: () => true });
    }
  }
  return all;
}
