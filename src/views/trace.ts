/**
 * The trace view: folds the entries of one turn into events of LSEM, the Loop Stack Execution Model. The call id of an
 * event is the key of its call. The events of a child call lie between `child.started` and `child.completed` of its
 * parent. The same entries give the same events, live and on replay. A call has no event after its end. LSEM defines
 * one request and one response per prompt or tool: further attempts (retries, fallbacks, repairs), answers to approvals,
 * and the effects, timers and signals of code bodies are events in the `rondo` namespace.
 */
import { ownProperty, ownText } from '../base/own-property.js';
import { expandLeaf } from '../journal/leaf-entries.js';
import { isReservedType } from '../journal/reserved-entries.js';
import type { Entry } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import type { TraceEvent, TracePayloads, VendorPayloads } from '../protocol/trace.js';
import { isoTime } from './iso-time.js';
import { ChildCompletedPayload, ChildStartedPayload, PlainTraceEvent, SharedPayloads } from './trace-events.js';
import { TracedWaits } from './trace-waits.js';
import { withoutRetrySuffix } from './turns.js';

/** The entry type of a body's log lines. */
export const LOG_WRITTEN = 'log.written';

/** The event types that are reserved for LSEM. */
const CORE_TYPES = /^(?:call|child)\.|^log$/;
/** Entry types of the runtime that are not traced. */
const UNTRACED_TYPES: ReadonlySet<string> = new Set(['time.read', 'number.drawn']);

/** A call that has started. */
class TracedCall {
  readonly id: string;
  readonly startedEntry: Entry;
  readonly startedAt: number;
  readonly parent: TracedCall | undefined;
  /** The number of children that have started, and of those that have not ended. */
  childCount = 0;
  openChildren = 0;
  /** True if the call is in `TraceBuilder.indexedCalls`. */
  isIndexed = false;
  /** True if the LSEM event of its request, of its response and of its end was emitted. */
  hasRequest = false;
  hasResponse = false;
  hasEnded = false;

  constructor(startedEntry: Entry, startedAt: number, parent: TracedCall | undefined) {
    this.id = startedEntry.key;
    this.startedEntry = startedEntry;
    this.startedAt = startedAt;
    this.parent = parent;
  }
}

type EventPayloads = TracePayloads & VendorPayloads;

/** An event that a tool reports with its result: a log line, or an event of a vendor's type. */
export interface ToolNote {
  readonly type: string;
  readonly value?: Json;
}

type EmitEvent = (event: TraceEvent) => void;

/**
 * An effect in progress. `tracedAs`: the events that it emits; those of an LSEM backend or tool, of a code body, or
 * none (`gate`).
 */
interface TracedEffect {
  readonly requestedAt: number;
  readonly kind: string;
  readonly name: string;
  readonly tracedAs: 'backend' | 'tool' | 'body' | 'gate';
  readonly call: TracedCall;
}

/**
 * Returns true for the type of a vendor's event, which bodies and tools may record: it has a namespace, and is reserved
 * neither for LSEM nor for the runtime.
 */
export function isVendorType(type: string): boolean {
  return (
    type.includes('.') &&
    !CORE_TYPES.test(type) &&
    !isReservedType(type) &&
    !UNTRACED_TYPES.has(type) &&
    type !== LOG_WRITTEN
  );
}

/** Folds the entries of one turn into events, one entry at a time. */
export class TraceBuilder {
  private readonly rootId: string;
  private readonly emit: EmitEvent;
  /** The parent of the root, if the root is not a turn. */
  private readonly parentCallId: string | undefined;
  private readonly payloads = new SharedPayloads();
  private indexedCalls: Map<string, TracedCall> | undefined;
  /** The length of the shortest id that was indexed, apart from that of the root. */
  private minIndexedLength = Number.POSITIVE_INFINITY;
  private effects: Map<string, TracedEffect> | undefined;
  private waits: TracedWaits | undefined;
  /**
   * The latest open call. Its ancestors are found through `parent`; only open calls outside of this chain need the
   * index.
   */
  private currentCall: TracedCall | undefined;
  /** The time of the last entry and its events. */
  private lastAt = 0;

  /** `rootId` is the turn or call to trace, `parentCallId` the parent of a call that is not a turn. */
  constructor(rootId: string, emit: EmitEvent, parentCallId?: string) {
    this.rootId = rootId;
    this.emit = emit;
    this.parentCallId = parentCallId;
  }

