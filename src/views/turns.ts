/** The turns of a session: what each was begun with, how it ended, or what it waits for. */
import type { Entry, ErrorRecord } from '../protocol/entry.js';
import type { PendingItem, TurnStatus } from '../protocol/trace.js';
import { compareByStep } from './conversation/open-calls.js';
import { isoTime } from './iso-time.js';

/** A turn as its entries tell it; `started` holds its loop and its input. */
export interface TurnSummary {
  readonly startedEntry: Entry;
  readonly endedEntry: Entry | undefined;
  /** Why somebody asked it to stop. */
  readonly cancelReason: string | undefined;
  /** On whose behalf it runs; undefined if that was not recorded, or its record is read without its value. */
  readonly principal: string | undefined;
  /** In the order of its steps. */
  readonly pending: readonly PendingItem[];
}

interface TurnState {
  startedEntry: Entry;
  endedEntry: Entry | undefined;
  cancelReason: string | undefined;
  readonly principal: string | undefined;
  readonly pending: Map<string, PendingItem>;
}

/** Records, under `#` and the id of a turn, on whose behalf it runs and who may answer for it. */
export const TURN_OPENED = 'rondo.turn.opened';

/** True for the key of a turn and for the keys below it; the id of one turn may begin with the id of another. */
export function isKeyOfTurn(key: string, turnId: string): boolean {
  return key.startsWith(turnId) && (key.length === turnId.length || key[turnId.length] === '/');
}

/** What stands before the id of an approval in the name of the signal that answers it. */
const APPROVAL_SIGNAL_PREFIX = 'approval ';

/** Folds the entries of a session into its turns. */
export class Turns {
  private readonly turns = new Map<string, TurnState>();
  private readonly principals = new Map<string, string>();

  apply(entry: Entry): void {
    const { key, type } = entry;
    const slash = key.indexOf('/');
    const root = slash === -1 ? key : key.slice(0, slash);
    const turn = this.turns.get(root);
    if (type === 'signal.received') {
      this.applySignal(entry);
      return;
    }
    if (turn === undefined) {
      if (type === 'call.started' && slash === -1) this.turns.set(root, newTurnState(entry, this.principals.get(root)));
      else if (type === TURN_OPENED && key.startsWith('#')) this.recordPrincipal(entry);
      return;
    }
    if (slash !== -1) updatePending(turn.pending, entry);
    else if (type === 'call.completed' || type === 'call.errored') turn.endedEntry = entry;
    else if (type === 'cancel.requested') turn.cancelReason = entry.reason ?? '';
  }

  /** An approval that was answered waits for nobody any more, whether or not its turn has gone on. */
  private applySignal({ name = '' }: Entry): void {
    if (!name.startsWith(APPROVAL_SIGNAL_PREFIX)) return;
    for (const { pending } of this.turns.values())
      for (const { key, id } of pending.values())
        if (id === name.slice(APPROVAL_SIGNAL_PREFIX.length)) pending.delete(key);
  }

  /** A turn is opened before it starts. */
  private recordPrincipal({ key, value }: Entry): void {
    const { principal } = (value ?? {}) as { readonly principal?: unknown };
    if (typeof principal === 'string') this.principals.set(key.slice(1), principal);
  }

  get(root: string): TurnSummary | undefined {
    const turn = this.turns.get(root);
    return turn && { ...turn, pending: [...turn.pending.values()].sort((a, b) => compareByStep(a.key, b.key)) };
  }

  turnIds(): readonly string[] {
    return [...this.turns.keys()];
  }
}

function newTurnState(started: Entry, principal: string | undefined): TurnState {
  return { startedEntry: started, endedEntry: undefined, cancelReason: undefined, principal, pending: new Map() };
}

