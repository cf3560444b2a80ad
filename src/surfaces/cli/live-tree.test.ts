import fc from 'fast-check';
import { afterEach, beforeEach, expect, vi } from 'vitest';
import { price, ragTrace, TraceBuilder, wideEvents } from '../../../spec/support/trace-builder.mjs';
import { verifies } from '../../../spec/verifies.js';
import type { TraceEvent } from '../../protocol/trace.js';
import { type LiveOutput, LiveTree } from './live-tree.js';
import { renderTree } from './render-tree.js';

const START = Date.UTC(2026, 0, 1);
const ESC = '\u001b';
const SEQUENCE = new RegExp(`${ESC}\\[(\\d*)([A-Za-z])|[\\s\\S]`, 'gu');
const WIDE = /[\u3000-\u9fff\u{1f300}-\u{1faff}]/u;

interface ScreenRow {
  cells: string[];
  /** True if the next row continues this one. */
  wrapped: boolean;
}

/** A minimal terminal that rewraps its lines on resize. Unknown escape sequences are errors. */
class Screen implements LiveOutput {
  readonly isTTY = true;
  columns: number;
  rows: number;
  readonly writes: string[] = [];
  private lines: ScreenRow[] = [{ cells: [], wrapped: false }];
  private row = 0;
  private col = 0;
  private top = 0;

  constructor(columns: number, rows: number) {
    this.columns = columns;
    this.rows = rows;
  }

  write(text: string): void {
    this.writes.push(text);
    for (const [match, digits, name] of text.matchAll(SEQUENCE)) {
      if (name !== undefined) this.control(name, Number(digits || '0'));
      else if (match === '\r') this.col = 0;
      else if (match === '\n') this.down();
      else this.put(match);
    }
  }

  /** Returns all lines, including the scrollback. */
  text(): string[] {
    const texts = this.lines.map(({ cells }) => cells.join('').trimEnd());
    while (texts.at(-1) === '') texts.pop();
    return texts;
  }

  resize(columns: number): void {
    const texts: string[] = [];
    let cursor = 0;
    this.lines.forEach(({ cells }, i) => {
      if (i > 0 && this.lines[i - 1]?.wrapped === true) texts.push(`${texts.pop()}${cells.join('')}`);
      else texts.push(cells.join(''));
      if (i === this.row) cursor = texts.length - 1;
    });
    this.columns = columns;
    this.lines = [];
    const starts = texts.map((text) => {
      this.row = this.lines.length;
      this.col = 0;
      const start = this.row;
      this.line();
      for (const char of text) this.put(char);
      return start;
    });
    this.row = starts[cursor] ?? 0;
    this.col = 0;
    this.top = Math.max(0, this.row - this.rows + 1);
  }

  private control(name: string, count: number): void {
    if (name === 'A') this.row = Math.max(this.top, this.row - Math.max(1, count));
    else if (name === 'K' && count === 2) this.line().cells = [];
    else if (name === 'J' && count === 0) {
      this.line().cells.length = Math.min(this.col, this.line().cells.length);
      this.line().wrapped = false;
      this.lines.length = this.row + 1;
    } else if (name !== 'm') throw new Error(`Unknown escape sequence ${name}.`);
  }

  private put(char: string): void {
    const width = WIDE.test(char) ? 2 : 1;
    if (this.col + width > this.columns) {
      this.line().wrapped = true;
      this.down();
    }
    const { cells } = this.line();
    while (cells.length < this.col) cells.push(' ');
    cells[this.col] = char;
    if (width === 2) cells[this.col + 1] = '';
    this.col += width;
  }

  private down(): void {
    this.row += 1;
    this.col = 0;
    this.line();
    this.top = Math.max(this.top, this.row - this.rows + 1);
  }

  private line(): ScreenRow {
    while (this.lines.length <= this.row) this.lines.push({ cells: [], wrapped: false });
    return this.lines[this.row] as ScreenRow;
  }
}

/** Returns the lines of a write without escape sequences. */
function linesOf(text = ''): string[] {
  return text
    .replace(new RegExp(`${ESC}\\[\\d*[A-Za-z]|\\r`, 'g'), '')
    .trimEnd()
    .split('\n');
}

function createTree(screen: LiveOutput): LiveTree {
  return new LiveTree(screen, { color: true, price, now: () => Date.now() });
}

beforeEach(() => {
  vi.useFakeTimers({ now: START });
});

afterEach(() => {
  vi.useRealTimers();
});

