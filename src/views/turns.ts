/** The view of a session's turns: the start of each, and its end or its pending steps. */
import { ownProperty, ownText } from '../base/own-property.js';
import { expandLeaf } from '../journal/leaf-entries.js';
import type { Entry, ErrorRecord } from '../protocol/entry.js';
import type { Grant } from '../protocol/grant.js';
import type { HostedTurnOrigin, SeenHistory } from '../protocol/hosted-loop.js';
import type { Json } from '../protocol/json.js';
import type { RunStop } from '../protocol/session.js';
import type { PendingItem, ResultError, TurnStatus } from '../protocol/trace.js';
import { compareByStep } from './conversation/open-calls.js';
import { isoTime } from './iso-time.js';

/** A turn, folded from its entries. */
export interface TurnSummary {
  /** The `call.started` entry of the turn, with its loop and its input. */
  readonly startedEntry: Entry;
  readonly endedEntry: Entry | undefined;
  /** The entry that stopped the turn, if nothing followed it: the turn is open and waits for authority. */
  readonly stoppedEntry: Entry | undefined;
  /** True if the turn has receipts: it counts as ended only once its last one is final. */
  readonly isSealed: boolean;
  /** The principal of the turn; undefined if it has none, or if the entry was read without its value. */
  readonly principal: string | undefined;
  /** The open waits and timers of the turn, and its `once` effects without a result, in the order of its steps. */
  readonly pending: readonly PendingItem[];
}

interface TurnState {
  startedEntry: Entry;
  endedEntry: Entry | undefined;
  stoppedEntry: Entry | undefined;
  /** The recorded end of a turn with receipts whose final receipt is not recorded. */
  unsealedEnd: Entry | undefined;
  readonly isSealed: boolean;
  readonly principal: string | undefined;
  readonly pending: Map<string, PendingItem>;
}

/**
 * The type of the entry that records the principal of a turn and its approvers. The key of the entry is `#` and the
 * turn id.
 */
export const TURN_OPENED = 'rondo.turn.opened';

/** The type of the entry that gives a turn another grant. The key of the entry is `#` and the turn id. */
export const TURN_GRANTED = 'rondo.turn.granted';

/** The type of the entry that records why a turn was not opened. The key of the entry is `#` and the turn id. */
export const TURN_REFUSED = 'rondo.turn.refused';

/** The entry type of the origin of a fork, the second entry of its session. */
export const SESSION_FORKED = 'rondo.session.forked';

/** The key of that entry. A body cannot record under it, because keys of steps begin with the id of a turn. */
export const FORK_KEY = '#fork';

/** The type of the entry that holds a receipt. Its key is `#receipt` and the number of the receipt in its session. */
export const RECEIPT_SEALED = 'rondo.receipt.sealed';

/** Returns the entry that says where a fork comes from; undefined if the session is no fork. */
export function forkedEntryOf(entries: readonly Entry[]): Entry | undefined {
  // guard: origin-only-under-its-key
  return entries.find(({ type, key }) => type === SESSION_FORKED && key === FORK_KEY);
}

/** Returns the grant of a turn: the last one that it was given; undefined if it has none. */
export function grantOf(turnId: string, entries: readonly Entry[]): Grant | undefined {
  const key = `#${turnId}`;
  let grant: unknown;
  for (const entry of entries) {
    if (entry.key !== key) continue;
    if (entry.type === TURN_GRANTED) grant = entry.value;
    else if (entry.type === TURN_OPENED) grant = ownProperty(entry.value, 'grant') ?? grant;
  }
  return grant as Grant | undefined;
}

/** What the opening of a turn says besides its authority. */
export interface RecordedOpening {
  readonly history?: 'none' | 'session';
  readonly hosted?: HostedTurnOrigin;
  /** What a turn of a hosted loop sees of the turns before; absent if it sees nothing. */
  readonly seen?: SeenHistory;
}

/** Returns what the opening of a turn records; undefined if it records nothing. */
export function openingOf(turnId: string, entries: readonly Entry[]): RecordedOpening | undefined {
  const key = `#${turnId}`;
  // guard: opening-only-under-its-key
  const opened = entries.find((entry) => entry.type === TURN_OPENED && entry.key === key);
  return opened?.value as RecordedOpening | undefined;
}

/**
 * Returns true for the key of a turn and the keys below it. A prefix test is not enough: `s.1` is a prefix of `s.10`.
 */
export function isKeyOfTurn(key: string, turnId: string): boolean {
  return key.startsWith(turnId) && (key.length === turnId.length || key[turnId.length] === '/');
}

/** The name of the signal that answers an approval is this prefix and the approval id. */
export const APPROVAL_SIGNAL_PREFIX = 'approval ';

/** Folds the entries of a session into its turns. */
export class Turns {
  private readonly turns = new Map<string, TurnState>();
  private readonly principals = new Map<string, string>();
  /** The turns that are opened with receipts. */
  private readonly sealed = new Set<string>();

