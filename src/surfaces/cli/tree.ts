/**
 * The tree of a turn as lines of text: one for each call, with what it asked, what it cost and how long it took, and
 * below it what went wrong or was worth a note. No line is wider than the terminal, and all texts are made safe.
 * `outline` says which lines there are, `layout` sets them in columns; the live tree uses both with less room.
 */
import type { TraceEvent } from '../../protocol/trace.js';
import { type CallNode, type CallNote, type Pricing, type Totals, TraceTree, type Usage } from '../../views/tree.js';
import {
  count,
  drawn,
  duration,
  money,
  paint,
  plain,
  type Span,
  trimmed,
  widthOf,
  widthOfSpans,
  within,
  wrap,
} from './paint.js';

export interface TreeOptions {
  readonly color: boolean;
  readonly width: number;
  readonly price?: Pricing;
  /** The most children of a call that are drawn; of the others, those that went well are only counted. */
  readonly max?: number;
}

/** How a tree is looked at. */
export interface Look {
  readonly color: boolean;
  readonly width: number;
  readonly max?: number;
  /** The most lines; one more tells that there would be more. */
  readonly limit?: number;
  /** Whether what is inside of calls that have ended is left out. */
  readonly fold?: boolean;
  /** Whether notes are left out and errors get one line. */
  readonly terse?: boolean;
  /** What a running call is marked with, and the time until which it has run. */
  readonly running?: { readonly mark: string; readonly now: number };
}

/** A line of the tree; a call's has columns at its right. */
export interface Row {
  readonly spans: readonly Span[];
  readonly isCall: boolean;
  readonly cost: string;
  readonly took: string;
}

/** A line that is cut to its width. */
export type Line = readonly Span[];

/** A call that is still to be drawn: the lines that pass it at its left, and whether it is the last of its siblings. */
interface Place {
  readonly node: CallNode;
  readonly bars: string;
  readonly last: boolean;
}

const LEVELS = 12;
const ERROR_LINES = 5;
const NAME = { max: 64 };

/** The whole tree of a turn, and a last line with what it used. No line end at the end. */
export function renderTree(events: Iterable<TraceEvent>, { price, ...look }: TreeOptions): string {
  const tree = new TraceTree({ price });
  for (const event of events) tree.apply(event);
  return treeText(tree, look);
}

/** The text of a tree that is folded already. */
export function treeText(tree: TraceTree, look: Look): string {
  const { root } = tree;
  const rows = root === undefined ? [] : outline(root, look);
  const colors = paint(look.color);
  return [...layout(rows, look).lines, totalsOfTree(tree, look)].map((spans) => drawn(spans, colors)).join('\n');
}

/** The lines of a tree, from the root down. The tree may be deeper than the stack, so it is walked without it. */
export function outline(root: CallNode, look: Look): Row[] {
  const rows: Row[] = [];
  const rest: (Row | Place)[] = [{ node: root, bars: '', last: true }];
  for (let next = rest.pop(); next !== undefined; next = rest.pop()) {
    if (look.limit !== undefined && rows.length > look.limit) break;
    if ('spans' in next) {
      rows.push(next);
      continue;
    }
    rows.push(callRow(next, look));
    const parts = partsOf(next, look);
    for (let i = parts.length - 1; i >= 0; i--) rest.push(parts[i] as Row | Place);
  }
  return rows;
}

function callRow({ node, bars, last }: Place, look: Look): Row {
  const { depth, backend } = node;
  const tip = depth === 0 ? '' : depth > levelsOf(look) ? `${depth} ` : last ? '└─ ' : '├─ ';
  const cost = backend === undefined || !isPriced(backend) ? '' : money(backend.costMicros);
  const spans: Span[] = [[`${bars}${tip}`, 'dim'], ...callSpans(node, look)];
  return { spans, isCall: true, cost, took: took(node, look) };
}

