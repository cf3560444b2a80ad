/**
 * Renders text of models and tools. Invisible characters are escaped. Each row of a block has a quote bar and ends
 * before the edge of the terminal, so that a user can rely on it: a row without a bar comes from Rondo.
 */
import { escapeForDisplay, omissionMark } from '../../base/escape-text.js';
import {
  breakIntoRows,
  type Colors,
  QUOTE_BAR,
  renderSpans,
  sanitizeText,
  type TextSpan,
  type TextStyle,
  widthOf,
} from './terminal-text.js';

/**
 * Makes multi-line text safe to print. If the escaped text is longer than `maxChars` UTF-16 units, a mark with the number
 * of omitted characters replaces its middle.
 */
export function escapeMultiline(text: string, maxChars = Number.POSITIVE_INFINITY): string {
  const escaped = escapeForDisplay(text.replaceAll('\r\n', '\n'), maxChars).replaceAll('\t', '    ');
  return sanitizeText(escaped, { lines: true, max: Number.POSITIVE_INFINITY });
}

/** Makes text safe to print in one line. Newlines are shown as `⏎`. */
export function escapeLine(text: string, maxChars = Number.POSITIVE_INFINITY): string {
  return sanitizeText(escapeForDisplay(text, maxChars), { max: Number.POSITIVE_INFINITY });
}

/**
 * Makes text safe to print in one line of at most `width` columns. On a very narrow line, the omission mark is wider.
 */
export function escapeLineToWidth(text: string, width: number): string {
  if (text.length <= width) {
    const escaped = escapeLine(text);
    if (widthOf(escaped) <= width) return escaped;
  }
  for (let maxChars = width - omissionMark(text.length, text.length).length; ; maxChars = Math.floor(maxChars * 0.8)) {
    const line = escapeLine(text, Math.max(0, maxChars));
    if (maxChars < 4 || widthOf(line) <= width) return line;
  }
}

/** Returns a value as JSON that is safe to print in one line. */
export function escapeJsonLine(value: unknown, maxChars: number): string {
  return escapeLine(JSON.stringify(value) ?? 'null', maxChars);
}

/** Options of `renderBlock`. */
interface BlockOptions {
  readonly colors: Colors;
  readonly width: number;
  /**
   * The text before the bar.
   * @default ''
   */
  readonly indent?: string;
  /** @default QUOTE_BAR */
  readonly bar?: string;
  readonly style?: TextStyle;
  /**
   * The maximum number of rows. A further row, without a bar, counts the omitted ones.
   * @default no limit
   */
  readonly maxRows?: number;
  /**
   * True if the text is part of a unified diff.
   * @default detected from the text
   */
  readonly diff?: boolean;
}

/** Renders a text as rows with a quote bar. A unified diff is coloured. */
export function renderBlock(text: string, options: BlockOptions): string[] {
  const { colors, width, indent = '', bar = QUOTE_BAR, style, maxRows = Number.POSITIVE_INFINITY } = options;
  const rowWidth = Math.max(8, width - indent.length - bar.length - 1);
  const { diff = isUnifiedDiff(text) } = options;
  const rows: string[] = [];
  let omittedCount = 0;
  for (const line of text.split('\n')) {
    const lineStyle = diff ? diffLineStyle(line) : style;
    for (const row of breakIntoRows(line, rowWidth)) {
      if (rows.length < maxRows)
        rows.push(renderSpans([[indent], [bar, 'dim'], [row, lineStyle]] as TextSpan[], colors).trimEnd());
      else omittedCount += 1;
    }
  }
  return omittedCount === 0 ? rows : [...rows, colors.dim(`${indent}▸ … ${omittedCount} more lines`)];
}

/** Returns true if a text contains a unified diff: its two header lines, or a hunk header. */
export function isUnifiedDiff(text: string): boolean {
  return /^@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@/m.test(text) || /^--- .*\n\+\+\+ /m.test(text);
}

function diffLineStyle(line: string): TextStyle | undefined {
  if (line.startsWith('@@')) return 'cyan';
  if (line.startsWith('+++') || line.startsWith('---')) return 'bold';
  if (line.startsWith('+')) return 'green';
  return line.startsWith('-') ? 'red' : undefined;
}
