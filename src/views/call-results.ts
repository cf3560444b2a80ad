/**
 * When a call of a turn ran and what happened in it, folded from the entries. All of it comes from the call's own trace, so a
 * resumed or replayed turn, which has the same entries, gets the same values.
 */
import type { Entry } from '../protocol/entry.js';
import type { LoopResult, TraceEvent } from '../protocol/trace.js';
import { Tracing } from './trace.js';

/** The members of a LoopResult that only the entries of the call can tell. */
export type CallTimes = Pick<LoopResult, 'startedAt' | 'endedAt' | 'durationMs' | 'trace'>;

/** The positions of the first and the last entry of a call. */
interface Span {
  readonly first: number;
  last: number | undefined;
}

export class CallResults {
  private readonly entries: readonly Entry[];
  private readonly spans = new Map<string, Span>();
  /** How many entries the spans cover. */
  private indexed = 0;

  /** `entries` may grow afterwards; those of other turns are ignored. */
  constructor(entries: readonly Entry[]) {
    this.entries = entries;
  }

  /** What the entries say of a call that ended well, `parent` being the call that it is a step of; undefined if it has not. */
  of(callId: string, parent: string): CallTimes | undefined {
    this.index();
    const { first, last } = this.spans.get(callId) ?? {};
    if (first === undefined || last === undefined) return undefined;
    const trace: TraceEvent[] = [];
    const tracing = new Tracing(callId, (event) => trace.push(event), parent);
    const below = `${callId}/`;
    for (let i = first; i <= last; i++) {
      const entry = this.entries[i] as Entry;
      if (entry.key === callId || entry.key.startsWith(below)) tracing.apply(entry);
    }
    const end = trace.at(-1);
    const { totalDurationMs } = (end?.payload ?? {}) as { readonly totalDurationMs?: number };
    if (end === undefined || totalDurationMs === undefined) return undefined;
    return { startedAt: trace[0]?.ts ?? end.ts, endedAt: end.ts, durationMs: totalDurationMs, trace };
  }

  private index(): void {
    const { entries, spans } = this;
    for (; this.indexed < entries.length; this.indexed++) {
      const { key, type } = entries[this.indexed] as Entry;
      if (type === 'call.started') spans.set(key, { first: this.indexed, last: undefined });
      else if (type === 'call.completed') {
        const span = spans.get(key);
        if (span !== undefined) span.last ??= this.indexed;
      }
    }
  }
}
