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
import { isoTime } from './iso-time.js';
import { ChildCompletedPayload, ChildStartedPayload, PlainTraceEvent, SharedPayloads } from './trace-events.js';

/** The type under which a body's log lines are recorded. */
export const LOG_WRITTEN = 'log.written';

/** Types that only LSEM's own events may have, whoever records them. */
const CORE_TYPES = /^(?:call|child)\.|^log$/;
/** Facts of ours that are no events. */
const UNTRACED_TYPES: ReadonlySet<string> = new Set(['time.read', 'number.drawn']);
const KERNEL_TYPES = /^(?:session|call|effect|timer|wait|signal|race|group|cancel|step)\./;

/** A call that has begun. */
class TracedCall {
  readonly id: string;
  readonly startedEntry: Entry;
  readonly startedAt: number;
  readonly parent: TracedCall | undefined;
  /** Children begun so far, and those that have not ended. */
  childCount = 0;
  openChildren = 0;
  /** Whether it is among those that are found by name. */
  isIndexed = false;
  /** Whether its one request, the one answer to it, and its end were told. */
  hasRequest = false;
  hasResponse = false;
  hasEnded = false;

  constructor(started: Entry, at: number, parent: TracedCall | undefined) {
    this.id = started.key;
    this.startedEntry = started;
    this.startedAt = at;
    this.parent = parent;
  }
}

type EventPayloads = TracePayloads & VendorPayloads;

/** Something that a tool had to say: a log line, or a fact of a vendor's type. */
export interface ToolNote {
  readonly type: string;
  readonly value?: Json;
}

type EmitEvent = (event: TraceEvent) => void;

/** An effect under way. `as`: in which of LSEM's terms it is traced; `body` is none of them, `gate` leaves no events. */
interface TracedEffect {
  readonly requestedAt: number;
  readonly kind: string;
  readonly name: string;
  readonly tracedAs: 'backend' | 'tool' | 'body' | 'gate';
  readonly call: TracedCall;
}

/** Whether a body may record facts of this type as events of its own: a namespace, and none that has a meaning already. */
export function isVendorType(type: string): boolean {
  return (
    type.includes('.') &&
    !CORE_TYPES.test(type) &&
    !KERNEL_TYPES.test(type) &&
    !UNTRACED_TYPES.has(type) &&
    type !== LOG_WRITTEN
  );
}

/** Folds the entries of one turn into events, one entry at a time. */
export class TraceBuilder {
  private readonly rootId: string;
  private readonly emit: EmitEvent;
  /** The call that the root is a step of, when the root is not a turn. */
  private readonly parentCallId: string | undefined;
  private readonly payloads = new SharedPayloads();
  private indexedCalls: Map<string, TracedCall> | undefined;
  private effects: Map<string, TracedEffect> | undefined;
  /** The call that began last and is open, the end of a chain up to the root; only calls beside it need to be found by name. */
  private currentCall: TracedCall | undefined;
  /** The time of the last entry, and of the events that tell of it. */
  private lastAt = 0;

  constructor(root: string, emit: EmitEvent, parent?: string) {
    this.rootId = root;
    this.emit = emit;
    this.parentCallId = parent;
  }

  apply(entry: Entry): void {
    const { type } = entry;
    // Across a restart the wall clock may have been set back: no event is told to be older than the one before it.
    const at = Math.max(entry.at, this.lastAt);
    this.lastAt = at;
    if (type === 'call.started') this.callStarted(entry, at);
    else if (type === 'call.completed' || type === 'call.errored') this.callEnded(entry, at);
    else if (type === 'effect.requested') this.effectRequested(entry, at);
    else if (type === 'effect.returned') this.effectReturned(entry, at);
    else if (type === 'effect.failed') this.effectFailed(entry, at);
    else if (type === 'race.won') this.raceWon(entry, at);
    else this.entryRecorded(entry, at);
  }

  private callStarted(entry: Entry, at: number): void {
    const { key, name = '', version = '', validationMs = 0, isInputInvalid } = entry;
    const parent = this.enclosingCall(key);
    if (parent === undefined && key !== this.rootId) return;
    const call = new TracedCall(entry, at - validationMs, parent);
    const ts = isoTime(call.startedAt);
    if (this.currentCall !== parent) this.indexOpenCalls();
    this.currentCall = call;
    if (parent === undefined) {
      this.emit({ callId: key, ts, type: 'call.started', payload: this.rootPayload(name, version) });
    } else {
      const frame = new ChildStartedPayload(key, name, parent.childCount++);
      parent.openChildren += 1;
      this.emit(new PlainTraceEvent(parent.id, ts, 'child.started', frame));
      this.emit(new PlainTraceEvent(key, ts, 'call.started', this.payloads.started(name, version, parent.id)));
    }
    if (isInputInvalid === true) return;
    this.emit(
      new PlainTraceEvent(
        key,
        validationMs === 0 ? ts : isoTime(at),
        'call.input.validated',
        this.payloads.validated(validationMs),
      ),
    );
  }

