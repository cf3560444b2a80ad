/**
 * Text on a terminal: colours, widths, amounts, and what makes untrusted text safe to print. Whatever a definition, a
 * model or a tool wrote goes through `plain` first: a terminal obeys what it is sent.
 * Lines are made of spans and cut before they are coloured, so a cut never falls into a colour code.
 */
import { HIDDEN_CHARACTER } from '../../base/hidden-characters.js';

export type TextStyle = 'dim' | 'bold' | 'red' | 'green' | 'yellow' | 'cyan';

/** A piece of a line and how it looks. */
export type TextSpan = readonly [text: string, style?: TextStyle | undefined];

/** What stands before each row that others wrote. */
export const QUOTE_BAR = '│ ';

export type Colors = Readonly<Record<TextStyle, (text: string) => string>>;

const SGR_CODES: Readonly<Record<TextStyle, readonly [on: number, off: number]>> = {
  dim: [2, 22],
  bold: [1, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  cyan: [36, 39],
};

/** One function for each style; without colour they leave the text as it is. */
export function createColors(color: boolean): Colors {
  const as = (style: TextStyle) => {
    const [on, off] = SGR_CODES[style];
    return (text: string): string => (color && text !== '' ? `\u001b[${on}m${text}\u001b[${off}m` : text);
  };
  return {
    dim: as('dim'),
    bold: as('bold'),
    red: as('red'),
    green: as('green'),
    yellow: as('yellow'),
    cyan: as('cyan'),
  };
}

/** Whether to print colours there: NO_COLOR is obeyed first, then FORCE_COLOR, then what the terminal is. */
export function isColorEnabled(
  stream: { readonly isTTY?: boolean },
  env: { readonly [name: string]: string | undefined },
): boolean {
  const { NO_COLOR: none, FORCE_COLOR: forced, TERM: term } = env;
  if (none !== undefined && none !== '') return false;
  if (forced !== undefined) return forced !== '0' && forced !== 'false';
  return stream.isTTY === true && term !== 'dumb';
}

/**
 * What a reader would not see, or a terminal would act on: control characters, marks that turn the direction of text,
 * characters without width, and those that nobody has defined. The mark that makes an emoji of a sign may stay.
 */
const HIDDEN_TEXT = new RegExp(`\\r\\n|(?!(?<=\\p{Extended_Pictographic})\\ufe0f)${HIDDEN_CHARACTER}`, 'gu');
const PRINTABLE_ASCII = /^[ -~]*$/;
const PRINTABLE_ASCII_LINES = /^[\n -~]*$/;

/** The colours that `paint` makes. */
// guard: only-own-colors-pass
const OWN_COLOR_SEQUENCE = '\\u001b\\[(?:1|2|22|31|32|33|36|39)m';
const UNSAFE_CHARACTER = new RegExp(`(?!\\n)(?:${HIDDEN_TEXT.source})`, 'gu');
const UNSAFE_EXCEPT_COLOR = new RegExp(`(?!\\n|${OWN_COLOR_SEQUENCE})(?:${HIDDEN_TEXT.source})`, 'gu');

/**
 * The last check of whatever is written: line ends and our own colours get through, everything else that a terminal would act on or
 * a reader would not see is written out. Text that passed `plain` is left as it is.
 */
export function sanitizeOutput(text: string, color: boolean): string {
  if (PRINTABLE_ASCII_LINES.test(text)) return text;
  return text.replace(color ? UNSAFE_EXCEPT_COLOR : UNSAFE_CHARACTER, (hidden) => escapeHiddenCharacter(hidden, true));
}

export interface SanitizeOptions {
  /** The maximum number of characters. @default 1000 */
  readonly max?: number;
  /** Whether it may have lines of its own; in one line, a line end is shown as a sign. */
  readonly lines?: boolean;
}

/** Untrusted text as text that is safe to print: bounded, and with everything hidden in it shown. */
export function sanitizeText(text: string, { max = 1000, lines = false }: SanitizeOptions = {}): string {
  const kept = text.length > max ? `${text.slice(0, max).replace(/[\ud800-\udbff]$/, '')}…` : text;
  return PRINTABLE_ASCII.test(kept)
    ? kept
    : kept.replace(HIDDEN_TEXT, (hidden) => escapeHiddenCharacter(hidden, lines));
}

/** A message that may hold the words of others: lines after its first stand behind a bar. */
export function sanitizeMessage(text: string): string {
  return sanitizeText(text, { lines: true, max: 4000 }).trimEnd().replaceAll('\n', `\n${QUOTE_BAR}`);
}

function escapeHiddenCharacter(hidden: string, lines: boolean): string {
  if (hidden === '\n' || hidden === '\r\n') return lines ? '\n' : '⏎';
  if (hidden === '\t' || hidden === '\r') return hidden === '\t' ? '\\t' : '\\r';
  const code = hidden.codePointAt(0) ?? 0;
  const digits = code.toString(16);
  if (code <= 0xff) return `\\x${digits.padStart(2, '0')}`;
  return code <= 0xffff ? `\\u${digits.padStart(4, '0')}` : `\\u{${digits}}`;
}

const WIDE_CHARACTER = new RegExp(
  '[\\p{Emoji_Presentation}\u1100-\u115f\u2329\u232a\u2630-\u2637\u268a-\u268f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97c' +
    '\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe19\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{16fe0}-\u{191ff}' +
    '\u{1aff0}-\u{1b2ff}\u{1d300}-\u{1d37f}\u{1f000}-\u{1faff}\u{20000}-\u{3ffff}]',
  'u',
);

/** How many columns a text takes; never less than a terminal gives it, so that no line is longer than thought. */
export function widthOf(text: string): number {
  if (PRINTABLE_ASCII.test(text)) return text.length;
  let width = 0;
  for (const char of text) width += WIDE_CHARACTER.test(char) ? 2 : 1;
  return width;
}

/** How many rows a text takes when it is broken anywhere at so many columns; a wide character is never split. */
export function rowCountOf(text: string, width: number): number {
  let rows = 1;
  let used = 0;
  for (const char of text) {
    const wide = WIDE_CHARACTER.test(char) ? 2 : 1;
    if (used + wide > width && used > 0) {
      rows += 1;
      used = 0;
    }
    used += wide;
  }
  return rows;
}

/** The start of a text that fits into so many columns. */
export function takeColumns(text: string, width: number): string {
  let used = 0;
  let end = 0;
  for (const char of text) {
    used += WIDE_CHARACTER.test(char) ? 2 : 1;
    if (used > width) break;
    end += char.length;
  }
  return text.slice(0, end);
}

/** A text in at most so many columns; what is cut ends with `…`. */
export function truncate(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  return width < 1 ? '' : `${takeColumns(text, width - 1)}…`;
}

/** Spans in at most so many columns. */
export function truncateSpans(spans: readonly TextSpan[], width: number): readonly TextSpan[] {
  if (widthOfSpans(spans) <= width) return spans;
  const fitted: TextSpan[] = [];
  let left = width - 1;
  for (const [text, style] of spans) {
    const start = takeColumns(text, left);
    left -= widthOf(start);
    fitted.push([start, style]);
    if (start !== text) break;
  }
  return width < 1 ? [] : [...fitted, ['…', 'dim']];
}

/** Without blanks at the end, which nobody sees and every copy has. */
export function trimSpansEnd(spans: readonly TextSpan[]): readonly TextSpan[] {
  let end = spans.length;
  while (end > 0 && spans[end - 1]?.[0].trimEnd() === '') end -= 1;
  const last = spans[end - 1];
  return last === undefined ? [] : [...spans.slice(0, end - 1), [last[0].trimEnd(), last[1]]];
}

export function widthOfSpans(spans: readonly TextSpan[]): number {
  let width = 0;
  for (const [text] of spans) width += widthOf(text);
  return width;
}

export function renderSpans(spans: readonly TextSpan[], colors: Colors): string {
  return spans.map(([text, style]) => (style === undefined ? text : colors[style](text))).join('');
}

/** A text in lines of at most so many columns, broken between words; the last of `most` lines is cut. */
export function wrapWords(text: string, width: number, most: number): string[] {
  const lines: string[] = [];
  let rest = text.trimEnd();
  while (rest !== '' && lines.length < most) {
    const whole = widthOf(rest) <= width || lines.length === most - 1;
    const start = whole ? truncate(rest, width) : takeColumns(rest, width);
    if (start === '') break;
    const space = start.lastIndexOf(' ');
    const end = whole || space <= 0 || rest[start.length] === ' ' ? start.length : space;
    lines.push(start.slice(0, end).trimEnd());
    rest = whole ? '' : rest.slice(end).trimStart();
  }
  return lines;
}

/** A text in rows of at most so many columns, with nothing left out; a row for an empty text too. */
export function breakIntoRows(text: string, width: number): string[] {
  const rows: string[] = [];
  let rest = text;
  do {
    const row = firstRowOf(rest, width);
    rows.push(row);
    rest = rest.slice(row.length);
  } while (rest !== '');
  return rows;
}

/** The first row of a text: up to the end of a word if one ends in its second half. */
function firstRowOf(text: string, width: number): string {
  // A column is less than a wide character needs, but without an end there would be none.
  const row = takeColumns(text, width) || (Array.from(text.slice(0, 2))[0] ?? '');
  if (row.length === text.length || text[row.length] === ' ') return row;
  const space = row.lastIndexOf(' ') + 1;
  return space > row.length / 2 ? row.slice(0, space) : row;
}

/** A span of time: `12 ms`, `1.24 s`, `12.4 s`, `2 m 03 s`, `5 h 07 m`, `3 d 04 h`. */
export function formatDuration(ms: number): string {
  if (ms < 999.5) return `${Math.round(Math.max(0, ms))} ms`;
  if (ms < 59_950) return `${(ms / 1000).toFixed(ms < 9995 ? 2 : 1)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 3600) return formatUnitPair(seconds, 60, 'm', 1, 's');
  return seconds < 86_400
    ? formatUnitPair(seconds, 3600, 'h', 60, 'm')
    : formatUnitPair(seconds, 86_400, 'd', 3600, 'h');
}

function formatUnitPair(seconds: number, large: number, largeName: string, small: number, smallName: string): string {
  const rest = Math.floor((seconds % large) / small);
  return `${Math.floor(seconds / large)} ${largeName} ${String(rest).padStart(2, '0')} ${smallName}`;
}

/** A count with all of its digits: `1,204`. */
export function formatInteger(value: number): string {
  return value.toLocaleString('en-US');
}

/** A count that stays short: `812`, `1,204`, `12.3k`, `4.5M`. */
export function formatCount(value: number): string {
  if (value < 1000) return String(Math.round(value));
  if (value < 9999.5)
    return `${Math.floor(Math.round(value) / 1000)},${String(Math.round(value) % 1000).padStart(3, '0')}`;
  if (value < 999_950) return `${(value / 1000).toFixed(1)}k`;
  if (value < 999_950_000) return `${(value / 1e6).toFixed(1)}M`;
  return value < 1e15 ? `${(value / 1e9).toFixed(1)}G` : 'very many';
}

/** An amount of money in millionths: `$0.0012`, `$1.20`. */
export function formatCost(micros: number): string {
  if (micros > 0 && micros < 100) return '<$0.0001';
  const amount = micros / 1e6;
  return micros === 0 ? '$0' : `$${amount < 0.99995 ? amount.toFixed(4) : amount < 1e15 ? amount.toFixed(2) : amount}`;
}
