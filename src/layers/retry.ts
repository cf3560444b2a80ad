/**
 * Repeats what failed in a way that may pass. Everything that decides is recorded: how an attempt failed, the number
 * that was drawn, the delay; so a replay repeats nothing that was done and waits for nothing that has passed.
 */

import { LoopError } from '../base/errors.js';
import { ownProperty } from '../base/own-property.js';
import type { Layer } from '../kernel/layer.js';
import type { Scope } from '../protocol/body.js';
import type { RetrySpec } from '../protocol/loop.js';
import { setting } from './setting.js';

const BACKOFF = 200;
const FACTOR = 2;
const LONGEST = 10_000;
const JITTER = 0.5;
/** How long a backend may ask for when the policy names no longest delay of its own. */
const LONGEST_ASKED = 60_000;

/** Repeats failed attempts with growing, partly random delays; an effect that may happen only once is never repeated. */
export function retryLayer(spec: RetrySpec): Layer {
  return async (effect, scope, next) => {
    if (effect.safety === 'once') return next();
    const attempts = setting('retry.attempts', spec.attempts, { least: 1 });
    for (let attempt = 1; ; attempt++) {
      try {
        return await next();
      } catch (thrown) {
        if (attempt >= attempts || !mayPass(thrown)) throw thrown;
        await backOff(scope, spec, attempt, thrown);
      }
    }
  };
}

function mayPass(thrown: unknown): thrown is LoopError {
  return thrown instanceof LoopError && (thrown.code === 'TIMEOUT' || ownProperty(thrown.data, 'retryable') === true);
}

async function backOff(scope: Scope, spec: RetrySpec, attempt: number, { code, data }: LoopError): Promise<void> {
  const chance = spec.jitter === 0 ? 0 : await scope.random();
  const delayMs = delayAfter(spec, attempt, chance, ownProperty(data, 'retryAfterMs'));
  await scope.record('rondo.retry', () => ({ attempt, code, delayMs }));
  if (delayMs > 0) await scope.sleep(delayMs);
}

/** Whole milliseconds to wait after the given attempt; `chance` is from 0 to 1, `asked` what the backend asked for. */
export function delayAfter(spec: RetrySpec, attempt: number, chance: number, asked?: unknown): number {
  const backoff = setting('retry.backoffMs', spec.backoffMs, { least: 0, otherwise: BACKOFF });
  const factor = setting('retry.factor', spec.factor, { least: 1, otherwise: FACTOR });
  const longest = setting('retry.maxBackoffMs', spec.maxBackoffMs, { least: 0, otherwise: LONGEST });
  const jitter = setting('retry.jitter', spec.jitter, { least: 0, most: 1, otherwise: JITTER });
  // Nothing times infinity is no number, so a backoff of nothing does not grow at all.
  const grown = backoff === 0 ? 0 : Math.min(backoff * factor ** (attempt - 1), longest);
  const own = Math.round(grown * (1 - jitter * chance));
  if (typeof asked !== 'number' || !(asked > 0)) return own;
  return Math.max(own, Math.ceil(Math.min(asked, spec.maxBackoffMs ?? LONGEST_ASKED)));
}
