/**
 * What a trace consists of: six events for each call, so a large turn has very many. Those that every call has are made by
 * constructors. Payloads that say the same as the one before are one object, which takes a third off the objects of a trace.
 */
import { type Mutable, plainConstructor } from '../base/plain-constructor.js';
import type { TraceEvent, TracePayloads } from '../protocol/trace.js';

type Started = TracePayloads['call.started'];
type Validated = TracePayloads['call.input.validated'];
type Completed = TracePayloads['call.completed'];

export const Event = plainConstructor(function (
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

export const ChildStarted = plainConstructor(function (
  this: Mutable<TracePayloads['child.started']>,
  childCallId: string,
  loopId: string,
  stepIndex: number,
) {
  this.childCallId = childCallId;
  this.loopId = loopId;
  this.stepIndex = stepIndex;
});

export const ChildCompleted = plainConstructor(function (
  this: Mutable<TracePayloads['child.completed']>,
  childCallId: string,
  status: 'ok' | 'error',
) {
  this.childCallId = childCallId;
  this.status = status;
});

const CallStarted = plainConstructor(function (
  this: Mutable<Started>,
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
  private lastStarted: Started | undefined;
  private lastValidated: Validated | undefined;
  private lastCompleted: Completed | undefined;

  started(loopId: string, loopVersion: string, parentCallId: string): Started {
    const last = this.lastStarted;
    if (last?.parentCallId === parentCallId && last.loopId === loopId && last.loopVersion === loopVersion) return last;
    this.lastStarted = new CallStarted(loopId, loopVersion, parentCallId);
    return this.lastStarted;
  }

  validated(durationMs: number): Validated {
    if (this.lastValidated?.durationMs !== durationMs) this.lastValidated = { durationMs };
    return this.lastValidated;
  }

  completed(totalDurationMs: number): Completed {
    if (this.lastCompleted?.totalDurationMs !== totalDurationMs) this.lastCompleted = { totalDurationMs };
    return this.lastCompleted;
  }
}