  private rootPayload(loopId: string, loopVersion: string): TracePayloads['call.started'] {
    const { parentCallId } = this;
    return parentCallId === undefined ? { loopId, loopVersion } : { loopId, loopVersion, parentCallId: parentCallId };
  }

  private callEnded({ key, type, validationMs = 0, error }: Entry, at: number): void {
    const call = this.openCall(key);
    if (call === undefined) return;
    if (call.openChildren > 0) this.abandonChildren(call, at);
    if (type === 'call.completed') {
      this.emit(
        new PlainTraceEvent(
          key,
          isoTime(at - validationMs),
          'call.output.validated',
          this.payloads.validated(validationMs),
        ),
      );
      this.emitEvent(call, at, 'call.completed', this.payloads.completed(at - call.startedAt));
    } else {
      const { code = 'EXECUTION_FAILED', message = '', data } = error ?? {};
      this.emitEvent(
        call,
        at,
        'call.errored',
        data === undefined ? { code, message } : { code, message, details: data },
      );
    }
    this.closeCall(call, at, type === 'call.completed' ? 'ok' : 'error');
  }

  private closeCall(call: TracedCall, at: number, status: 'ok' | 'error'): void {
    call.hasEnded = true;
    if (this.currentCall === call) this.currentCall = call.parent;
    if (call.isIndexed) this.indexedCalls?.delete(call.id);
    const { parent } = call;
    if (parent === undefined) return;
    parent.openChildren -= 1;
    this.emitEvent(parent, at, 'child.completed', new ChildCompletedPayload(call.id, status));
  }

  /** Calls that ended without a word, because a race was lost or a body was left where it was, end here; innermost first. */
  private abandonCalls(around: TracedCall, at: number, left: (id: string) => boolean): void {
    this.indexOpenCalls();
    const open = [...(this.indexedCalls?.values() ?? [])].sort((a, b) => b.id.length - a.id.length);
    for (const call of open) {
      if (call === around || !left(call.id)) continue;
      this.emitEvent(call, at, 'call.errored', {
        code: 'CANCELLED',
        message: 'What this call was part of ended before it.',
      });
      this.closeCall(call, at, 'error');
    }
  }

  /** Apart from `ended`: the function it passes on would cost every end of a call an allocation. */
  private abandonChildren(call: TracedCall, at: number): void {
    this.abandonCalls(call, at, (id) => id.startsWith(`${call.id}/`));
  }

  private raceWon({ key, winnerIndex }: Entry, at: number): void {
    const owner = this.enclosingCall(key);
    if (owner === undefined || owner.openChildren === 0) return;
    const won = `${key}/${winnerIndex}/`;
    this.abandonCalls(owner, at, (id) => id.startsWith(`${key}/`) && !id.startsWith(won));
  }

  private effectRequested({ key, kind = '', name = '', value }: Entry, at: number): void {
    const call = this.enclosingCall(key);
    if (call === undefined) return;
    const as = tracedAsOf(call, kind, name);
    this.effects ??= new Map();
    this.effects.set(key, { requestedAt: at, kind, name, tracedAs: as, call });
    if (as === 'tool') this.emitRequest(call, at, 'tool.invoked', { toolName: name });
    else if (as === 'body') this.emitEvent(call, at, 'rondo.effect.requested', { kind, name });
    if (as !== 'backend') return;
    const { model = '', promptLength = 0 } = (value ?? {}) as { model?: string; promptLength?: number };
    this.emitRequest(call, at, 'backend.requested', { backendId: name, model, promptLength });
  }

  private effectReturned({ key, value }: Entry, at: number): void {
    const effect = this.takeEffect(key);
    if (effect === undefined) return;
    const { call, tracedAs, kind, name } = effect;
    const durationMs = at - effect.requestedAt;
    if (tracedAs === 'body') this.emitEvent(call, at, 'rondo.effect.returned', { kind, name, durationMs });
    if (tracedAs === 'tool') {
      const { notes } = (value ?? {}) as { notes?: unknown };
      if (Array.isArray(notes)) for (const note of notes as readonly ToolNote[]) this.emitNote(call, at, note);
      this.emitResponse(call, at, 'tool.returned', { durationMs });
    }
    if (tracedAs !== 'backend') return;
    const { inputTokens = 0, outputTokens = 0 } = (value ?? {}) as { inputTokens?: number; outputTokens?: number };
    this.emitResponse(call, at, 'backend.responded', { durationMs, inputTokens, outputTokens });
  }

