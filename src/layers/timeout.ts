/**
 * The timeout and deadline layers: they bound the duration of each attempt and the time at which it must have ended.
 * They wrap `perform`, not the step around it, so a timeout is recorded like any other failure and a replay does not
 * wait again.
 */

import { withSignal } from '../base/effect-context.js';
import { LoopError } from '../base/errors.js';
import type { Clock } from '../journal/clock.js';
import type { Effect, EffectContext } from '../protocol/body.js';
import type { Json } from '../protocol/json.js';
import type { Layer } from '../protocol/session.js';
import { policyNumber } from './policy-number.js';

/**
 * Returns a layer that fails each attempt with TIMEOUT after `timeoutMs`, even if the effect ignores its abort signal.
 */
export function timeoutLayer(timeoutMs: number, clock: Clock): Layer {
  return async (effect, _scope, next) => {
    const ms = policyNumber('timeoutMs', timeoutMs, { min: 1 });
    return next({ ...effect, perform: (input, context) => performWithin(ms, clock, effect, input, context) });
  };
}

/**
 * Returns a layer that fails each attempt with TIMEOUT at the deadline of its agent, a time of the monotonic clock. No
 * attempt starts after the deadline, however long its approval took.
 */
export function deadlineLayer(deadlineAt: number, clock: Clock): Layer {
  return async (effect, _scope, next) => {
    const perform: Effect['perform'] = async (input, context) => {
      const remainingMs = deadlineAt - clock.elapsed();
      if (remainingMs > 0) return performWithin(Math.ceil(remainingMs), clock, effect, input, context);
      throw new LoopError('TIMEOUT', `"${effect.name}" did not start: the deadline of its agent has passed.`);
    };
    return next({ ...effect, perform });
  };
}

/** Performs the effect with a signal that aborts after `ms` milliseconds or with the outer signal. */
async function performWithin(
  ms: number,
  clock: Clock,
  effect: Effect,
  input: Json,
  context: EffectContext,
): Promise<unknown> {
  const { signal: outer } = context;
  const inner = new AbortController();
  const done = new AbortController();
  const forwardAbort = (): void => inner.abort(outer.reason);
  if (outer.aborted) forwardAbort();
  outer.addEventListener('abort', forwardAbort, { once: true });
  const late = clock.sleep(ms, done.signal).then(() => {
    const message = `"${effect.name}" did not end within ${ms} ms.`;
    const error = new LoopError('TIMEOUT', message, { retryable: true, timeoutMs: ms });
    inner.abort(error);
    throw error;
  });
  try {
    // Inside the try: an effect that throws synchronously must stop the timer too.
    return await Promise.race([effect.perform(input, withSignal(context, inner.signal)), late]);
  } finally {
    outer.removeEventListener('abort', forwardAbort);
    late.catch(() => {});
    done.abort();
  }
}
