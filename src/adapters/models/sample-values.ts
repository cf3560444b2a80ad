/** Creates sample strings and numbers within the bounds of a schema, using words of a prompt. */
import type { SchemaObject } from './schema-resolver.js';

/** The maximum length to which a string is extended for `minLength`. */
const MAX_STRING_CHARS = 65_536;
/** The number of characters at the end of a prompt that are read. */
const MAX_PROMPT_CHARS = 20_000;
/** The maximum number of words of the last line of a prompt that a sample sentence quotes. */
const MAX_ECHOED_WORDS = 12;
const STOP_WORDS = new Set(
  'about above after again also because been before being below between both but could does doing down during each every following from further given have having here into just like make more most must only other over please same should some such text than that their them then there these they this those through under until very want were what when where which while will with would write your'.split(
    ' ',
  ),
);

/** The words of a prompt, for use in sample texts. */
export class PromptWords {
  /** The number of words in the part of the prompt that is read. */
  readonly count: number;
  private readonly lastLineWords: string;
  private readonly keywords: readonly string[];

  constructor(prompt: string) {
    const words = wordsIn(prompt);
    const keywords = words.map((word) => word.toLowerCase()).filter((word) => word.length > 3 && !STOP_WORDS.has(word));
    this.count = words.length;
    this.lastLineWords = wordsIn(lastLine(prompt)).slice(0, MAX_ECHOED_WORDS).join(' ');
    // The last words come first: a prompt usually ends with the actual question.
    this.keywords = [...new Set(keywords.reverse())];
  }

  /**
   * Returns a short text for a member of this name. For names such as `tag`, it is a keyword of the prompt, or the name
   * itself if the prompt has too few keywords; otherwise it is a sentence.
   */
  phrase(label: string, index: number): string {
    const name = label
      .slice(0, 60)
      .replace(/([\p{Ll}\d])(\p{Lu})/gu, '$1 $2')
      .replace(/[_\-\s]+/g, ' ')
      .toLowerCase();
    const numbered = index === 0 ? name : `${name} ${index + 1}`;
    if (/\b(?:keyword|tag|topic|label|category|word)\b/.test(name)) return this.keywords[index] ?? numbered;
    return this.lastLineWords === '' ? `A mock ${numbered}.` : `A mock ${numbered} for: ${this.lastLineWords}.`;
  }
}

function wordsIn(text: string): string[] {
  return text.slice(-MAX_PROMPT_CHARS).match(/[\p{L}\p{N}][\p{L}\p{N}'’-]*/gu) ?? [];
}

function lastLine(prompt: string): string {
  const lines = prompt.slice(-MAX_PROMPT_CHARS).split('\n');
  return lines.findLast((line) => line.trim() !== '') ?? '';
}

/** Returns a sample string for a JSON Schema format; undefined for an unknown format. */
export function sampleForFormat(format: unknown, index: number): string | undefined {
  const twoDigits = String((index % 28) + 1).padStart(2, '0');
  switch (format) {
    case 'date-time':
      return `2024-01-${twoDigits}T12:00:00Z`;
    case 'date':
      return `2024-01-${twoDigits}`;
    case 'time':
      return `12:00:${twoDigits}Z`;
    case 'duration':
      return `P${index + 1}D`;
    case 'email':
    case 'idn-email':
      return `mock${index + 1}@example.com`;
    case 'hostname':
    case 'idn-hostname':
      return `mock${index + 1}.example.com`;
    case 'uri':
    case 'iri':
    case 'uri-reference':
    case 'iri-reference':
      return `https://example.com/mock/${index + 1}`;
    case 'uuid':
      return `00000000-0000-4000-8000-${String(index + 1).padStart(12, '0')}`;
    case 'ipv4':
      return `192.0.2.${(index % 254) + 1}`;
    case 'ipv6':
      return `2001:db8::${(index % 9999) + 1}`;
    default:
      return undefined;
  }
}

/**
 * Truncates or repeats a text until its length in code points is within the bounds of the schema. A `minLength` above
 * 65,536 is not reached.
 */
export function fitTextLength(schema: SchemaObject, text: string): string {
  const minLength = Math.min(numberOr(schema.minLength, 0), MAX_STRING_CHARS);
  const maxLength = Math.max(minLength, numberOr(schema.maxLength, Number.POSITIVE_INFINITY));
  const characters = Array.from(text);
  if (characters.length >= minLength) return characters.slice(0, maxLength).join('');
  const times = Math.ceil(minLength / (characters.length + 1)) + 1;
  return Array.from(Array(times).fill(text).join(' ')).slice(0, minLength).join('');
}

/**
 * Returns a number within the bounds of the schema. If the schema has both bounds, `preferred` selects a number between
 * them; otherwise the number is near `preferred`. If no allowed number is found, the result violates the schema.
 */
export function numberWithinBounds(schema: SchemaObject, preferred: number, isInteger: boolean): number {
  const minimum = numberOr(schema.minimum, Number.NEGATIVE_INFINITY);
  const maximum = numberOr(schema.maximum, Number.POSITIVE_INFINITY);
  const exclusiveMinimum = numberOr(schema.exclusiveMinimum, Number.NEGATIVE_INFINITY);
  const exclusiveMaximum = numberOr(schema.exclusiveMaximum, Number.POSITIVE_INFINITY);
  const [low, high] = [Math.max(minimum, exclusiveMinimum), Math.min(maximum, exclusiveMaximum)];
  const step = numberOr(schema.multipleOf, isInteger ? 1 : 0);
  const fits = (value: number): boolean => {
    const isWithin = value >= minimum && value <= maximum && value > exclusiveMinimum && value < exclusiveMaximum;
    return isWithin && (!isInteger || Number.isInteger(value)) && (step === 0 || Number.isInteger(value / step));
  };
  // Different preferred numbers give different fractions of the range, so that the numbers of a list differ.
  const fraction = (0.75 + (preferred % 1000) * 0.618) % 1;
  const isBounded = Number.isFinite(low) && Number.isFinite(high);
  const start = isBounded ? low + (high - low) * fraction : Math.max(low, Math.min(preferred, high));
  if (step === 0) return [start, start + 1, start - 1, (low + high) / 2].find(fits) ?? start;
  const startMultiple = Math.round(start / step);
  for (let distance = 0; distance <= 1000; distance++) {
    const value = [startMultiple - distance, startMultiple + distance].map((multiple) => multiple * step).find(fits);
    // Turns -0 into 0.
    if (value !== undefined) return value === 0 ? 0 : value;
  }
  return start;
}

/** Returns the value if it is a number, or else the fallback. */
export function numberOr(value: unknown, fallback: number): number {
  return typeof value === 'number' ? value : fallback;
}
