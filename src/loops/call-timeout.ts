/**
 * Bounds the duration of a whole call. The body races a recorded timer, so the timeout continues across restarts. When
 * it fires, everything that the body is waiting for is cancelled: calls, effects, timers and approvals.
 */

import { LoopError } from '../base/errors.js';
import type { Scope } from '../protocol/body.js';

type LoopBody<I, O> = (input: I, scope: Scope) => Promise<O> | O;

/** Returns a body that fails with TIMEOUT after `timeoutMs`; without a timeout, returns `body` itself. */
export function withCallTimeout<I, O>(id: string, timeoutMs: number | undefined, body: LoopBody<I, O>): LoopBody<I, O> {
  if (timeoutMs === undefined) return body;
  const late = async (scope: Scope): Promise<never> => {
    await scope.sleep(timeoutMs);
    throw new LoopError('TIMEOUT', `"${id}" did not end within ${timeoutMs} ms.`, { retryable: true, timeoutMs });
  };
  return (input, scope) => scope.race([(inner) => body(input, inner), late]) as Promise<O>;
}
