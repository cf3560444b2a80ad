/**
 * The trace: LSEM's events, folded from the entries of one turn. A call's own events carry its key as callId, a
 * composite's trace holds those of its children in order, framed by child.started and child.completed. Live and on
 * replay the same entries make the same events; after the last event of a call there is none for it. LSEM knows one
 * request and one answer of a prompt or a tool: further attempts (retries, fallbacks, a repair) and every effect that is
 * not the one of a prompt or a tool (a code body's own) are events in our own namespace.
 */
import type { Entry } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import type { TraceEvent, TracePayloads, VendorPayloads } from '../protocol/trace.js';
import { iso } from './time.js';
import { ChildCompleted, ChildStarted, Event, SharedPayloads } from './trace-events.js';

/** The type under which a body's log lines are recorded. */
export const LOG = 'log.written';

/** Types that only LSEM's own events may have, whoever records them. */
const CORE = /^(?:call|child)\.|^log$/;
/** Facts of ours that are no events. */
const SILENT: ReadonlySet<string> = new Set(['time.read', 'number.drawn']);
const KERNEL = /^(?:session|call|effect|timer|wait|signal|race|group|cancel|step)\./;

/** A call that has begun. */
class Open {
  readonly id: string;
  readonly started: Entry;
  readonly at: number;
  readonly parent: Open | undefined;
  /** Children begun so far, and those that have not ended. */
  begun = 0;
  open = 0;
  /** Whether it is among those that are found by name. */
  parked = false;
  /** Whether its one request, the one answer to it, and its end were told. */
  asked = false;
  answered = false;
  over = false;

  constructor(started: Entry, at: number, parent: Open | undefined) {
    this.id = started.key;
    this.started = started;
    this.at = at;
    this.parent = parent;
  }
}

type Payloads = TracePayloads & VendorPayloads;

/** Something that a tool had to say: a log line, or a fact of a vendor's type. */
export interface Note {
  readonly type: string;
  readonly value?: Json;
}

type Emit = (event: TraceEvent) => void;

/** An effect under way. `as`: in which of LSEM's terms it is traced; `body` is none of them, `gate` leaves no events. */
interface Effect {
  readonly at: number;
  readonly kind: string;
  readonly name: string;
  readonly as: 'backend' | 'tool' | 'body' | 'gate';
  readonly call: Open;
}

/** Whether a body may record facts of this type as events of its own: a namespace, and none that has a meaning already. */
export function isVendorType(type: string): boolean {
  return type.includes('.') && !CORE.test(type) && !KERNEL.test(type) && !SILENT.has(type) && type !== LOG;
}

/** Folds the entries of one turn into events, one entry at a time. */
export class Tracing {
  private readonly root: string;
  private readonly emit: Emit;
  /** The call that the root is a step of, when the root is not a turn. */
  private readonly parent: string | undefined;
  private readonly payloads = new SharedPayloads();
  private parked: Map<string, Open> | undefined;
  private effects: Map<string, Effect> | undefined;
  /** The call that began last and is open, the end of a chain up to the root; only calls beside it need to be found by name. */
  private tip: Open | undefined;
  /** The time of the last entry, and of the events that tell of it. */
  private last = 0;

  constructor(root: string, emit: Emit, parent?: string) {
    this.root = root;
    this.emit = emit;
    this.parent = parent;
  }

  apply(entry: Entry): void {
    const { type } = entry;
    // Across a restart the wall clock may have been set back: no event is told to be older than the one before it.
    const at = Math.max(entry.at, this.last);
    this.last = at;
    if (type === 'call.started') this.started(entry, at);
    else if (type === 'call.completed' || type === 'call.errored') this.ended(entry, at);
    else if (type === 'effect.requested') this.requested(entry, at);
    else if (type === 'effect.returned') this.returned(entry, at);
    else if (type === 'effect.failed') this.failed(entry, at);
    else if (type === 'race.won') this.lost(entry, at);
    else this.recorded(entry, at);
  }