  /** Applies the next entry of the session. */
  apply(entry: Entry): void {
    const parts = expandLeaf(entry);
    if (parts === undefined) this.applyEntry(entry);
    else for (const part of parts) this.applyEntry(part);
  }

  private applyEntry(entry: Entry): void {
    const { key, type } = entry;
    const slash = key.indexOf('/');
    const root = slash === -1 ? key : key.slice(0, slash);
    const turn = this.turns.get(root);
    if (type === 'signal.received') {
      this.applySignal(entry);
      return;
    }
    // guard: facts-only-under-their-keys
    if (type === RECEIPT_SEALED && key.startsWith('#')) {
      this.applyReceipt(entry);
      return;
    }
    if (turn === undefined) {
      if (type === 'call.started' && slash === -1)
        this.turns.set(root, newTurnState(entry, this.principals.get(root), this.sealed.has(root)));
      else if (type === TURN_OPENED && key.startsWith('#')) this.recordPrincipal(entry);
      return;
    }
    turn.stoppedEntry = type === 'call.stopped' ? entry : undefined;
    if (slash !== -1) updatePending(turn.pending, entry);
    else if (type === 'call.completed' || type === 'call.errored') endTurn(turn, entry);
    else if (type === 'call.reopened') turn.endedEntry = undefined;
  }

  /** Ends the turn of a final receipt. */
  private applyReceipt({ value }: Entry): void {
    const turn = this.turns.get(ownText(value, 'turn'));
    if (turn === undefined || ownProperty(value, 'final') !== true) return;
    turn.endedEntry = turn.unsealedEnd ?? turn.endedEntry;
    turn.unsealedEnd = undefined;
  }

  /** Removes an answered approval from the pending items, even if its turn has not continued yet. */
  private applySignal({ name = '' }: Entry): void {
    if (!name.startsWith(APPROVAL_SIGNAL_PREFIX)) return;
    for (const { pending } of this.turns.values())
      for (const { key, id } of pending.values())
        if (id === name.slice(APPROVAL_SIGNAL_PREFIX.length)) pending.delete(key);
  }

  /** Records the principal of a turn. This entry precedes the start of the turn. */
  private recordPrincipal({ key, value }: Entry): void {
    const { principal, sealed } = (value ?? {}) as { readonly principal?: unknown; readonly sealed?: unknown };
    if (typeof principal === 'string') this.principals.set(key.slice(1), principal);
    if (sealed === true) this.sealed.add(key.slice(1));
  }

  /** Returns the turn with this id; undefined if it has not started. */
  get(root: string): TurnSummary | undefined {
    const turn = this.turns.get(root);
    if (turn === undefined) return undefined;
    const { unsealedEnd: _, ...summary } = turn;
    return { ...summary, pending: [...turn.pending.values()].sort((a, b) => compareByStep(a.key, b.key)) };
  }

  /** Returns the ids of all turns, oldest first. */
  turnIds(): readonly string[] {
    return [...this.turns.keys()];
  }
}

function newTurnState(startedEntry: Entry, principal: string | undefined, isSealed: boolean): TurnState {
  return {
    startedEntry,
    endedEntry: undefined,
    stoppedEntry: undefined,
    unsealedEnd: undefined,
    isSealed,
    principal,
    pending: new Map(),
  };
}

/** Records the end of a turn. One with receipts has not ended for anyone before its final receipt is recorded. */
function endTurn(turn: TurnState, ended: Entry): void {
  // guard: unsealed-turn-has-not-ended
  if (turn.isSealed) turn.unsealedEnd = ended;
  else turn.endedEntry = ended;
}

/** Adds the item that an entry makes pending, or removes the one that it settles. */
function updatePending(
  pending: Map<string, PendingItem>,
  { key, type, name, until = 0, safety, value, winnerIndex }: Entry,
): void {
  if (type === 'wait.opened') pending.set(key, pendingSignalOf(key, name ?? ''));
  else if (type === 'timer.set') pending.set(key, { kind: 'timer', key, until: isoTime(until) });
  else if (type === 'effect.requested' && safety === 'once')
    pending.set(withoutRetrySuffix(key), inDoubtItem(withoutRetrySuffix(key), name, value));
  else if (type === 'race.won') {
    for (const pendingKey of pending.keys())
      if (pendingKey.startsWith(`${key}/`) && !pendingKey.startsWith(`${key}/${winnerIndex}/`))
        pending.delete(pendingKey);
  } else if (/^(?:wait\.settled|timer\.fired|effect\.(?:returned|failed))$/.test(type)) pending.delete(key);
  else if (type === 'call.completed' || type === 'call.errored') {
    // The waits of branches that were cancelled when their call ended.
    for (const pendingKey of pending.keys()) if (pendingKey.startsWith(`${key}/`)) pending.delete(pendingKey);
  }
}

/** Returns the pending item of a wait: an approval if the signal answers one, else a signal. */
export function pendingSignalOf(key: string, name: string): PendingItem {
  if (!name.startsWith(APPROVAL_SIGNAL_PREFIX)) return { kind: 'signal', key, name };
  return { kind: 'approval', key, id: name.slice(APPROVAL_SIGNAL_PREFIX.length) };
}

