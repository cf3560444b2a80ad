/**
 * The tree of a turn as lines of text: one for each call, with what it asked, what it cost and how long it took, and
 * below it what went wrong or was worth a note. No line is wider than the terminal, and all texts are made safe.
 * `outline` says which lines there are, `layout` sets them in columns; the live tree uses both with less room.
 */
import type { TraceEvent } from '../../protocol/trace.js';
import {
  type CallNode,
  type CallNote,
  type CallTotals,
  type Pricing,
  type TokenUsage,
  TraceTree,
} from '../../views/trace-tree.js';
import {
  createColors,
  formatCost,
  formatCount,
  formatDuration,
  renderSpans,
  sanitizeText,
  type TextSpan,
  trimSpansEnd,
  truncateSpans,
  widthOf,
  widthOfSpans,
  wrapWords,
} from './terminal-text.js';

export interface RenderTreeOptions {
  readonly color: boolean;
  readonly width: number;
  readonly price?: Pricing;
  /** The most children of a call that are drawn; of the others, those that went well are only counted. */
  readonly max?: number;
}

/** How a tree is looked at. */
export interface TreeLayoutOptions {
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
export interface TreeRow {
  readonly spans: readonly TextSpan[];
  readonly isCall: boolean;
  readonly cost: string;
  readonly elapsed: string;
}

/** A line that is cut to its width. */
export type TreeLine = readonly TextSpan[];

/** A call that is still to be drawn: the lines that pass it at its left, and whether it is the last of its siblings. */
interface TreePosition {
  readonly node: CallNode;
  readonly bars: string;
  readonly isLast: boolean;
}

const MAX_BRANCH_LEVELS = 12;
const MAX_ERROR_LINES = 5;
const NAME_OPTIONS = { max: 64 };

/** The whole tree of a turn, and a last line with what it used. No line end at the end. */
export function renderTree(events: Iterable<TraceEvent>, { price, ...look }: RenderTreeOptions): string {
  const tree = new TraceTree({ price });
  for (const event of events) tree.apply(event);
  return renderTraceTree(tree, look);
}

/** The text of a tree that is folded already. */
export function renderTraceTree(tree: TraceTree, look: TreeLayoutOptions): string {
  const { root } = tree;
  const rows = root === undefined ? [] : treeRows(root, look);
  const colors = createColors(look.color);
  return [...layOutRows(rows, look).lines, totalsLine(tree, look)]
    .map((spans) => renderSpans(spans, colors))
    .join('\n');
}

/** The lines of a tree, from the root down. The tree may be deeper than the stack, so it is walked without it. */
export function treeRows(root: CallNode, look: TreeLayoutOptions): TreeRow[] {
  const rows: TreeRow[] = [];
  const rest: (TreeRow | TreePosition)[] = [{ node: root, bars: '', isLast: true }];
  for (let next = rest.pop(); next !== undefined; next = rest.pop()) {
    if (look.limit !== undefined && rows.length > look.limit) break;
    if ('spans' in next) {
      rows.push(next);
      continue;
    }
    rows.push(callRow(next, look));
    const parts = rowsBelow(next, look);
    for (let i = parts.length - 1; i >= 0; i--) rest.push(parts[i] as TreeRow | TreePosition);
  }
  return rows;
}

function callRow({ node, bars, isLast }: TreePosition, look: TreeLayoutOptions): TreeRow {
  const { depth, backend } = node;
  const tip = depth === 0 ? '' : depth > branchLevelsFor(look) ? `${depth} ` : isLast ? '└─ ' : '├─ ';
  const cost = backend === undefined || !isPriced(backend) ? '' : formatCost(backend.costMicros);
  const spans: TextSpan[] = [[`${bars}${tip}`, 'dim'], ...callSpans(node, look)];
  return { spans, isCall: true, cost, elapsed: formatElapsed(node, look) };
}

/** What stands under a call, in order: its error, then notes and children as they came. */
function rowsBelow(place: TreePosition, look: TreeLayoutOptions): (TreeRow | TreePosition)[] {
  const { node } = place;
  const folded = look.fold === true && node.status !== 'running';
  const bars = barsBelow(place, look);
  const { shown, hidden } = folded ? { shown: [], hidden: 0 } : selectChildren(node.children, look.max);
  const parts: (TreeRow | TreePosition)[] = [];
  const lead = (more: boolean): string => `${bars}${more ? '│ ' : '  '}`;
  const branches = shown.length + (hidden > 0 ? 1 : 0);
  if (folded || !isErrorShownByChild(node)) parts.push(...errorRows(node, lead(branches > 0), look));
  if (hidden > 0)
    parts.push(noteRow(`${bars}${shown.length > 0 ? '├─ ' : '└─ '}`, [[`… ${formatCount(hidden)} more ok`, 'dim']]));
  const notes = look.terse === true || folded ? [] : node.notes;
  if (notes.length > 0 && node.droppedNotes > 0)
    parts.push(noteRow(lead(branches > 0), [[`… ${formatCount(node.droppedNotes)} earlier notes`, 'dim']]));
  let noted = 0;
  const noteUntil = (index: number, more: boolean): void => {
    for (let note = notes[noted]; note !== undefined && note.before <= index; note = notes[++noted])
      parts.push(noteRow(lead(more), noteSpans(note)));
  };
  shown.forEach(({ child, index }, i) => {
    noteUntil(index, true);
    parts.push({ node: child, bars, isLast: i === shown.length - 1 });
  });
  noteUntil(Number.POSITIVE_INFINITY, false);
  return parts;
}

/** The children to draw. Where there are too many, the oldest that went well are left out. */
function selectChildren(
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

function barsBelow({ node, bars, isLast }: TreePosition, look: TreeLayoutOptions): string {
  if (node.depth === 0 || node.depth > branchLevelsFor(look)) return bars;
  return `${bars}${isLast ? '   ' : '│  '}`;
}

/** How many levels are drawn with branches; deeper ones get their number, or there would be no room for names. */
function branchLevelsFor({ width }: TreeLayoutOptions): number {
  return Math.min(MAX_BRANCH_LEVELS, Math.max(1, Math.floor((width - 24) / 3)));
}

/** An error that a child tells already: one failure deep inside is told once. */
function isErrorShownByChild({ error, children }: CallNode): boolean {
  if (error === undefined) return true;
  for (let i = children.length - 1; i >= 0; i--) {
    const inner = children[i]?.error;
    if (inner !== undefined) return inner.code === error.code && inner.message === error.message;
  }
  return false;
}

function errorRows({ error }: CallNode, lead: string, { width, terse }: TreeLayoutOptions): TreeRow[] {
  if (error === undefined) return [];
  const room = Math.max(1, width - widthOf(lead));
  const lines = wrapWords(formatError(error), room, terse === true ? 1 : MAX_ERROR_LINES);
  return lines.map((text) => noteRow(lead, [[text, 'red']]));
}

/** An error in one line. */
export function formatError({ code, message }: { readonly code: string; readonly message: string }): string {
  return `${sanitizeText(code, NAME_OPTIONS)}  ${sanitizeText(message)}`.trim();
}

function noteSpans(note: CallNote): TextSpan[] {
  switch (note.kind) {
    case 'log':
      return [
        [sanitizeText(note.level, NAME_OPTIONS).padEnd(5), levelStyle(note.level)],
        [`  ${sanitizeText(note.message)}`, 'dim'],
      ];
    case 'retry': {
      const reason = note.code === '' ? '' : ` (${sanitizeText(note.code, NAME_OPTIONS)})`;
      return [[`retry ${formatCount(note.attempt)} after ${formatDuration(note.delayMs)}${reason}`, 'yellow']];
    }
    case 'fallback':
      return [[`fell back to ${sanitizeText(note.to, NAME_OPTIONS)}`, 'yellow']];
    case 'cached':
      return [['from cache', 'yellow']];
    case 'held':
      return [[`waited ${formatDuration(note.delayMs)} for the rate limit`, 'yellow']];
    case 'event':
      return [[`${sanitizeText(note.type, NAME_OPTIONS)} ${sanitizeText(note.facts)}`.trimEnd(), 'dim']];
  }
}

function levelStyle(level: string): 'red' | 'yellow' | 'dim' {
  if (level === 'error' || level === 'fatal') return 'red';
  return level === 'warn' || level === 'warning' ? 'yellow' : 'dim';
}

/** A call without its place in the tree: mark, loop, version, and what it used. */
export function callSpans(node: CallNode, { running }: Pick<TreeLayoutOptions, 'running'>): TextSpan[] {
  const { status, callId, loopId, loopVersion } = node;
  const mark: TextSpan =
    status === 'ok'
      ? ['✓', 'green']
      : status === 'error'
        ? ['✗', 'red']
        : loopVersion === undefined
          ? ['…', 'dim']
          : [running?.mark ?? '●', 'cyan'];
  const version = loopVersion === undefined || loopVersion === '' ? '' : `@${sanitizeText(loopVersion, NAME_OPTIONS)}`;
  return [mark, [' '], [sanitizeText(loopId || callId, NAME_OPTIONS), 'bold'], [version, 'dim'], ...detailSpans(node)];
}

function detailSpans({ backend, toolName, loopId }: CallNode): TextSpan[] {
  if (backend !== undefined) {
    const times = backend.attempts > 1 ? ` ×${formatCount(backend.attempts)}` : '';
    const tokens = tokensText(backend);
    const name = sanitizeText(backend.model || backend.backendId, NAME_OPTIONS);
    return [['  '], [name, 'cyan'], [`${times}${tokens === '' ? '' : ` ${tokens}`}`, 'dim']];
  }
  return toolName === undefined || toolName === loopId ? [] : [['  '], [sanitizeText(toolName, NAME_OPTIONS), 'cyan']];
}

function tokensText({ inputTokens, outputTokens }: TokenUsage): string {
  return inputTokens + outputTokens > 0 ? `${formatCount(inputTokens)}→${formatCount(outputTokens)} tok` : '';
}

/** Whether any of the tokens had a price. */
function isPriced({ inputTokens, outputTokens, unpricedTokens }: TokenUsage): boolean {
  return inputTokens + outputTokens > unpricedTokens;
}

/** How long a call took, or has run; empty if that is unknown. */
export function formatElapsed(
  { status, startedAt, durationMs }: CallNode,
  { running }: Pick<TreeLayoutOptions, 'running'>,
): string {
  if (durationMs !== undefined) return formatDuration(durationMs);
  const passed = status === 'running' && running !== undefined ? running.now - Date.parse(startedAt) : Number.NaN;
  return Number.isFinite(passed) ? formatDuration(Math.max(0, passed)) : '';
}

/** A row that is no call. */
export function noteRow(lead: string, spans: readonly TextSpan[]): TreeRow {
  return { spans: [[lead, 'dim'], ...spans], isCall: false, cost: '', elapsed: '' };
}

const COLUMN_GAP = 2;
/** The least that is left for names; a narrower terminal gets no cost, and then no durations. */
const MIN_NAME_COLUMNS = 16;

/** Rows as lines. `column` is where the right columns begin; a live tree hands it in again so that they never jump back. */
export function layOutRows(
  rows: readonly TreeRow[],
  { width }: TreeLayoutOptions,
  column = 0,
): { lines: TreeLine[]; column: number } {
  const widest = { label: column, cost: 0, took: 0 };
  for (const row of rows) {
    if (row.isCall) widest.label = Math.max(widest.label, widthOfSpans(row.spans));
    widest.cost = Math.max(widest.cost, row.cost.length);
    widest.took = Math.max(widest.took, row.elapsed.length);
  }
  const room = (part: number): number => (part > 0 ? part + COLUMN_GAP : 0);
  if (width - room(widest.took) - room(widest.cost) < MIN_NAME_COLUMNS) widest.cost = 0;
  if (width - room(widest.took) < MIN_NAME_COLUMNS) widest.took = 0;
  const label = Math.min(widest.label, width - room(widest.took) - room(widest.cost));
  const lines = rows.map((row): TreeLine => {
    if (!row.isCall) return trimSpansEnd(truncateSpans(row.spans, width));
    const fitted = truncateSpans(row.spans, label);
    const right: TextSpan[] = [];
    if (widest.cost > 0) right.push([row.cost.padStart(room(widest.cost)), 'dim']);
    if (widest.took > 0) right.push([row.elapsed.padStart(room(widest.took))]);
    return trimSpansEnd([...fitted, [' '.repeat(label - widthOfSpans(fitted))], ...right]);
  });
  return { lines, column: label };
}

/** What a turn used: calls, tokens, cost, time. */
export function totalsLine({ root, totals }: TraceTree, look: TreeLayoutOptions): TreeLine {
  const parts = root === undefined ? ['no calls'] : totalsParts(root, totals, look);
  return trimSpansEnd(truncateSpans([[parts.join(' · '), 'dim']], look.width));
}

function totalsParts(root: CallNode, totals: CallTotals, look: TreeLayoutOptions): string[] {
  const { calls, costMicros, unpricedTokens } = totals;
  const cost = isPriced(totals) ? `${unpricedTokens > 0 ? 'at least ' : ''}${formatCost(costMicros)}` : '';
  const time = formatElapsed(root, look) || (root.status === 'running' ? 'not finished' : '');
  return [`${formatCount(calls)} ${calls === 1 ? 'call' : 'calls'}`, tokensText(totals), cost, time].filter(
    (part) => part !== '',
  );
}
