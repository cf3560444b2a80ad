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

export interface Usage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** What they cost, as far as prices are known, in millionths of the currency. */
  readonly costMicros: number;
  /** Tokens of models whose price nobody knows. */
  readonly unpricedTokens: number;
}

/** The backend that was asked last, and what all of a call's requests used together. */
export interface BackendUse extends Usage {
  readonly backendId: string;
  readonly model: string;
  /** How often a backend was asked. */
  readonly attempts: number;
}

export interface Totals extends Usage {
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

type Fact = CallNote extends infer N ? (N extends CallNote ? Omit<N, 'before'> : never) : never;

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
  readonly tool: string | undefined;
  /** The newest, in order; `before` is how many children had begun by then. */
  readonly notes: readonly CallNote[];
  /** Older notes that were not kept. */
  readonly dropped: number;
  readonly children: readonly CallNode[];
}

/** Between this many and twice as many notes are kept of a call, so that dropping costs each the same. */
const NOTES = 100;
const TEXT = 2000;
const MOST = 1e15;

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

class Call implements CallNode {
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
  tool: string | undefined;
  /** Whether it did something outside of any loop, as only a body in code does. */
  acted = false;
  notes: CallNote[] = [];
  dropped = 0;
  readonly children: Call[] = [];

  constructor(callId: string, depth: number, startedAt: string) {
    this.callId = callId;
    this.depth = depth;
    this.startedAt = startedAt;
  }

  get kind(): LoopKind | undefined {
    if (this.children.length > 0 || this.acted) return 'composite';
    return this.tool !== undefined ? 'tool' : this.backend !== undefined ? 'prompt' : undefined;
  }

  note(fact: Fact): void {
    this.notes.push({ before: this.children.length, ...fact });
    if (this.notes.length < 2 * NOTES) return;
    this.notes.splice(0, NOTES);
    this.dropped += NOTES;
  }
}

export interface TraceTreeOptions {
  readonly price?: Pricing | undefined;
  /** Told of each call when it ends. */
  readonly onEnd?: ((call: CallNode) => void) | undefined;
}

/** Folds the events of one turn into its tree. The first call is the root; a call that belongs nowhere goes below it. */
export class TraceTree {
  private readonly calls = new Map<string, Call>();
  private readonly price: Pricing | undefined;
  private readonly onEnd: ((call: CallNode) => void) | undefined;
  private first: Call | undefined;
  private readonly sum: Mutable<Totals> = zero();

  constructor({ price, onEnd }: TraceTreeOptions = {}) {
    this.price = price;
    this.onEnd = onEnd;
  }

  get root(): CallNode | undefined {
    return this.first;
  }

  /** What all calls used so far. */
  get totals(): Totals {
    return { ...this.sum };
  }

  apply(event: TraceEvent): void {
    const callId = ownProperty(event, 'callId');
    const type = ownProperty(event, 'type');
    if (typeof callId !== 'string' || typeof type !== 'string') return;
    const at = text(ownProperty(event, 'ts'));
    const payload = ownProperty(event, 'payload');
    const call =
      this.calls.get(callId) ?? this.begin(callId, this.calls.get(text(ownProperty(payload, 'parentCallId'))), at);
    if (type === 'call.started') started(call, payload, at);
    if (call.status !== 'running') return;
    if (type === 'call.completed') this.end(call, 'ok', at, ownProperty(payload, 'totalDurationMs'));
    else if (type === 'call.errored') this.failed(call, payload, at);
    else if (type === 'child.started') this.announced(call, payload, at);
    else if (type === 'child.completed') this.childEnded(call, payload, at);
    else if (type === 'call.backend.requested' || type === 'rondo.backend.requested') requested(call, payload);
    else if (type === 'call.backend.responded' || type === 'rondo.backend.responded') this.responded(call, payload);
    else if (type === 'call.tool.invoked') call.tool = text(ownProperty(payload, 'toolName'));
    else if (!type.startsWith('call.') && !type.startsWith('child.')) noted(call, type, payload);
    if (type === 'rondo.effect.requested') call.acted = true;
  }

  private begin(callId: string, parent: Call | undefined, at: string): Call {
    const above = parent ?? this.first;
    const call = new Call(callId, above === undefined ? 0 : above.depth + 1, at);
    this.calls.set(callId, call);
    if (above === undefined) this.first = call;
    else above.children.push(call);
    this.sum.calls += 1;
    return call;
  }

  private announced(parent: Call, payload: unknown, at: string): Call | undefined {
    const id = ownProperty(payload, 'childCallId');
    if (typeof id !== 'string') return undefined;
    const child = this.calls.get(id) ?? this.begin(id, parent, at);
    if (child.loopId === '') child.loopId = text(ownProperty(payload, 'loopId'));
    const index = ownProperty(payload, 'stepIndex');
    if (typeof index === 'number') child.stepIndex ??= index;
    return child;
  }

  /** A call that ended tells it itself; its parent's word counts where that part of the trace is missing. */
  private childEnded(parent: Call, payload: unknown, at: string): void {
    const child = this.announced(parent, payload, at);
    if (child?.status === 'running') this.end(child, ownProperty(payload, 'status') === 'ok' ? 'ok' : 'error', at);
  }

