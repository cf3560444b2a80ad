/** Rows of text in columns: no borders, a dim head, and no line wider than the terminal. */
import { cut, drawn, paint, plain, type Span, trimmed, widthOf, within } from './paint.js';

/** A text, or a text with a look; either is made safe to print. */
export type Cell = string | Span;

export interface TableOptions {
  readonly width: number;
  readonly color?: boolean;
  readonly head?: readonly string[];
  /** By column; left unless told. */
  readonly align?: readonly ('left' | 'right')[];
}

const GAP = '  ';

/** The lines of a table, without a line end at the end; cells that are too long are cut, most of all in the last column. */
export function table(rows: readonly (readonly Cell[])[], options: TableOptions): string {
  const { width, head, align = [] } = options;
  const body = rows.map((row) => row.map(safe));
  const all = head === undefined ? body : [head.map((text) => safe([text, 'dim'])), ...body];
  const widths = widthsOf(all, Math.max(12, Math.floor(width / 2)));
  const colors = paint(options.color === true);
  const lines = all.map((row) => {
    const spans = row.flatMap(([text, style], column): Span[] => {
      const last = column === row.length - 1;
      const room = widths[column] ?? 0;
      const shown = last ? text : cut(text, room);
      const pad = ' '.repeat(Math.max(0, room - widthOf(shown)));
      const gap = column === 0 ? '' : GAP;
      if (align[column] === 'right') return [[`${gap}${pad}`], [shown, style]];
      return [[gap], [shown, style], [last ? '' : pad]];
    });
    return drawn(trimmed(within(spans, width)), colors);
  });
  return lines.join('\n');
}

function safe(cell: Cell): Span {
  return typeof cell === 'string' ? [plain(cell)] : [plain(cell[0]), cell[1]];
}

/** How wide each column is; only the last may take more than `most`. */
function widthsOf(rows: readonly (readonly Span[])[], most: number): number[] {
  const widths: number[] = [];
  for (const row of rows)
    for (const [column, [text]] of row.entries())
      widths[column] = Math.max(widths[column] ?? 0, Math.min(widthOf(text), most));
  return widths;
}