  /** Applies the next entry and emits its events. Entries of other turns are ignored. */
  apply(entry: Entry): void {
    const parts = expandLeaf(entry);
    if (parts === undefined) this.applyEntry(entry);
    else for (const part of parts) this.applyEntry(part);
  }

  private applyEntry(entry: Entry): void {
    const { type } = entry;
    // The wall clock can be set back across a restart; the times of events must not decrease.
    const at = Math.max(entry.at, this.lastAt);
    this.lastAt = at;
    if (type === 'call.started') this.callStarted(entry, at);
    else if (type === 'call.completed' || type === 'call.errored') this.callEnded(entry, at);
    else if (type === 'effect.requested') this.effectRequested(entry, at);
    else if (type === 'effect.returned') this.effectReturned(entry, at);
    else if (type === 'effect.failed') this.effectFailed(entry, at);
    else if (type === 'race.won') this.raceWon(entry, at);
    else if (isReservedType(type)) this.stepRecorded(entry, at);
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
      const payload = new ChildStartedPayload(key, name, parent.childCount++);
      parent.openChildren += 1;
      this.emit(new PlainTraceEvent(parent.id, ts, 'child.started', payload));
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
    return parentCallId === undefined ? { loopId, loopVersion } : { loopId, loopVersion, parentCallId };
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

  /**
   * Ends open calls whose end is not journaled, because a race was lost or the enclosing body has ended; innermost
   * first.
   */
  private abandonCalls(enclosing: TracedCall, at: number, isAbandoned: (id: string) => boolean): void {
    this.indexOpenCalls();
    const open = [...(this.indexedCalls?.values() ?? [])].sort((a, b) => b.id.length - a.id.length);
    for (const call of open) {
      if (call === enclosing || !isAbandoned(call.id)) continue;
      this.emitEvent(call, at, 'call.errored', {
        code: 'CANCELLED',
        message: 'The enclosing call ended before this call.',
      });
      this.closeCall(call, at, 'error');
    }
  }

  /** A separate method: a closure inside `callEnded` would be allocated for every call. */
  private abandonChildren(call: TracedCall, at: number): void {
    this.abandonCalls(call, at, (id) => id.startsWith(`${call.id}/`));
  }

  private raceWon({ key, winnerIndex }: Entry, at: number): void {
    const racingCall = this.enclosingCall(key);
    if (racingCall === undefined || racingCall.openChildren === 0) return;
    const winnerPrefix = `${key}/${winnerIndex}/`;
    this.abandonCalls(racingCall, at, (id) => id.startsWith(`${key}/`) && !id.startsWith(winnerPrefix));
  }

  private effectRequested({ key, kind = '', name = '', value }: Entry, at: number): void {
    const call = this.enclosingCall(key);
    if (call === undefined) return;
    const tracedAs = tracedAsOf(call, kind, name);
    this.effects ??= new Map();
    this.effects.set(withoutRetrySuffix(key), { requestedAt: at, kind, name, tracedAs, call });
    if (tracedAs === 'tool') this.emitRequest(call, at, 'tool.invoked', { toolName: name });
    else if (tracedAs === 'body') this.emitEvent(call, at, 'rondo.effect.requested', { kind, name });
    if (tracedAs !== 'backend') return;
    const { model = '', promptLength = 0 } = (value ?? {}) as { model?: string; promptLength?: number };
    this.emitRequest(call, at, 'backend.requested', { backendId: name, model, promptLength });
  }

  private effectReturned({ key, value }: Entry, at: number): void {
    const effect = this.takeEffect(key);
    if (effect === undefined) return;
    const { call, tracedAs, kind, name } = effect;
    const durationMs = at - effect.requestedAt;
    if (tracedAs === 'body') this.emitEvent(call, at, 'rondo.effect.returned', { kind, name, durationMs });
    if (tracedAs === 'gate' && ownProperty(value, 'verdict') === 'granted')
      this.emitEvent(call, at, 'rondo.approval.granted', { id: ownText(value, 'grant') });
    if (tracedAs === 'tool') {
      const { notes } = (value ?? {}) as { notes?: unknown };
      if (Array.isArray(notes)) for (const note of notes as readonly ToolNote[]) this.emitNote(call, at, note);
      this.emitResponse(call, at, 'tool.returned', { durationMs });
    }
    if (tracedAs !== 'backend') return;
    const { inputTokens = 0, outputTokens = 0 } = (value ?? {}) as { inputTokens?: number; outputTokens?: number };
    this.emitResponse(call, at, 'backend.responded', { durationMs, inputTokens, outputTokens });
  }

  /**
   * Emits the failure of a body's effect. LSEM has no event for a failed attempt of a prompt or tool: the call errors
   * or retries.
   */
  private effectFailed({ key, error }: Entry, at: number): void {
    const effect = this.takeEffect(key);
    if (effect?.tracedAs !== 'body') return;
    const { call, kind, name } = effect;
    const { code = 'EXECUTION_FAILED', message = '' } = error ?? {};
    this.emitEvent(call, at, 'rondo.effect.failed', { kind, name, durationMs: at - effect.requestedAt, code, message });
  }

  /**
   * Removes and returns an effect that ends; undefined if its call has ended, because such an end belongs to no call.
   */
  private takeEffect(key: string): TracedEffect | undefined {
    const effect = this.effects?.get(key);
    this.effects?.delete(key);
    return effect?.call.hasEnded === false ? effect : undefined;
  }

  /** Applies an entry of the kernel that is neither a call nor an attempt at an effect. */
  private stepRecorded(entry: Entry, at: number): void {
    const call = this.enclosingCall(entry.waitKey ?? entry.key);
    if (call === undefined) return;
    if (entry.type === 'signal.discarded') {
      this.emitEvent(call, at, 'log', { level: 'warn', message: entry.reason ?? '' });
      return;
    }
    this.waits ??= new TracedWaits();
    const ended = this.waits.apply(entry, at, call.id, call.startedEntry.bodyKind === 'code');
    if (ended !== undefined) this.emitEvent(call, at, ended.type, ended.payload);
  }

  private entryRecorded({ key, type, value, error }: Entry, at: number): void {
    const call = this.enclosingCall(key);
    if (call === undefined || error !== undefined) return;
    this.emitNote(call, at, value === undefined ? { type } : { type, value });
  }

  private emitNote(call: TracedCall, at: number, { type, value }: ToolNote): void {
    if (type === LOG_WRITTEN) this.emitEvent(call, at, 'log', value as unknown as TracePayloads['log']);
    if (!isVendorType(type)) return;
    const event = { callId: call.id, ts: isoTime(at), type };
    this.emit(value === undefined ? event : { ...event, payload: value });
  }

  /** Returns the innermost open call that contains this key. */
  private enclosingCall(key: string): TracedCall | undefined {
    for (let end = lastSlashBefore(key, key.length); end > 0; end = lastSlashBefore(key, end)) {
      const call = this.openCall(key.slice(0, end));
      if (call !== undefined) return call;
    }
    return undefined;
  }

  /** Returns the open call with this id, from the current chain or from the index. */
  private openCall(id: string): TracedCall | undefined {
    let call = this.currentCall;
    while (call !== undefined && call.id.length > id.length) call = call.parent;
    if (call?.id === id) return call;
    return id.length < this.minIndexedLength ? undefined : this.indexedCalls?.get(id);
  }

  /** Adds the calls of the current chain to the index. */
  private indexOpenCalls(): void {
    for (let call = this.currentCall; call !== undefined && !call.isIndexed; call = call.parent) {
      call.isIndexed = true;
      this.indexedCalls ??= new Map();
      this.indexedCalls.set(call.id, call);
      if (call.parent !== undefined) this.minIndexedLength = Math.min(this.minIndexedLength, call.id.length);
    }
  }

  /** Emits the first request of a call as an LSEM event, and further ones in the `rondo` namespace. */
  private emitRequest(call: TracedCall, at: number, type: string, payload: object): void {
    this.emit({ callId: call.id, ts: isoTime(at), type: `${call.hasRequest ? 'rondo' : 'call'}.${type}`, payload });
    call.hasRequest = true;
  }

  /** Emits the first response of a call as an LSEM event, and further ones in the `rondo` namespace. */
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
 * Returns how an effect is traced. LSEM defines the model request of a prompt and the one effect of a tool; model
 * requests of agents are traced like those of prompts. Calls that earlier versions recorded have no `bodyKind`: their
 * effect counts as the effect of a tool if it has the name of the loop.
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

/**
 * Returns the index of the last slash before `end`, or -1. Step numbers are short, so this is faster than
 * `lastIndexOf`.
 */
function lastSlashBefore(key: string, end: number): number {
  for (let index = end - 1; index >= 0; index--) if (key.charCodeAt(index) === SLASH_CODE) return index;
  return -1;
}

/** Returns the trace of one turn. */
export function traceOf(turnId: string, entries: Iterable<Entry>): TraceEvent[] {
  const events: TraceEvent[] = [];
  const builder = new TraceBuilder(turnId, (event) => events.push(event));
  for (const entry of entries) builder.apply(entry);
  return events;
}