  private started(entry: Entry, at: number): void {
    const { key, name = '', version = '', took = 0, refused } = entry;
    const parent = this.owner(key);
    if (parent === undefined && key !== this.root) return;
    const call = new Open(entry, at - took, parent);
    const ts = iso(call.at);
    if (this.tip !== parent) this.park();
    this.tip = call;
    if (parent === undefined) {
      this.emit({ callId: key, ts, type: 'call.started', payload: this.rootPayload(name, version) });
    } else {
      const frame = new ChildStarted(key, name, parent.begun++);
      parent.open += 1;
      this.emit(new Event(parent.id, ts, 'child.started', frame));
      this.emit(new Event(key, ts, 'call.started', this.payloads.started(name, version, parent.id)));
    }
    if (refused === true) return;
    this.emit(new Event(key, took === 0 ? ts : iso(at), 'call.input.validated', this.payloads.validated(took)));
  }

  private rootPayload(loopId: string, loopVersion: string): TracePayloads['call.started'] {
    const { parent } = this;
    return parent === undefined ? { loopId, loopVersion } : { loopId, loopVersion, parentCallId: parent };
  }

  private ended({ key, type, took = 0, error }: Entry, at: number): void {
    const call = this.opened(key);
    if (call === undefined) return;
    if (call.open > 0) this.abandonChildren(call, at);
    if (type === 'call.completed') {
      this.emit(new Event(key, iso(at - took), 'call.output.validated', this.payloads.validated(took)));
      this.say(call, at, 'call.completed', this.payloads.completed(at - call.at));
    } else {
      const { code = 'EXECUTION_FAILED', message = '', data } = error ?? {};
      this.say(call, at, 'call.errored', data === undefined ? { code, message } : { code, message, details: data });
    }
    this.close(call, at, type === 'call.completed' ? 'ok' : 'error');
  }

  private close(call: Open, at: number, status: 'ok' | 'error'): void {
    call.over = true;
    if (this.tip === call) this.tip = call.parent;
    if (call.parked) this.parked?.delete(call.id);
    const { parent } = call;
    if (parent === undefined) return;
    parent.open -= 1;
    this.say(parent, at, 'child.completed', new ChildCompleted(call.id, status));
  }

  /** Calls that ended without a word, because a race was lost or a body was left where it was, end here; innermost first. */
  private abandon(around: Open, at: number, left: (id: string) => boolean): void {
    this.park();
    const open = [...(this.parked?.values() ?? [])].sort((a, b) => b.id.length - a.id.length);
    for (const call of open) {
      if (call === around || !left(call.id)) continue;
      this.say(call, at, 'call.errored', { code: 'CANCELLED', message: 'What this call was part of ended before it.' });
      this.close(call, at, 'error');
    }
  }

  /** Apart from `ended`: the function it passes on would cost every end of a call an allocation. */
  private abandonChildren(call: Open, at: number): void {
    this.abandon(call, at, (id) => id.startsWith(`${call.id}/`));
  }

  private lost({ key, winner }: Entry, at: number): void {
    const owner = this.owner(key);
    if (owner === undefined || owner.open === 0) return;
    const won = `${key}/${winner}/`;
    this.abandon(owner, at, (id) => id.startsWith(`${key}/`) && !id.startsWith(won));
  }

  private requested({ key, kind = '', name = '', value }: Entry, at: number): void {
    const call = this.owner(key);
    if (call === undefined) return;
    const as = traceOfEffect(call, kind, name);
    this.effects ??= new Map();
    this.effects.set(key, { at, kind, name, as, call });
    if (as === 'tool') this.sayAsked(call, at, 'tool.invoked', { toolName: name });
    else if (as === 'body') this.say(call, at, 'rondo.effect.requested', { kind, name });
    if (as !== 'backend') return;
    const { model = '', promptLength = 0 } = (value ?? {}) as { model?: string; promptLength?: number };
    this.sayAsked(call, at, 'backend.requested', { backendId: name, model, promptLength });
  }

  private returned({ key, value }: Entry, at: number): void {
    const effect = this.endedEffect(key);
    if (effect === undefined) return;
    const { call, as, kind, name } = effect;
    const durationMs = at - effect.at;
    if (as === 'body') this.say(call, at, 'rondo.effect.returned', { kind, name, durationMs });
    if (as === 'tool') {
      const { notes } = (value ?? {}) as { notes?: unknown };
      if (Array.isArray(notes)) for (const note of notes as readonly Note[]) this.note(call, at, note);
      this.sayAnswered(call, at, 'tool.returned', { durationMs });
    }
    if (as !== 'backend') return;
    const { inputTokens = 0, outputTokens = 0 } = (value ?? {}) as { inputTokens?: number; outputTokens?: number };
    this.sayAnswered(call, at, 'backend.responded', { durationMs, inputTokens, outputTokens });
  }

