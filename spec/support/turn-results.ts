/** Reads members of a turn's result whatever its status, for assertions that state the expected status themselves. */
import type { PendingItem, ResultError, TurnResult } from '../../src/protocol/trace.js';

/** Returns the output of a turn; undefined if it did not complete. */
export function outputOf<O>(result: TurnResult<O>): O | undefined {
  return result.status === 'ok' ? result.output : undefined;
}

/** Returns the error of a failed or cancelled turn; undefined for other results. */
export function errorOf(result: TurnResult): ResultError | undefined {
  return result.status === 'error' || result.status === 'cancelled' ? result.error : undefined;
}

/** Returns the pending items of a paused turn; an empty list for other results. */
export function pendingOf(result: TurnResult): readonly PendingItem[] {
  return result.status === 'paused' ? result.pending : [];
}
