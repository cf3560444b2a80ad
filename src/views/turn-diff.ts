/**
 * Compares two turns: their calls, aligned by path, and their outputs. A call is matched with the call at the same path
 * below its parent's match. If another loop is there, it is matched with the next unmatched call of its loop, so that
 * one inserted step does not make all later steps look new. The comparison takes linear time and accepts untrusted
 * traces.
 */
import { ownProperty } from '../base/own-property.js';
import type { Json } from '../protocol/json.js';
import type { ResultError, TraceEvent } from '../protocol/trace.js';
import { type CallNode, totalsOf, treeOf } from './trace-tree.js';

/** How a turn ended. */
export interface TurnEnd {
  readonly status: string;
  readonly output?: Json;
  readonly error?: ResultError;
}

/** A property that differs between the two versions of a call. An empty text means that a side has none. */
export interface CallChange {
  readonly what: 'loop' | 'version' | 'status' | 'error' | 'model' | 'inputTokens' | 'outputTokens' | 'durationMs';
  readonly a: string | number;
  readonly b: string | number;
}

/** A call that differs or exists on one side only. */
export interface CallDiff {
  readonly loopId: string;
  /** The path from the root, as in `/2/0`; empty for the root. A call whose id is not a path has its id. */
  readonly path: string;
  readonly depth: number;
  /** The side on which the call and its descendants exist; undefined if it exists on both. */
  readonly only?: 'a' | 'b';
  /** The number of calls that this difference covers. */
  readonly calls: number;
  readonly changes: readonly CallChange[];
}

/** A difference between the outputs. `a` and `b` are excerpts of the values; undefined if a side has none. */
export interface OutputDiff {
  /** A JSON pointer. */
  readonly path: string;
  readonly a?: string;
  readonly b?: string;
}

/** The differences between two turns. */
export interface TurnDiff {
  /** True if nothing that is compared differs, durations aside. */
  readonly same: boolean;
  /** The number of calls that are matched with a call of the other turn. */
  readonly shared: number;
  readonly calls: readonly CallDiff[];
  /** The differences of the outputs, and whether there are more; undefined if the ends were not passed. */
  readonly output?: { readonly differs: readonly OutputDiff[]; readonly more: boolean };
}

/** The maximum number of reported differences between outputs. */
const MAX_OUTPUT_DIFFS = 20;
const MAX_VALUE_CHARS = 80;
/** Durations differ if one exceeds the other by more than this factor and by more than this many milliseconds. */
const MIN_DURATION_FACTOR = 2;
const MIN_DURATION_DIFFERENCE_MS = 50;

/** Compares two turns by their traces and, if `ends` is passed, by their ends. */
export function diffTurns(
  a: readonly TraceEvent[],
  b: readonly TraceEvent[],
  ends?: { readonly a: TurnEnd; readonly b: TurnEnd },
): TurnDiff {
  const roots = { a: treeOf(a), b: treeOf(b) };
  const calls: CallDiff[] = [];
  let shared = 0;
  const stack: CallPair[] = [[roots.a, roots.b]];
  for (let pair = stack.pop(); pair !== undefined; pair = stack.pop()) {
    const [left, right] = pair;
    if (left === undefined || right === undefined) {
      const unmatched = left ?? right;
      if (unmatched !== undefined) calls.push(oneSidedDiff(unmatched, left === undefined ? 'b' : 'a', roots));
      continue;
    }
    shared += 1;
    const changes = changesOf(left, right, left === roots.a ? ends : undefined);
    const call = { loopId: left.loopId, path: pathOf(left, roots.a), depth: left.depth };
    if (changes.length > 0) calls.push({ ...call, calls: 1, changes });
    for (const children of alignChildren(left, right).reverse()) stack.push(children);
  }
  const output = ends && diffOutputs(ends.a.output, ends.b.output);
  const same = calls.every(differsOnlyInDuration) && (output === undefined || output.differs.length === 0);
  return { same, shared, calls, ...(output !== undefined && { output }) };
}

type CallPair = readonly [a: CallNode | undefined, b: CallNode | undefined];

function differsOnlyInDuration({ only, changes }: CallDiff): boolean {
  return only === undefined && changes.every(({ what }) => what === 'durationMs');
}

function oneSidedDiff(
  node: CallNode,
  only: 'a' | 'b',
  roots: { readonly a: CallNode | undefined; readonly b: CallNode | undefined },
): CallDiff {
  const { loopId, depth } = node;
  return { loopId, path: pathOf(node, roots[only]), depth, only, calls: totalsOf(node).calls, changes: [] };
}

function pathOf(node: CallNode, root: CallNode | undefined): string {
  return root === undefined ? node.callId : (relativePath(node, root) ?? node.callId);
}

/** Returns the path from a call to one of its descendants; undefined if the ids are not paths. */
function relativePath({ callId }: CallNode, { callId: ancestorId }: CallNode): string | undefined {
  if (callId === ancestorId) return '';
  const isBelow = callId.startsWith(ancestorId) && callId[ancestorId.length] === '/';
  return isBelow ? callId.slice(ancestorId.length) : undefined;
}