/** Returns why a turn stopped, from an error that reports a stop condition; undefined for other errors. */
export function stopReasonOf({ code, message, data }: ErrorRecord): string | undefined {
  if (code !== 'BUDGET_EXHAUSTED') return undefined;
  const { reason } = (data ?? {}) as { readonly reason?: unknown };
  return typeof reason === 'string' ? `${reason}: ${message}` : message;
}

/** Returns why a turn was stopped from outside of its loops, as text. */
export function stopTextOf({ reason, message }: RunStop): string {
  return `${reason}: ${message}`;
}

/** Returns why a turn was stopped, from the entry that records it. */
export function recordedStopOf({ reason = '', value }: Entry): RunStop {
  const { message, data } = (value ?? {}) as { readonly message?: unknown; readonly data?: Json };
  return { reason, message: typeof message === 'string' ? message : '', ...(data != null && { data }) };
}

/** Returns why a turn was cancelled, from the error of a cancellation; undefined for other errors. */
export function cancelReasonOf({ code, data }: ErrorRecord): string | undefined {
  if (code !== 'CANCELLED') return undefined;
  const { reason } = (data ?? {}) as { readonly reason?: unknown };
  return typeof reason === 'string' ? reason : undefined;
}

function inDoubtItem(key: string, name: string | undefined, input: PendingItem['input']): PendingItem {
  const item = { kind: 'doubt', key, name: name ?? '' } as const;
  return input === undefined ? item : { ...item, input };
}

/** Returns the key of an effect without the suffix of its retries after a doubt. */
export function withoutRetrySuffix(key: string): string {
  const tilde = key.indexOf('~');
  return tilde === -1 ? key : key.slice(0, tilde);
}

/**
 * Returns the status of a turn. `runner` is the process that runs it; undefined if none does. A turn that is neither
 * ended nor running is `paused` if a step is pending, and `interrupted` otherwise.
 */
export function turnStatusOf(
  sessionId: string,
  turnId: string,
  turn: TurnSummary,
  runner: { readonly pid?: number } | undefined,
): TurnStatus {
  const { startedEntry, endedEntry, stoppedEntry, principal, pending } = turn;
  const startedAt = startedEntry.at - (startedEntry.validationMs ?? 0);
  const status =
    endedEntry === undefined
      ? statusOfOpenTurn(pending, runner !== undefined, stoppedEntry !== undefined)
      : statusOfEndedTurn(endedEntry);
  const { error } = endedEntry ?? {};
  const stop =
    status === 'stopped' && stoppedEntry !== undefined ? stopTextOf(recordedStopOf(stoppedEntry)) : undefined;
  const reason = stop ?? (error && (stopReasonOf(error) ?? cancelReasonOf(error)));
  return {
    turnId,
    sessionId,
    loopId: startedEntry.name ?? '',
    loopVersion: startedEntry.version ?? '',
    status,
    ...(principal !== undefined && { principal }),
    startedAt: isoTime(startedAt),
    ...(endedEntry !== undefined && endTimes(startedAt, endedEntry.at)),
    ...(error !== undefined && status !== 'stopped' && { error: resultErrorOf(error) }),
    ...(reason !== undefined && { reason }),
    ...pendingOf(status, pending),
    ...(status === 'running' && runner?.pid !== undefined && { pid: runner.pid }),
  };
}

/** Returns what a turn waits for, if anything. The effects that a running turn performs are not in doubt. */
function pendingOf(
  status: TurnStatus['status'],
  pending: readonly PendingItem[],
): { readonly pending?: readonly PendingItem[] } {
  if (status === 'paused') return { pending };
  const waits = status === 'running' ? pending.filter(({ kind }) => kind !== 'doubt') : [];
  return waits.length === 0 ? {} : { pending: waits };
}

/** Converts a journaled error to the error of a result. */
export function resultErrorOf({ code, message, data, stack }: ErrorRecord): ResultError {
  return { code, message, ...(data !== undefined && { details: data }), ...(stack !== undefined && { stack }) };
}

/** Returns the end and duration of a turn. The wall clock can be set back; an end must not precede its start. */
function endTimes(startedAt: number, at: number): { readonly endedAt: string; readonly durationMs: number } {
  const endedAt = Math.max(startedAt, at);
  return { endedAt: isoTime(endedAt), durationMs: endedAt - startedAt };
}

function statusOfOpenTurn(
  pending: readonly PendingItem[],
  isRunning: boolean,
  isStopped: boolean,
): TurnStatus['status'] {
  if (isRunning) return 'running';
  if (isStopped) return 'stopped';
  return pending.length > 0 ? 'paused' : 'interrupted';
}

function statusOfEndedTurn({ type, error }: Entry): TurnStatus['status'] {
  if (type === 'call.completed') return 'ok';
  if (error === undefined) return 'error';
  return stopReasonOf(error) !== undefined ? 'stopped' : cancelReasonOf(error) !== undefined ? 'cancelled' : 'error';
}
