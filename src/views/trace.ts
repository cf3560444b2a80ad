/**
 * The trace view: folds the entries of one turn into events of LSEM, the Loop Stack Execution Model. The call id of an
 * event is the key of its call. The events of a child call lie between `child.started` and `child.completed` of its
 * parent. The same entries give the same events, live and on replay. A call has no event after its end. LSEM defines
 * one request and one response per prompt or tool: further attempts (retries, fallbacks, repairs), answers to approvals,
 * and the effects, timers and signals of code bodies are events in the `rondo` namespace.
 */
import { ownProperty, ownText } from '../base/own-property.js';
import { leafEffectKey, leafResultOf } from '../journal/leaf-entries.js';
import { isReservedType } from '../journal/reserved-entries.js';
import type { Entry } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import type { TraceEvent, TracePayloads, VendorPayloads } from '../protocol/trace.js';
import { isoTime } from './iso-time.js';
import { ChildCompletedPayload, ChildStartedPayload, PlainTraceEvent, SharedPayloads } from './trace-events.js';
import { TracedWaits } from './trace-waits.js';
import { TracedCall, TracedEffect, tracedAsOf } from './traced-call.js';
import { withoutRetrySuffix } from './turns.js';

/** The entry type of a body's log lines. */
export const LOG_WRITTEN = 'log.written';

/** Entry types of the runtime that are not traced. A trace has no prompts. */
const UNTRACED_TYPES: ReadonlySet<string> = new Set(['time.read', 'number.drawn', 'rondo.input.filtered']);

/** The types of the further requests and responses of one call. */
const REPEATED = {
  'call.tool.invoked': 'rondo.tool.invoked',
  'call.tool.returned': 'rondo.tool.returned',
  'call.backend.requested': 'rondo.backend.requested',
  'call.backend.responded': 'rondo.backend.responded',
} as const;

type EventPayloads = TracePayloads & VendorPayloads;

/** An event that a tool reports with its result: a log line, or an event of a vendor's type. */
export interface ToolNote {
  readonly type: string;
  readonly value?: Json;
}

type EmitEvent = (event: TraceEvent) => void;

/**
 * Returns true for the type of a vendor's event, which bodies and tools may record: it has a namespace, and is reserved
 * neither for LSEM nor for the runtime.
 */
