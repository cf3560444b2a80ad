/**
 * Bounds one attempt in time. It wraps what is performed, not the step around it: a late attempt is recorded as failed,
 * like any other failure, and a replay finds it so without waiting again.
 */

import { LoopError } from '../base/errors.js';
import type { Clock } from '../journal/clock.js';
import type { Effect, EffectContext } from '../protocol/body.js';
import type { Json } from '../protocol/json.js';
import type { Layer } from '../protocol/session.js';
import { policyNumber } from './policy-number.js';

/** Ends each attempt with TIMEOUT after `timeoutMs`, whether or not the effect listens to its signal. */
export function timeoutLayer(timeoutMs: number, clock: Clock): Layer {
  return async (effect, _scope, next) => {
    const ms = policyNumber('timeoutMs', timeoutMs, { min: 1 });
    return next({ ...effect, perform: (input, performance) => performWithin(ms, clock, effect, input, performance) });
  };
}

/**
 * Ends what is not done when its agent has to be, by the monotonic clock: nothing begins after that, however long a person
 * took to say yes.
 */
export function deadlineLayer(deadline: number, clock: Clock): Layer {
  return async (effect, _scope, next) => {
    const perform: Effect['perform'] = async (input, performance) => {
      const left = deadline - clock.elapsed();
      if (left > 0) return performWithin(Math.ceil(left), clock, effect, input, performance);
      throw new LoopError('TIMEOUT', `"${effect.name}" did not begin: the deadline of its agent had passed.`);
    };
    return next({ ...effect, perform });
  };
}

async function performWithin(
  ms: number,
  clock: Clock,
  effect: Effect,
  input: Json,
  { idempotencyKey, signal: outer }: EffectContext,
): Promise<unknown> {
  const inner = new AbortController();
  const done = new AbortController();
  const passOn = (): void => inner.abort(outer.reason);
  if (outer.aborted) passOn();
  outer.addEventListener('abort', passOn, { once: true });
  const late = clock.sleep(ms, done.signal).then(() => {
    const message = `"${effect.name}" did not end within ${ms} ms.`;
    const error = new LoopError('TIMEOUT', message, { retryable: true, timeoutMs: ms });
    inner.abort(error);
    throw error;
  });
  try {
    // An effect that throws before its first await must stop the timer too, so it starts inside the try.
    return await Promise.race([effect.perform(input, { idempotencyKey, signal: inner.signal }), late]);
  } finally {
    outer.removeEventListener('abort', passOn);
    late.catch(() => {});
    done.abort();
  }
}
