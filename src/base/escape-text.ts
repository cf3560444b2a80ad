/**
 * Escapes and bounds untrusted text (from a model or a tool) for display. Characters that move the cursor, change the
 * reading direction or are invisible are written as escapes. If a text is over the limit, its middle is replaced by a
 * mark with the exact number of omitted characters; the brackets of the mark are escaped in the text, so no text can
 * forge an omission mark.
 */
import { HIDDEN_CHARACTER } from './hidden-characters.js';

const HIDDEN = new RegExp(HIDDEN_CHARACTER, 'gu');

/** The characters that are escaped. Line feeds and tabs are kept. */
// guard: hidden-note-brackets-escaped
const ESCAPED_FOR_DISPLAY = new RegExp(`(?![\\n\\t])(?:${HIDDEN_CHARACTER}|[⟪⟫])`, 'gu');
const PLAIN_ASCII = /^[\n\t -~]*$/;

/**
 * The displayed parts of a text, escaped, and the number of omitted characters. The two counts are in code points of
 * the unescaped text.
 */
export interface Excerpt {
  readonly head: string;
  /** Empty if nothing is omitted. */
  readonly tail: string;
  /** The number of omitted characters. */
  readonly hiddenChars: number;
  /** The number of characters of the text; 0 if none is omitted. */
  readonly totalChars: number;
}

/**
 * Escapes a text. If the result is longer than `maxChars` UTF-16 units, returns its head and tail with an omission mark
 * between. The mark does not count towards `maxChars`.
 */
export function escapeForDisplay(text: string, maxChars: number): string {
  const { head, tail, hiddenChars, totalChars } = excerptOf(text, maxChars);
  return hiddenChars === 0 ? head : `${head}${omissionMark(hiddenChars, totalChars)}${tail}`;
}

/** Returns the mark that states how many characters are omitted. */
export function omissionMark(hidden: number, total: number): string {
  return `⟪${hidden} of ${total} characters hidden⟫`;
}

const OMISSION_MARK_PATTERN = /⟪(\d{1,16}) of (\d{1,16}) characters hidden⟫/g;

/**
 * Splits the result of `escapeForDisplay` at its omission mark. Returns undefined if it has none, or several: then the
 * text does not come from `escapeForDisplay`.
 */
export function splitAtOmission(text: string): Excerpt | undefined {
  const [match, secondMatch] = text.matchAll(OMISSION_MARK_PATTERN);
  if (match === undefined || secondMatch !== undefined) return undefined;
  const [mark, hidden, total] = match;
  const tail = text.slice(match.index + mark.length);
  return { head: text.slice(0, match.index), tail, hiddenChars: Number(hidden), totalChars: Number(total) };
}

/**
 * Returns the parts of a text to display, escaped: all of it, or two thirds of `maxChars` from its start and one third
 * from its end. `maxChars` counts UTF-16 units of the escaped text.
 */
export function excerptOf(text: string, maxChars: number): Excerpt {
  const escaped = text.length > maxChars ? undefined : escapeInvisible(text);
  if (escaped !== undefined && escaped.length <= maxChars)
    return { head: escaped, tail: '', hiddenChars: 0, totalChars: 0 };
  const tailChars = Math.floor(maxChars / 3);
  const start = escapedPrefixLength(text, maxChars - tailChars);
  const end = Math.max(start, text.length - escapedSuffixLength(text, tailChars));
  const [head, middle, tail] = [text.slice(0, start), text.slice(start, end), text.slice(end)];
  // guard: hidden-characters-counted
  const hidden = countCodePoints(middle);
  return {
    head: escapeInvisible(head),
    tail: escapeInvisible(tail),
    hiddenChars: hidden,
    totalChars: countCodePoints(head) + hidden + countCodePoints(tail),
  };
}

/**
 * Replaces hidden characters in JSON text by \u escapes. The text keeps its value and stays valid JSON if it is
 * indented with spaces, not with tabs.
 */
export function escapeInvisibleInJson(json: string): string {
  if (PLAIN_ASCII.test(json)) return json;
  return json.replace(HIDDEN, (character) => {
    // A raw line feed in JSON is indentation; inside a string, line feeds are already escaped.
    if (character === '\n') return character;
    return Array.from({ length: character.length }, (_, unit) => `\\u${hex(character.charCodeAt(unit), 4)}`).join('');
  });
}

function escapeInvisible(text: string): string {
  if (PLAIN_ASCII.test(text)) return text;
  return text.replace(
    // guard: all-unseen-characters-escaped
    ESCAPED_FOR_DISPLAY,
    (character) => `\\u{${hex(character.codePointAt(0) ?? 0, 1)}}`,
  );
}

function hex(code: number, digits: number): string {
  return code.toString(16).padStart(digits, '0');
}

/** Counts code points: a surrogate pair is one character. */
function countCodePoints(text: string): number {
  let count = 0;
  for (let at = 0; at < text.length; count++) at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1;
  return count;
}

/** Returns the length of the longest prefix that has at most `maxChars` characters when escaped. */
function escapedPrefixLength(text: string, maxChars: number): number {
  let length = 0;
  for (let remaining = maxChars; length < text.length; ) {
    const character = String.fromCodePoint(text.codePointAt(length) ?? 0);
    remaining -= escapeInvisible(character).length;
    if (remaining < 0) break;
    length += character.length;
  }
  return length;
}

/** Returns the length of the longest suffix that has at most `maxChars` characters when escaped. */
function escapedSuffixLength(text: string, maxChars: number): number {
  let length = 0;
  for (let remaining = maxChars; length < text.length; ) {
    const end = text.length - length;
    const isPair = /^[\ud800-\udbff][\udc00-\udfff]$/.test(text.slice(Math.max(0, end - 2), end));
    const size = isPair ? 2 : 1;
    remaining -= escapeInvisible(text.slice(end - size, end)).length;
    if (remaining < 0) break;
    length += size;
  }
  return length;
}
