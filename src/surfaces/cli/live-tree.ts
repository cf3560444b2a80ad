/**
 * The tree of a turn while it runs. On a terminal it is drawn in place, a few times a second, one write for each frame,
 * and never taller than the screen; elsewhere each call gets a line when it ends. The end leaves the whole tree.
 * Events only change the tree: what a frame draws is bounded by the screen, however much has happened.
 */
import type { TraceEvent } from '../../protocol/trace.js';
import { type CallNode, type Pricing, TraceTree } from '../../views/tree.js';
import { drawn, paint, rowsOf, type Span, within } from './paint.js';
import {
  callSpans,
  errorText,
  type Line,
  type Look,
  layout,
  noteRow,
  outline,
  type Row,
  took,
  totalsOfTree,
  treeText,
} from './tree.js';

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
  /** Milliseconds from frame to frame; 100 unless told. */
  readonly every?: number;
}

const SPINNER = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
const INDENTS = 12;
/** Lines of a log are not bounded by a screen, but by patience. */
const LOG_WIDTH = 240;
/** Rows that are looked at, at most, to find those for the screen. */
const SEEN = 2000;

const ERASE_LINE = '\u001b[2K';
const ERASE_BELOW = '\u001b[J';

/** Ever less of a tree: the first of these that fits on the screen is drawn. */
const LOOKS: readonly Pick<Look, 'max' | 'fold' | 'terse'>[] = [
  { max: 40 },
  { max: 40, fold: true },
  ...[40, 20, 12, 8, 5, 3, 1, 0].map((max) => ({ max, fold: true, terse: true })),
];

/** Shows a turn as it happens; `apply` takes its events, `end` leaves the result. */
export class LiveTree {
  private readonly out: LiveOutput;
  private readonly color: boolean;
  private readonly now: () => number;
  private readonly every: number;
  private readonly tree: TraceTree;
  private timer: NodeJS.Timeout | undefined;
  private ended = false;
  /** What is on the screen: the last frame as it was written, its lines without colour, and the width of the screen. */
  private frame = '';
  private texts: readonly string[] = [];
  private columns = 0;
  private column = 0;

  constructor(out: LiveOutput, { color, price, now, every = 100 }: LiveTreeOptions) {
    this.out = out;
    this.color = color;
    this.now = now;
    this.every = every;
    this.tree = new TraceTree({ price, onEnd: out.isTTY === true ? undefined : (call) => this.say(call) });
  }

  apply(event: TraceEvent): void {
    if (this.ended) return;
    this.tree.apply(event);
    if (this.out.isTTY !== true || this.timer !== undefined) return;
    this.timer = setInterval(() => this.draw(), this.every);
    this.timer.unref();
  }

  /** Puts the whole tree in the place of the last frame; nothing is drawn after it. */
  end(): void {
    if (this.ended) return;
    this.ended = true;
    clearInterval(this.timer);
    const look = { color: this.color, width: this.width() };
    if (this.out.isTTY === true) this.out.write(`${this.back()}${ERASE_BELOW}${treeText(this.tree, look)}\n`);
    else this.out.write(`${drawn(totalsOfTree(this.tree, look), paint(this.color))}\n`);
  }

  private width(): number {
    return this.out.isTTY === true ? this.out.columns || 80 : LOG_WIDTH;
  }

  private draw(): void {
    const width = this.width();
    const resized = width !== this.columns;
    const lines = this.lines(width);
    const colors = paint(this.color);
    // A line is erased before it is written: after a full one the cursor still stands on its last character.
    const frame = lines.map((line) => `${ERASE_LINE}${drawn(line, colors)}\n`).join('');
    if (frame === this.frame && !resized) return;
    this.out.write(`${this.back()}${resized ? ERASE_BELOW : ''}${frame}${ERASE_BELOW}`);
    this.frame = frame;
    this.texts = lines.map((line) => line.map(([text]) => text).join(''));
    this.columns = width;
  }

  /** Goes to where the last frame began. A screen that became narrower has broken its lines, as most terminals do. */
  private back(): string {
    let rows = 0;
    for (const text of this.texts) rows += rowsOf(text, this.width());
    return rows === 0 ? '\r' : `\r\u001b[${rows}A`;
  }

  /** As much of the tree as the screen has room for; its last row is left to the cursor. */
  private lines(width: number): Line[] {
    const { root } = this.tree;
    if (root === undefined) return [];
    const now = this.now();
    const mark = SPINNER[Math.floor(now / this.every) % SPINNER.length] ?? '●';
    const look: Look = { color: this.color, width, running: { mark, now } };
    const height = Math.max(1, (this.out.rows || 24) - 1);
    const { lines, column } = layout(rowsFor(root, look, height - 1), look, this.column);
    this.column = column;
    return [...lines, totalsOfTree(this.tree, look)].slice(-height);
  }

  private say(call: CallNode): void {
    const indent = '  '.repeat(Math.min(INDENTS, call.depth));
    const time = took(call, {});
    const spans: Span[] = [[indent], ...callSpans(call, {}), [time === '' ? '' : `  ${time}`, 'dim']];
    if (call.error !== undefined) spans.push([`  ${errorText(call.error)}`, 'red']);
    this.out.write(`${drawn(within(spans, this.width()), paint(this.color))}\n`);
  }
}

/** At most `height` rows of a tree: with ever less of what has ended, and at last only the end, where the work is. */
function rowsFor(root: CallNode, look: Look, height: number): Row[] {
  for (const less of LOOKS) {
    const rows = outline(root, { ...look, ...less, limit: height });
    if (rows.length <= height) return rows;
  }
  const rows = outline(root, { ...look, ...LOOKS.at(-1), limit: SEEN });
  const kept = Math.max(0, height - 2);
  const top = rows.slice(0, Math.min(1, height));
  const end = kept === 0 ? [] : rows.slice(-kept);
  const hidden = rows.length - top.length - end.length;
  return height < 2 ? top : [...top, noteRow('', [[`… ${hidden} more lines`, 'dim']]), ...end];
}
