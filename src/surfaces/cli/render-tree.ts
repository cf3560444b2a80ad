/**
 * Renders the call tree of a turn: a line for each call with its model or tool, cost and duration, and below it errors
 * and notes. No line is wider than the terminal, and all text is sanitised. `treeRows` selects the rows, `layOutRows`
 * aligns their columns; the live tree uses both with limits.
 */
import { shortVersion } from '../../base/short-version.js';
import type { TraceEvent } from '../../protocol/trace.js';
import { type CallNode, type CallTotals, type Pricing, type TokenUsage, TraceTree } from '../../views/trace-tree.js';
import { noteSpans } from './render-note.js';
import {
  breakIntoRows,
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

/** Options of `renderTree`. */
export interface RenderTreeOptions {
  readonly color: boolean;
  readonly width: number;
  readonly price?: Pricing;
  /** Renders details below each call. */
  readonly details?: NonNullable<TreeLayoutOptions['details']>;
  /**
   * The maximum number of children of a call. Successful children beyond it are only counted; others are always shown.
   * @default no limit
   */
  readonly max?: number;
  /**
   * True if no error, note or name is shortened: they get as many rows as they need.
   * @default false
   */
  readonly full?: boolean;
}

/** Options of the layout of a tree. */
export interface TreeLayoutOptions {
  readonly color: boolean;
  readonly width: number;
  readonly max?: number;
  /** The maximum number of rows. One more row is returned if there are more. */
  readonly limit?: number;
  /** True if the children and notes of ended calls are omitted. */
  readonly fold?: boolean;
  /** True if errors and notes are not shortened. */
  readonly full?: boolean;
  /** True if notes are omitted and errors have one line. */
  readonly terse?: boolean;
  /** Returns the rows to show below a call, in at most `columns` columns. Calls that are folded have none. */
  readonly details?: (callId: string, columns: number) => readonly (readonly TextSpan[])[];
  /** The mark of running calls, and the current time, up to which their duration counts. */
  readonly running?: { readonly mark: string; readonly now: number };
}

/** A row of the tree. The row of a call has columns for cost and duration. */
export interface TreeRow {
  readonly spans: readonly TextSpan[];
  readonly isCall: boolean;
  readonly cost: string;
  readonly elapsed: string;
}

/** A line that fits the width of the terminal. */
export type TreeLine = readonly TextSpan[];

/** A call with its position in the tree: the vertical bars at its left, and whether it is the last sibling. */
interface TreePosition {
  readonly node: CallNode;
  readonly bars: string;
  readonly isLast: boolean;
}

const MAX_BRANCH_LEVELS = 12;
const MAX_ERROR_LINES = 5;
const NAME_OPTIONS = { max: 64 };

/** Renders the tree of a turn from its events, with a last line of totals and without a trailing newline. */
export function renderTree(events: Iterable<TraceEvent>, { price, ...options }: RenderTreeOptions): string {
  const tree = new TraceTree({ price, full: options.full });
  for (const event of events) tree.apply(event);
  return renderTraceTree(tree, options);
}

/** Renders a tree, with a last line of totals and without a trailing newline. */
export function renderTraceTree(tree: TraceTree, options: TreeLayoutOptions): string {
  const { root } = tree;
  const rows = root === undefined ? [] : treeRows(root, options);
  const colors = createColors(options.color);
  return [...layOutRows(rows, options).lines, totalsLine(tree, options)]
    .map((spans) => renderSpans(spans, colors))
    .join('\n');
}

/**
 * Returns the rows of a tree, from the root down. The traversal is iterative, because deep trees would overflow the
 * stack.
 */
export function treeRows(root: CallNode, options: TreeLayoutOptions): TreeRow[] {
  const rows: TreeRow[] = [];
  const rest: (TreeRow | TreePosition)[] = [{ node: root, bars: '', isLast: true }];
  for (let next = rest.pop(); next !== undefined; next = rest.pop()) {
    if (options.limit !== undefined && rows.length > options.limit) break;
    if ('spans' in next) {
      rows.push(next);
      continue;
    }
    rows.push(callRow(next, options));
    const below = rowsBelow(next, options);
    for (let i = below.length - 1; i >= 0; i--) rest.push(below[i] as TreeRow | TreePosition);
  }
  return rows;
}

function callRow({ node, bars, isLast }: TreePosition, options: TreeLayoutOptions): TreeRow {
  const { depth, backend } = node;
  const branch = depth === 0 ? '' : depth > branchLevelsFor(options) ? `${depth} ` : isLast ? '└─ ' : '├─ ';
  const cost = backend === undefined || !isPriced(backend) ? '' : formatCost(backend.costMicros);
  const spans: TextSpan[] = [[`${bars}${branch}`, 'dim'], ...callSpans(node, options)];
  return { spans, isCall: true, cost, elapsed: formatElapsed(node, options) };
}

/** Returns the rows below a call: its error, then notes and children in chronological order. */
function rowsBelow(position: TreePosition, options: TreeLayoutOptions): (TreeRow | TreePosition)[] {
  const { node } = position;
  const isFolded = options.fold === true && node.status !== 'running';
  const bars = barsBelow(position, options);
  const { shown, hidden } = isFolded ? { shown: [], hidden: 0 } : selectChildren(node.children, options.max);
  const rows: (TreeRow | TreePosition)[] = [];
  const lead = (hasNext: boolean): string => `${bars}${hasNext ? '│ ' : '  '}`;
  const hasBranches = shown.length > 0 || hidden > 0;
  if (!isFolded) rows.push(...detailRows(node, lead(hasBranches), options));
  if (isFolded || !isErrorShownByChild(node)) rows.push(...errorRows(node, lead(hasBranches), options));
  if (hidden > 0)
    rows.push(noteRow(`${bars}${shown.length > 0 ? '├─ ' : '└─ '}`, [[`… ${formatCount(hidden)} more ok`, 'dim']]));
  const notes = options.terse === true || isFolded ? [] : node.notes;
  if (notes.length > 0 && node.droppedNotes > 0)
    rows.push(noteRow(lead(hasBranches), [[`… ${formatCount(node.droppedNotes)} earlier notes`, 'dim']]));
  let noteIndex = 0;
  const addNotesUntil = (childIndex: number, hasNext: boolean): void => {
    for (let note = notes[noteIndex]; note !== undefined && note.before <= childIndex; note = notes[++noteIndex])
      rows.push(...noteRows(lead(hasNext), noteSpans(note, options.full === true), options));
  };
  shown.forEach(({ child, index }, i) => {
    addNotesUntil(index, true);
    rows.push({ node: child, bars, isLast: i === shown.length - 1 });
  });
  addNotesUntil(Number.POSITIVE_INFINITY, false);
  return rows;
}

/** Selects the children to show. If there are more than `max`, the oldest successful ones are omitted. */
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

function barsBelow({ node, bars, isLast }: TreePosition, options: TreeLayoutOptions): string {
  if (node.depth === 0 || node.depth > branchLevelsFor(options)) return bars;
  return `${bars}${isLast ? '   ' : '│  '}`;
}

/** Returns the number of levels that are indented. Deeper levels show their depth instead, to leave room for names. */
function branchLevelsFor({ width }: TreeLayoutOptions): number {
  return Math.min(MAX_BRANCH_LEVELS, Math.max(1, Math.floor((width - 24) / 3)));
}

/** Returns true if the call has no error to show: none, or one that a child shows. A deep failure is shown once. */
function isErrorShownByChild({ error, children }: CallNode): boolean {
  if (error === undefined) return true;
  for (let i = children.length - 1; i >= 0; i--) {
    const childError = children[i]?.error;
    if (childError !== undefined) return childError.code === error.code && childError.message === error.message;
  }
  return false;
}

function errorRows({ error }: CallNode, lead: string, { width, terse, full }: TreeLayoutOptions): TreeRow[] {
  if (error === undefined) return [];
  const columns = Math.max(1, width - widthOf(lead));
  const lines =
    full === true
      ? breakIntoRows(formatError(error, Number.POSITIVE_INFINITY), columns)
      : wrapWords(formatError(error), columns, terse === true ? 1 : MAX_ERROR_LINES);
  return lines.map((text) => noteRow(lead, [[text, 'red']]));
}

function detailRows({ callId }: CallNode, lead: string, { width, details }: TreeLayoutOptions): TreeRow[] {
  return (details?.(callId, width - widthOf(lead)) ?? []).map((spans) => noteRow(lead, spans));
}

/** Returns the rows of a note: one, which the layout truncates, or with `full` as many as it needs. */
function noteRows(lead: string, spans: readonly TextSpan[], { width, full }: TreeLayoutOptions): TreeRow[] {
  const columns = Math.max(MIN_NAME_COLUMNS, width - widthOf(lead));
  if (full !== true || widthOfSpans(spans) <= columns) return [noteRow(lead, spans)];
  const text = spans.map(([part]) => part).join('');
  return breakIntoRows(text, columns).map((row) => noteRow(lead, [[row, spans[0]?.[1]]]));
}

/** Formats an error in one line. */
export function formatError(
  { code, message }: { readonly code: string; readonly message: string },
  max?: number,
): string {
  return `${sanitizeText(code, NAME_OPTIONS)}  ${sanitizeText(message, max === undefined ? {} : { max })}`.trim();
}

/** Returns the spans of a call without indentation: mark, loop, version, and its model or tool. */
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
  const version =
    loopVersion === undefined || loopVersion === '' ? '' : `@${sanitizeText(shortVersion(loopVersion), NAME_OPTIONS)}`;
  return [mark, [' '], [sanitizeText(loopId || callId, NAME_OPTIONS), 'bold'], [version, 'dim'], ...detailSpans(node)];
}

