/**
 * What models and tools wrote, on a terminal: with everything that cannot be seen written out, and behind a bar in rows
 * that never reach the edge. Whatever stands behind a bar is theirs; what does not is ours.
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

/** A text with lines of its own that is safe to print; of more than `most` characters, head and tail with the exact rest. */
export function escapeMultiline(text: string, most = Number.POSITIVE_INFINITY): string {
  const seen = escapeForDisplay(text.replaceAll('\r\n', '\n'), most).replaceAll('\t', '    ');
  return sanitizeText(seen, { lines: true, max: Number.POSITIVE_INFINITY });
}

/** The same in one line: a line end is shown as a sign. */
export function escapeLine(text: string, most = Number.POSITIVE_INFINITY): string {
  return sanitizeText(escapeForDisplay(text, most), { max: Number.POSITIVE_INFINITY });
}

/** The same in at most so many columns, as far as the count of what is hidden leaves room for any of it. */
export function escapeLineToWidth(text: string, width: number): string {
  if (text.length <= width) {
    const whole = escapeLine(text);
    if (widthOf(whole) <= width) return whole;
  }
  for (let room = width - omissionMark(text.length, text.length).length; ; room = Math.floor(room * 0.8)) {
    const line = escapeLine(text, Math.max(0, room));
    if (room < 4 || widthOf(line) <= width) return line;
  }
}

/** A value in one line. */
export function escapeJsonLine(value: unknown, most: number): string {
  return escapeLine(JSON.stringify(value) ?? 'null', most);
}

export interface BlockOptions {
  readonly colors: Colors;
  readonly width: number;
  /** What stands before the bar. */
  readonly indent?: string;
  readonly bar?: string;
  readonly style?: TextStyle;
  /** The most rows; one more, without a bar, tells how much is left out. */
  readonly maxRows?: number;
  /** True for a part of a unified diff. @default whether the text is one */
  readonly diff?: boolean;
}

/** A text as rows behind a bar; a unified diff in its colours. */
export function renderBlock(text: string, look: BlockOptions): string[] {
  const { colors, width, indent = '', bar = QUOTE_BAR, style, maxRows: most = Number.POSITIVE_INFINITY } = look;
  const room = Math.max(8, width - indent.length - bar.length - 1);
  const { diff = isUnifiedDiff(text) } = look;
  const rows: string[] = [];
  let left = 0;
  for (const line of text.split('\n')) {
    const look = diff ? diffLineStyle(line) : style;
    for (const row of breakIntoRows(line, room)) {
      if (rows.length < most)
        rows.push(renderSpans([[indent], [bar, 'dim'], [row, look]] as TextSpan[], colors).trimEnd());
      else left += 1;
    }
  }
  return left === 0 ? rows : [...rows, colors.dim(`${indent}▸ … ${left} more lines`)];
}

/** Whether a text holds a unified diff: a head of two lines, or a place. */
export function isUnifiedDiff(text: string): boolean {
  return /^@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@/m.test(text) || /^--- .*\n\+\+\+ /m.test(text);
}

function diffLineStyle(line: string): TextStyle | undefined {
  if (line.startsWith('@@')) return 'cyan';
  if (line.startsWith('+++') || line.startsWith('---')) return 'bold';
  if (line.startsWith('+')) return 'green';
  return line.startsWith('-') ? 'red' : undefined;
}