verifies('cli.tree', 'frames replace each other, and the end shows the complete tree', () => {
  const screen = new Screen(80, 24);
  const tree = createTree(screen);
  screen.write('$ rondo run rag --watch\n');
  const { events } = ragTrace();
  for (const event of events) {
    vi.setSystemTime(Date.parse(event.ts));
    tree.apply(event);
    vi.advanceTimersByTime(100);
    expect(screen.text()).toEqual(['$ rondo run rag --watch', ...linesOf(screen.writes.at(-1))]);
  }
  expect(screen.writes.length).toBeGreaterThan(5);
  tree.end();
  const completeTree = renderTree(events, { color: false, width: 80, price });
  expect(screen.text()).toEqual(['$ rondo run rag --watch', ...completeTree.split('\n')]);
});

verifies('cli.tree', 'a running call shows a spinner and its duration so far', () => {
  const screen = new Screen(60, 24);
  const tree = createTree(screen);
  for (const event of new TraceBuilder().begin('t', 'slow').begin('t/0', 'ask').requestModel('t/0').events)
    tree.apply(event);
  expect(screen.writes).toEqual([]);
  vi.advanceTimersByTime(100);
  expect(screen.text()).toEqual([
    '⠙ slow@1.0.0                 100 ms',
    '└─ ⠙ ask@1.0.0  gpt-4o-mini  100 ms',
    '2 calls · 100 ms',
  ]);
  vi.advanceTimersByTime(62_900);
  expect(screen.text()[1]).toMatch(/^└─ \S ask@1\.0\.0 {2}gpt-4o-mini {2}1 m 03 s$/);
  tree.end();
  expect(screen.text()).toEqual(['● slow@1.0.0', '└─ ● ask@1.0.0  gpt-4o-mini', '2 calls · not finished']);
});

/** Returns the events of a random turn: most calls end, some fail, some names are long or wide. */
function randomTurn(choices: readonly number[]): TraceEvent[] {
  const builder = new TraceBuilder().begin('t', 'root');
  const open = ['t'];
  for (const [i, choice] of choices.entries()) {
    const id = open[choice % open.length] ?? 't';
    builder.after(choice % 300);
    if (choice % 5 <= 1) {
      const name = ['短い名前', 'n'.repeat(choice % 90), 'short', '😀 smile'][choice % 4] ?? '';
      open.push(`${id}/${i}`);
      builder.begin(`${id}/${i}`, name);
    } else if (choice % 5 === 2) builder.log(id, 'info', 'w '.repeat(choice % 80));
    else if (choice % 5 === 3) builder.model(id, choice % 7);
    else {
      const last = open.length > 1 ? open.pop() : undefined;
      if (last !== undefined)
        choice % 3 === 0 ? builder.fail(last, 'TOOL_FAILED', 'm '.repeat(60)) : builder.done(last);
    }
  }
  return builder.events;
}

const choices = fc.array(fc.nat(10_000), { maxLength: 60 });

verifies('cli.tree', 'the screen shows exactly one frame while the tree grows and shrinks', () => {
  fc.assert(
    fc.property(choices, fc.integer({ min: 1, max: 100 }), fc.integer({ min: 2, max: 30 }), (steps, columns, rows) => {
      const screen = new Screen(columns, rows);
      const tree = createTree(screen);
      screen.write('a\nb\n');
      const events = randomTurn(steps);
      for (const event of events) {
        const before = screen.writes.length;
        tree.apply(event);
        vi.advanceTimersByTime(100);
        expect(screen.writes.length - before).toBeLessThanOrEqual(1);
        const frame = linesOf(screen.writes.at(-1));
        expect(frame.length).toBeLessThan(rows);
        expect(screen.text()).toEqual(['a', 'b', ...frame]);
      }
      tree.end();
      expect(screen.text()).toEqual([
        'a',
        'b',
        ...renderTree(events, { color: false, width: columns, price }).split('\n'),
      ]);
    }),
    { numRuns: 100 },
  );
});

verifies('cli.tree', 'a resize during a turn does not corrupt the screen', () => {
  const widths = fc.array(fc.integer({ min: 20, max: 120 }), { minLength: 60, maxLength: 60 });
  fc.assert(
    fc.property(choices, widths, (steps, columns) => {
      const screen = new Screen(80, 400);
      const tree = createTree(screen);
      screen.write('$ rondo\n');
      const events = randomTurn(steps);
      for (const [i, event] of events.entries()) {
        tree.apply(event);
        if (i % 3 === 0) screen.resize(columns[i % columns.length] ?? 80);
        vi.advanceTimersByTime(100);
        expect(screen.text()).toEqual(['$ rondo', ...linesOf(screen.writes.at(-1))]);
      }
      screen.resize(50);
      tree.end();
      expect(screen.text()).toEqual(['$ rondo', ...renderTree(events, { color: false, width: 50, price }).split('\n')]);
    }),
    { numRuns: 100 },
  );
});

