/** Rows of text in columns: no borders, a dim head, and no line wider than the terminal. */
import {
  createColors,
  renderSpans,
  sanitizeText,
  type TextSpan,
  trimSpansEnd,
  truncate,
  truncateSpans,
  widthOf,
} from './terminal-text.js';

/** A text, or a text with a look; either is made safe to print. */
export type TableCell = string | TextSpan;

export interface TableOptions {
  readonly width: number;
  readonly color?: boolean;
  readonly head?: readonly string[];
  /** By column; left unless told. */
  readonly align?: readonly ('left' | 'right')[];
}

const COLUMN_GAP = '  ';

/** The lines of a table, without a line end at the end; cells that are too long are cut, most of all in the last column. */
export function renderTable(rows: readonly (readonly TableCell[])[], options: TableOptions): string {
  const { width, head, align = [] } = options;
  const body = rows.map((row) => row.map(sanitizeCell));
  const all = head === undefined ? body : [head.map((text) => sanitizeCell([text, 'dim'])), ...body];
  const widths = columnWidths(all, Math.max(12, Math.floor(width / 2)));
  const colors = createColors(options.color === true);
  const lines = all.map((row) => {
    const spans = row.flatMap(([text, style], column): TextSpan[] => {
      const last = column === row.length - 1;
      const room = widths[column] ?? 0;
      const shown = last ? text : truncate(text, room);
      const pad = ' '.repeat(Math.max(0, room - widthOf(shown)));
      const gap = column === 0 ? '' : COLUMN_GAP;
      if (align[column] === 'right') return [[`${gap}${pad}`], [shown, style]];
      return [[gap], [shown, style], [last ? '' : pad]];
    });
    return renderSpans(trimSpansEnd(truncateSpans(spans, width)), colors);
  });
  return lines.join('\n');
}

function sanitizeCell(cell: TableCell): TextSpan {
  return typeof cell === 'string' ? [sanitizeText(cell)] : [sanitizeText(cell[0]), cell[1]];
}

/** How wide each column is; only the last may take more than `most`. */
function columnWidths(rows: readonly (readonly TextSpan[])[], most: number): number[] {
  const widths: number[] = [];
  for (const row of rows)
    for (const [column, [text]] of row.entries())
      widths[column] = Math.max(widths[column] ?? 0, Math.min(widthOf(text), most));
  return widths;
}
