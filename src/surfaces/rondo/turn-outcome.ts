/** Converts the result of a turn to its output, or to the error that a caller of `output` gets. */
import { LoopError } from '../../base/errors.js';
import type { PausedResult, PendingItem, StoppedResult, TurnResult } from '../../protocol/trace.js';

/**
 * Thrown by `output` for a turn that waits. The turn continues after the pending items are settled.
 *
 * @example
 * try {
 *   await rondo.output(support, 'My lamp broke.');
 * } catch (thrown) {
 *   if (thrown instanceof TurnPaused) console.log(thrown.turnId, thrown.pending);
 * }
 */
export class TurnPaused extends Error {
  override readonly name = 'TurnPaused';
  readonly turnId: string;
  readonly sessionId: string;
  /** What the turn waits for. */
  readonly pending: readonly PendingItem[];

  constructor({ turnId, sessionId, pending }: PausedResult) {
    const kinds = [...new Set(pending.map(({ kind }) => PENDING_NAMES[kind]))].join(', ');
    super(`Turn ${turnId} waits for ${kinds}. It continues when that is settled; see "rondo status ${turnId}".`);
    this.turnId = turnId;
    this.sessionId = sessionId;
    this.pending = pending;
  }
}

const PENDING_NAMES: { readonly [kind in PendingItem['kind']]: string } = {
  approval: 'an approval',
  doubt: 'the resolution of an effect in doubt',
  signal: 'a signal',
  timer: 'a point in time',
};

/** Thrown by `output` for a turn that reached a stop condition, such as a limit of its budget. */
export class TurnStopped extends Error {
  override readonly name = 'TurnStopped';
  readonly turnId: string;
  readonly sessionId: string;
  /** Which condition was reached. */
  readonly reason: string;

  constructor({ turnId, sessionId, reason }: StoppedResult) {
    super(`Turn ${turnId} stopped: ${reason}`);
    this.turnId = turnId;
    this.sessionId = sessionId;
    this.reason = reason;
  }
}

/**
 * Returns the output of a completed turn. Throws the LoopError of a failed or cancelled one, TurnPaused for one that
 * waits, and TurnStopped for one that reached a stop condition.
 */
export function outputOf<O>(result: TurnResult<O>): O {
  if (result.status === 'ok') return result.output;
  if (result.status === 'paused') throw new TurnPaused(result);
  if (result.status === 'stopped') throw new TurnStopped(result);
  const { details, ...error } = result.error;
  throw LoopError.fromErrorRecord(details === undefined ? error : { ...error, data: details }, result.error.cause);
}