verifies('cli.tree', 'a tree that is taller than the screen is shortened to fit', () => {
  const screen = new Screen(60, 10);
  const tree = createTree(screen);
  const builder = new TraceBuilder().begin('t', 'all');
  for (let i = 0; i < 50; i++)
    builder.begin(`t/${i}`, 'each').begin(`t/${i}/0`, 'inner').done(`t/${i}/0`).done(`t/${i}`);
  for (const event of builder.begin('t/50', 'each').events) tree.apply(event);
  vi.advanceTimersByTime(100);
  expect(screen.text()).toEqual([
    '⠙ all@1.0.0      100 ms',
    '├─ … 46 more ok',
    ...Array.from({ length: 4 }, () => '├─ ✓ each@1.0.0    0 ms'),
    '└─ ⠙ each@1.0.0  100 ms',
    '102 calls · 100 ms',
  ]);
});

verifies('cli.tree', 'a deep turn shows its innermost calls', () => {
  const screen = new Screen(70, 8);
  const tree = createTree(screen);
  const builder = new TraceBuilder();
  for (let depth = 0; depth < 1000; depth++) builder.begin(`t${'/0'.repeat(depth)}`, `at${depth}`);
  for (const event of builder.events) tree.apply(event);
  vi.advanceTimersByTime(100);
  expect(screen.text().map((line) => line.trim().replace(/ {2,}100 ms$/, ''))).toEqual([
    '⠙ at0@1.0.0',
    '… 995 more lines',
    ...[996, 997, 998, 999].map((depth) => `${depth} ⠙ at${depth}@1.0.0`),
    '1,000 calls · 100 ms',
  ]);
});

verifies('cli.tree', 'a busy turn is drawn at most ten times a second', () => {
  const screen = new Screen(100, 30);
  const tree = createTree(screen);
  const events = wideEvents(20_000).slice(0, -1);
  for (const [i, event] of events.entries()) {
    tree.apply(event);
    if (i % 100 === 0) vi.advanceTimersByTime(1);
  }
  const seconds = (Date.now() - START) / 1000;
  expect(seconds).toBeGreaterThan(1);
  expect(screen.writes.length).toBeLessThanOrEqual(seconds * 10);
  expect(screen.writes.length).toBeGreaterThan(5);
  for (const frame of screen.writes) expect(frame.length).toBeLessThan(100 * 30 * 2);
});

verifies('cli.tree', 'the timer does not keep the process alive, and nothing is drawn after the end', () => {
  const screen = new Screen(80, 24);
  const interval = vi.spyOn(globalThis, 'setInterval');
  const tree = createTree(screen);
  for (const event of ragTrace().events.slice(0, 5)) tree.apply(event);
  expect(interval).toHaveBeenCalledTimes(1);
  expect(interval.mock.results[0]?.value.hasRef()).toBe(false);
  vi.advanceTimersByTime(500);
  tree.end();
  expect(vi.getTimerCount()).toBe(0);
  const { length } = screen.writes;
  tree.end();
  for (const event of ragTrace().events) tree.apply(event);
  vi.advanceTimersByTime(500);
  expect(screen.writes).toHaveLength(length);
  interval.mockRestore();
});

verifies('cli.tree', 'a stream that is not a terminal gets plain lines', () => {
  const lines: string[] = [];
  const tree = new LiveTree({ write: (text) => lines.push(text) }, { color: false, price, now: () => Date.now() });
  const builder = ragTrace().begin('t1', 'ignored');
  const failing = new TraceBuilder().begin('t2', 'outer').begin('t2/0', 'inner').after(7);
  for (const event of builder.events) tree.apply(event);
  tree.end();
  expect(lines).toEqual([
    '  ✓ retrieve@1.2.0  vector-search  12 ms\n',
    '  ✓ rerank@1.0.0  gpt-4o-mini 812→96 tok  398 ms\n',
    '  ✓ answer@2.0.1  gpt-4o 1,204→310 tok  830 ms\n',
    '✓ rag@1.0.0  1.24 s\n',
    '4 calls · 2,016→406 tok · $0.0063 · 1.24 s\n',
  ]);
  lines.length = 0;
  const other = new LiveTree({ write: (text) => lines.push(text) }, { color: false, now: () => Date.now() });
  for (const event of failing.fail('t2/0', 'TIMEOUT', 'Too\nslow.').events) other.apply(event);
  other.end();
  expect(lines).toEqual(['  ✗ inner@1.0.0  7 ms  TIMEOUT  Too⏎slow.\n', '2 calls · not finished\n']);
});
