/**
 * The tree of a turn's calls with their models, usage and status, folded from trace events. Each event takes constant
 * time. Events are untrusted: invalid events are ignored, a trace may be incomplete at either end, and nothing is
 * thrown.
 */
import { ownProperty } from '../base/own-property.js';
import type { LoopKind } from '../protocol/loop.js';
import type { TraceEvent } from '../protocol/trace.js';
import { amountOf, type CallNote, type NoteContent, noteOf, textOrEmpty } from './call-notes.js';

/** Returns the cost of an answer's tokens in millionths of the currency; undefined if the price is unknown. */
export type Pricing = (
  backendId: string,
  model: string,
  inputTokens: number,
  outputTokens: number,
  /** When the model answered, in milliseconds since the epoch. */
  at: number,
) => number | undefined;

/** Tokens and their cost. */
export interface TokenUsage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** The cost of the tokens with a known price, in millionths of the currency. */
  readonly costMicros: number;
  /** Tokens of models with an unknown price. */
  readonly unpricedTokens: number;
}

/** The provider and model of a call's last request, and the usage of all its requests. */
export interface BackendUse extends TokenUsage {
  readonly backendId: string;
  readonly model: string;
  /** The number of requests, further attempts included. */
  readonly attempts: number;
}

/** The usage of a call and all calls below it. */
export interface CallTotals extends TokenUsage {
  readonly calls: number;
}

/** One call of a turn. Texts are not sanitized: escape them before display. */
export interface CallNode {
  readonly callId: string;
  /** Empty if no event names the loop. */
  readonly loopId: string;
  /** Undefined until the call itself has started; the parent's `child.started` precedes it. */
  readonly loopVersion: string | undefined;
  readonly stepIndex: number | undefined;
  /** The number of enclosing calls. */
  readonly depth: number;
  /** The kind of loop that the events so far imply; undefined if they imply none. */
  readonly kind: LoopKind | undefined;
  readonly status: 'running' | 'ok' | 'error';
  readonly startedAt: string;
  readonly durationMs: number | undefined;
  readonly error: { readonly code: string; readonly message: string } | undefined;
  readonly backend: BackendUse | undefined;
  readonly toolName: string | undefined;
  /** The newest notes, oldest first. */
  readonly notes: readonly CallNote[];
  /** The number of older notes that were dropped. */
  readonly droppedNotes: number;
  readonly children: readonly CallNode[];
}

const WAIT_END_TYPES: ReadonlySet<string> = new Set([
  'rondo.timer.fired',
  'rondo.signal.received',
  'rondo.wait.cancelled',
]);

/** A call keeps between this many and twice as many notes, so that dropping takes amortized constant time. */
const MIN_KEPT_NOTES = 100;

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
  /** True if the call performed effects directly, which only a body in code does. */
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

  addNote(content: NoteContent, isBounded: boolean): void {
    this.notes.push({ before: this.children.length, ...content });
    if (!isBounded || this.notes.length < 2 * MIN_KEPT_NOTES) return;
    this.notes.splice(0, MIN_KEPT_NOTES);
    this.droppedNotes += MIN_KEPT_NOTES;
  }

  /** Removes the newest note that is selected. */
  dropNote(isSelected: (note: CallNote) => boolean): void {
    const index = this.notes.findLastIndex(isSelected);
    if (index !== -1) this.notes.splice(index, 1);
  }
}

/** The options of a trace tree. */
interface TraceTreeOptions {
  /** @default all tokens are unpriced */
  readonly price?: Pricing | undefined;
  /** Receives each call when it ends. It must not throw. */
  readonly onEnd?: ((call: CallNode) => void) | undefined;
  /**
   * True if all notes are kept, with their complete texts.
   * @default false
   */
  readonly full?: boolean | undefined;
}

/**
 * Folds the events of one turn into its tree. The first call is the root; a call with an unknown parent is placed below
 * it.
 */
export class TraceTree {
  private readonly calls = new Map<string, MutableCallNode>();
  private readonly price: Pricing | undefined;
  private readonly onEnd: ((call: CallNode) => void) | undefined;
  private readonly full: boolean;
  private rootCall: MutableCallNode | undefined;
  private readonly runningTotals: Mutable<CallTotals> = emptyTotals();

