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

/** A column is not made narrower than this to fit the table on the terminal. */
const MIN_COLUMN_WIDTH = 8;

/**
 * Renders a table without a trailing newline. Long cells are truncated; if the table is wider than the terminal, the
 * widest columns are made narrower, so that every column stays visible.
 */
export function renderTable(rows: readonly (readonly TableCell[])[], options: TableOptions): string {
  const { width, head, align = [] } = options;
  const body = rows.map((row) => row.map(sanitizeCell));
  const allRows = head === undefined ? body : [head.map((text) => sanitizeCell([text, 'dim'])), ...body];
  const widths = fittedWidths(columnWidths(allRows, Math.max(12, Math.floor(width / 2))), width);
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

/** Makes the widest columns narrower until the table fits, or until no column can be made narrower. */
function fittedWidths(widths: readonly number[], tableWidth: number): number[] {
  const fitted = [...widths];
  const available = tableWidth - COLUMN_GAP.length * Math.max(0, fitted.length - 1);
  for (let excess = fitted.reduce((sum, width) => sum + width, 0) - available; excess > 0; excess--) {
    const widest = Math.max(...fitted);
    if (widest <= MIN_COLUMN_WIDTH) break;
    fitted[fitted.lastIndexOf(widest)] = widest - 1;
  }
  return fitted;
}
