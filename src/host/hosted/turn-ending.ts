/**
 * What became of a turn of a hosted loop: it ended, it waits, it can go on later, or the loop must stop because of it.
 * Read from the stored turn, not from what the turn says of itself.
 */
import { LoopError } from '../../base/errors.js';
import { ownText } from '../../base/own-property.js';
import { MISSING_PRICE } from '../../policy/prices.js';
import type { HostedStop } from '../../policy/stop-policy.js';
import type { HostedLoopDocument } from '../../protocol/hosted-loop.js';
import type { Json } from '../../protocol/json.js';
import type { PendingItem, TurnResult } from '../../protocol/trace.js';
import { approvalRecordsOf } from '../../views/approval-records.js';
import type { TurnWait } from '../../views/hosted-loop.js';
import { receiptsIn } from '../../views/receipt/sealed-receipts.js';
import { cancelReasonOf, recordedStopOf, stopReasonOf } from '../../views/turns.js';
import type { StoredTurn } from '../archive.js';
import { withoutLimitAdvice } from '../budget/governed-turn.js';
import { receiptId } from '../receipts/sealing.js';

/** A turn that has ended. */
export interface TurnEnd {
  readonly kind: 'ended';
  readonly status: 'ok' | 'error' | 'stopped' | 'cancelled';
  /** The id of its final receipt; empty if it has none. */
  readonly receipt: string;
  readonly at: number;
  readonly output?: Json | undefined;
  readonly code?: string | undefined;
  /** Why its operator has to give a model a price before a turn like it can succeed. */
  readonly missingPrice?: string | undefined;
  readonly wasDenied: boolean;
}

/** What became of a turn. */
export type TurnEnding =
  | TurnEnd
  | { readonly kind: 'waits'; readonly for: TurnWait }
  /** The turn cannot go on in this process, or not yet. */
  | { readonly kind: 'blocked' }
  | { readonly kind: 'halted'; readonly stop: HostedStop };

/** The errors of a turn that is unchanged and may continue, here or in another process. */
const UNCHANGED_CODES: ReadonlySet<string> = new Set(['REPLAY_MISMATCH', 'CONTEXT_CHANGED']);

/**
 * Returns what became of a turn that was run with this result. `stored` is undefined if it was not recorded. Throws the
 * error of a turn that cannot start in this process, for example because its loop is not registered here.
 */
export function turnEndingOf(
  { stop: policy }: HostedLoopDocument,
  result: TurnResult,
  stored: StoredTurn | undefined,
): TurnEnding {
  if (stored === undefined) return refusedTurn(result);
  const { turn } = stored;
  const code = result.status === 'error' ? result.error.code : undefined;
  // guard: ended-turn-of-another-request-is-stale
  if (turn.endedEntry !== undefined && (code !== 'KEY_CONFLICT' || turn.endedEntry.error?.code === code))
    return endOf(stored);
  const limit = result.status === 'stopped' ? budgetStop(result.reason) : undefined;
  const stop = turn.stoppedEntry === undefined ? limit : stopAtGrant(recordedStopOf(turn.stoppedEntry));
  // guard: used-up-budget-stops
  if (stop !== undefined) return { kind: 'halted', stop };
  if (result.status === 'error') return failedToContinue(result);
  const waitsFor = waitOf(turn.pending);
  // guard: pending-approval-stops-if-declared
  if (waitsFor === 'approval' && policy.approval === 'pending')
    return { kind: 'halted', stop: { reason: 'approval', message: 'The turn needs an approval.' } };
  return { kind: 'waits', for: waitsFor };
}

/** Returns the end of a stored turn that has ended. */
export function endOf({ identity, turn, entries }: StoredTurn): TurnEnd {
  const { turnId, sessionId } = identity;
  const { error, value, at = 0 } = turn.endedEntry ?? {};
  const final = receiptsIn(entries).findLast((receipt) => receipt.turn === turnId && receipt.final);
  const records = approvalRecordsOf(sessionId, turnId, entries);
  const isCancelled = error !== undefined && cancelReasonOf(error) !== undefined;
  const isStopped = error !== undefined && stopReasonOf(error) !== undefined;
  return {
    kind: 'ended',
    status: error === undefined ? 'ok' : isCancelled ? 'cancelled' : isStopped ? 'stopped' : 'error',
    receipt: final === undefined ? '' : receiptId(final),
    at,
    output: error === undefined ? (value ?? null) : undefined,
    code: error?.code,
    missingPrice: ownText(error?.data, 'missing') === MISSING_PRICE ? error?.message : undefined,
    wasDenied: records.some(({ status }) => status === 'denied'),
  };
}

/** A turn that was refused before it was recorded. Only a refusal of its grant is sealed. */
function refusedTurn(result: TurnResult): TurnEnding {
  if (result.status === 'stopped') return { kind: 'halted', stop: budgetStop(result.reason) };
  if (result.status !== 'error') throw new LoopError('EXECUTION_FAILED', 'The turn was not recorded.');
  const { code, message } = result.error;
  // guard: sealed-refusal-stops
  if (result.receipt === undefined) throw new LoopError(code, message);
  return { kind: 'halted', stop: refusalOf(code, message) };
}

function failedToContinue(result: TurnResult & { readonly status: 'error' }): TurnEnding {
  const { code, message } = result.error;
  if (UNCHANGED_CODES.has(code)) return { kind: 'blocked' };
  // guard: turn-of-another-request-is-stale
  if (code === 'KEY_CONFLICT') return { kind: 'halted', stop: { reason: 'stale_projection', message } };
  if (code.startsWith('GRANT_')) return { kind: 'halted', stop: refusalOf(code, message) };
  throw new LoopError(code, message);
}

function refusalOf(code: string, message: string): HostedStop {
  if (code === 'GRANT_EXPIRED') return { reason: 'deadline', message };
  return { reason: 'refused', message: `The turn was refused with ${code}: ${message}` };
}

function stopAtGrant({ reason, message }: { readonly reason: string; readonly message: string }): HostedStop {
  return reason === 'expired' ? { reason: 'deadline', message } : budgetStop(message);
}

function budgetStop(message: string): HostedStop {
  return { reason: 'budget', message: withoutLimitAdvice(message) };
}

/** Returns what a paused turn waits for. A person comes before everything else. */
function waitOf(pending: readonly PendingItem[]): TurnWait {
  const kinds = new Set(pending.map(({ kind }) => kind));
  if (kinds.has('approval')) return 'approval';
  if (kinds.has('doubt')) return 'doubt';
  return kinds.has('signal') ? 'signal' : 'timer';
}