/** What stands under a call, in order: its error, then notes and children as they came. */
function partsOf(place: Place, look: Look): (Row | Place)[] {
  const { node } = place;
  const folded = look.fold === true && node.status !== 'running';
  const bars = barsBelow(place, look);
  const { shown, hidden } = folded ? { shown: [], hidden: 0 } : pick(node.children, look.max);
  const parts: (Row | Place)[] = [];
  const lead = (more: boolean): string => `${bars}${more ? '│ ' : '  '}`;
  const branches = shown.length + (hidden > 0 ? 1 : 0);
  if (folded || !isTold(node)) parts.push(...errorRows(node, lead(branches > 0), look));
  if (hidden > 0)
    parts.push(noteRow(`${bars}${shown.length > 0 ? '├─ ' : '└─ '}`, [[`… ${count(hidden)} more ok`, 'dim']]));
  const notes = look.terse === true || folded ? [] : node.notes;
  if (notes.length > 0 && node.dropped > 0)
    parts.push(noteRow(lead(branches > 0), [[`… ${count(node.dropped)} earlier notes`, 'dim']]));
  let noted = 0;
  const noteUntil = (index: number, more: boolean): void => {
    for (let note = notes[noted]; note !== undefined && note.before <= index; note = notes[++noted])
      parts.push(noteRow(lead(more), noteSpans(note)));
  };
  shown.forEach(({ child, index }, i) => {
    noteUntil(index, true);
    parts.push({ node: child, bars, last: i === shown.length - 1 });
  });
  noteUntil(Number.POSITIVE_INFINITY, false);
  return parts;
}

/** The children to draw. Where there are too many, the oldest that went well are left out. */
function pick(
  children: readonly CallNode[],
  max = Number.POSITIVE_INFINITY,
): { readonly shown: readonly { readonly child: CallNode; readonly index: number }[]; readonly hidden: number } {
  const shown: { child: CallNode; index: number }[] = [];
  let hidden = 0;
  children.forEach((child, index) => {
    if (child.status === 'ok' && hidden < children.length - max) hidden += 1;
    else shown.push({ child, index });
  });
  return { shown, hidden };
}

function barsBelow({ node, bars, last }: Place, look: Look): string {
  if (node.depth === 0 || node.depth > levelsOf(look)) return bars;
  return `${bars}${last ? '   ' : '│  '}`;
}

/** How many levels are drawn with branches; deeper ones get their number, or there would be no room for names. */
function levelsOf({ width }: Look): number {
  return Math.min(LEVELS, Math.max(1, Math.floor((width - 24) / 3)));
}

/** An error that a child tells already: one failure deep inside is told once. */
function isTold({ error, children }: CallNode): boolean {
  if (error === undefined) return true;
  for (let i = children.length - 1; i >= 0; i--) {
    const inner = children[i]?.error;
    if (inner !== undefined) return inner.code === error.code && inner.message === error.message;
  }
  return false;
}

function errorRows({ error }: CallNode, lead: string, { width, terse }: Look): Row[] {
  if (error === undefined) return [];
  const room = Math.max(1, width - widthOf(lead));
  const lines = wrap(errorText(error), room, terse === true ? 1 : ERROR_LINES);
  return lines.map((text) => noteRow(lead, [[text, 'red']]));
}

/** An error in one line. */
export function errorText({ code, message }: { readonly code: string; readonly message: string }): string {
  return `${plain(code, NAME)}  ${plain(message)}`.trim();
}

function noteSpans(note: CallNote): Span[] {
  switch (note.kind) {
    case 'log':
      return [
        [plain(note.level, NAME).padEnd(5), levelStyle(note.level)],
        [`  ${plain(note.message)}`, 'dim'],
      ];
    case 'retry': {
      const reason = note.code === '' ? '' : ` (${plain(note.code, NAME)})`;
      return [[`retry ${count(note.attempt)} after ${duration(note.delayMs)}${reason}`, 'yellow']];
    }
    case 'fallback':
      return [[`fell back to ${plain(note.to, NAME)}`, 'yellow']];
    case 'cached':
      return [['from cache', 'yellow']];
    case 'held':
      return [[`waited ${duration(note.delayMs)} for the rate limit`, 'yellow']];
    case 'event':
      return [[`${plain(note.type, NAME)} ${plain(note.facts)}`.trimEnd(), 'dim']];
  }
}

function levelStyle(level: string): 'red' | 'yellow' | 'dim' {
  if (level === 'error' || level === 'fatal') return 'red';
  return level === 'warn' || level === 'warning' ? 'yellow' : 'dim';
}

