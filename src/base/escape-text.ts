/**
 * Text from a model or a tool as a person may be shown it: nothing that moves the cursor, turns the reading direction,
 * hides or pretends to be something else gets through unseen, and it ends somewhere. What is left out is left out of the
 * middle, with its exact amount; the brackets around that amount are escaped in the text, so no text can imitate it.
 */
import { HIDDEN_CHARACTER } from './hidden-characters.js';

const HIDDEN = new RegExp(HIDDEN_CHARACTER, 'gu');

/** What is escaped in text: line feed and tab may stay. */
// guard: hidden-note-brackets-escaped
const ESCAPED_FOR_DISPLAY = new RegExp(`(?![\\n\\t])(?:${HIDDEN_CHARACTER}|[⟪⟫])`, 'gu');
const PLAIN_ASCII = /^[\n\t -~]*$/;

/** The part of a text that is shown, escaped, and how many characters (code points) are not. */
export interface Excerpt {
  readonly head: string;
  /** Empty if nothing is hidden. */
  readonly tail: string;
  readonly hiddenChars: number;
  /** How many characters there are; 0 if none is hidden. */
  readonly totalChars: number;
}

/** The text with all that cannot be seen written out; if that has more than `most` characters, head and tail with the count between. */
export function escapeForDisplay(text: string, most: number): string {
  const { head, tail, hiddenChars, totalChars } = excerptOf(text, most);
  return hiddenChars === 0 ? head : `${head}${omissionMark(hiddenChars, totalChars)}${tail}`;
}

/** How an omission is stated. */
export function omissionMark(hidden: number, total: number): string {
  return `⟪${hidden} of ${total} characters hidden⟫`;
}

const OMISSION_MARK_PATTERN = /⟪(\d{1,16}) of (\d{1,16}) characters hidden⟫/g;

/** The parts of a text that `shown` made; undefined if it hides nothing. Text that did not pass `shown` can hold several marks. */
export function splitAtOmission(text: string): Excerpt | undefined {
  const [mark, another] = text.matchAll(OMISSION_MARK_PATTERN);
  if (mark === undefined || another !== undefined) return undefined;
  const [whole, hidden, total] = mark;
  const tail = text.slice(mark.index + whole.length);
  return { head: text.slice(0, mark.index), tail, hiddenChars: Number(hidden), totalChars: Number(total) };
}

/** The parts of a text to show: all of it, or two thirds of `most` from its beginning and one third from its end. */
export function excerptOf(text: string, most: number): Excerpt {
  const whole = text.length > most ? undefined : escapeInvisible(text);
  if (whole !== undefined && whole.length <= most) return { head: whole, tail: '', hiddenChars: 0, totalChars: 0 };
  const room = Math.floor(most / 3);
  const start = escapedPrefixLength(text, most - room);
  const end = Math.max(start, text.length - escapedSuffixLength(text, room));
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

/** JSON text with everything that cannot be seen as \u escapes: it stays valid, and its value the same. */
export function escapeInvisibleInJson(json: string): string {
  if (PLAIN_ASCII.test(json)) return json;
  return json.replace(HIDDEN, (character) => {
    // Line feeds of an indented document stand between its tokens; in a string they are escaped already.
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

/** Code points: a pair of surrogates is one character. */
function countCodePoints(text: string): number {
  let count = 0;
  for (let at = 0; at < text.length; count++) at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1;
  return count;
}

/** How much of the beginning takes at most `room` characters once it is escaped. */
function escapedPrefixLength(text: string, room: number): number {
  let length = 0;
  for (let left = room; length < text.length; ) {
    const character = String.fromCodePoint(text.codePointAt(length) ?? 0);
    left -= escapeInvisible(character).length;
    if (left < 0) break;
    length += character.length;
  }
  return length;
}

/** The same for the end. */
function escapedSuffixLength(text: string, room: number): number {
  let length = 0;
  for (let left = room; length < text.length; ) {
    const last = text.length - length;
    const isPair = /^[\ud800-\udbff][\udc00-\udfff]$/.test(text.slice(Math.max(0, last - 2), last));
    const size = isPair ? 2 : 1;
    left -= escapeInvisible(text.slice(last - size, last)).length;
    if (left < 0) break;
    length += size;
  }
  return length;
}