/** What an entry adds to, or takes from, what a turn waits for. */
function updatePending(
  pending: Map<string, PendingItem>,
  { key, type, name, until = 0, safety, value, winnerIndex }: Entry,
): void {
  if (type === 'wait.opened') pending.set(key, pendingSignalOf(key, name ?? ''));
  else if (type === 'timer.set') pending.set(key, { kind: 'timer', key, until: isoTime(until) });
  else if (type === 'effect.requested' && safety === 'once')
    pending.set(withoutAttemptSuffix(key), inDoubtItem(withoutAttemptSuffix(key), name, value));
  else if (type === 'race.won') {
    for (const other of pending.keys())
      if (other.startsWith(`${key}/`) && !other.startsWith(`${key}/${winnerIndex}/`)) pending.delete(other);
  } else if (/^(?:wait\.settled|timer\.fired|effect\.(?:returned|failed))$/.test(type)) pending.delete(key);
}

/** A wait for a signal; what waits for an approval says for which. */
export function pendingSignalOf(key: string, name: string): PendingItem {
  if (!name.startsWith(APPROVAL_SIGNAL_PREFIX)) return { kind: 'signal', key, name };
  return { kind: 'approval', key, id: name.slice(APPROVAL_SIGNAL_PREFIX.length) };
}

/** Why a turn stopped short, if that is how it ended: of an error that says so. */
export function stopReasonOf({ code, message, data }: ErrorRecord): string | undefined {
  if (code !== 'BUDGET_EXHAUSTED') return undefined;
  const { reason } = (data ?? {}) as { readonly reason?: unknown };
  return typeof reason === 'string' ? `${reason}: ${message}` : message;
}

function inDoubtItem(key: string, name: string | undefined, input: PendingItem['input']): PendingItem {
  const item = { kind: 'doubt', key, name: name ?? '' } as const;
  return input === undefined ? item : { ...item, input };
}

/** The key of an effect, without the count of its repetitions. */
function withoutAttemptSuffix(key: string): string {
  const mark = key.indexOf('~');
  return mark === -1 ? key : key.slice(0, mark);
}

/** What a turn is shown as; `runner` is the process that works on it, if one does. */
export function turnStatusOf(
  sessionId: string,
  turnId: string,
  turn: TurnSummary,
  runner: { readonly pid?: number } | undefined,
): TurnStatus {
  const { startedEntry, endedEntry, principal, pending } = turn;
  const begun = startedEntry.at - (startedEntry.validationMs ?? 0);
  const status =
    endedEntry === undefined ? statusOfOpenTurn(pending, runner !== undefined) : statusOfEndedTurn(endedEntry);
  const reason = status === 'stopped' && endedEntry?.error !== undefined ? stopReasonOf(endedEntry.error) : undefined;
  const { code, message, data } = reason === undefined ? (endedEntry?.error ?? {}) : {};
  return {
    turnId,
    sessionId,
    loopId: startedEntry.name ?? '',
    loopVersion: startedEntry.version ?? '',
    status,
    ...(principal !== undefined && { principal }),
    startedAt: isoTime(begun),
    ...(endedEntry !== undefined && endTimes(begun, endedEntry.at)),
    ...(code !== undefined && {
      error: { code, message: message ?? '', ...(data !== undefined && { details: data }) },
    }),
    ...(reason !== undefined && { reason }),
    ...(status === 'paused' && { pending }),
    ...(status === 'running' && runner?.pid !== undefined && { pid: runner.pid }),
  };
}

/** Across a restart the wall clock may have been set back: nothing ends before it began. */
function endTimes(begun: number, at: number): { readonly endedAt: string; readonly durationMs: number } {
  const ended = Math.max(begun, at);
  return { endedAt: isoTime(ended), durationMs: ended - begun };
}

function statusOfOpenTurn(pending: readonly PendingItem[], running: boolean): TurnStatus['status'] {
  if (running) return 'running';
  return pending.length > 0 ? 'paused' : 'interrupted';
}

function statusOfEndedTurn({ type, error }: Entry): TurnStatus['status'] {
  if (type === 'call.completed') return 'ok';
  return error === undefined || stopReasonOf(error) === undefined ? 'error' : 'stopped';
}
