/**
 * Terminal text: sanitising, colours, column widths and number formats. Text of definitions, models and tools must pass
 * through `sanitizeText` before it is printed: escape sequences in it could control the terminal. Lines consist of
 * spans that are truncated before they are coloured, so that colour codes are never cut.
 */
import { HIDDEN_CHARACTER } from '../../base/hidden-characters.js';

/** A text style or colour. */
export type TextStyle = 'dim' | 'bold' | 'red' | 'green' | 'yellow' | 'cyan';

/** A part of a line with an optional style. */
export type TextSpan = readonly [text: string, style?: TextStyle | undefined];

/** The prefix of each row of untrusted text. */
export const QUOTE_BAR = '│ ';

/** A function for each style. */
export type Colors = Readonly<Record<TextStyle, (text: string) => string>>;

const SGR_CODES: Readonly<Record<TextStyle, readonly [on: number, off: number]>> = {
  dim: [2, 22],
  bold: [1, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  cyan: [36, 39],
};

/** Returns a function for each style. Without colour, they return the text unchanged. */
export function createColors(color: boolean): Colors {
  const styled = (style: TextStyle) => {
    const [on, off] = SGR_CODES[style];
    return (text: string): string => (color && text !== '' ? `\u001b[${on}m${text}\u001b[${off}m` : text);
  };
  return {
    dim: styled('dim'),
    bold: styled('bold'),
    red: styled('red'),
    green: styled('green'),
    yellow: styled('yellow'),
    cyan: styled('cyan'),
  };
}

/**
 * Returns true if a stream gets colours. NO_COLOR takes precedence over FORCE_COLOR, and that over the type of
 * terminal.
 */
export function isColorEnabled(
  stream: { readonly isTTY?: boolean },
  env: { readonly [name: string]: string | undefined },
): boolean {
  const { NO_COLOR: noColor, FORCE_COLOR: forceColor, TERM: term } = env;
  if (noColor !== undefined && noColor !== '') return false;
  if (forceColor !== undefined) return forceColor !== '0' && forceColor !== 'false';
  return stream.isTTY === true && term !== 'dumb';
}

/**
 * Characters that are invisible or that control a terminal: control characters, bidirectional marks, zero-width
 * characters and unassigned code points. The variation selector after an emoji is allowed.
 */
const HIDDEN_TEXT = new RegExp(`\\r\\n|(?!(?<=\\p{Extended_Pictographic})\\ufe0f)${HIDDEN_CHARACTER}`, 'gu');
const PRINTABLE_ASCII = /^[ -~]*$/;
const PRINTABLE_ASCII_LINES = /^[\n -~]*$/;

/** The colour codes that `createColors` writes. */
// guard: only-own-colors-pass
const OWN_COLOR_SEQUENCE = '\\u001b\\[(?:1|2|22|31|32|33|36|39)m';
const UNSAFE_CHARACTER = new RegExp(`(?!\\n)(?:${HIDDEN_TEXT.source})`, 'gu');
const UNSAFE_EXCEPT_COLOR = new RegExp(`(?!\\n|${OWN_COLOR_SEQUENCE})(?:${HIDDEN_TEXT.source})`, 'gu');

/**
 * Sanitises all output as a last line of defence: newlines and the colour codes of `createColors` pass, other hidden
 * characters are escaped. Text that has passed through `sanitizeText` does not change.
 */
export function sanitizeOutput(text: string, color: boolean): string {
  if (PRINTABLE_ASCII_LINES.test(text)) return text;
  return text.replace(color ? UNSAFE_EXCEPT_COLOR : UNSAFE_CHARACTER, (hidden) => escapeHiddenCharacter(hidden, true));
}

/** Options of `sanitizeText`. */
interface SanitizeOptions {
  /**
   * The maximum number of characters.
   * @default 1000
   */
  readonly max?: number;
  /**
   * True if newlines are kept. Otherwise a newline is shown as `⏎`.
   * @default false
   */
  readonly lines?: boolean;
}

/** Makes untrusted text safe to print: limits its length and escapes hidden characters. */
export function sanitizeText(text: string, { max = 1000, lines = false }: SanitizeOptions = {}): string {
  const limited = text.length > max ? `${text.slice(0, max).replace(/[\ud800-\udbff]$/, '')}…` : text;
  return PRINTABLE_ASCII.test(limited)
    ? limited
    : limited.replace(HIDDEN_TEXT, (hidden) => escapeHiddenCharacter(hidden, lines));
}

/** Makes a message with untrusted parts safe to print. Lines after the first get a quote bar. */
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

/** Returns the width of a text in columns. It may overestimate, never underestimate, so that no line overflows. */
export function widthOf(text: string): number {
  if (PRINTABLE_ASCII.test(text)) return text.length;
  let width = 0;
  for (const char of text) width += WIDE_CHARACTER.test(char) ? 2 : 1;
  return width;
}

/** Returns the number of rows that a text fills on a terminal of this width. Wide characters are not split. */
export function rowCountOf(text: string, width: number): number {
  let rows = 1;
  let usedColumns = 0;
  for (const char of text) {
    const charWidth = WIDE_CHARACTER.test(char) ? 2 : 1;
    if (usedColumns + charWidth > width && usedColumns > 0) {
      rows += 1;
      usedColumns = 0;
    }
    usedColumns += charWidth;
  }
  return rows;
}

/** Returns the longest prefix of a text that fits into `width` columns. */
export function takeColumns(text: string, width: number): string {
  let usedColumns = 0;
  let end = 0;
  for (const char of text) {
    usedColumns += WIDE_CHARACTER.test(char) ? 2 : 1;
    if (usedColumns > width) break;
    end += char.length;
  }
  return text.slice(0, end);
}

/** Truncates a text to `width` columns; a truncated text ends with `…`. */
export function truncate(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  return width < 1 ? '' : `${takeColumns(text, width - 1)}…`;
}

/** Truncates spans to `width` columns. */
export function truncateSpans(spans: readonly TextSpan[], width: number): readonly TextSpan[] {
  if (widthOfSpans(spans) <= width) return spans;
  const truncated: TextSpan[] = [];
  let remainingColumns = width - 1;
  for (const [text, style] of spans) {
    const prefix = takeColumns(text, remainingColumns);
    remainingColumns -= widthOf(prefix);
    truncated.push([prefix, style]);
    if (prefix !== text) break;
  }
  return width < 1 ? [] : [...truncated, ['…', 'dim']];
}

/** Removes trailing spaces from spans. */
export function trimSpansEnd(spans: readonly TextSpan[]): readonly TextSpan[] {
  let end = spans.length;
  while (end > 0 && spans[end - 1]?.[0].trimEnd() === '') end -= 1;
  const last = spans[end - 1];
  return last === undefined ? [] : [...spans.slice(0, end - 1), [last[0].trimEnd(), last[1]]];
}

/** Returns the width of spans in columns. */
export function widthOfSpans(spans: readonly TextSpan[]): number {
  let width = 0;
  for (const [text] of spans) width += widthOf(text);
  return width;
}

/** Joins spans to one text with colour codes. */
export function renderSpans(spans: readonly TextSpan[], colors: Colors): string {
  return spans.map(([text, style]) => (style === undefined ? text : colors[style](text))).join('');
}

/** Wraps a text between words, in at most `maxLines` lines of `width` columns. The last line is truncated. */
export function wrapWords(text: string, width: number, maxLines: number): string[] {
  const lines: string[] = [];
  let rest = text.trimEnd();
  while (rest !== '' && lines.length < maxLines) {
    const isLast = widthOf(rest) <= width || lines.length === maxLines - 1;
    const line = isLast ? truncate(rest, width) : takeColumns(rest, width);
    if (line === '') break;
    const space = line.lastIndexOf(' ');
    const end = isLast || space <= 0 || rest[line.length] === ' ' ? line.length : space;
    lines.push(line.slice(0, end).trimEnd());
    rest = isLast ? '' : rest.slice(end).trimStart();
  }
  return lines;
}

/** Splits a text into rows of at most `width` columns without dropping a character. An empty text has one row. */
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

/** Returns the first row of a text. It ends after a word if a word ends in its second half. */
function firstRowOf(text: string, width: number): string {
  // A row has at least one character, even if a wide one does not fit; otherwise the split would not terminate.
  const row = takeColumns(text, width) || (Array.from(text.slice(0, 2))[0] ?? '');
  if (row.length === text.length || text[row.length] === ' ') return row;
  const space = row.lastIndexOf(' ') + 1;
  return space > row.length / 2 ? row.slice(0, space) : row;
}

/** Formats a duration: `12 ms`, `1.24 s`, `12.4 s`, `2 m 03 s`, `5 h 07 m`, `3 d 04 h`. */
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

/** Formats an integer with all digits: `1,204`. */
export function formatInteger(value: number): string {
  return value.toLocaleString('en-US');
}

/** Formats a count briefly: `812`, `1,204`, `12.3k`, `4.5M`. */
export function formatCount(value: number): string {
  if (value < 1000) return String(Math.round(value));
  if (value < 9999.5)
    return `${Math.floor(Math.round(value) / 1000)},${String(Math.round(value) % 1000).padStart(3, '0')}`;
  if (value < 999_950) return `${(value / 1000).toFixed(1)}k`;
  if (value < 999_950_000) return `${(value / 1e6).toFixed(1)}M`;
  return value < 1e15 ? `${(value / 1e9).toFixed(1)}G` : 'very many';
}

/** Formats a cost that is given in millionths of a dollar: `$0.0012`, `$1.20`. */
export function formatCost(micros: number): string {
  if (micros > 0 && micros < 100) return '<$0.0001';
  const amount = micros / 1e6;
  return micros === 0 ? '$0' : `$${amount < 0.99995 ? amount.toFixed(4) : amount < 1e15 ? amount.toFixed(2) : amount}`;
}
