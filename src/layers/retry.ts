/**
 * The retry layer: repeats attempts that failed, unless repeating them cannot help (`isRetryableError`). The error of an attempt, the random number and
 * the delay are recorded, so a replay repeats no recorded attempt and waits for no timer that has already fired.
 */

import { backoffMs } from '../base/backoff.js';
import { isRetryableError, LoopError } from '../base/errors.js';
import { ownProperty } from '../base/own-property.js';
import type { Scope } from '../protocol/body.js';
import type { RetrySpec } from '../protocol/loop.js';
import type { Layer } from '../protocol/session.js';
import { policyNumber } from './policy-number.js';

const DEFAULT_BACKOFF_MS = 200;
const DEFAULT_FACTOR = 2;
const DEFAULT_MAX_BACKOFF_MS = 10_000;
const DEFAULT_JITTER = 0.5;
/** Upper bound on the delay that a backend requests, if the policy sets no `maxBackoffMs`. */
const DEFAULT_MAX_RETRY_AFTER_MS = 60_000;

/**
 * Returns a layer that repeats failed attempts with exponential backoff and jitter. An effect with the safety `once` is
 * never repeated.
 */
export function retryLayer(spec: RetrySpec): Layer {
  return async (effect, scope, next) => {
    if (effect.safety === 'once') return next();
    const attempts = policyNumber('retry.attempts', spec.attempts, { min: 1 });
    for (let attempt = 1; ; attempt++) {
      try {
        return await next();
      } catch (thrown) {
        if (attempt >= attempts || !(thrown instanceof LoopError && isRetryableError(thrown))) throw thrown;
        await backOff(scope, spec, attempt, thrown);
      }
    }
  };
}

async function backOff(scope: Scope, spec: RetrySpec, attempt: number, { code, data }: LoopError): Promise<void> {
  const random = spec.jitter === 0 ? 0 : await scope.random();
  const delayMs = retryDelayMs(spec, attempt, random, ownProperty(data, 'retryAfterMs'));
  await scope.record('rondo.retry', () => ({ attempt, code, delayMs }));
  if (delayMs > 0) await scope.sleep(delayMs);
}

/**
 * Returns the delay after a failed attempt, in whole milliseconds. `attempt` counts from 1. `random` is between 0 and
 * 1; `retryAfterMs` is the delay that the backend requested, if any.
 */
export function retryDelayMs(spec: RetrySpec, attempt: number, random: number, retryAfterMs?: unknown): number {
  const backoff = policyNumber('retry.backoffMs', spec.backoffMs, { min: 0, defaultValue: DEFAULT_BACKOFF_MS });
  const factor = policyNumber('retry.factor', spec.factor, { min: 1, defaultValue: DEFAULT_FACTOR });
  const maxBackoff = policyNumber('retry.maxBackoffMs', spec.maxBackoffMs, {
    min: 0,
    defaultValue: DEFAULT_MAX_BACKOFF_MS,
  });
  const jitter = policyNumber('retry.jitter', spec.jitter, { min: 0, max: 1, defaultValue: DEFAULT_JITTER });
  const delayMs = backoffMs({ initialMs: backoff, factor, maxMs: maxBackoff, jitter }, attempt, random);
  if (typeof retryAfterMs !== 'number' || !(retryAfterMs > 0)) return delayMs;
  return Math.max(delayMs, Math.ceil(Math.min(retryAfterMs, spec.maxBackoffMs ?? DEFAULT_MAX_RETRY_AFTER_MS)));
}