/** A call without its place in the tree: mark, loop, version, and what it used. */
export function callSpans(node: CallNode, { running }: Pick<Look, 'running'>): Span[] {
  const { status, callId, loopId, loopVersion } = node;
  const mark: Span =
    status === 'ok'
      ? ['✓', 'green']
      : status === 'error'
        ? ['✗', 'red']
        : loopVersion === undefined
          ? ['…', 'dim']
          : [running?.mark ?? '●', 'cyan'];
  const version = loopVersion === undefined || loopVersion === '' ? '' : `@${plain(loopVersion, NAME)}`;
  return [mark, [' '], [plain(loopId || callId, NAME), 'bold'], [version, 'dim'], ...detailSpans(node)];
}

function detailSpans({ backend, tool, loopId }: CallNode): Span[] {
  if (backend !== undefined) {
    const times = backend.attempts > 1 ? ` ×${count(backend.attempts)}` : '';
    const tokens = tokensText(backend);
    const name = plain(backend.model || backend.backendId, NAME);
    return [['  '], [name, 'cyan'], [`${times}${tokens === '' ? '' : ` ${tokens}`}`, 'dim']];
  }
  return tool === undefined || tool === loopId ? [] : [['  '], [plain(tool, NAME), 'cyan']];
}

function tokensText({ inputTokens, outputTokens }: Usage): string {
  return inputTokens + outputTokens > 0 ? `${count(inputTokens)}→${count(outputTokens)} tok` : '';
}

/** Whether any of the tokens had a price. */
function isPriced({ inputTokens, outputTokens, unpricedTokens }: Usage): boolean {
  return inputTokens + outputTokens > unpricedTokens;
}

/** How long a call took, or has run; empty if that is unknown. */
export function took({ status, startedAt, durationMs }: CallNode, { running }: Pick<Look, 'running'>): string {
  if (durationMs !== undefined) return duration(durationMs);
  const passed = status === 'running' && running !== undefined ? running.now - Date.parse(startedAt) : Number.NaN;
  return Number.isFinite(passed) ? duration(Math.max(0, passed)) : '';
}

/** A row that is no call. */
export function noteRow(lead: string, spans: readonly Span[]): Row {
  return { spans: [[lead, 'dim'], ...spans], isCall: false, cost: '', took: '' };
}

const GAP = 2;
/** The least that is left for names; a narrower terminal gets no cost, and then no durations. */
const LEAST = 16;

/** Rows as lines. `column` is where the right columns begin; a live tree hands it in again so that they never jump back. */
export function layout(rows: readonly Row[], { width }: Look, column = 0): { lines: Line[]; column: number } {
  const widest = { label: column, cost: 0, took: 0 };
  for (const row of rows) {
    if (row.isCall) widest.label = Math.max(widest.label, widthOfSpans(row.spans));
    widest.cost = Math.max(widest.cost, row.cost.length);
    widest.took = Math.max(widest.took, row.took.length);
  }
  const room = (part: number): number => (part > 0 ? part + GAP : 0);
  if (width - room(widest.took) - room(widest.cost) < LEAST) widest.cost = 0;
  if (width - room(widest.took) < LEAST) widest.took = 0;
  const label = Math.min(widest.label, width - room(widest.took) - room(widest.cost));
  const lines = rows.map((row): Line => {
    if (!row.isCall) return trimmed(within(row.spans, width));
    const fitted = within(row.spans, label);
    const right: Span[] = [];
    if (widest.cost > 0) right.push([row.cost.padStart(room(widest.cost)), 'dim']);
    if (widest.took > 0) right.push([row.took.padStart(room(widest.took))]);
    return trimmed([...fitted, [' '.repeat(label - widthOfSpans(fitted))], ...right]);
  });
  return { lines, column: label };
}

/** What a turn used: calls, tokens, cost, time. */
export function totalsOfTree({ root, totals }: TraceTree, look: Look): Line {
  const parts = root === undefined ? ['no calls'] : totalsParts(root, totals, look);
  return trimmed(within([[parts.join(' · '), 'dim']], look.width));
}

function totalsParts(root: CallNode, totals: Totals, look: Look): string[] {
  const { calls, costMicros, unpricedTokens } = totals;
  const cost = isPriced(totals) ? `${unpricedTokens > 0 ? 'at least ' : ''}${money(costMicros)}` : '';
  const time = took(root, look) || (root.status === 'running' ? 'not finished' : '');
  return [`${count(calls)} ${calls === 1 ? 'call' : 'calls'}`, tokensText(totals), cost, time].filter(
    (part) => part !== '',
  );
}
