/** What a turn came to, as its caller gets it. The trace is folded when somebody asks for it, and only then. */
import type { Outcome } from '../kernel/attempt.js';
import type { Entry, ErrorRecord } from '../protocol/entry.js';
import type { PendingItem, ResultError, TraceEvent, TurnResult } from '../protocol/trace.js';
import { traceOf } from '../views/trace.js';

/** Which turn a result is of. */
export interface Identity {
  readonly sessionId: string;
  readonly turnId: string;
  readonly loopId: string;
  readonly loopVersion: string;
}

export function errorOf({ code, message, data }: ErrorRecord): ResultError {
  return data === undefined ? { code, message } : { code, message, details: data };
}

/** The result of a turn whose entries are all given; `now` is taken for an end that it does not have yet. */
export function resultOf(identity: Identity, outcome: Outcome, entries: readonly Entry[], now: number): TurnResult {
  const { sessionId, turnId, loopId, loopVersion } = identity;
  const started = entries.find(({ key, type }) => key === turnId && type === 'call.started')?.at ?? now;
  const ended = outcome.status === 'paused' ? now : (endOf(entries, turnId)?.at ?? now);
  let trace: readonly TraceEvent[] | undefined;
  return {
    callId: turnId,
    loopId,
    loopVersion,
    status: outcome.status,
    ...(outcome.status === 'ok' && { output: outcome.output ?? null }),
    ...(outcome.status === 'error' && { error: errorOf(outcome.error) }),
    ...(outcome.status === 'paused' && { pending: outcome.pending.map(pendingOf) }),
    startedAt: new Date(started).toISOString(),
    endedAt: new Date(ended).toISOString(),
    durationMs: ended - started,
    sessionId,
    turnId,
    get trace() {
      trace ??= traceOf(turnId, entries);
      return trace;
    },
  };
}

function endOf(entries: readonly Entry[], turnId: string): Entry | undefined {
  for (let i = entries.length - 1; i >= 0; i--) {
    const entry = entries[i];
    if (entry?.key === turnId && (entry.type === 'call.completed' || entry.type === 'call.errored')) return entry;
  }
  return undefined;
}

function pendingOf(item: Extract<Outcome, { status: 'paused' }>['pending'][number]): PendingItem {
  if (item.kind !== 'timer') return item;
  return { kind: 'timer', key: item.key, until: new Date(item.until).toISOString() };
}
