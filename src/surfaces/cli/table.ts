/** Renders tables: aligned columns without borders, a dim head, and no line wider than the terminal. */
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

/** The text of a cell, with an optional style. It is sanitised before it is printed. */
type TableCell = string | TextSpan;

/** Options of `renderTable`. */
interface TableOptions {
  readonly width: number;
  readonly color?: boolean;
  readonly head?: readonly string[];
  /**
   * The alignment of each column.
   * @default left
   */
  readonly align?: readonly ('left' | 'right')[];
}

const COLUMN_GAP = '  ';

/** Renders a table without a trailing newline. Long cells are truncated. */
export function renderTable(rows: readonly (readonly TableCell[])[], options: TableOptions): string {
  const { width, head, align = [] } = options;
  const body = rows.map((row) => row.map(sanitizeCell));
  const allRows = head === undefined ? body : [head.map((text) => sanitizeCell([text, 'dim'])), ...body];
  const widths = columnWidths(allRows, Math.max(12, Math.floor(width / 2)));
  const colors = createColors(options.color === true);
  const lines = allRows.map((row) => {
    const spans = row.flatMap(([text, style], column): TextSpan[] => {
      const isLast = column === row.length - 1;
      const columnWidth = widths[column] ?? 0;
      const content = isLast ? text : truncate(text, columnWidth);
      const padding = ' '.repeat(Math.max(0, columnWidth - widthOf(content)));
      const gap = column === 0 ? '' : COLUMN_GAP;
      if (align[column] === 'right') return [[`${gap}${padding}`], [content, style]];
      return [[gap], [content, style], [isLast ? '' : padding]];
    });
    return renderSpans(trimSpansEnd(truncateSpans(spans, width)), colors);
  });
  return lines.join('\n');
}

function sanitizeCell(cell: TableCell): TextSpan {
  return typeof cell === 'string' ? [sanitizeText(cell)] : [sanitizeText(cell[0]), cell[1]];
}

/** Returns the width of each column, at most `maxWidth`. The last column is not padded, so it may be wider. */
function columnWidths(rows: readonly (readonly TextSpan[])[], maxWidth: number): number[] {
  const widths: number[] = [];
  for (const row of rows)
    for (const [column, [text]] of row.entries())
      widths[column] = Math.max(widths[column] ?? 0, Math.min(widthOf(text), maxWidth));
  return widths;
}
