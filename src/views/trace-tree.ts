/**
 * The tree of a turn: its calls with what they asked, what they used and how they ended, folded from trace events one at
 * a time. Each event costs the same, however large the tree is. Events may come from anywhere: what makes no sense is
 * left out, a trace may begin or end in the middle, and nothing is thrown.
 */
import { ownProperty } from '../base/own-property.js';
import type { LoopKind } from '../protocol/loop.js';
import type { TraceEvent } from '../protocol/trace.js';

/** What the tokens of an answer cost, in millionths of the currency; undefined where nobody knows the price. */
export type Pricing = (
  backendId: string,
  model: string,
  inputTokens: number,
  outputTokens: number,
) => number | undefined;

export interface TokenUsage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** What they cost, as far as prices are known, in millionths of the currency. */
  readonly costMicros: number;
  /** Tokens of models whose price nobody knows. */
  readonly unpricedTokens: number;
}

/** The backend that was asked last, and what all of a call's requests used together. */
export interface BackendUse extends TokenUsage {
  readonly backendId: string;
  readonly model: string;
  /** How often a backend was asked. */
  readonly attempts: number;
}

export interface CallTotals extends TokenUsage {
  readonly calls: number;
}

/** Something that happened in a call besides its lifecycle. */
export type CallNote = { readonly before: number } & (
  | { readonly kind: 'log'; readonly level: string; readonly message: string }
  | { readonly kind: 'retry'; readonly attempt: number; readonly delayMs: number; readonly code: string }
  | { readonly kind: 'fallback'; readonly to: string }
  | { readonly kind: 'cached' }
  | { readonly kind: 'held'; readonly delayMs: number }
  | { readonly kind: 'event'; readonly type: string; readonly facts: string }
);

type NoteContent = CallNote extends infer N ? (N extends CallNote ? Omit<N, 'before'> : never) : never;

/** One call of a turn. Texts are as they came: whoever shows them makes them safe. */
export interface CallNode {
  readonly callId: string;
  /** Empty when nobody said which loop it is. */
  readonly loopId: string;
  /** Undefined until the call itself has begun: its parent announces it first. */
  readonly loopVersion: string | undefined;
  readonly stepIndex: number | undefined;
  /** How many calls are around it. */
  readonly depth: number;
  /** What its events make of it. */
  readonly kind: LoopKind | undefined;
  readonly status: 'running' | 'ok' | 'error';
  readonly startedAt: string;
  readonly durationMs: number | undefined;
  readonly error: { readonly code: string; readonly message: string } | undefined;
  readonly backend: BackendUse | undefined;
  readonly toolName: string | undefined;
  /** The newest, in order; `before` is how many children had begun by then. */
  readonly notes: readonly CallNote[];
  /** Older notes that were not kept. */
  readonly droppedNotes: number;
  readonly children: readonly CallNode[];
}

/** Between this many and twice as many notes are kept of a call, so that dropping costs each the same. */
const MIN_KEPT_NOTES = 100;
const MAX_TEXT_CHARS = 2000;
const MAX_AMOUNT = 1e15;

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

class MutableCallNode implements CallNode {
  readonly callId: string;
  readonly depth: number;
  loopId = '';
  loopVersion: string | undefined;
  stepIndex: number | undefined;
  status: CallNode['status'] = 'running';
  startedAt: string;
  durationMs: number | undefined;
  error: CallNode['error'];
  backend: Mutable<BackendUse> | undefined;
  toolName: string | undefined;
  /** Whether it did something outside of any loop, as only a body in code does. */
  hasEffects = false;
  notes: CallNote[] = [];
  droppedNotes = 0;
  readonly children: MutableCallNode[] = [];

  constructor(callId: string, depth: number, startedAt: string) {
    this.callId = callId;
    this.depth = depth;
    this.startedAt = startedAt;
  }

  get kind(): LoopKind | undefined {
    if (this.children.length > 0 || this.hasEffects) return 'composite';
    return this.toolName !== undefined ? 'tool' : this.backend !== undefined ? 'prompt' : undefined;
  }

  addNote(fact: NoteContent): void {
    this.notes.push({ before: this.children.length, ...fact });
    if (this.notes.length < 2 * MIN_KEPT_NOTES) return;
    this.notes.splice(0, MIN_KEPT_NOTES);
    this.droppedNotes += MIN_KEPT_NOTES;
  }
}

interface TraceTreeOptions {
  readonly price?: Pricing | undefined;
  /** Told of each call when it ends. */
  readonly onEnd?: ((call: CallNode) => void) | undefined;
}

