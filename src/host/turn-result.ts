/** What a turn came to, as its caller gets it. The trace is folded when somebody asks for it, and only then. */
import { Fault } from '../base/errors.js';
import type { Entry, ErrorRecord } from '../protocol/entry.js';
import type { RunOutcome } from '../protocol/session.js';
import type { PendingItem, ResultError, TraceEvent, TurnResult } from '../protocol/trace.js';
import { compareByStep } from '../views/conversation/open-calls.js';
import { isoTime } from '../views/iso-time.js';
import { traceOf } from '../views/trace.js';
import { pendingSignalOf, stopReasonOf } from '../views/turns.js';

/** Which turn a result is of. */
export interface TurnIdentity {
  readonly sessionId: string;
  readonly turnId: string;
  readonly loopId: string;
  readonly loopVersion: string;
}

/** The session that a turn is of. */
export function sessionIdOf(turnId: string): string {
  return turnId.slice(0, Math.max(0, turnId.lastIndexOf('.')));
}

/** A failure of the machinery in a turn that has begun, or may have: it names the turn, and says how to go on. */
export function faultWithTurn(thrown: unknown, turnId: string, begun: 'begun' | 'perhaps' = 'begun'): unknown {
  if (!(thrown instanceof Fault)) return thrown;
  const { code, message, data } = thrown;
  const known = typeof data === 'object' && data !== null && !Array.isArray(data) ? data : {};
  if ('turnId' in known) return thrown;
  const stands = begun === 'begun' ? `Turn ${turnId} stands where it was` : `Turn ${turnId} may have begun`;
  const next = `${stands}: continue it with "rondo resume ${turnId}".`;
  return new Fault(code, `${message} ${next}`, { ...known, sessionId: sessionIdOf(turnId), turnId }, thrown);
}

/** A replay that does not match is told as a result: the turn stands where it stood. Any other failure names the turn. */
export function mismatchOutcome(thrown: unknown, turnId: string): RunOutcome {
  if (!(thrown instanceof Fault) || thrown.code !== 'REPLAY_MISMATCH') throw faultWithTurn(thrown, turnId);
  const { code, message, data } = thrown;
  return { status: 'error', error: data === undefined ? { code, message } : { code, message, data } };
}

const TRACE_ENTRIES = Symbol('entries');
const TRACE_EVENTS = Symbol('events');

/** A result in the making: the trace is added last. */
type ResultDraft = { -readonly [K in keyof Omit<TurnResult, 'trace'>]: TurnResult[K] } & {
  readonly [TRACE_ENTRIES]: readonly Entry[];
  [TRACE_EVENTS]: readonly TraceEvent[] | undefined;
};

export function resultErrorOf({ code, message, data }: ErrorRecord): ResultError {
  return data === undefined ? { code, message } : { code, message, details: data };
}

/** The result of a turn whose entries are all given; `now` is taken for an end that it does not have yet. */
export function turnResultOf(
  identity: TurnIdentity,
  outcome: RunOutcome,
  entries: readonly Entry[],
  now: number,
): TurnResult {
  const { sessionId, turnId, loopId, loopVersion } = identity;
  const first = entries.find(({ key, type }) => type === 'call.started' && key === turnId);
  const started = first === undefined ? now : first.at - (first.validationMs ?? 0);
  const isPaused = outcome.status === 'paused';
  const end = isPaused ? Math.max(now, entries.at(-1)?.at ?? now) : (endEntryOf(entries, turnId)?.at ?? now);
  // Across a restart the wall clock may have been set back: nothing ends before it began.
  const ended = Math.max(started, end);
  const result: ResultDraft = {
    callId: turnId,
    loopId,
    loopVersion,
    status: outcome.status,
    startedAt: isoTime(started),
    endedAt: isoTime(ended),
    durationMs: ended - started,
    sessionId,
    turnId,
    [TRACE_ENTRIES]: entries,
    [TRACE_EVENTS]: undefined,
  };
  if (outcome.status === 'ok') result.output = outcome.output ?? null;
  else if (outcome.status === 'error') setError(result, outcome.error);
  else result.pending = outcome.pending.map(pendingItemOf).sort((a, b) => compareByStep(a.key, b.key));
  return Object.defineProperty(result, 'trace', traceProperty) as ResultDraft & TurnResult;
}

/** A stop that was reached is no failure: it is told by its reason. */
function setError(result: ResultDraft, error: ErrorRecord): void {
  const reason = stopReasonOf(error);
  if (reason === undefined) result.error = resultErrorOf(error);
  else Object.assign(result, { status: 'stopped', reason });
}

/** The trace, of the entries that lie beside it. One getter for all: one of its own for each costs more than the run. */
const traceProperty: PropertyDescriptor = {
  enumerable: true,
  get(this: ResultDraft): readonly TraceEvent[] {
    this[TRACE_EVENTS] ??= traceOf(this.turnId, this[TRACE_ENTRIES]);
    return this[TRACE_EVENTS];
  },
};

function endEntryOf(entries: readonly Entry[], turnId: string): Entry | undefined {
  for (let i = entries.length - 1; i >= 0; i--) {
    const entry = entries[i];
    if (entry?.key === turnId && (entry.type === 'call.completed' || entry.type === 'call.errored')) return entry;
  }
  return undefined;
}

function pendingItemOf(item: Extract<RunOutcome, { status: 'paused' }>['pending'][number]): PendingItem {
  if (item.kind === 'signal') return pendingSignalOf(item.key, item.name);
  if (item.kind === 'doubt') return item;
  return { kind: 'timer', key: item.key, until: isoTime(item.until) };
}