function detailSpans({ backend, toolName, loopId }: CallNode): TextSpan[] {
  if (backend !== undefined) {
    const attempts = backend.attempts > 1 ? ` ×${formatCount(backend.attempts)}` : '';
    const tokens = tokensText(backend);
    const name = sanitizeText(backend.model || backend.backendId, NAME_OPTIONS);
    return [['  '], [name, 'cyan'], [`${attempts}${tokens === '' ? '' : ` ${tokens}`}`, 'dim']];
  }
  return toolName === undefined || toolName === loopId ? [] : [['  '], [sanitizeText(toolName, NAME_OPTIONS), 'cyan']];
}

function tokensText({ inputTokens, outputTokens }: TokenUsage): string {
  return inputTokens + outputTokens > 0 ? `${formatCount(inputTokens)}→${formatCount(outputTokens)} tok` : '';
}

/** Returns true if at least one token has a price. */
function isPriced({ inputTokens, outputTokens, unpricedTokens }: TokenUsage): boolean {
  return inputTokens + outputTokens > unpricedTokens;
}

/** Formats the duration of a call, or of a running call so far; empty if it is unknown. */
export function formatElapsed(
  { status, startedAt, durationMs }: CallNode,
  { running }: Pick<TreeLayoutOptions, 'running'>,
): string {
  if (durationMs !== undefined) return formatDuration(durationMs);
  const elapsedMs = status === 'running' && running !== undefined ? running.now - Date.parse(startedAt) : Number.NaN;
  return Number.isFinite(elapsedMs) ? formatDuration(Math.max(0, elapsedMs)) : '';
}