/** Folds the events of one turn into its tree. The first call is the root; a call that belongs nowhere goes below it. */
export class TraceTree {
  private readonly calls = new Map<string, MutableCallNode>();
  private readonly price: Pricing | undefined;
  private readonly onEnd: ((call: CallNode) => void) | undefined;
  private rootCall: MutableCallNode | undefined;
  private readonly runningTotals: Mutable<CallTotals> = emptyTotals();

  constructor({ price, onEnd }: TraceTreeOptions = {}) {
    this.price = price;
    this.onEnd = onEnd;
  }

  get root(): CallNode | undefined {
    return this.rootCall;
  }

  /** What all calls used so far. */
  get totals(): CallTotals {
    return { ...this.runningTotals };
  }

  apply(event: TraceEvent): void {
    const callId = ownProperty(event, 'callId');
    const type = ownProperty(event, 'type');
    if (typeof callId !== 'string' || typeof type !== 'string') return;
    const at = textOrEmpty(ownProperty(event, 'ts'));
    const payload = ownProperty(event, 'payload');
    const call =
      this.calls.get(callId) ??
      this.addCall(callId, this.calls.get(textOrEmpty(ownProperty(payload, 'parentCallId'))), at);
    if (type === 'call.started') applyStarted(call, payload, at);
    if (call.status !== 'running') return;
    if (type === 'call.completed') this.endCall(call, 'ok', at, ownProperty(payload, 'totalDurationMs'));
    else if (type === 'call.errored') this.callFailed(call, payload, at);
    else if (type === 'child.started') this.childStarted(call, payload, at);
    else if (type === 'child.completed') this.childEnded(call, payload, at);
    else if (type === 'call.backend.requested' || type === 'rondo.backend.requested') recordRequest(call, payload);
    else if (type === 'call.backend.responded' || type === 'rondo.backend.responded')
      this.backendResponded(call, payload);
    else if (type === 'call.tool.invoked') call.toolName = textOrEmpty(ownProperty(payload, 'toolName'));
    else if (!type.startsWith('call.') && !type.startsWith('child.')) addEventNote(call, type, payload);
    if (type === 'rondo.effect.requested') call.hasEffects = true;
  }

  private addCall(callId: string, parent: MutableCallNode | undefined, at: string): MutableCallNode {
    const above = parent ?? this.rootCall;
    const call = new MutableCallNode(callId, above === undefined ? 0 : above.depth + 1, at);
    this.calls.set(callId, call);
    if (above === undefined) this.rootCall = call;
    else above.children.push(call);
    this.runningTotals.calls += 1;
    return call;
  }

  private childStarted(parent: MutableCallNode, payload: unknown, at: string): MutableCallNode | undefined {
    const id = ownProperty(payload, 'childCallId');
    if (typeof id !== 'string') return undefined;
    const child = this.calls.get(id) ?? this.addCall(id, parent, at);
    if (child.loopId === '') child.loopId = textOrEmpty(ownProperty(payload, 'loopId'));
    const index = ownProperty(payload, 'stepIndex');
    if (typeof index === 'number') child.stepIndex ??= index;
    return child;
  }

  /** A call that ended tells it itself; its parent's word counts where that part of the trace is missing. */
  private childEnded(parent: MutableCallNode, payload: unknown, at: string): void {
    const child = this.childStarted(parent, payload, at);
    if (child?.status === 'running') this.endCall(child, ownProperty(payload, 'status') === 'ok' ? 'ok' : 'error', at);
  }

  private callFailed(call: MutableCallNode, payload: unknown, at: string): void {
    call.error = {
      code: textOrEmpty(ownProperty(payload, 'code')),
      message: textOrEmpty(ownProperty(payload, 'message')),
    };
    this.endCall(call, 'error', at);
  }

  private endCall(call: MutableCallNode, status: 'ok' | 'error', at: string, told?: unknown): void {
    const passed = Date.parse(at) - Date.parse(call.startedAt);
    call.status = status;
    call.durationMs = amountOf(told) ?? amountOf(passed);
    this.onEnd?.(call);
  }

  private backendResponded(call: MutableCallNode, payload: unknown): void {
    const use = recordRequest(call);
    const inputTokens = amountOf(ownProperty(payload, 'inputTokens')) ?? 0;
    const outputTokens = amountOf(ownProperty(payload, 'outputTokens')) ?? 0;
    const cost = this.price?.(use.backendId, use.model, inputTokens, outputTokens);
    const unpricedTokens = cost === undefined ? inputTokens + outputTokens : 0;
    const used: TokenUsage = { inputTokens, outputTokens, costMicros: cost ?? 0, unpricedTokens };
    addUsage(use, used);
    addUsage(this.runningTotals, used);
  }
}

