/**
 * The tree of a turn while it runs. On a terminal it is drawn in place, a few times a second, one write for each frame,
 * and never taller than the screen; elsewhere each call gets a line when it ends. The end leaves the whole tree.
 * Events only change the tree: what a frame draws is bounded by the screen, however much has happened.
 */
import type { TraceEvent } from '../../protocol/trace.js';
import { type CallNode, type Pricing, TraceTree } from '../../views/trace-tree.js';
import {
  callSpans,
  formatElapsed,
  formatError,
  layOutRows,
  noteRow,
  renderTraceTree,
  type TreeLayoutOptions,
  type TreeLine,
  type TreeRow,
  totalsLine,
  treeRows,
} from './render-tree.js';
import { createColors, renderSpans, rowCountOf, type TextSpan, truncateSpans } from './terminal-text.js';

/** Where a live tree is written to: a terminal, or any stream. */
export interface LiveOutput {
  write(text: string): unknown;
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
}

export interface LiveTreeOptions {
  readonly color: boolean;
  readonly price?: Pricing;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** The frame interval in milliseconds. @default 100 */
  readonly frameIntervalMs?: number;
}

const SPINNER = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
const MAX_INDENTS = 12;
/** Lines of a log are not bounded by a screen, but by patience. */
const LOG_COLUMNS = 240;
/** Rows that are looked at, at most, to find those for the screen. */
const MAX_SCANNED_ROWS = 2000;

const ERASE_LINE = '\u001b[2K';
const ERASE_BELOW = '\u001b[J';

/** Ever less of a tree: the first of these that fits on the screen is drawn. */
const DETAIL_LEVELS: readonly Pick<TreeLayoutOptions, 'max' | 'fold' | 'terse'>[] = [
  { max: 40 },
  { max: 40, fold: true },
  ...[40, 20, 12, 8, 5, 3, 1, 0].map((max) => ({ max, fold: true, terse: true })),
];

/** Shows a turn as it happens; `apply` takes its events, `end` leaves the result. */
export class LiveTree {
  private readonly output: LiveOutput;
  private readonly color: boolean;
  private readonly now: () => number;
  private readonly frameIntervalMs: number;
  private readonly tree: TraceTree;
  private timer: NodeJS.Timeout | undefined;
  private isEnded = false;
  /** What is on the screen: the last frame as it was written, its lines without colour, and the width of the screen. */
  private lastFrame = '';
  private lastFrameTexts: readonly string[] = [];
  private lastColumns = 0;
  private valueColumn = 0;

  constructor(out: LiveOutput, { color, price, now, frameIntervalMs = 100 }: LiveTreeOptions) {
    this.output = out;
    this.color = color;
    this.now = now;
    this.frameIntervalMs = frameIntervalMs;
    this.tree = new TraceTree({ price, onEnd: out.isTTY === true ? undefined : (call) => this.logCall(call) });
  }

  apply(event: TraceEvent): void {
    if (this.isEnded) return;
    this.tree.apply(event);
    if (this.output.isTTY !== true || this.timer !== undefined) return;
    this.timer = setInterval(() => this.draw(), this.frameIntervalMs);
    this.timer.unref();
  }

  /** Puts the whole tree in the place of the last frame; nothing is drawn after it. */
  end(): void {
    if (this.isEnded) return;
    this.isEnded = true;
    clearInterval(this.timer);
    const look = { color: this.color, width: this.width() };
    if (this.output.isTTY === true)
      this.output.write(`${this.cursorToFrameStart()}${ERASE_BELOW}${renderTraceTree(this.tree, look)}\n`);
    else this.output.write(`${renderSpans(totalsLine(this.tree, look), createColors(this.color))}\n`);
  }

  private width(): number {
    return this.output.isTTY === true ? this.output.columns || 80 : LOG_COLUMNS;
  }

  private draw(): void {
    const width = this.width();
    const resized = width !== this.lastColumns;
    const lines = this.frameLines(width);
    const colors = createColors(this.color);
    // A line is erased before it is written: after a full one the cursor still stands on its last character.
    const frame = lines.map((line) => `${ERASE_LINE}${renderSpans(line, colors)}\n`).join('');
    if (frame === this.lastFrame && !resized) return;
    this.output.write(`${this.cursorToFrameStart()}${resized ? ERASE_BELOW : ''}${frame}${ERASE_BELOW}`);
    this.lastFrame = frame;
    this.lastFrameTexts = lines.map((line) => line.map(([text]) => text).join(''));
    this.lastColumns = width;
  }

  /** Goes to where the last frame began. A screen that became narrower has broken its lines, as most terminals do. */
  private cursorToFrameStart(): string {
    let rows = 0;
    for (const text of this.lastFrameTexts) rows += rowCountOf(text, this.width());
    return rows === 0 ? '\r' : `\r\u001b[${rows}A`;
  }

  /** As much of the tree as the screen has room for; its last row is left to the cursor. */
  private frameLines(width: number): TreeLine[] {
    const { root } = this.tree;
    if (root === undefined) return [];
    const now = this.now();
    const mark = SPINNER[Math.floor(now / this.frameIntervalMs) % SPINNER.length] ?? '●';
    const look: TreeLayoutOptions = { color: this.color, width, running: { mark, now } };
    const height = Math.max(1, (this.output.rows || 24) - 1);
    const { lines, column } = layOutRows(fitRows(root, look, height - 1), look, this.valueColumn);
    this.valueColumn = column;
    return [...lines, totalsLine(this.tree, look)].slice(-height);
  }

  private logCall(call: CallNode): void {
    const indent = '  '.repeat(Math.min(MAX_INDENTS, call.depth));
    const time = formatElapsed(call, {});
    const spans: TextSpan[] = [[indent], ...callSpans(call, {}), [time === '' ? '' : `  ${time}`, 'dim']];
    if (call.error !== undefined) spans.push([`  ${formatError(call.error)}`, 'red']);
    this.output.write(`${renderSpans(truncateSpans(spans, this.width()), createColors(this.color))}\n`);
  }
}

/** At most `height` rows of a tree: with ever less of what has ended, and at last only the end, where the work is. */
function fitRows(root: CallNode, look: TreeLayoutOptions, height: number): TreeRow[] {
  for (const less of DETAIL_LEVELS) {
    const rows = treeRows(root, { ...look, ...less, limit: height });
    if (rows.length <= height) return rows;
  }
  const rows = treeRows(root, { ...look, ...DETAIL_LEVELS.at(-1), limit: MAX_SCANNED_ROWS });
  const kept = Math.max(0, height - 2);
  const top = rows.slice(0, Math.min(1, height));
  const end = kept === 0 ? [] : rows.slice(-kept);
  const hidden = rows.length - top.length - end.length;
  return height < 2 ? top : [...top, noteRow('', [[`… ${hidden} more lines`, 'dim']]), ...end];
}
