/**
 * Frames: the events of a child stand between child.started and child.completed of its parent. A child is known by its
 * own call.started, which names its parent; where child.started or child.completed names no childCallId (another check's
 * business), the frame is found by its order.
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

/** The events of one type on each call, in order. */
function indexEventsByCall(events: readonly TraceEvent[], type: string): Map<string, IndexedEvent[]> {
  const found = new Map<string, IndexedEvent[]>();
  for (const [index, event] of events.entries()) {
    if (event.type !== type) continue;
    const list = found.get(event.callId);
    const item = { index, event, isMatched: false };
    if (list === undefined) found.set(event.callId, [item]);
    else list.push(item);
  }
  return found;
}

const childCallIdOf = ({ event }: IndexedEvent): unknown => ownProperty(event.payload, 'childCallId');

/** The end of a frame for this child: the one that names it, else one that names nobody and fits by its place. */
function takeFrameEvent(
  among: readonly IndexedEvent[],
  child: string,
  fits: (item: IndexedEvent) => boolean,
): IndexedEvent | undefined {
  const found =
    among.find((item) => !item.isMatched && childCallIdOf(item) === child) ??
    among.find((item) => !item.isMatched && !isNonEmptyString(childCallIdOf(item)) && fits(item));
  if (found !== undefined) found.isMatched = true;
  return found;
}

/** Fails unless every child of a run is framed on its parent's trace, in order and, as far as times are known, in time. */
export function assertFrames({ loopId, events }: RecordedRun): void {
  const starts = indexEventsByCall(events, 'child.started');
  const ends = indexEventsByCall(events, 'child.completed');
  for (const [begun, { type, payload, callId: child }] of events.entries()) {
    const parent = ownProperty(payload, 'parentCallId');
    if (type !== 'call.started' || !isNonEmptyString(parent)) continue;
    const where = `the child ${describeValue(ownProperty(payload, 'loopId'))} (call ${describeValue(child)}) in a run of ${loopId}`;
    const start = takeFrameEvent(starts.get(parent) ?? [], child, ({ index }) => index < begun);
    assertThat(
      start !== undefined,
      `${where} has no child.started on the trace of its parent ${describeValue(parent)}`,
    );
    const last = events.findLastIndex(({ callId }) => callId === child);
    const end = takeFrameEvent(ends.get(parent) ?? [], child, ({ index }) => index > last);
    assertThat(
      end !== undefined,
      `${where} is named by no child.completed on the trace of its parent ${describeValue(parent)}`,
    );
    for (const [index, event] of events.entries()) {
      if (event.callId === child) assertInsideFrame(where, { index, event }, start, end);
    }
  }
  const open = [...starts.values()].flat().find(({ isMatched }) => !isMatched);
  assertThat(
    open === undefined,
    () => `a child.started in a run of ${loopId} has no call: ${describeValue(open?.event.payload)}`,
  );
}

function assertInsideFrame(
  where: string,
  { index, event }: Omit<IndexedEvent, 'isMatched'>,
  start: IndexedEvent,
  end: IndexedEvent,
): void {
  const inside = start.index < index && index < end.index;
  assertThat(inside, () => `${event.type} of ${where} stands outside of its frame`);
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