  /** A failed attempt of a prompt or a tool has no event of its own: the call errors, or tries again. */
  private effectFailed({ key, error }: Entry, at: number): void {
    const effect = this.takeEffect(key);
    if (effect?.tracedAs !== 'body') return;
    const { call, kind, name } = effect;
    const { code = 'EXECUTION_FAILED', message = '' } = error ?? {};
    this.emitEvent(call, at, 'rondo.effect.failed', { kind, name, durationMs: at - effect.requestedAt, code, message });
  }

  /** The effect that ends here; an end that comes when its call is over belongs to no call, least of all to the one around it. */
  private takeEffect(key: string): TracedEffect | undefined {
    const effect = this.effects?.get(key);
    this.effects?.delete(key);
    return effect?.call.hasEnded === false ? effect : undefined;
  }

  private entryRecorded({ key, type, value, error }: Entry, at: number): void {
    const call = this.enclosingCall(key);
    if (call !== undefined && error === undefined)
      this.emitNote(call, at, value === undefined ? { type } : { type, value });
  }

  private emitNote(call: TracedCall, at: number, { type, value }: ToolNote): void {
    if (type === LOG_WRITTEN) this.emitEvent(call, at, 'log', value as unknown as TracePayloads['log']);
    if (!isVendorType(type)) return;
    const event = { callId: call.id, ts: isoTime(at), type };
    this.emit(value === undefined ? event : { ...event, payload: value });
  }

  /** The innermost open call that this key is a step of. */
  private enclosingCall(key: string): TracedCall | undefined {
    for (let end = lastSlashBefore(key, key.length); end > 0; end = lastSlashBefore(key, end)) {
      const found = this.openCall(key.slice(0, end));
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** The open call of this id, in the present chain or beside it. */
  private openCall(id: string): TracedCall | undefined {
    let call = this.currentCall;
    while (call !== undefined && call.id.length > id.length) call = call.parent;
    return call?.id === id ? call : this.indexedCalls?.get(id);
  }

  /** The calls of the present chain can be found by name from now on. */
  private indexOpenCalls(): void {
    for (let call = this.currentCall; call !== undefined && !call.isIndexed; call = call.parent) {
      call.isIndexed = true;
      this.indexedCalls ??= new Map();
      this.indexedCalls.set(call.id, call);
    }
  }

  private emitRequest(call: TracedCall, at: number, type: string, payload: object): void {
    this.emit({ callId: call.id, ts: isoTime(at), type: `${call.hasRequest ? 'rondo' : 'call'}.${type}`, payload });
    call.hasRequest = true;
  }

  private emitResponse(call: TracedCall, at: number, type: string, payload: object): void {
    this.emit({ callId: call.id, ts: isoTime(at), type: `${call.hasResponse ? 'rondo' : 'call'}.${type}`, payload });
    call.hasResponse = true;
  }

  private emitEvent<T extends keyof EventPayloads>(
    call: TracedCall,
    at: number,
    type: T,
    payload: EventPayloads[T],
  ): void {
    this.emit(new PlainTraceEvent(call.id, isoTime(at), type, payload));
  }
}

/**
 * In which terms an effect is traced. LSEM's are those of a prompt that asks its backend and of a tool that does its one
 * effect. Agents ask models too, in the same terms until each request is a call of its own. A call of an earlier version does not
 * tell what it is: its effect is taken for a tool's when it has the tool's name.
 */
function tracedAsOf({ startedEntry }: TracedCall, kind: string, name: string): TracedEffect['tracedAs'] {
  if (kind === 'gate') return 'gate';
  if (kind === 'model')
    return /* guard: code-effect-is-no-backend */ startedEntry.bodyKind === 'code' ? 'body' : 'backend';
  return kind === 'tool' &&
    /* guard: code-effect-is-no-tool */ startedEntry.bodyKind === undefined &&
    name === startedEntry.name
    ? 'tool'
    : 'body';
}

const SLASH_CODE = 47;

/** The last slash before this place, or -1. The numbers of steps are short, and `lastIndexOf` is slow to call. */
function lastSlashBefore(key: string, place: number): number {
  for (let at = place - 1; at >= 0; at--) if (key.charCodeAt(at) === SLASH_CODE) return at;
  return -1;
}

/** The events of one turn, of entries that are all there. */
export function traceOf(root: string, entries: Iterable<Entry>): TraceEvent[] {
  const events: TraceEvent[] = [];
  const tracing = new TraceBuilder(root, (event) => events.push(event));
  for (const entry of entries) tracing.apply(entry);
  return events;
}