  private failed(call: Call, payload: unknown, at: string): void {
    call.error = { code: text(ownProperty(payload, 'code')), message: text(ownProperty(payload, 'message')) };
    this.end(call, 'error', at);
  }

  private end(call: Call, status: 'ok' | 'error', at: string, told?: unknown): void {
    const passed = Date.parse(at) - Date.parse(call.startedAt);
    call.status = status;
    call.durationMs = amount(told) ?? amount(passed);
    this.onEnd?.(call);
  }

  private responded(call: Call, payload: unknown): void {
    const use = requested(call);
    const inputTokens = amount(ownProperty(payload, 'inputTokens')) ?? 0;
    const outputTokens = amount(ownProperty(payload, 'outputTokens')) ?? 0;
    const cost = this.price?.(use.backendId, use.model, inputTokens, outputTokens);
    const unpricedTokens = cost === undefined ? inputTokens + outputTokens : 0;
    const used: Usage = { inputTokens, outputTokens, costMicros: cost ?? 0, unpricedTokens };
    add(use, used);
    add(this.sum, used);
  }
}

/** The tree of events that are all there; undefined if there is no call in them. */
export function treeOf(events: Iterable<TraceEvent>, options: TraceTreeOptions = {}): CallNode | undefined {
  const tree = new TraceTree(options);
  for (const event of events) tree.apply(event);
  return tree.root;
}

/** What a call and all calls below it used. */
export function totalsOf(node: CallNode): Totals {
  const sum = zero();
  const rest = [node];
  for (let next = rest.pop(); next !== undefined; next = rest.pop()) {
    sum.calls += 1;
    if (next.backend !== undefined) add(sum, next.backend);
    for (const child of next.children) rest.push(child);
  }
  return sum;
}

function started(call: Call, payload: unknown, at: string): void {
  if (call.loopVersion !== undefined) return;
  const loopId = text(ownProperty(payload, 'loopId'));
  if (loopId !== '') call.loopId = loopId;
  call.loopVersion = text(ownProperty(payload, 'loopVersion'));
  call.startedAt = at;
}

/** Notes a request; without one, the use that an answer belongs to though its request is missing. */
function requested(call: Call, payload?: unknown): Mutable<BackendUse> {
  call.backend ??= { backendId: '', model: '', attempts: 0, ...noUsage };
  if (payload === undefined) return call.backend;
  call.backend.backendId = text(ownProperty(payload, 'backendId'));
  call.backend.model = text(ownProperty(payload, 'model'));
  call.backend.attempts += 1;
  return call.backend;
}

function noted(call: Call, type: string, payload: unknown): void {
  const delayMs = amount(ownProperty(payload, 'delayMs')) ?? 0;
  if (type === 'log') {
    const message = text(ownProperty(payload, 'message')).slice(0, TEXT);
    call.note({ kind: 'log', level: text(ownProperty(payload, 'level')).slice(0, TEXT), message });
  } else if (type === 'rondo.retry') {
    const attempt = amount(ownProperty(payload, 'attempt')) ?? 0;
    call.note({ kind: 'retry', attempt, delayMs, code: text(ownProperty(payload, 'code')) });
  } else if (type === 'rondo.backend.fallback') {
    call.note({ kind: 'fallback', to: text(ownProperty(payload, 'to')) });
  } else if (type === 'rondo.cache.read') {
    if (ownProperty(payload, 'hit') === true) call.note({ kind: 'cached' });
  } else if (type === 'rondo.rate.waited') {
    if (delayMs > 0) call.note({ kind: 'held', delayMs });
  } else {
    call.note({ kind: 'event', type: type.slice(0, TEXT), facts: factsOf(payload) });
  }
}

/** The simple members of a vendor's payload, bounded: enough to tell one event from another. */
function factsOf(payload: unknown): string {
  if (isSimple(payload)) return String(payload).slice(0, TEXT);
  if (typeof payload !== 'object' || payload === null) return '';
  const facts: string[] = [];
  for (const name of Object.keys(payload)) {
    const value = ownProperty(payload, name);
    if (isSimple(value)) facts.push(`${name.slice(0, 40)}=${String(value).slice(0, 60)}`);
    if (facts.length === 6) break;
  }
  return facts.join(' ');
}

function isSimple(value: unknown): value is string | number | boolean {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
}

const noUsage: Usage = { inputTokens: 0, outputTokens: 0, costMicros: 0, unpricedTokens: 0 };

function zero(): Mutable<Totals> {
  return { calls: 0, ...noUsage };
}

function add(to: Mutable<Usage>, more: Usage): void {
  to.inputTokens += more.inputTokens;
  to.outputTokens += more.outputTokens;
  to.costMicros += more.costMicros;
  to.unpricedTokens += more.unpricedTokens;
}

/** A number that can be counted with; undefined for anything else. */
function amount(value: unknown): number | undefined {
  return typeof value === 'number' && value >= 0 ? Math.min(value, MOST) : undefined;
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