/** The tree of events that are all there; undefined if there is no call in them. */
export function treeOf(events: Iterable<TraceEvent>, options: TraceTreeOptions = {}): CallNode | undefined {
  const tree = new TraceTree(options);
  for (const event of events) tree.apply(event);
  return tree.root;
}

/** What a call and all calls below it used. */
export function totalsOf(node: CallNode): CallTotals {
  const sum = emptyTotals();
  const rest = [node];
  for (let next = rest.pop(); next !== undefined; next = rest.pop()) {
    sum.calls += 1;
    if (next.backend !== undefined) addUsage(sum, next.backend);
    for (const child of next.children) rest.push(child);
  }
  return sum;
}

function applyStarted(call: MutableCallNode, payload: unknown, at: string): void {
  if (call.loopVersion !== undefined) return;
  const loopId = textOrEmpty(ownProperty(payload, 'loopId'));
  if (loopId !== '') call.loopId = loopId;
  call.loopVersion = textOrEmpty(ownProperty(payload, 'loopVersion'));
  call.startedAt = at;
}

/** Notes a request; without one, the use that an answer belongs to though its request is missing. */
function recordRequest(call: MutableCallNode, payload?: unknown): Mutable<BackendUse> {
  call.backend ??= { backendId: '', model: '', attempts: 0, ...ZERO_USAGE };
  if (payload === undefined) return call.backend;
  call.backend.backendId = textOrEmpty(ownProperty(payload, 'backendId'));
  call.backend.model = textOrEmpty(ownProperty(payload, 'model'));
  call.backend.attempts += 1;
  return call.backend;
}

function addEventNote(call: MutableCallNode, type: string, payload: unknown): void {
  const delayMs = amountOf(ownProperty(payload, 'delayMs')) ?? 0;
  if (type === 'log') {
    const message = textOrEmpty(ownProperty(payload, 'message')).slice(0, MAX_TEXT_CHARS);
    call.addNote({ kind: 'log', level: textOrEmpty(ownProperty(payload, 'level')).slice(0, MAX_TEXT_CHARS), message });
  } else if (type === 'rondo.retry') {
    const attempt = amountOf(ownProperty(payload, 'attempt')) ?? 0;
    call.addNote({ kind: 'retry', attempt, delayMs, code: textOrEmpty(ownProperty(payload, 'code')) });
  } else if (type === 'rondo.backend.fallback') {
    call.addNote({ kind: 'fallback', to: textOrEmpty(ownProperty(payload, 'to')) });
  } else if (type === 'rondo.cache.read') {
    if (ownProperty(payload, 'hit') === true) call.addNote({ kind: 'cached' });
  } else if (type === 'rondo.rate.waited') {
    if (delayMs > 0) call.addNote({ kind: 'held', delayMs });
  } else {
    call.addNote({ kind: 'event', type: type.slice(0, MAX_TEXT_CHARS), facts: summarizePayload(payload) });
  }
}

/** The simple members of a vendor's payload, bounded: enough to tell one event from another. */
function summarizePayload(payload: unknown): string {
  if (isPrimitive(payload)) return String(payload).slice(0, MAX_TEXT_CHARS);
  if (typeof payload !== 'object' || payload === null) return '';
  const facts: string[] = [];
  for (const name of Object.keys(payload)) {
    const value = ownProperty(payload, name);
    if (isPrimitive(value)) facts.push(`${name.slice(0, 40)}=${String(value).slice(0, 60)}`);
    if (facts.length === 6) break;
  }
  return facts.join(' ');
}

function isPrimitive(value: unknown): value is string | number | boolean {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
}

const ZERO_USAGE: TokenUsage = { inputTokens: 0, outputTokens: 0, costMicros: 0, unpricedTokens: 0 };

function emptyTotals(): Mutable<CallTotals> {
  return { calls: 0, ...ZERO_USAGE };
}

function addUsage(to: Mutable<TokenUsage>, more: TokenUsage): void {
  to.inputTokens += more.inputTokens;
  to.outputTokens += more.outputTokens;
  to.costMicros += more.costMicros;
  to.unpricedTokens += more.unpricedTokens;
}

/** A number that can be counted with; undefined for anything else. */
function amountOf(value: unknown): number | undefined {
  return typeof value === 'number' && value >= 0 ? Math.min(value, MAX_AMOUNT) : undefined;
}

function textOrEmpty(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
