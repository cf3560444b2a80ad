/**
 * Frames: the events of a child stand between child.started and child.completed of its parent. A child is known by its
 * own call.started, which names its parent; where child.started or child.completed names no childCallId (another check's
 * business), the frame is found by its order.
 */
import { ownProperty } from '../base/own-property.js';
import type { TraceEvent } from '../protocol/trace.js';
import { instantOf } from './events.js';
import { demand, isText, show } from './failure.js';
import type { Recording } from './recording.js';

interface Placed {
  readonly index: number;
  readonly event: TraceEvent;
  taken: boolean;
}

/** The events of one type on each call, in order. */
function placed(events: readonly TraceEvent[], type: string): Map<string, Placed[]> {
  const found = new Map<string, Placed[]>();
  for (const [index, event] of events.entries()) {
    if (event.type !== type) continue;
    const list = found.get(event.callId);
    const item = { index, event, taken: false };
    if (list === undefined) found.set(event.callId, [item]);
    else list.push(item);
  }
  return found;
}

const namedBy = ({ event }: Placed): unknown => ownProperty(event.payload, 'childCallId');

/** The end of a frame for this child: the one that names it, else one that names nobody and fits by its place. */
function frameEnd(among: readonly Placed[], child: string, fits: (item: Placed) => boolean): Placed | undefined {
  const found =
    among.find((item) => !item.taken && namedBy(item) === child) ??
    among.find((item) => !item.taken && !isText(namedBy(item)) && fits(item));
  if (found !== undefined) found.taken = true;
  return found;
}

/** Fails unless every child of a run is framed on its parent's trace, in order and, as far as times are known, in time. */
export function demandFrames({ loopId, events }: Recording): void {
  const starts = placed(events, 'child.started');
  const ends = placed(events, 'child.completed');
  for (const [begun, { type, payload, callId: child }] of events.entries()) {
    const parent = ownProperty(payload, 'parentCallId');
    if (type !== 'call.started' || !isText(parent)) continue;
    const where = `the child ${show(ownProperty(payload, 'loopId'))} (call ${show(child)}) in a run of ${loopId}`;
    const start = frameEnd(starts.get(parent) ?? [], child, ({ index }) => index < begun);
    demand(start !== undefined, `${where} has no child.started on the trace of its parent ${show(parent)}`);
    const last = events.findLastIndex(({ callId }) => callId === child);
    const end = frameEnd(ends.get(parent) ?? [], child, ({ index }) => index > last);
    demand(end !== undefined, `${where} is named by no child.completed on the trace of its parent ${show(parent)}`);
    for (const [index, event] of events.entries()) {
      if (event.callId === child) demandWithin(where, { index, event }, start, end);
    }
  }
  const open = [...starts.values()].flat().find(({ taken }) => !taken);
  demand(open === undefined, () => `a child.started in a run of ${loopId} has no call: ${show(open?.event.payload)}`);
}

function demandWithin(where: string, { index, event }: Omit<Placed, 'taken'>, start: Placed, end: Placed): void {
  const inside = start.index < index && index < end.index;
  demand(inside, () => `${event.type} of ${where} stands outside of its frame`);
  const [from, at, to] = [start.event.ts, event.ts, end.event.ts].map((ts) => (isText(ts) ? instantOf(ts) : undefined));
  if (from === undefined || at === undefined || to === undefined) return;
  const frame = `${show(start.event.ts)} to ${show(end.event.ts)}`;
  demand(
    from <= at && at <= to,
    () => `${event.type} of ${where} is at ${show(event.ts)}, outside of its frame: ${frame}`,
  );
}
