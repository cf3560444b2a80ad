/**
 * The times and the trace of completed calls, folded from the entries of a turn. All values come from the trace of the
 * call, so a resumed or replayed turn, which has the same entries, gets the same values.
 */
import type { Entry } from '../protocol/entry.js';
import type { LoopResult, TraceEvent } from '../protocol/trace.js';
import { TraceBuilder } from './trace.js';

/** The members of a LoopResult that are derived from the entries of the call. */
export type CallTimes = Pick<LoopResult, 'startedAt' | 'endedAt' | 'durationMs' | 'trace'>;

/** The indexes of the first and the last entry of a call; the last is undefined until the call has completed. */
interface EntryRange {
  readonly firstIndex: number;
  lastIndex: number | undefined;
}

/** Looks up the times and traces of completed calls. */
export class CallResults {
  private readonly entries: readonly Entry[];
  private readonly ranges = new Map<string, EntryRange>();
  /** The number of entries that `ranges` covers. */
  private indexedCount = 0;

  /** `entries` may grow later. It may contain entries of other turns. */
  constructor(entries: readonly Entry[]) {
    this.entries = entries;
  }

  /**
   * Returns the times and the trace of a step of the call `parent`; undefined if the step has not completed, or has
   * failed.
   */
  timesOf(callId: string, parent: string): CallTimes | undefined {
    this.indexNewEntries();
    const { firstIndex, lastIndex } = this.ranges.get(callId) ?? {};
    if (firstIndex === undefined || lastIndex === undefined) return undefined;
    const trace: TraceEvent[] = [];
    const traceBuilder = new TraceBuilder(callId, (event) => trace.push(event), parent);
    const prefix = `${callId}/`;
    for (let i = firstIndex; i <= lastIndex; i++) {
      const entry = this.entries[i] as Entry;
      if (entry.key === callId || entry.key.startsWith(prefix)) traceBuilder.apply(entry);
    }
    const end = trace.at(-1);
    const { totalDurationMs } = (end?.payload ?? {}) as { readonly totalDurationMs?: number };
    if (end === undefined || totalDurationMs === undefined) return undefined;
    return { startedAt: trace[0]?.ts ?? end.ts, endedAt: end.ts, durationMs: totalDurationMs, trace };
  }

  private indexNewEntries(): void {
    const { entries, ranges } = this;
    for (; this.indexedCount < entries.length; this.indexedCount++) {
      const { key, type } = entries[this.indexedCount] as Entry;
      if (type === 'call.started') ranges.set(key, { firstIndex: this.indexedCount, lastIndex: undefined });
      else if (type === 'call.completed') {
        const range = ranges.get(key);
        if (range !== undefined) range.lastIndex ??= this.indexedCount;
      }
    }
  }
}
