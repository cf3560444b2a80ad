/** What sample values are made of: words of a prompt, and the plain strings and numbers that a schema's bounds admit. */
import type { SchemaObject } from './schema-resolver.js';

const MAX_STRING_CHARS = 65_536;
/** How much of a prompt is read, from its end. */
const MAX_PROMPT_CHARS = 20_000;
/** How many words are said again. */
const MAX_ECHOED_WORDS = 12;
const STOP_WORDS = new Set(
  'about above after again also because been before being below between both but could does doing down during each every following from further given have having here into just like make more most must only other over please same should some such text than that their them then there these they this those through under until very want were what when where which while will with would write your'.split(
    ' ',
  ),
);

/** The words of a prompt, ready to be said again. */
export class PromptWords {
  /** How many words there are. */
  readonly count: number;
  readonly #lastLineWords: string;
  readonly #keywords: readonly string[];

  constructor(prompt: string) {
    const words = wordsIn(prompt);
    const telling = words.map((word) => word.toLowerCase()).filter((word) => word.length > 3 && !STOP_WORDS.has(word));
    this.count = words.length;
    this.#lastLineWords = wordsIn(lastLine(prompt)).slice(0, MAX_ECHOED_WORDS).join(' ');
    // What is asked about mostly stands at the end of a prompt.
    this.#keywords = [...new Set(telling.reverse())];
  }

  /** A short text for something of this name: a word where words are asked for, a sentence otherwise. */
  phrase(label: string, nth: number): string {
    const name = label
      .slice(0, 60)
      .replace(/([\p{Ll}\d])(\p{Lu})/gu, '$1 $2')
      .replace(/[_\-\s]+/g, ' ')
      .toLowerCase();
    const numbered = nth === 0 ? name : `${name} ${nth + 1}`;
    if (/\b(?:keyword|tag|topic|label|category|word)\b/.test(name)) return this.#keywords[nth] ?? numbered;
    return this.#lastLineWords === '' ? `A mock ${numbered}.` : `A mock ${numbered} for: ${this.#lastLineWords}.`;
  }
}

function wordsIn(text: string): string[] {
  return text.slice(-MAX_PROMPT_CHARS).match(/[\p{L}\p{N}][\p{L}\p{N}'’-]*/gu) ?? [];
}

function lastLine(prompt: string): string {
  const lines = prompt.slice(-MAX_PROMPT_CHARS).split('\n');
  return lines.findLast((line) => line.trim() !== '') ?? '';
}

/** A string of a known format; undefined for one that nobody knows. */
export function sampleForFormat(format: unknown, nth: number): string | undefined {
  const two = String((nth % 28) + 1).padStart(2, '0');
  switch (format) {
    case 'date-time':
      return `2024-01-${two}T12:00:00Z`;
    case 'date':
      return `2024-01-${two}`;
    case 'time':
      return `12:00:${two}Z`;
    case 'duration':
      return `P${nth + 1}D`;
    case 'email':
    case 'idn-email':
      return `mock${nth + 1}@example.com`;
    case 'hostname':
    case 'idn-hostname':
      return `mock${nth + 1}.example.com`;
    case 'uri':
    case 'iri':
    case 'uri-reference':
    case 'iri-reference':
      return `https://example.com/mock/${nth + 1}`;
    case 'uuid':
      return `00000000-0000-4000-8000-${String(nth + 1).padStart(12, '0')}`;
    case 'ipv4':
      return `192.0.2.${(nth % 254) + 1}`;
    case 'ipv6':
      return `2001:db8::${(nth % 9999) + 1}`;
    default:
      return undefined;
  }
}

/** The text, cut or repeated until its length in characters is within the schema's bounds. */
export function fitTextLength(schema: SchemaObject, text: string): string {
  const least = Math.min(numberOr(schema.minLength, 0), MAX_STRING_CHARS);
  const most = Math.max(least, numberOr(schema.maxLength, Number.POSITIVE_INFINITY));
  const characters = Array.from(text);
  if (characters.length >= least) return characters.slice(0, most).join('');
  const times = Math.ceil(least / (characters.length + 1)) + 1;
  return Array.from(Array(times).fill(text).join(' ')).slice(0, least).join('');
}

/** A number within the schema's bounds: inside when both are given, else as near to the wish as they allow. */
export function numberWithinBounds(schema: SchemaObject, wish: number, whole: boolean): number {
  const least = numberOr(schema.minimum, Number.NEGATIVE_INFINITY);
  const most = numberOr(schema.maximum, Number.POSITIVE_INFINITY);
  const over = numberOr(schema.exclusiveMinimum, Number.NEGATIVE_INFINITY);
  const under = numberOr(schema.exclusiveMaximum, Number.POSITIVE_INFINITY);
  const [low, high] = [Math.max(least, over), Math.min(most, under)];
  const step = numberOr(schema.multipleOf, whole ? 1 : 0);
  const fits = (value: number): boolean => {
    const within = value >= least && value <= most && value > over && value < under;
    return within && (!whole || Number.isInteger(value)) && (step === 0 || Number.isInteger(value / step));
  };
  // Three quarters of the way for the first wish, elsewhere for the next: numbers of a list should differ.
  const share = (0.75 + (wish % 1000) * 0.618) % 1;
  const bounded = Number.isFinite(low) && Number.isFinite(high);
  const near = bounded ? low + (high - low) * share : Math.max(low, Math.min(wish, high));
  if (step === 0) return [near, near + 1, near - 1, (low + high) / 2].find(fits) ?? near;
  const from = Math.round(near / step);
  for (let away = 0; away <= 1000; away++) {
    const found = [from - away, from + away].map((times) => times * step).find(fits);
    if (found !== undefined) return found === 0 ? 0 : found;
  }
  return near;
}

/** The value when it is a number. */
export function numberOr(value: unknown, otherwise: number): number {
  return typeof value === 'number' ? value : otherwise;
}
