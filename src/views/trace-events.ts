/**
 * Trace events and payloads. A trace has about six events per call, so allocation matters. Frequent objects are built
 * by constructors, which V8 does not pretenure. A payload that equals the previous one of its kind is reused, which
 * saves a third of the objects.
 */
import { type Mutable, plainConstructor } from '../base/plain-constructor.js';
import type { TraceEvent, TracePayloads } from '../protocol/trace.js';

type StartedPayload = TracePayloads['call.started'];
type ValidatedPayload = TracePayloads['call.input.validated'];
type CompletedPayload = TracePayloads['call.completed'];

/** Constructs a trace event as a plain object. */
export const PlainTraceEvent = plainConstructor(function (
  this: Mutable<TraceEvent>,
  callId: string,
  ts: string,
  type: string,
  payload: unknown,
) {
  this.callId = callId;
  this.ts = ts;
  this.type = type;
  this.payload = payload;
});

/** Constructs the payload of `child.started`. */
export const ChildStartedPayload = plainConstructor(function (
  this: Mutable<TracePayloads['child.started']>,
  childCallId: string,
  loopId: string,
  stepIndex: number,
) {
  this.childCallId = childCallId;
  this.loopId = loopId;
  this.stepIndex = stepIndex;
});

/** Constructs the payload of `child.completed`. */
export const ChildCompletedPayload = plainConstructor(function (
  this: Mutable<TracePayloads['child.completed']>,
  childCallId: string,
  status: 'ok' | 'error',
) {
  this.childCallId = childCallId;
  this.status = status;
});

const CallStartedPayload = plainConstructor(function (
  this: Mutable<StartedPayload>,
  loopId: string,
  loopVersion: string,
  parentCallId: string,
) {
  this.loopId = loopId;
  this.loopVersion = loopVersion;
  this.parentCallId = parentCallId;
});

/**
 * Reuses the payloads of one trace that are often equal from call to call, such as those of the short steps of one
 * loop.
 */
export class SharedPayloads {
  private lastStarted: StartedPayload | undefined;
  private lastValidated: ValidatedPayload | undefined;
  private lastCompleted: CompletedPayload | undefined;

  /** Returns the payload of `call.started`. */
  started(loopId: string, loopVersion: string, parentCallId: string): StartedPayload {
    const last = this.lastStarted;
    if (last?.parentCallId === parentCallId && last.loopId === loopId && last.loopVersion === loopVersion) return last;
    this.lastStarted = new CallStartedPayload(loopId, loopVersion, parentCallId);
    return this.lastStarted;
  }

  /** Returns the payload of `call.input.validated` and `call.output.validated`. */
  validated(durationMs: number): ValidatedPayload {
    if (this.lastValidated?.durationMs !== durationMs) this.lastValidated = { durationMs };
    return this.lastValidated;
  }

  /** Returns the payload of `call.completed`. */
  completed(totalDurationMs: number): CompletedPayload {
    if (this.lastCompleted?.totalDurationMs !== totalDurationMs) this.lastCompleted = { totalDurationMs };
    return this.lastCompleted;
  }
}
