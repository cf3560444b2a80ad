/**
 * How two turns differ: their calls aligned by place, and their outputs by path. A call is looked for at the same path
 * below its parent's counterpart; if another loop is there, the next unmatched call of the same loop is taken, so one
 * step put in between does not make everything after it look new. Pure, linear, and safe for traces from anywhere.
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

/** One thing that a call has on both sides, but not the same. An empty text stands for none. */
export interface CallChange {
  readonly what: 'loop' | 'version' | 'status' | 'error' | 'model' | 'inputTokens' | 'outputTokens' | 'durationMs';
  readonly a: string | number;
  readonly b: string | number;
}

/** A call that differs, or is on one side only. */
export interface CallDiff {
  readonly loopId: string;
  /** From the root, which is the empty path. */
  readonly path: string;
  readonly depth: number;
  /** The side that it is on, with all that it called; undefined if it is on both. */
  readonly only?: 'a' | 'b';
  /** How many calls this tells of. */
  readonly calls: number;
  readonly changes: readonly CallChange[];
}

/** A place in the outputs, as a JSON pointer, and what is there in short; undefined where there is nothing. */
export interface OutputDiff {
  readonly path: string;
  readonly a?: string;
  readonly b?: string;
}

export interface TurnDiff {
  /** Whether nothing differs but time. */
  readonly same: boolean;
  /** How many calls are on both sides. */
  readonly shared: number;
  readonly calls: readonly CallDiff[];
  /** Where the outputs differ; undefined if they were not given. */
  readonly output?: { readonly differs: readonly OutputDiff[]; readonly more: boolean };
}

/** The most differences of two outputs that are told. */
const MAX_OUTPUT_DIFFS = 20;
const MAX_VALUE_CHARS = 80;
/** A call took noticeably longer if it took this many times, and this many milliseconds, as much. */
const MIN_DURATION_FACTOR = 2;
const MIN_DURATION_DIFFERENCE_MS = 50;

/** Compares two turns by their traces, and if their ends are given, by those too. */
export function diffTurns(
  a: readonly TraceEvent[],
  b: readonly TraceEvent[],
  ends?: { readonly a: TurnEnd; readonly b: TurnEnd },
): TurnDiff {
  const roots = { a: treeOf(a), b: treeOf(b) };
  const calls: CallDiff[] = [];
  let shared = 0;
  const rest: CallPair[] = [[roots.a, roots.b]];
  for (let pair = rest.pop(); pair !== undefined; pair = rest.pop()) {
    const [left, right] = pair;
    if (left === undefined || right === undefined) {
      const only = left ?? right;
      if (only !== undefined) calls.push(oneSidedDiff(only, left === undefined ? 'b' : 'a', roots));
      continue;
    }
    shared += 1;
    const changes = changesOf(left, right, left === roots.a ? ends : undefined);
    const place = { loopId: left.loopId, path: pathOf(left, roots.a), depth: left.depth };
    if (changes.length > 0) calls.push({ ...place, calls: 1, changes });
    for (const inner of alignChildren(left, right).reverse()) rest.push(inner);
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

/** The path from one call to another inside of it; undefined where ids are no paths. */
function relativePath({ callId }: CallNode, { callId: above }: CallNode): string | undefined {
  if (callId === above) return '';
  return callId.startsWith(above) && callId[above.length] === '/' ? callId.slice(above.length) : undefined;
}

/** The children of two calls in pairs: by place and loop, then by loop in order; at last those without a counterpart. */
function alignChildren(a: CallNode, b: CallNode): CallPair[] {
  const places = new Map<string, CallNode>();
  const loops = new Map<string, CallNode[]>();
  const key = (child: CallNode, index: number, parent: CallNode): string =>
    JSON.stringify([relativePath(child, parent) ?? index, child.loopId]);
  for (const [index, child] of b.children.entries()) places.set(key(child, index, b), child);
  const found = a.children.map((child, index) => places.get(key(child, index, a)));
  const taken = new Set(found);
  for (const child of b.children.toReversed()) {
    if (taken.has(child)) continue;
    const queue = loops.get(child.loopId);
    if (queue === undefined) loops.set(child.loopId, [child]);
    else queue.push(child);
  }
  const pairs = a.children.map((child, i): CallPair => {
    const other = found[i] ?? loops.get(child.loopId)?.pop();
    if (other !== undefined) taken.add(other);
    return [child, other];
  });
  for (const child of b.children) if (!taken.has(child)) pairs.push([undefined, child]);
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

/** Where two outputs differ, the first places of them in order. Outputs may be deeper than the stack. */
function diffOutputs(a: Json | undefined, b: Json | undefined): { differs: OutputDiff[]; more: boolean } {
  const differs: OutputDiff[] = [];
  const rest: { path: string; a: Json | undefined; b: Json | undefined }[] = [{ path: '', a, b }];
  for (let next = rest.pop(); next !== undefined; next = rest.pop()) {
    const names = memberNames(next.a, next.b);
    if (names === undefined) {
      if (next.a === next.b) continue;
      if (differs.length === MAX_OUTPUT_DIFFS) return { differs, more: true };
      differs.push({ path: next.path, ...excerptBoth(next.a, next.b) });
      continue;
    }
    for (const name of names.reverse()) {
      const path = `${next.path}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
      rest.push({ path, a: ownProperty(next.a, name), b: ownProperty(next.b, name) });
    }
  }
  return { differs, more: false };
}

/** The names of the members of two lists or two objects; undefined where there is nothing to look into. */
function memberNames(a: Json | undefined, b: Json | undefined): string[] | undefined {
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return undefined;
  if (Array.isArray(a) !== Array.isArray(b)) return undefined;
  return [...new Set([...Object.keys(a), ...Object.keys(b)])];
}

/** Both values in short. Long texts are shown from where they part, or they would look the same. */
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
