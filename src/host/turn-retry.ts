/** Which steps of a failed turn a retry performs again, and which turns can be retried. */
import { LoopError } from '../base/errors.js';
import { failurePathOf } from '../views/failure-path.js';
import { stopReasonOf } from '../views/turns.js';
import type { StoredTurn } from './archive.js';

/**
 * Returns the keys of the failed steps of a turn, its root first. Throws RETRY_REFUSED if the turn has not failed: it
 * is open, succeeded, was cancelled, or stopped at a limit of its agent, which it would reach again.
 */
export function retryKeysOf({ identity, turn, entries }: StoredTurn): readonly string[] {
  const { turnId } = identity;
  const { endedEntry } = turn;
  if (endedEntry === undefined) throw retryRefusal(turnId, `has not ended. Continue it with "rondo resume ${turnId}"`);
  const { error } = endedEntry;
  if (error === undefined) throw retryRefusal(turnId, 'has succeeded');
  const wasCancelled = entries.some(({ type, key }) => type === 'cancel.requested' && key === turnId);
  if (wasCancelled) throw retryRefusal(turnId, 'was cancelled. Start a new turn');
  const stopReason = stopReasonOf(error);
  if (stopReason !== undefined)
    throw retryRefusal(turnId, `stopped at a limit (${stopReason}), which it would reach again. Start a new turn`);
  return failurePathOf(turnId, entries);
}

function retryRefusal(turnId: string, problem: string): LoopError {
  return new LoopError('RETRY_REFUSED', `Turn ${turnId} ${problem}; only a failed turn can be retried.`, { turnId });
}
