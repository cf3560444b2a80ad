/**
 * One run as the suite saw it: its result, and every event in the order of emission. An event is held as it came and
 * made JSON later: it comes on the stack of the runtime, which may have little left of it.
 */
import { isObject, ownProperty } from '../base/own-property.js';
import type { TraceEvent } from '../protocol/trace.js';
import { assertThat, CheckFailure, describeValue, isNonEmptyString } from './assertions.js';
import type { LsemResult } from './driver.js';
import { eventsByCall, lifecycleOf, toTraceEvent } from './events.js';

/** A run with more events than this has no end: it is stopped before it takes the process with it. */
const MAX_EVENTS = 50_000;
const TOO_MANY_EVENTS = new Error('the suite has heard enough of this run');

export class RecordedRun {
  /** What was handed over while it ran, and later, as it came; and as much of it as was made JSON so far. */
  private readonly rawEvents: unknown[] = [];
  private readonly parsedEvents: TraceEvent[] = [];
  private parsedTrace: readonly TraceEvent[] | undefined;
  /** Made with a body that LSEM does not define: the check that made it judges its lifecycle, not the census. */
  isBeyondLsem = false;
  /** Why it was refused, when it was. */
  refusalReason: string | undefined;
  /** Whether it came to an end by itself, so that what it left can be judged as a whole. */
  hasEnded = false;
  private givenResult: LsemResult | undefined;

  readonly loopId: string;

  constructor(loopId: string) {
    this.loopId = loopId;
  }

  addEvent(event: unknown): void {
    // Thrown into the runtime: the only way to stop a recursion that never lets a timer fire.
    if (this.isEndless) throw TOO_MANY_EVENTS;
    this.rawEvents.push(/* guard: event-copied-when-recorded */ shallowEventCopy(event));
  }

  /** What was handed over while it ran, and later. */
  get streamedEvents(): readonly TraceEvent[] {
    for (let index = this.parsedEvents.length; index < this.rawEvents.length; index++)
      this.parsedEvents.push(toTraceEvent(this.rawEvents[index]));
    return this.parsedEvents;
  }

  setResult(result: LsemResult): void {
    this.givenResult = result;
    this.hasEnded = !this.isEndless;
  }

  setRefusal(reason: string): void {
    this.refusalReason = reason;
    this.hasEnded = !this.isEndless;
  }

  get isEndless(): boolean {
    return this.rawEvents.length >= MAX_EVENTS;
  }

  get result(): LsemResult {
    if (this.givenResult === undefined) throw new CheckFailure(`the run of ${this.loopId} gave no result`);
    return this.givenResult;
  }

  get trace(): readonly TraceEvent[] {
    const trace = ownProperty(this.givenResult, 'trace');
    this.parsedTrace ??= Array.isArray(trace) ? trace.slice(0, MAX_EVENTS).map(toTraceEvent) : [];
    return this.parsedTrace;
  }

  /** Every event; those of the result where nothing was handed over, which only one check minds. */
  get events(): readonly TraceEvent[] {
    return this.rawEvents.length > 0 ? this.streamedEvents : this.trace;
  }

  get hasSucceeded(): boolean {
    return this.error === undefined && this.result.output !== undefined;
  }

  get error(): unknown {
    return this.result.error ?? undefined;
  }

  /** The id of the outermost call. */
  get rootCallId(): string {
    const start = this.events.find(
      ({ type, payload }) => type === 'call.started' && !isNonEmptyString(ownProperty(payload, 'parentCallId')),
    );
    if (start === undefined) throw new CheckFailure(`the run of ${this.loopId} has no call.started of a root`);
    return start.callId;
  }

  /** The events of one call. */
  eventsOf(callId: string): readonly TraceEvent[] {
    return eventsByCall(this.events).get(callId) ?? [];
  }

  lifecycle(callId = this.rootCallId): readonly string[] {
    return lifecycleOf(this.eventsOf(callId));
  }

  payloads(type: string, callId = this.rootCallId): readonly unknown[] {
    return this.eventsOf(callId)
      .filter((event) => event.type === type)
      .map((event) => event.payload);
  }

  /** The payload of the one event of this type in this call. */
  payload(type: string, callId = this.rootCallId): unknown {
    const found = this.payloads(type, callId);
    assertThat(found.length === 1, `expected one ${type} in the call of ${this.loopId}, saw ${found.length}`);
    return found[0];
  }

  /** The ids of the calls of a loop, in the order they began. */
  callIdsOf(loopId: string): readonly string[] {
    return this.events
      .filter(({ type, payload }) => type === 'call.started' && ownProperty(payload, 'loopId') === loopId)
      .map((event) => event.callId);
  }

  /** The id of the only call of a loop. */
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

/** An event that its runtime may use again for the next one: what is in it now, as far as one look goes. */
function shallowEventCopy(event: unknown): unknown {
  try {
    if (!isObject(event) || typeof event.toJSON === 'function') return event;
    return isObject(event.payload) ? { ...event, payload: { ...event.payload } } : { ...event };
  } catch {
    return event;
  }
}
