/**
 * When a call of a turn ran and what happened in it, folded from the entries. All of it comes from the call's own trace, so a
 * resumed or replayed turn, which has the same entries, gets the same values.
 */
import type { Entry } from '../protocol/entry.js';
import type { LoopResult, TraceEvent } from '../protocol/trace.js';
import { TraceBuilder } from './trace.js';

/** The members of a LoopResult that only the entries of the call can tell. */
export type CallTimes = Pick<LoopResult, 'startedAt' | 'endedAt' | 'durationMs' | 'trace'>;

/** The positions of the first and the last entry of a call. */
interface EntryRange {
  readonly firstIndex: number;
  lastIndex: number | undefined;
}

export class CallResults {
  private readonly entries: readonly Entry[];
  private readonly spans = new Map<string, EntryRange>();
  /** How many entries the spans cover. */
  private indexedCount = 0;

  /** `entries` may grow afterwards; those of other turns are ignored. */
  constructor(entries: readonly Entry[]) {
    this.entries = entries;
  }

  /** What the entries say of a call that ended well, `parent` being the call that it is a step of; undefined if it has not. */
  timesOf(callId: string, parent: string): CallTimes | undefined {
    this.indexNewEntries();
    const { firstIndex, lastIndex } = this.spans.get(callId) ?? {};
    if (firstIndex === undefined || lastIndex === undefined) return undefined;
    const trace: TraceEvent[] = [];
    const tracing = new TraceBuilder(callId, (event) => trace.push(event), parent);
    const below = `${callId}/`;
    for (let i = firstIndex; i <= lastIndex; i++) {
      const entry = this.entries[i] as Entry;
      if (entry.key === callId || entry.key.startsWith(below)) tracing.apply(entry);
    }
    const end = trace.at(-1);
    const { totalDurationMs } = (end?.payload ?? {}) as { readonly totalDurationMs?: number };
    if (end === undefined || totalDurationMs === undefined) return undefined;
    return { startedAt: trace[0]?.ts ?? end.ts, endedAt: end.ts, durationMs: totalDurationMs, trace };
  }

  private indexNewEntries(): void {
    const { entries, spans } = this;
    for (; this.indexedCount < entries.length; this.indexedCount++) {
      const { key, type } = entries[this.indexedCount] as Entry;
      if (type === 'call.started') spans.set(key, { firstIndex: this.indexedCount, lastIndex: undefined });
      else if (type === 'call.completed') {
        const span = spans.get(key);
        if (span !== undefined) span.lastIndex ??= this.indexedCount;
      }
    }
  }
}
