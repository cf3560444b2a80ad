/**
 * Shows the call tree of a running turn. On a terminal, the tree is redrawn in place several times a second, with one
 * write per frame, and never exceeds the screen. On other streams, each call gets a line when it ends. At the end, a
 * terminal shows the complete tree. Events only update the tree, so the cost of a frame is limited by the size of the
 * screen.
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

/** The stream that a live tree is written to. */
export interface LiveOutput {
  write(text: string): unknown;
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
}

/** Options of `LiveTree`. */
interface LiveTreeOptions {
  readonly color: boolean;
  readonly price?: Pricing;
  /** Returns the time in milliseconds since the epoch. */
  readonly now: () => number;
  /**
   * The interval between frames, in milliseconds.
   * @default 100
   */
  readonly frameIntervalMs?: number;
}

const SPINNER = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
const MAX_INDENTS = 12;
/** The maximum width of a line on a stream that is not a terminal. */
const LOG_COLUMNS = 240;
/** The maximum number of rows that are laid out to choose those for the screen. */
const MAX_SCANNED_ROWS = 2000;

const ERASE_LINE = '\u001b[2K';
const ERASE_BELOW = '\u001b[J';

/** Levels of decreasing detail. The first level that fits on the screen is drawn. */
const DETAIL_LEVELS: readonly Pick<TreeLayoutOptions, 'max' | 'fold' | 'terse'>[] = [
  { max: 40 },
  { max: 40, fold: true },
  ...[40, 20, 12, 8, 5, 3, 1, 0].map((max) => ({ max, fold: true, terse: true })),
];

/** Shows a turn while it runs. Pass its events to `apply`, and call `end` when it has ended. */
export class LiveTree {
  private readonly output: LiveOutput;
  private readonly color: boolean;
  private readonly now: () => number;
  private readonly frameIntervalMs: number;
  private readonly tree: TraceTree;
  private timer: NodeJS.Timeout | undefined;
  private isEnded = false;
  /** The last frame as written, its lines without colour, and the width of the screen at that time. */
  private lastFrame = '';
  private lastFrameTexts: readonly string[] = [];
  private lastColumns = 0;
  private valueColumn = 0;

  constructor(output: LiveOutput, { color, price, now, frameIntervalMs = 100 }: LiveTreeOptions) {
    this.output = output;
    this.color = color;
    this.now = now;
    this.frameIntervalMs = frameIntervalMs;
    this.tree = new TraceTree({ price, onEnd: output.isTTY === true ? undefined : (call) => this.logCall(call) });
  }

  /** Adds an event to the tree. The first one starts the redrawing. */
  apply(event: TraceEvent): void {
    if (this.isEnded) return;
    this.tree.apply(event);
    if (this.output.isTTY !== true || this.timer !== undefined) return;
    this.timer = setInterval(() => this.draw(), this.frameIntervalMs);
    this.timer.unref();
  }

  /**
   * Replaces the last frame with the complete tree, or writes the totals if it is no terminal. Nothing is drawn
   * afterwards.
   */
  end(): void {
    if (this.isEnded) return;
    this.isEnded = true;
    clearInterval(this.timer);
    const options = { color: this.color, width: this.width() };
    if (this.output.isTTY === true)
      this.output.write(`${this.cursorToFrameStart()}${ERASE_BELOW}${renderTraceTree(this.tree, options)}\n`);
    else this.output.write(`${renderSpans(totalsLine(this.tree, options), createColors(this.color))}\n`);
  }

  private width(): number {
    return this.output.isTTY === true ? this.output.columns || 80 : LOG_COLUMNS;
  }

  private draw(): void {
    const width = this.width();
    const isResized = width !== this.lastColumns;
    const lines = this.frameLines(width);
    const colors = createColors(this.color);
    // Each line is erased before it is written: after a full line, the cursor is still on its last character.
    const frame = lines.map((line) => `${ERASE_LINE}${renderSpans(line, colors)}\n`).join('');
    if (frame === this.lastFrame && !isResized) return;
    this.output.write(`${this.cursorToFrameStart()}${isResized ? ERASE_BELOW : ''}${frame}${ERASE_BELOW}`);
    this.lastFrame = frame;
    this.lastFrameTexts = lines.map((line) => line.map(([text]) => text).join(''));
    this.lastColumns = width;
  }

  /**
   * Returns the escape sequence that moves the cursor to the start of the last frame. Most terminals rewrap lines on
   * resize.
   */
  private cursorToFrameStart(): string {
    let rows = 0;
    for (const text of this.lastFrameTexts) rows += rowCountOf(text, this.width());
    return rows === 0 ? '\r' : `\r\u001b[${rows}A`;
  }

  /** Returns as much of the tree as fits on the screen. The last row of the screen is left to the cursor. */
  private frameLines(width: number): TreeLine[] {
    const { root } = this.tree;
    if (root === undefined) return [];
    const now = this.now();
    const mark = SPINNER[Math.floor(now / this.frameIntervalMs) % SPINNER.length] ?? '●';
    const options: TreeLayoutOptions = { color: this.color, width, running: { mark, now } };
    const height = Math.max(1, (this.output.rows || 24) - 1);
    const { lines, column } = layOutRows(fitRows(root, options, height - 1), options, this.valueColumn);
    this.valueColumn = column;
    return [...lines, totalsLine(this.tree, options)].slice(-height);
  }

  private logCall(call: CallNode): void {
    const indent = '  '.repeat(Math.min(MAX_INDENTS, call.depth));
    const time = formatElapsed(call, {});
    const spans: TextSpan[] = [[indent], ...callSpans(call, {}), [time === '' ? '' : `  ${time}`, 'dim']];
    if (call.error !== undefined) spans.push([`  ${formatError(call.error)}`, 'red']);
    this.output.write(`${renderSpans(truncateSpans(spans, this.width()), createColors(this.color))}\n`);
  }
}

/** Returns at most `height` rows of a tree: with less detail of ended calls, or as a last resort only its end. */
function fitRows(root: CallNode, options: TreeLayoutOptions, height: number): TreeRow[] {
  for (const level of DETAIL_LEVELS) {
    const rows = treeRows(root, { ...options, ...level, limit: height });
    if (rows.length <= height) return rows;
  }
  const rows = treeRows(root, { ...options, ...DETAIL_LEVELS.at(-1), limit: MAX_SCANNED_ROWS });
  const tailCount = Math.max(0, height - 2);
  const top = rows.slice(0, Math.min(1, height));
  const tail = tailCount === 0 ? [] : rows.slice(-tailCount);
  const hiddenCount = rows.length - top.length - tail.length;
  return height < 2 ? top : [...top, noteRow('', [[`… ${hiddenCount} more lines`, 'dim']]), ...tail];
}