  constructor({ price, onEnd, full = false }: TraceTreeOptions = {}) {
    this.price = price;
    this.onEnd = onEnd;
    this.full = full;
  }

  /** The root call; undefined before the first event. */
  get root(): CallNode | undefined {
    return this.rootCall;
  }

  /** The usage of all calls so far. */
  get totals(): CallTotals {
    return { ...this.runningTotals };
  }

  /** Applies the next event of the trace. Events of a call after its end are ignored. */
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
      this.backendResponded(call, payload, at);
    else if (type === 'call.tool.invoked') call.toolName = textOrEmpty(ownProperty(payload, 'toolName'));
    else if (!type.startsWith('call.') && !type.startsWith('child.')) this.addNote(call, type, payload);
    if (type === 'rondo.effect.requested') call.hasEffects = true;
  }

  private addNote(call: MutableCallNode, type: string, payload: unknown): void {
    if (WAIT_END_TYPES.has(type)) {
      const key = ownProperty(payload, 'key');
      call.dropNote((wait) => wait.kind === 'waiting' && wait.key === key);
    }
    const note = noteOf(type, payload, this.full);
    if (note !== undefined) call.addNote(note, !this.full);
  }

  private addCall(callId: string, parent: MutableCallNode | undefined, at: string): MutableCallNode {
    const enclosing = parent ?? this.rootCall;
    const call = new MutableCallNode(callId, enclosing === undefined ? 0 : enclosing.depth + 1, at);
    this.calls.set(callId, call);
    if (enclosing === undefined) this.rootCall = call;
    else enclosing.children.push(call);
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

  /** Ends a child by its parent's event. This matters only if the child's own end is missing from the trace. */
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

  private endCall(call: MutableCallNode, status: 'ok' | 'error', at: string, reportedMs?: unknown): void {
    const elapsedMs = Date.parse(at) - Date.parse(call.startedAt);
    call.status = status;
    call.durationMs = amountOf(reportedMs) ?? amountOf(elapsedMs);
    if (call.notes.length > 0) call.notes = call.notes.filter(({ kind }) => kind !== 'waiting');
    this.onEnd?.(call);
  }

  private backendResponded(call: MutableCallNode, payload: unknown, at: string): void {
    const use = recordRequest(call);
    const inputTokens = amountOf(ownProperty(payload, 'inputTokens')) ?? 0;
    const outputTokens = amountOf(ownProperty(payload, 'outputTokens')) ?? 0;
    const answeredAt = amountOf(Date.parse(at)) ?? 0;
    const cost = this.price?.(use.backendId, use.model, inputTokens, outputTokens, answeredAt);
    const unpricedTokens = cost === undefined ? inputTokens + outputTokens : 0;
    const usage: TokenUsage = { inputTokens, outputTokens, costMicros: cost ?? 0, unpricedTokens };
    addUsage(use, usage);
    addUsage(this.runningTotals, usage);
  }
}

/** Returns the root of the tree of a trace; undefined if the trace has no call. */
export function treeOf(events: Iterable<TraceEvent>, options: TraceTreeOptions = {}): CallNode | undefined {
  const tree = new TraceTree(options);
  for (const event of events) tree.apply(event);
  return tree.root;
}

/** Returns the usage of a call and all calls below it. */
export function totalsOf(node: CallNode): CallTotals {
  const sum = emptyTotals();
  const stack = [node];
  for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
    sum.calls += 1;
    if (next.backend !== undefined) addUsage(sum, next.backend);
    for (const child of next.children) stack.push(child);
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

/** Counts a request. Without a payload it only creates the usage of a call whose request is missing from the trace. */
function recordRequest(call: MutableCallNode, payload?: unknown): Mutable<BackendUse> {
  call.backend ??= { backendId: '', model: '', attempts: 0, ...ZERO_USAGE };
  if (payload === undefined) return call.backend;
  call.backend.backendId = textOrEmpty(ownProperty(payload, 'backendId'));
  call.backend.model = textOrEmpty(ownProperty(payload, 'model'));
  call.backend.attempts += 1;
  return call.backend;
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