  /** A failed attempt of a prompt or a tool has no event of its own: the call errors, or tries again. */
  private failed({ key, error }: Entry, at: number): void {
    const effect = this.endedEffect(key);
    if (effect?.as !== 'body') return;
    const { call, kind, name } = effect;
    const { code = 'EXECUTION_FAILED', message = '' } = error ?? {};
    this.say(call, at, 'rondo.effect.failed', { kind, name, durationMs: at - effect.at, code, message });
  }

  /** The effect that ends here; an end that comes when its call is over belongs to no call, least of all to the one around it. */
  private endedEffect(key: string): Effect | undefined {
    const effect = this.effects?.get(key);
    this.effects?.delete(key);
    return effect?.call.over === false ? effect : undefined;
  }

  private recorded({ key, type, value, error }: Entry, at: number): void {
    const call = this.owner(key);
    if (call !== undefined && error === undefined)
      this.note(call, at, value === undefined ? { type } : { type, value });
  }

  private note(call: Open, at: number, { type, value }: Note): void {
    if (type === LOG) this.say(call, at, 'log', value as unknown as TracePayloads['log']);
    if (!isVendorType(type)) return;
    const event = { callId: call.id, ts: iso(at), type };
    this.emit(value === undefined ? event : { ...event, payload: value });
  }

  /** The innermost open call that this key is a step of. */
  private owner(key: string): Open | undefined {
    for (let end = slashBefore(key, key.length); end > 0; end = slashBefore(key, end)) {
      const found = this.opened(key.slice(0, end));
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** The open call of this id, in the present chain or beside it. */
  private opened(id: string): Open | undefined {
    let call = this.tip;
    while (call !== undefined && call.id.length > id.length) call = call.parent;
    return call?.id === id ? call : this.parked?.get(id);
  }

  /** The calls of the present chain can be found by name from now on. */
  private park(): void {
    for (let call = this.tip; call !== undefined && !call.parked; call = call.parent) {
      call.parked = true;
      this.parked ??= new Map();
      this.parked.set(call.id, call);
    }
  }

  private sayAsked(call: Open, at: number, type: string, payload: object): void {
    this.emit({ callId: call.id, ts: iso(at), type: `${call.asked ? 'rondo' : 'call'}.${type}`, payload });
    call.asked = true;
  }

  private sayAnswered(call: Open, at: number, type: string, payload: object): void {
    this.emit({ callId: call.id, ts: iso(at), type: `${call.answered ? 'rondo' : 'call'}.${type}`, payload });
    call.answered = true;
  }

  private say<T extends keyof Payloads>(call: Open, at: number, type: T, payload: Payloads[T]): void {
    this.emit(new Event(call.id, iso(at), type, payload));
  }
}

/**
 * In which terms an effect is traced. LSEM's are those of a prompt that asks its backend and of a tool that does its one
 * effect. Agents ask models too, in the same terms until each request is a call of its own. A call of an earlier version does not
 * tell what it is: its effect is taken for a tool's when it has the tool's name.
 */
function traceOfEffect({ started }: Open, kind: string, name: string): Effect['as'] {
  if (kind === 'gate') return 'gate';
  if (kind === 'model') return /* guard: code-effect-is-no-backend */ started.form === 'code' ? 'body' : 'backend';
  return kind === 'tool' && /* guard: code-effect-is-no-tool */ started.form === undefined && name === started.name
    ? 'tool'
    : 'body';
}

const SLASH = 47;

/** The last slash before this place, or -1. The numbers of steps are short, and `lastIndexOf` is slow to call. */
function slashBefore(key: string, place: number): number {
  for (let at = place - 1; at >= 0; at--) if (key.charCodeAt(at) === SLASH) return at;
  return -1;
}

/** The events of one turn, of entries that are all there. */
export function traceOf(root: string, entries: Iterable<Entry>): TraceEvent[] {
  const events: TraceEvent[] = [];
  const tracing = new Tracing(root, (event) => events.push(event));
  for (const entry of entries) tracing.apply(entry);
  return events;
}
