/** The results of turns. The trace of a result is computed on first access. */
import { Fault, withHiddenCause } from '../base/errors.js';
import type { Entry, ErrorRecord } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import type { PendingStep, RunOutcome } from '../protocol/session.js';
import type { PendingItem, ResultError, TraceEvent, TurnResult } from '../protocol/trace.js';
import { compareByStep } from '../views/conversation/open-calls.js';
import { isoTime } from '../views/iso-time.js';
import { traceOf } from '../views/trace.js';
import { cancelReasonOf, pendingSignalOf, resultErrorOf, stopReasonOf, stopTextOf } from '../views/turns.js';
import { type CodeChange, describeChanges } from './code-changes.js';

/** Identifies a turn and its loop. */
export interface TurnIdentity {
  readonly sessionId: string;
  readonly turnId: string;
  readonly loopId: string;
  readonly loopVersion: string;
}

/**
 * Returns the session id in a turn id: the part before the last dot. Returns an empty string for a text without a dot.
 */
export function sessionIdOf(turnId: string): string {
  return turnId.slice(0, Math.max(0, turnId.lastIndexOf('.')));
}

/**
 * Returns a fault with the turn that it interrupted and the command that continues the turn. A fault that already names
 * a turn, and any other value, is returned as it is.
 */
export function faultWithTurn(thrown: unknown, turnId: string, started: 'started' | 'unknown' = 'started'): unknown {
  if (!(thrown instanceof Fault)) return thrown;
  const { code, message, data } = thrown;
  const details = typeof data === 'object' && data !== null && !Array.isArray(data) ? data : {};
  if ('turnId' in details) return thrown;
  const state = started === 'started' ? `Turn ${turnId} is interrupted` : `Turn ${turnId} may have started`;
  const next = `${state}; continue it with "rondo resume ${turnId}".`;
  return new Fault(code, `${message} ${next}`, { ...details, sessionId: sessionIdOf(turnId), turnId }, thrown);
}

/**
 * Returns a replay mismatch as an outcome, because the turn itself is unchanged. Its message names what `findChanges`
 * returns. Throws any other error; a fault names the turn.
 */
export function mismatchOutcome(thrown: unknown, turnId: string, findChanges: () => readonly CodeChange[]): RunOutcome {
  if (!(thrown instanceof Fault) || thrown.code !== 'REPLAY_MISMATCH') throw faultWithTurn(thrown, turnId);
  const { code, message } = thrown;
  const changes = findChanges();
  const described = describeChanges(changes);
  const data = { ...(thrown.data as { readonly [name: string]: Json } | undefined) };
  if (described === '') return { status: 'error', error: { code, message, data } };
  const changed = changes.map(({ loop, parts }) => ({ loop, parts: [...parts] }));
  return { status: 'error', error: { code, message: `${described} ${message}`, data: { ...data, changed } } };
}

const TRACE_SOURCE = Symbol('trace source');

/** A result under construction; the `trace` property is defined last. */
type ResultDraft = { -readonly [K in keyof Omit<TurnResult, 'trace'>]: TurnResult[K] } & {
  output?: unknown;
  error?: ResultError;
  pending?: readonly PendingItem[];
  reason?: string;
};

/** What the trace of a result is folded from. A hidden property: a result is often printed whole. */
interface TraceSource {
  readonly entries: readonly Entry[];
  events: readonly TraceEvent[] | undefined;
}

/**
 * Returns the result of a turn from its outcome and entries. `now` is the end time, in milliseconds since the epoch, of
 * a turn without a recorded end.
 */
export function turnResultOf(
  identity: TurnIdentity,
  outcome: RunOutcome,
  entries: readonly Entry[],
  now: number,
): TurnResult {
  const { sessionId, turnId, loopId, loopVersion } = identity;
  const first = entries.find(({ key, type }) => type === 'call.started' && key === turnId);
  const started = first === undefined ? now : first.at - (first.validationMs ?? 0);
  const isOpen = outcome.status === 'paused' || outcome.status === 'stopped';
  const end = isOpen ? Math.max(now, entries.at(-1)?.at ?? now) : (endEntryOf(entries, turnId)?.at ?? now);
  // The wall clock can be set back across a restart; an end must not precede its start.
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
  };
  const source: TraceSource = { entries, events: undefined };
  Object.defineProperty(result, TRACE_SOURCE, { value: source });
  if (outcome.status === 'ok') result.output = outcome.output ?? null;
  else if (outcome.status === 'error') setError(result, outcome.error);
  else if (outcome.status === 'stopped') result.reason = stopTextOf(outcome.stop);
  else result.pending = outcome.pending.map(pendingItemOf).sort((a, b) => compareByStep(a.key, b.key));
  return Object.defineProperty(result, 'trace', traceProperty) as unknown as TurnResult;
}

/**
 * Sets the error of a result. A stop condition of an agent is reported as the status `stopped` with a reason, not as an
 * error; a cancellation as `cancelled` with a reason and the error.
 */
function setError(result: ResultDraft, error: ErrorRecord & { readonly cause?: unknown }): void {
  const reason = stopReasonOf(error);
  if (reason !== undefined) {
    Object.assign(result, { status: 'stopped', reason });
    return;
  }
  result.error = withHiddenCause(resultErrorOf(error), error.cause);
  const cancelReason = cancelReasonOf(error);
  if (cancelReason !== undefined) Object.assign(result, { status: 'cancelled', reason: cancelReason });
}

/**
 * Computes the trace on first access. All results share one getter: a closure per result costs more than a short turn.
 */
const traceProperty: PropertyDescriptor = {
  enumerable: true,
  get(this: { readonly turnId: string; readonly [TRACE_SOURCE]: TraceSource }): readonly TraceEvent[] {
    const source = this[TRACE_SOURCE];
    source.events ??= traceOf(this.turnId, source.entries);
    return source.events;
  },
};

function endEntryOf(entries: readonly Entry[], turnId: string): Entry | undefined {
  for (let i = entries.length - 1; i >= 0; i--) {
    const entry = entries[i];
    if (entry?.key === turnId && (entry.type === 'call.completed' || entry.type === 'call.errored')) return entry;
  }
  return undefined;
}

function pendingItemOf(item: PendingStep): PendingItem {
  if (item.kind === 'signal') return pendingSignalOf(item.key, item.name);
  if (item.kind === 'doubt') return item;
  return { kind: 'timer', key: item.key, until: isoTime(item.until) };
}
