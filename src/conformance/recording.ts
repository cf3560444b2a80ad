/**
 * One run as the suite saw it: its result, and every event in the order of emission. An event is held as it came and
 * made JSON later: it comes on the stack of the runtime, which may have little left of it.
 */
import { isObject, ownProperty } from '../base/own-property.js';
import type { TraceEvent } from '../protocol/trace.js';
import type { LsemResult } from './driver.js';
import { callsIn, eventOf, lifecycleOf } from './events.js';
import { CheckFailure, demand, isText, show } from './failure.js';

/** A run with more events than this has no end: it is stopped before it takes the process with it. */
const ENDLESS = 50_000;
const ENOUGH = new Error('the suite has heard enough of this run');

export class Recording {
  /** What was handed over while it ran, and later, as it came; and as much of it as was made JSON so far. */
  private readonly raw: unknown[] = [];
  private readonly read: TraceEvent[] = [];
  private traced: readonly TraceEvent[] | undefined;
  /** Made with a body that LSEM does not define: the check that made it judges its lifecycle, not the census. */
  beyond = false;
  /** Why it was refused, when it was. */
  refusal: string | undefined;
  /** Whether it came to an end by itself, so that what it left can be judged as a whole. */
  settled = false;
  private given: LsemResult | undefined;

  readonly loopId: string;

  constructor(loopId: string) {
    this.loopId = loopId;
  }

  hear(event: unknown): void {
    // Thrown into the runtime: the only way to stop a recursion that never lets a timer fire.
    if (this.endless) throw ENOUGH;
    this.raw.push(/* guard: event-copied-when-recorded */ held(event));
  }

  /** What was handed over while it ran, and later. */
  get streamed(): readonly TraceEvent[] {
    for (let index = this.read.length; index < this.raw.length; index++) this.read.push(eventOf(this.raw[index]));
    return this.read;
  }

  end(result: LsemResult): void {
    this.given = result;
    this.settled = !this.endless;
  }

  refuse(reason: string): void {
    this.refusal = reason;
    this.settled = !this.endless;
  }

  get endless(): boolean {
    return this.raw.length >= ENDLESS;
  }

  get result(): LsemResult {
    if (this.given === undefined) throw new CheckFailure(`the run of ${this.loopId} gave no result`);
    return this.given;
  }

  get trace(): readonly TraceEvent[] {
    const trace = ownProperty(this.given, 'trace');
    this.traced ??= Array.isArray(trace) ? trace.slice(0, ENDLESS).map(eventOf) : [];
    return this.traced;
  }

  /** Every event; those of the result where nothing was handed over, which only one check minds. */
  get events(): readonly TraceEvent[] {
    return this.raw.length > 0 ? this.streamed : this.trace;
  }

  get succeeded(): boolean {
    return this.error === undefined && this.result.output !== undefined;
  }

  get error(): unknown {
    return this.result.error ?? undefined;
  }

  /** The id of the outermost call. */
  get root(): string {
    const start = this.events.find(
      ({ type, payload }) => type === 'call.started' && !isText(ownProperty(payload, 'parentCallId')),
    );
    if (start === undefined) throw new CheckFailure(`the run of ${this.loopId} has no call.started of a root`);
    return start.callId;
  }

  /** The events of one call. */
  of(callId: string): readonly TraceEvent[] {
    return callsIn(this.events).get(callId) ?? [];
  }

  lifecycle(callId = this.root): readonly string[] {
    return lifecycleOf(this.of(callId));
  }

  payloads(type: string, callId = this.root): readonly unknown[] {
    return this.of(callId)
      .filter((event) => event.type === type)
      .map((event) => event.payload);
  }

  /** The payload of the one event of this type in this call. */
  payload(type: string, callId = this.root): unknown {
    const found = this.payloads(type, callId);
    demand(found.length === 1, `expected one ${type} in the call of ${this.loopId}, saw ${found.length}`);
    return found[0];
  }

  /** The ids of the calls of a loop, in the order they began. */
  callsOf(loopId: string): readonly string[] {
    return this.events
      .filter(({ type, payload }) => type === 'call.started' && ownProperty(payload, 'loopId') === loopId)
      .map((event) => event.callId);
  }

  /** The id of the only call of a loop. */
  callOf(loopId: string): string {
    const calls = this.callsOf(loopId);
    const [first] = calls;
    demand(first !== undefined && calls.length === 1, `expected one call of ${loopId}, saw ${show(calls)}`);
    return first;
  }
}

/** An event that its runtime may use again for the next one: what is in it now, as far as one look goes. */
function held(event: unknown): unknown {
  try {
    if (!isObject(event) || typeof event.toJSON === 'function') return event;
    return isObject(event.payload) ? { ...event, payload: { ...event.payload } } : { ...event };
  } catch {
    return event;
  }
}
