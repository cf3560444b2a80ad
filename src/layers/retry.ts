/**
 * Repeats what failed in a way that may pass. Everything that decides is recorded: how an attempt failed, the number
 * that was drawn, the delay; so a replay repeats nothing that was done and waits for nothing that has passed.
 */

import { LoopError } from '../base/errors.js';
import { ownProperty } from '../base/own-property.js';
import type { Scope } from '../protocol/body.js';
import type { RetrySpec } from '../protocol/loop.js';
import type { Layer } from '../protocol/session.js';
import { policyNumber } from './policy-number.js';

const DEFAULT_BACKOFF_MS = 200;
const DEFAULT_FACTOR = 2;
const DEFAULT_MAX_BACKOFF_MS = 10_000;
const DEFAULT_JITTER = 0.5;
/** How long a backend may ask for when the policy names no longest delay of its own. */
const DEFAULT_MAX_RETRY_AFTER_MS = 60_000;

/** Repeats failed attempts with growing, partly random delays; an effect that may happen only once is never repeated. */
export function retryLayer(spec: RetrySpec): Layer {
  return async (effect, scope, next) => {
    if (effect.safety === 'once') return next();
    const attempts = policyNumber('retry.attempts', spec.attempts, { min: 1 });
    for (let attempt = 1; ; attempt++) {
      try {
        return await next();
      } catch (thrown) {
        if (attempt >= attempts || !isRetryable(thrown)) throw thrown;
        await backOff(scope, spec, attempt, thrown);
      }
    }
  };
}

function isRetryable(thrown: unknown): thrown is LoopError {
  return thrown instanceof LoopError && (thrown.code === 'TIMEOUT' || ownProperty(thrown.data, 'retryable') === true);
}

async function backOff(scope: Scope, spec: RetrySpec, attempt: number, { code, data }: LoopError): Promise<void> {
  const chance = spec.jitter === 0 ? 0 : await scope.random();
  const delayMs = retryDelayMs(spec, attempt, chance, ownProperty(data, 'retryAfterMs'));
  await scope.record('rondo.retry', () => ({ attempt, code, delayMs }));
  if (delayMs > 0) await scope.sleep(delayMs);
}

/** Whole milliseconds to wait after the given attempt; `chance` is from 0 to 1, `asked` what the backend asked for. */
export function retryDelayMs(spec: RetrySpec, attempt: number, chance: number, asked?: unknown): number {
  const backoff = policyNumber('retry.backoffMs', spec.backoffMs, { min: 0, defaultValue: DEFAULT_BACKOFF_MS });
  const factor = policyNumber('retry.factor', spec.factor, { min: 1, defaultValue: DEFAULT_FACTOR });
  const longest = policyNumber('retry.maxBackoffMs', spec.maxBackoffMs, {
    min: 0,
    defaultValue: DEFAULT_MAX_BACKOFF_MS,
  });
  const jitter = policyNumber('retry.jitter', spec.jitter, { min: 0, max: 1, defaultValue: DEFAULT_JITTER });
  // Nothing times infinity is no number, so a backoff of nothing does not grow at all.
  const grown = backoff === 0 ? 0 : Math.min(backoff * factor ** (attempt - 1), longest);
  const own = Math.round(grown * (1 - jitter * chance));
  if (typeof asked !== 'number' || !(asked > 0)) return own;
  return Math.max(own, Math.ceil(Math.min(asked, spec.maxBackoffMs ?? DEFAULT_MAX_RETRY_AFTER_MS)));
}
