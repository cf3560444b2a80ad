/** What a turn came to, as its caller gets it. The trace is folded when somebody asks for it, and only then. */
import { Fault } from '../base/errors.js';
import type { Outcome } from '../kernel/attempt.js';
import type { Entry, ErrorRecord } from '../protocol/entry.js';
import type { PendingItem, ResultError, TraceEvent, TurnResult } from '../protocol/trace.js';
import { byStep } from '../views/conversation/calls.js';
import { iso } from '../views/time.js';
import { traceOf } from '../views/trace.js';
import { signalOf, stopOf } from '../views/turns.js';

/** Which turn a result is of. */
export interface Identity {
  readonly sessionId: string;
  readonly turnId: string;
  readonly loopId: string;
  readonly loopVersion: string;
}

/** The session that a turn is of. */
export function sessionOf(turnId: string): string {
  return turnId.slice(0, Math.max(0, turnId.lastIndexOf('.')));
}

/** A failure of the machinery in a turn that has begun, or may have: it names the turn, and says how to go on. */
export function withTurn(thrown: unknown, turnId: string, begun: 'begun' | 'perhaps' = 'begun'): unknown {
  if (!(thrown instanceof Fault)) return thrown;
  const { code, message, data } = thrown;
  const known = typeof data === 'object' && data !== null && !Array.isArray(data) ? data : {};
  if ('turnId' in known) return thrown;
  const stands = begun === 'begun' ? `Turn ${turnId} stands where it was` : `Turn ${turnId} may have begun`;
  const next = `${stands}: continue it with "rondo resume ${turnId}".`;
  return new Fault(code, `${message} ${next}`, { ...known, sessionId: sessionOf(turnId), turnId }, thrown);
}

/** A replay that does not match is told as a result: the turn stands where it stood. Any other failure names the turn. */
export function mismatch(thrown: unknown, turnId: string): Outcome {
  if (!(thrown instanceof Fault) || thrown.code !== 'REPLAY_MISMATCH') throw withTurn(thrown, turnId);
  const { code, message, data } = thrown;
  return { status: 'error', error: data === undefined ? { code, message } : { code, message, data } };
}

const ENTRIES = Symbol('entries');
const EVENTS = Symbol('events');

/** A result in the making: the trace is added last. */
type Draft = { -readonly [K in keyof Omit<TurnResult, 'trace'>]: TurnResult[K] } & {
  readonly [ENTRIES]: readonly Entry[];
  [EVENTS]: readonly TraceEvent[] | undefined;
};

export function errorOf({ code, message, data }: ErrorRecord): ResultError {
  return data === undefined ? { code, message } : { code, message, details: data };
}

/** The result of a turn whose entries are all given; `now` is taken for an end that it does not have yet. */
export function resultOf(identity: Identity, outcome: Outcome, entries: readonly Entry[], now: number): TurnResult {
  const { sessionId, turnId, loopId, loopVersion } = identity;
  const first = entries.find(({ key, type }) => type === 'call.started' && key === turnId);
  const started = first === undefined ? now : first.at - (first.took ?? 0);
  const isPaused = outcome.status === 'paused';
  const end = isPaused ? Math.max(now, entries.at(-1)?.at ?? now) : (endOf(entries, turnId)?.at ?? now);
  // Across a restart the wall clock may have been set back: nothing ends before it began.
  const ended = Math.max(started, end);
  const result: Draft = {
    callId: turnId,
    loopId,
    loopVersion,
    status: outcome.status,
    startedAt: iso(started),
    endedAt: iso(ended),
    durationMs: ended - started,
    sessionId,
    turnId,
    [ENTRIES]: entries,
    [EVENTS]: undefined,
  };
  if (outcome.status === 'ok') result.output = outcome.output ?? null;
  else if (outcome.status === 'error') tellError(result, outcome.error);
  else result.pending = outcome.pending.map(pendingOf).sort((a, b) => byStep(a.key, b.key));
  return Object.defineProperty(result, 'trace', folded) as Draft & TurnResult;
}

/** A stop that was reached is no failure: it is told by its reason. */
function tellError(result: Draft, error: ErrorRecord): void {
  const reason = stopOf(error);
  if (reason === undefined) result.error = errorOf(error);
  else Object.assign(result, { status: 'stopped', reason });
}

/** The trace, of the entries that lie beside it. One getter for all: one of its own for each costs more than the run. */
const folded: PropertyDescriptor = {
  enumerable: true,
  get(this: Draft): readonly TraceEvent[] {
    this[EVENTS] ??= traceOf(this.turnId, this[ENTRIES]);
    return this[EVENTS];
  },
};

function endOf(entries: readonly Entry[], turnId: string): Entry | undefined {
  for (let i = entries.length - 1; i >= 0; i--) {
    const entry = entries[i];
    if (entry?.key === turnId && (entry.type === 'call.completed' || entry.type === 'call.errored')) return entry;
  }
  return undefined;
}

function pendingOf(item: Extract<Outcome, { status: 'paused' }>['pending'][number]): PendingItem {
  if (item.kind === 'signal') return signalOf(item.key, item.name);
  if (item.kind === 'doubt') return item;
  return { kind: 'timer', key: item.key, until: iso(item.until) };
}
