/**
 * Records one run of a loop: its result and every event in the order of emission. An event is copied shallowly when it
 * arrives and converted to JSON later, because it arrives on the runtime's stack, which may be almost full.
 */
import { isObject, ownProperty } from '../base/own-property.js';
import type { TraceEvent } from '../protocol/trace.js';
import { assertThat, CheckFailure, describeValue, isNonEmptyString } from './assertions.js';
import type { LsemResult } from './driver.js';
import { eventsByCall, lifecycleOf, toTraceEvent } from './events.js';

/** The maximum number of events. A run that reaches it is considered endless; its next event throws. */
const MAX_EVENTS = 50_000;
const TOO_MANY_EVENTS = new Error('the run emits too many events');

/** One recorded run. */
export class RecordedRun {
  /** Shallow copies of the events as received. */
  private readonly rawEvents: unknown[] = [];
  /** The events that have been converted to JSON, in order. */
  private readonly parsedEvents: TraceEvent[] = [];
  private parsedTrace: readonly TraceEvent[] | undefined;
  /** True if LSEM does not define the body of the loop. LIF-11 skips its lifecycle. */
  isOutsideLsem = false;
  /**
   * The reason why there is no result, such as the error that the run threw; undefined otherwise and before the end.
   */
  refusalReason: string | undefined;
  /** True if the run has ended without being stopped, so that its events are complete. */
  hasEnded = false;
  private givenResult: LsemResult | undefined;

  readonly loopId: string;

  constructor(loopId: string) {
    this.loopId = loopId;
  }

  /** Records an event. Throws if the run has reached the maximum number of events. */
  addEvent(event: unknown): void {
    // Throwing into the runtime is the only way to stop a recursion that never yields to timers.
    if (this.isEndless) throw TOO_MANY_EVENTS;
    this.rawEvents.push(/* guard: event-copied-when-recorded */ shallowEventCopy(event));
  }

  /** The events that were passed to `onEvent`. */
  get streamedEvents(): readonly TraceEvent[] {
    for (let index = this.parsedEvents.length; index < this.rawEvents.length; index++)
      this.parsedEvents.push(toTraceEvent(this.rawEvents[index]));
    return this.parsedEvents;
  }

  /** Records the result and the end of the run. */
  setResult(result: LsemResult): void {
    this.givenResult = result;
    this.hasEnded = !this.isEndless;
  }

  /** Records that the run threw or returned no result, and its end. */
  setRefusal(reason: string): void {
    this.refusalReason = reason;
    this.hasEnded = !this.isEndless;
  }

  /** True if the run has reached the maximum number of events. */
  get isEndless(): boolean {
    return this.rawEvents.length >= MAX_EVENTS;
  }

  /** The result. Throws CheckFailure if the run returned none. */
  get result(): LsemResult {
    if (this.givenResult === undefined) throw new CheckFailure(`the run of ${this.loopId} returned no result`);
    return this.givenResult;
  }

  /** The trace in the result, up to the maximum number of events; empty if it has none. */
  get trace(): readonly TraceEvent[] {
    const trace = ownProperty(this.givenResult, 'trace');
    this.parsedTrace ??= Array.isArray(trace) ? trace.slice(0, MAX_EVENTS).map(toTraceEvent) : [];
    return this.parsedTrace;
  }

  /** All events: those passed to `onEvent`, or else those in the result. */
  get events(): readonly TraceEvent[] {
    return this.rawEvents.length > 0 ? this.streamedEvents : this.trace;
  }

  /** True if the result has an output and no error. Throws CheckFailure without a result. */
  get hasSucceeded(): boolean {
    return this.error === undefined && this.result.output !== undefined;
  }

  /** The error in the result; undefined if it is absent or null. Throws CheckFailure without a result. */
  get error(): unknown {
    return this.result.error ?? undefined;
  }

  /** The id of the first call without a parent. Throws CheckFailure if there is none. */
  get rootCallId(): string {
    const start = this.events.find(
      ({ type, payload }) => type === 'call.started' && !isNonEmptyString(ownProperty(payload, 'parentCallId')),
    );
    if (start === undefined) throw new CheckFailure(`the run of ${this.loopId} has no call.started of a root`);
    return start.callId;
  }

  /** Returns the events of one call. */
  eventsOf(callId: string): readonly TraceEvent[] {
    return eventsByCall(this.events).get(callId) ?? [];
  }

  /** Returns the event types of a call in order, without `log` and types of vendors. */
  lifecycle(callId = this.rootCallId): readonly string[] {
    return lifecycleOf(this.eventsOf(callId));
  }

  /** Returns the payloads of the events of this type in a call, in order. */
  payloads(type: string, callId = this.rootCallId): readonly unknown[] {
    return this.eventsOf(callId)
      .filter((event) => event.type === type)
      .map((event) => event.payload);
  }

  /** Returns the payload of the only event of this type in a call. Throws CheckFailure unless there is exactly one. */
  payload(type: string, callId = this.rootCallId): unknown {
    const payloads = this.payloads(type, callId);
    assertThat(payloads.length === 1, `expected one ${type} in the call of ${this.loopId}, saw ${payloads.length}`);
    return payloads[0];
  }

  /** Returns the ids of the calls of a loop, in the order of their start. */
  callIdsOf(loopId: string): readonly string[] {
    return this.events
      .filter(({ type, payload }) => type === 'call.started' && ownProperty(payload, 'loopId') === loopId)
      .map((event) => event.callId);
  }

  /** Returns the id of the only call of a loop. Throws CheckFailure unless there is exactly one. */
  callIdOf(loopId: string): string {
    const calls = this.callIdsOf(loopId);
    const [first] = calls;
    assertThat(
      first !== undefined && calls.length === 1,
      `expected one call of ${loopId}, saw ${describeValue(calls)}`,
    );
    return first;
  }
}

/**
 * Copies an event and its payload shallowly, because a runtime may reuse the object. Returns an event that has `toJSON`
 * or cannot be copied as it is.
 */
function shallowEventCopy(event: unknown): unknown {
  try {
    if (!isObject(event) || typeof event.toJSON === 'function') return event;
    return isObject(event.payload) ? { ...event, payload: { ...event.payload } } : { ...event };
  } catch {
    return event;
  }
}
