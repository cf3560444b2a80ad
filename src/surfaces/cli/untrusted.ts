/**
 * What models and tools wrote, on a terminal: with everything that cannot be seen written out, and behind a bar in rows
 * that never reach the edge. Whatever stands behind a bar is theirs; what does not is ours.
 */
import { hiddenMark, shown } from '../../base/excerpt.js';
import { BAR, broken, drawn, type Paint, plain, type Span, type Style, widthOf } from './paint.js';

/** A text with lines of its own that is safe to print; of more than `most` characters, head and tail with the exact rest. */
export function safe(text: string, most = Number.POSITIVE_INFINITY): string {
  const seen = shown(text.replaceAll('\r\n', '\n'), most).replaceAll('\t', '    ');
  return plain(seen, { lines: true, max: Number.POSITIVE_INFINITY });
}

/** The same in one line: a line end is shown as a sign. */
export function inLine(text: string, most = Number.POSITIVE_INFINITY): string {
  return plain(shown(text, most), { max: Number.POSITIVE_INFINITY });
}

/** The same in at most so many columns, as far as the count of what is hidden leaves room for any of it. */
export function fittedLine(text: string, width: number): string {
  if (text.length <= width) {
    const whole = inLine(text);
    if (widthOf(whole) <= width) return whole;
  }
  for (let room = width - hiddenMark(text.length, text.length).length; ; room = Math.floor(room * 0.8)) {
    const line = inLine(text, Math.max(0, room));
    if (room < 4 || widthOf(line) <= width) return line;
  }
}

/** A value in one line. */
export function jsonLine(value: unknown, most: number): string {
  return inLine(JSON.stringify(value) ?? 'null', most);
}

export interface BlockLook {
  readonly colors: Paint;
  readonly width: number;
  /** What stands before the bar. */
  readonly indent?: string;
  readonly bar?: string;
  readonly style?: Style;
  /** The most rows; one more, without a bar, tells how much is left out. */
  readonly rows?: number;
  /** True for a part of a unified diff. @default whether the text is one */
  readonly diff?: boolean;
}

/** A text as rows behind a bar; a unified diff in its colours. */
export function block(text: string, look: BlockLook): string[] {
  const { colors, width, indent = '', bar = BAR, style, rows: most = Number.POSITIVE_INFINITY } = look;
  const room = Math.max(8, width - indent.length - bar.length - 1);
  const { diff = isDiff(text) } = look;
  const rows: string[] = [];
  let left = 0;
  for (const line of text.split('\n')) {
    const look = diff ? styleIn(line) : style;
    for (const row of broken(line, room)) {
      if (rows.length < most) rows.push(drawn([[indent], [bar, 'dim'], [row, look]] as Span[], colors).trimEnd());
      else left += 1;
    }
  }
  return left === 0 ? rows : [...rows, colors.dim(`${indent}▸ … ${left} more lines`)];
}

/** Whether a text holds a unified diff: a head of two lines, or a place. */
export function isDiff(text: string): boolean {
  return /^@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@/m.test(text) || /^--- .*\n\+\+\+ /m.test(text);
}

function styleIn(line: string): Style | undefined {
  if (line.startsWith('@@')) return 'cyan';
  if (line.startsWith('+++') || line.startsWith('---')) return 'bold';
  if (line.startsWith('+')) return 'green';
  return line.startsWith('-') ? 'red' : undefined;
}