/** Pairs the children of two calls: by path and loop, then by loop in order. Children without a match come last. */
function alignChildren(a: CallNode, b: CallNode): CallPair[] {
  const byPathAndLoop = new Map<string, CallNode>();
  const unmatchedByLoop = new Map<string, CallNode[]>();
  const keyOf = (child: CallNode, index: number, parent: CallNode): string =>
    JSON.stringify([relativePath(child, parent) ?? index, child.loopId]);
  for (const [index, child] of b.children.entries()) byPathAndLoop.set(keyOf(child, index, b), child);
  const matches = a.children.map((child, index) => byPathAndLoop.get(keyOf(child, index, a)));
  const matched = new Set(matches);
  for (const child of b.children.toReversed()) {
    if (matched.has(child)) continue;
    const unmatched = unmatchedByLoop.get(child.loopId);
    if (unmatched === undefined) unmatchedByLoop.set(child.loopId, [child]);
    else unmatched.push(child);
  }
  const pairs = a.children.map((child, i): CallPair => {
    const match = matches[i] ?? unmatchedByLoop.get(child.loopId)?.pop();
    if (match !== undefined) matched.add(match);
    return [child, match];
  });
  for (const child of b.children) if (!matched.has(child)) pairs.push([undefined, child]);
  return pairs;
}

function changesOf(a: CallNode, b: CallNode, ends?: { readonly a: TurnEnd; readonly b: TurnEnd }): CallChange[] {
  const changes: CallChange[] = [];
  const compare = (what: CallChange['what'], left: string | number = '', right: string | number = ''): void => {
    if (left !== right) changes.push({ what, a: left, b: right });
  };
  compare('loop', a.loopId, b.loopId);
  compare('version', a.loopVersion, b.loopVersion);
  compare('status', ends?.a.status ?? a.status, ends?.b.status ?? b.status);
  compare('error', errorText(ends === undefined ? a.error : ends.a.error), errorText(ends ? ends.b.error : b.error));
  compare('model', modelNameOf(a), modelNameOf(b));
  compare('inputTokens', a.backend?.inputTokens ?? 0, b.backend?.inputTokens ?? 0);
  compare('outputTokens', a.backend?.outputTokens ?? 0, b.backend?.outputTokens ?? 0);
  const [left, right] = [a.durationMs, b.durationMs];
  if (left !== undefined && right !== undefined && differsInDuration(left, right)) compare('durationMs', left, right);
  return changes;
}

function errorText(error: { readonly code: string; readonly message: string } | undefined): string {
  return error === undefined ? '' : `${error.code}: ${error.message}`;
}

function modelNameOf({ backend }: CallNode): string {
  return backend === undefined ? '' : `${backend.backendId}/${backend.model}`;
}

function differsInDuration(a: number, b: number): boolean {
  return Math.abs(a - b) > MIN_DURATION_DIFFERENCE_MS && Math.max(a, b) > MIN_DURATION_FACTOR * Math.min(a, b);
}

/**
 * Returns the first differences between two outputs, in order. It is iterative: outputs can be deeper than the call
 * stack.
 */
function diffOutputs(a: Json | undefined, b: Json | undefined): { differs: OutputDiff[]; more: boolean } {
  const differs: OutputDiff[] = [];
  const stack: { path: string; a: Json | undefined; b: Json | undefined }[] = [{ path: '', a, b }];
  for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
    const names = memberNames(next.a, next.b);
    if (names === undefined) {
      if (next.a === next.b) continue;
      if (differs.length === MAX_OUTPUT_DIFFS) return { differs, more: true };
      differs.push({ path: next.path, ...excerptBoth(next.a, next.b) });
      continue;
    }
    for (const name of names.reverse()) {
      const path = `${next.path}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
      stack.push({ path, a: ownProperty(next.a, name), b: ownProperty(next.b, name) });
    }
  }
  return { differs, more: false };
}

/** Returns the member names of two arrays or two objects; undefined for other values. */
function memberNames(a: Json | undefined, b: Json | undefined): string[] | undefined {
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return undefined;
  if (Array.isArray(a) !== Array.isArray(b)) return undefined;
  return [...new Set([...Object.keys(a), ...Object.keys(b)])];
}

/** Returns excerpts of two values. Long texts start near their first difference, so that the excerpts differ. */
function excerptBoth(a: Json | undefined, b: Json | undefined): { a?: string; b?: string } {
  let from = 0;
  if (typeof a === 'string' && typeof b === 'string') {
    while (from < a.length && a[from] === b[from]) from += 1;
    from = from < MAX_VALUE_CHARS / 2 ? 0 : from - MAX_VALUE_CHARS / 4;
  }
  return { ...(a !== undefined && { a: excerptOf(a, from) }), ...(b !== undefined && { b: excerptOf(b, from) }) };
}

function excerptOf(value: Json, from: number): string {
  if (Array.isArray(value)) return value.length === 0 ? '[]' : `[${value.length} items]`;
  if (typeof value === 'object' && value !== null)
    return `{${Object.keys(value).slice(0, 5).join(', ')}}`.slice(0, MAX_VALUE_CHARS);
  if (typeof value !== 'string') return String(value);
  return JSON.stringify(`${from > 0 ? '…' : ''}${value.slice(from, from + MAX_VALUE_CHARS)}`);
}
