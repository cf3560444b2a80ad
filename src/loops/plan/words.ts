/**
 * Splits the text of an action into words, as a shell does, but without any expansion. Whitespace separates words.
 * Text in single quotes is literal. In double quotes, a backslash escapes a double quote or a backslash.
 */
import { LoopError } from '../../base/errors.js';

/** The maximum length of a text of a plan, in UTF-16 units. */
export const MAX_TEXT_CHARS = 65_536;
const MAX_WORDS = 1_000;

const UNQUOTED = /[^\s'"]+/y;
const SPACE = /\s*/y;

/**
 * Returns the error for a text of a plan that cannot be used. `where` is its location in the definition, and `column`
 * the one-based position of the mistake in the text.
 */
export function textError(what: string, where: string, reason: string, column?: number): LoopError {
  const full = column === undefined ? reason : `${reason} (column ${column})`;
  const location = where === '' ? '' : ` at ${where}`;
  const data = { path: where, reason: full, ...(column === undefined ? {} : { column }) };
  return new LoopError('DEFINITION_INVALID', `The ${what}${location} cannot be used: ${full}.`, data);
}

/**
 * Splits a text into words. Throws DEFINITION_INVALID, with the column, for a quote that is not closed, and for a text
 * that is too long or has too many words.
 *
 * @example
 * splitWords(`edit {file} 'add logging'`); // ['edit', '{file}', 'add logging']
 */
export function splitWords(text: string, where = ''): string[] {
  if (text.length > MAX_TEXT_CHARS)
    throw textError('text', where, `it has ${text.length} characters; the limit is ${MAX_TEXT_CHARS}`);
  const words: string[] = [];
  let offset = matchAt(SPACE, text, 0).length;
  while (offset < text.length) {
    if (words.length === MAX_WORDS) throw textError('text', where, `it has more than ${MAX_WORDS} words`, offset + 1);
    const { word, end } = readWord(text, offset, where);
    words.push(word);
    offset = end + matchAt(SPACE, text, end).length;
  }
  return words;
}

function matchAt(pattern: RegExp, text: string, offset: number): string {
  pattern.lastIndex = offset;
  return pattern.exec(text)?.[0] ?? '';
}

/** Reads the word that starts at an offset, up to whitespace outside of quotes. */
function readWord(text: string, start: number, where: string): { word: string; end: number } {
  let word = '';
  let end = start;
  for (;;) {
    const quote = text[end];
    if (quote === "'" || quote === '"') {
      const close = closingQuote(text, end);
      if (close === -1) throw textError('text', where, `the quote ${quote} is not closed`, end + 1);
      const content = text.slice(end + 1, close);
      word += quote === '"' ? content.replace(/\\(["\\])/g, '$1') : content;
      end = close + 1;
      continue;
    }
    const part = matchAt(UNQUOTED, text, end);
    if (part === '') return { word, end };
    word += part;
    end += part.length;
  }
}

/** Returns the offset of the quote that closes the one at `open`, or -1. */
function closingQuote(text: string, open: number): number {
  if (text[open] === "'") return text.indexOf("'", open + 1);
  for (let offset = open + 1; offset < text.length; offset++) {
    if (text[offset] === '"') return offset;
    if (text[offset] === '\\' && /["\\]/.test(text[offset + 1] ?? '')) offset++;
  }
  return -1;
}
