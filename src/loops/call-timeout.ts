/**
 * Bounds a whole call in time. The body races a recorded timer, so the time counts on across restarts, and everything that
 * the body is at when the time is over is cancelled with it: calls, effects, sleeps and waits for people.
 */

import { LoopError } from '../base/errors.js';
import type { Scope } from '../protocol/body.js';

type LoopBody<I, O> = (input: I, scope: Scope) => Promise<O> | O;

/** The body, ended with TIMEOUT after `timeoutMs`; without a timeout, the body itself. */
export function withCallTimeout<I, O>(id: string, timeoutMs: number | undefined, body: LoopBody<I, O>): LoopBody<I, O> {
  if (timeoutMs === undefined) return body;
  const late = async (scope: Scope): Promise<never> => {
    await scope.sleep(timeoutMs);
    throw new LoopError('TIMEOUT', `"${id}" did not end within ${timeoutMs} ms.`, { retryable: true, timeoutMs });
  };
  return (input, scope) => scope.race([(inner) => body(input, inner), late]) as Promise<O>;
}