/** Returns a row that is not a call. */
export function noteRow(lead: string, spans: readonly TextSpan[]): TreeRow {
  return { spans: [[lead, 'dim'], ...spans], isCall: false, cost: '', elapsed: '' };
}

const COLUMN_GAP = 2;
/** The minimum width of names. On a narrow terminal, first the costs and then the durations are omitted. */
const MIN_NAME_COLUMNS = 16;

/**
 * Lays out rows as lines. The returned `column` is where the right columns begin. A live tree passes it to the next
 * call, so that the columns do not move left when names become shorter.
 */
export function layOutRows(
  rows: readonly TreeRow[],
  { width }: TreeLayoutOptions,
  column = 0,
): { lines: TreeLine[]; column: number } {
  const widest = { label: column, cost: 0, elapsed: 0 };
  for (const row of rows) {
    if (row.isCall) widest.label = Math.max(widest.label, widthOfSpans(row.spans));
    widest.cost = Math.max(widest.cost, row.cost.length);
    widest.elapsed = Math.max(widest.elapsed, row.elapsed.length);
  }
  const withGap = (columns: number): number => (columns > 0 ? columns + COLUMN_GAP : 0);
  if (width - withGap(widest.elapsed) - withGap(widest.cost) < MIN_NAME_COLUMNS) widest.cost = 0;
  if (width - withGap(widest.elapsed) < MIN_NAME_COLUMNS) widest.elapsed = 0;
  const labelColumns = Math.min(widest.label, width - withGap(widest.elapsed) - withGap(widest.cost));
  const lines = rows.map((row): TreeLine => {
    if (!row.isCall) return trimSpansEnd(truncateSpans(row.spans, width));
    const label = truncateSpans(row.spans, labelColumns);
    const right: TextSpan[] = [];
    if (widest.cost > 0) right.push([row.cost.padStart(withGap(widest.cost)), 'dim']);
    if (widest.elapsed > 0) right.push([row.elapsed.padStart(withGap(widest.elapsed))]);
    return trimSpansEnd([...label, [' '.repeat(labelColumns - widthOfSpans(label))], ...right]);
  });
  return { lines, column: labelColumns };
}

/** Returns the line with the totals of a turn: calls, tokens, cost and duration. */
export function totalsLine({ root, totals }: TraceTree, options: TreeLayoutOptions): TreeLine {
  const parts = root === undefined ? ['no calls'] : totalsParts(root, totals, options);
  return trimSpansEnd(truncateSpans([[parts.join(' · '), 'dim']], options.width));
}

function totalsParts(root: CallNode, totals: CallTotals, options: TreeLayoutOptions): string[] {
  const { calls, costMicros, unpricedTokens } = totals;
  const cost = isPriced(totals) ? `${unpricedTokens > 0 ? 'at least ' : ''}${formatCost(costMicros)}` : '';
  const time = formatElapsed(root, options) || (root.status === 'running' ? 'not finished' : '');
  return [`${formatCount(calls)} ${calls === 1 ? 'call' : 'calls'}`, tokensText(totals), cost, time].filter(
    (part) => part !== '',
  );
}