export function isVendorType(type: string): boolean {
  return (
    type.includes('.') &&
    // The types of LSEM.
    !type.startsWith('call.') &&
    !type.startsWith('child.') &&
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
    const { type, endsEffect } = entry;
    if (endsEffect !== undefined) this.leafEnded(entry, endsEffect);
    const at = this.timeOf(entry.at);
    if (type === 'call.started') this.callStarted(entry, at);
    else if (type === 'call.completed' || type === 'call.errored') this.callEnded(entry, at);
    else if (type === 'effect.requested') this.effectRequested(entry, at);
    else if (type === 'effect.returned') this.effectReturned(entry, at);
    else if (type === 'effect.failed') this.effectFailed(entry, at);
    else if (type === 'race.won') this.raceWon(entry, at);
    else if (isReservedType(type)) this.stepRecorded(entry, at);
    else this.entryRecorded(entry, at);
  }

  /** Returns the time of an event. The wall clock can be set back across a restart; the times must not decrease. */
  private timeOf(at: number): number {
    this.lastAt = Math.max(at, this.lastAt);
    return this.lastAt;
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
    const { kind = '', safety, effectName = name, value } = entry;
    if (safety !== undefined) call.leafEffect = this.startEffect(call, at, kind, effectName, value);
  }

  /** Applies the end of the effect of a leaf call: its output was validated after it. */
  private leafEnded(entry: Entry, endsEffect: true | string): void {
    const { key, type, at, validationMs = 0, error } = entry;
    const call = this.openCall(key);
    const effect = call?.leafEffect;
    if (call === undefined || effect === undefined) return;
    call.leafEffect = undefined;
    const endedAt = this.timeOf(at - validationMs);
    if (type === 'call.errored') this.endFailedEffect(effect, error, endedAt);
    else this.endEffect(effect, leafResultOf(entry.value, endsEffect), endedAt);
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
    if (racingCall === undefined) return;
    const winnerPrefix = `${key}/${winnerIndex}/`;
    const hasLost = (id: string): boolean => id.startsWith(`${key}/`) && !id.startsWith(winnerPrefix);
    for (const wait of this.waits?.cancel(racingCall.id, hasLost) ?? [])
      this.emitEvent(racingCall, at, 'rondo.wait.cancelled', { key: wait });
    if (racingCall.openChildren > 0) this.abandonCalls(racingCall, at, hasLost);
  }

  private effectRequested({ key, kind = '', name = '', value }: Entry, at: number): void {
    const call = this.enclosingCall(key);
    if (call === undefined) return;
    this.effects ??= new Map();
    this.effects.set(withoutRetrySuffix(key), this.startEffect(call, at, kind, name, value));
  }

  private startEffect(call: TracedCall, at: number, kind: string, name: string, input: Entry['value']): TracedEffect {
    const tracedAs = tracedAsOf(call, kind, name);
    if (tracedAs === 'tool') this.emitRequest(call, at, 'call.tool.invoked', { toolName: name });
    else if (tracedAs === 'body') this.emitEvent(call, at, 'rondo.effect.requested', { kind, name });
    else if (tracedAs === 'backend') {
      const { model = '', promptLength = 0 } = (input ?? {}) as { model?: string; promptLength?: number };
      this.emitRequest(call, at, 'call.backend.requested', { backendId: name, model, promptLength });
    }
    return new TracedEffect(at, kind, name, tracedAs, call);
  }

  private effectReturned({ key, value }: Entry, at: number): void {
    const effect = this.takeEffect(key);
    if (effect !== undefined) this.endEffect(effect, value, at);
  }

  private endEffect(effect: TracedEffect, value: Entry['value'], at: number): void {
    const { call, tracedAs, kind, name } = effect;
    const durationMs = at - effect.requestedAt;
    if (tracedAs === 'body') this.emitEvent(call, at, 'rondo.effect.returned', { kind, name, durationMs });
    if (tracedAs === 'gate' && ownProperty(value, 'verdict') === 'granted')
      this.emitEvent(call, at, 'rondo.approval.granted', { id: ownText(value, 'grant') });
    if (tracedAs === 'tool') {
      const { notes } = (value ?? {}) as { notes?: unknown };
      if (Array.isArray(notes)) for (const note of notes as readonly ToolNote[]) this.emitNote(call, at, note);
      this.emitResponse(call, at, 'call.tool.returned', { durationMs });
    }
    if (tracedAs !== 'backend') return;
    const { inputTokens = 0, outputTokens = 0 } = (value ?? {}) as { inputTokens?: number; outputTokens?: number };
    this.emitResponse(call, at, 'call.backend.responded', { durationMs, inputTokens, outputTokens });
  }

  /**
   * Emits the failure of a body's effect. LSEM has no event for a failed attempt of a prompt or tool: the call errors
   * or retries.
   */
  private effectFailed({ key, error }: Entry, at: number): void {
    const effect = this.takeEffect(key);
    if (effect !== undefined) this.endFailedEffect(effect, error, at);
  }

  private endFailedEffect(
    { tracedAs, call, kind, name, requestedAt }: TracedEffect,
    error: Entry['error'],
    at: number,
  ): void {
    if (tracedAs !== 'body') return;
    const { code = 'EXECUTION_FAILED', message = '' } = error ?? {};
    this.emitEvent(call, at, 'rondo.effect.failed', { kind, name, durationMs: at - requestedAt, code, message });
  }

  /**
   * Removes and returns an effect that ends; undefined if its call has ended, because such an end belongs to no call.
   */
  private takeEffect(key: string): TracedEffect | undefined {
    const effect = this.effects?.get(key) ?? this.takeLeafEffect(key);
    this.effects?.delete(key);
    return effect?.call.hasEnded === false ? effect : undefined;
  }

  private takeLeafEffect(key: string): TracedEffect | undefined {
    const call = this.enclosingCall(key);
    if (call === undefined || key !== leafEffectKey(call.id)) return undefined;
    const effect = call.leafEffect;
    call.leafEffect = undefined;
    return effect;
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
    const event = this.waits.apply(entry, at, call.id, call.startedEntry.bodyKind === 'code');
    if (event !== undefined) this.emitEvent(call, at, event.type, event.payload);
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
  private emitRequest<T extends keyof typeof REPEATED>(
    call: TracedCall,
    at: number,
    type: T,
    payload: TracePayloads[T],
  ) {
    this.emit(new PlainTraceEvent(call.id, isoTime(at), call.hasRequest ? REPEATED[type] : type, payload));
    call.hasRequest = true;
  }

  /** Emits the first response of a call as an LSEM event, and further ones in the `rondo` namespace. */
  private emitResponse<T extends keyof typeof REPEATED>(
    call: TracedCall,
    at: number,
    type: T,
    payload: TracePayloads[T],
  ) {
    this.emit(new PlainTraceEvent(call.id, isoTime(at), call.hasResponse ? REPEATED[type] : type, payload));
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
