/**
 * Checks the frames of child calls. A frame is the pair of events `child.started` and `child.completed` on the trace of
 * the parent; all events of the child must be between them. A child is identified by its own `call.started`, which
 * names its parent. A frame event without `childCallId` (which another check reports) is matched by its position.
 */
import { ownProperty } from '../base/own-property.js';
import type { TraceEvent } from '../protocol/trace.js';
import { assertThat, describeValue, isNonEmptyString } from './assertions.js';
import { timestampMs } from './events.js';
import type { RecordedRun } from './recorded-run.js';

interface IndexedEvent {
  readonly index: number;
  readonly event: TraceEvent;
  isMatched: boolean;
}

/** Returns the events of one type by call id, in order, each with its index in `events`. */
function indexEventsByCall(events: readonly TraceEvent[], type: string): Map<string, IndexedEvent[]> {
  const byCall = new Map<string, IndexedEvent[]>();
  for (const [index, event] of events.entries()) {
    if (event.type !== type) continue;
    const list = byCall.get(event.callId);
    const item = { index, event, isMatched: false };
    if (list === undefined) byCall.set(event.callId, [item]);
    else list.push(item);
  }
  return byCall;
}

const childCallIdOf = ({ event }: IndexedEvent): unknown => ownProperty(event.payload, 'childCallId');

/**
 * Returns the frame event of a child and marks it as matched: the one that names the child, or else the first one
 * without a `childCallId` at a possible position. Returns undefined if there is none.
 */
function takeFrameEvent(
  candidates: readonly IndexedEvent[],
  child: string,
  isPossible: (item: IndexedEvent) => boolean,
): IndexedEvent | undefined {
  const match =
    candidates.find((item) => !item.isMatched && childCallIdOf(item) === child) ??
    candidates.find((item) => !item.isMatched && !isNonEmptyString(childCallIdOf(item)) && isPossible(item));
  if (match !== undefined) match.isMatched = true;
  return match;
}

/**
 * Fails unless every child of a run has a frame on its parent's trace that encloses its events by position and by time,
 * and every `child.started` belongs to a child. Times that cannot be parsed are not compared.
 */
export function assertFrames({ loopId, events }: RecordedRun): void {
  const starts = indexEventsByCall(events, 'child.started');
  const ends = indexEventsByCall(events, 'child.completed');
  for (const [startIndex, { type, payload, callId: child }] of events.entries()) {
    const parent = ownProperty(payload, 'parentCallId');
    if (type !== 'call.started' || !isNonEmptyString(parent)) continue;
    const where = `the child ${describeValue(ownProperty(payload, 'loopId'))} (call ${describeValue(child)}) in a run of ${loopId}`;
    const start = takeFrameEvent(starts.get(parent) ?? [], child, ({ index }) => index < startIndex);
    assertThat(
      start !== undefined,
      `${where} has no child.started on the trace of its parent ${describeValue(parent)}`,
    );
    const lastIndex = events.findLastIndex(({ callId }) => callId === child);
    const end = takeFrameEvent(ends.get(parent) ?? [], child, ({ index }) => index > lastIndex);
    assertThat(
      end !== undefined,
      `${where} has no child.completed on the trace of its parent ${describeValue(parent)}`,
    );
    for (const [index, event] of events.entries()) {
      if (event.callId === child) assertInsideFrame(where, { index, event }, start, end);
    }
  }
  const unmatched = [...starts.values()].flat().find(({ isMatched }) => !isMatched);
  assertThat(
    unmatched === undefined,
    () => `a child.started in a run of ${loopId} has no call: ${describeValue(unmatched?.event.payload)}`,
  );
}

function assertInsideFrame(
  where: string,
  { index, event }: Omit<IndexedEvent, 'isMatched'>,
  start: IndexedEvent,
  end: IndexedEvent,
): void {
  const isInside = start.index < index && index < end.index;
  assertThat(isInside, () => `${event.type} of ${where} is outside of its frame`);
  const [from, at, to] = [start.event.ts, event.ts, end.event.ts].map((ts) =>
    isNonEmptyString(ts) ? timestampMs(ts) : undefined,
  );
  if (from === undefined || at === undefined || to === undefined) return;
  const frame = `${describeValue(start.event.ts)} to ${describeValue(end.event.ts)}`;
  assertThat(
    from <= at && at <= to,
    () => `${event.type} of ${where} is at ${describeValue(event.ts)}, outside of its frame: ${frame}`,
  );
}
