/**
 * What a trace consists of: six events for each call, so a large turn has very many. Those that every call has are made by
 * constructors. Payloads that say the same as the one before are one object, which takes a third off the objects of a trace.
 */
import { type Mutable, plainConstructor } from '../base/plain-constructor.js';
import type { TraceEvent, TracePayloads } from '../protocol/trace.js';

type StartedPayload = TracePayloads['call.started'];
type ValidatedPayload = TracePayloads['call.input.validated'];
type CompletedPayload = TracePayloads['call.completed'];

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

/** The payloads of one trace that are often the same from call to call: steps of one loop, most of which take no millisecond. */
export class SharedPayloads {
  private lastStarted: StartedPayload | undefined;
  private lastValidated: ValidatedPayload | undefined;
  private lastCompleted: CompletedPayload | undefined;

  started(loopId: string, loopVersion: string, parentCallId: string): StartedPayload {
    const last = this.lastStarted;
    if (last?.parentCallId === parentCallId && last.loopId === loopId && last.loopVersion === loopVersion) return last;
    this.lastStarted = new CallStartedPayload(loopId, loopVersion, parentCallId);
    return this.lastStarted;
  }

  validated(durationMs: number): ValidatedPayload {
    if (this.lastValidated?.durationMs !== durationMs) this.lastValidated = { durationMs };
    return this.lastValidated;
  }

  completed(totalDurationMs: number): CompletedPayload {
    if (this.lastCompleted?.totalDurationMs !== totalDurationMs) this.lastCompleted = { totalDurationMs };
    return this.lastCompleted;
  }
}
