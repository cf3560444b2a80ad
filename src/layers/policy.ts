/**
 * From a policy to layers, outermost first: approval, deadline, filters, cache, fallback, retry, rate limit, timeout. So a
 * refusal costs nothing, an answer that is kept asks nobody, each backend gets its own retries, each attempt its own
 * place under the limit and its own time, and waiting counts for no timeout.
 */

import type { Clock } from '../journal/clock.js';
import type { Layer } from '../kernel/layer.js';
import type { Effect } from '../protocol/body.js';
import type { PolicySpec } from '../protocol/loop.js';
import { approvalLayer, type Gate } from './approval.js';
import { type AnswerCache, cacheLayer } from './cache.js';
import { fallbackLayer } from './fallback.js';
import { filterLayer } from './filter.js';
import { type RateLimits, rateLimitLayer } from './rate-limit.js';
import { retryLayer } from './retry.js';
import { deadlineLayer, timeoutLayer } from './timeout.js';

/** What the layers of a process share. */
export interface PolicyParts {
  readonly clock: Clock;
  readonly cache: AnswerCache;
  readonly limits: RateLimits;
}

const NONE: readonly Layer[] = Object.freeze([]);
const FREE: PolicySpec = {};

/** Picks the layers for an effect at its place: of its own policy, and of whoever watches over it. With none it pays for none. */
export function policyLayers(make: () => PolicyParts, gate: Gate): (effect: Effect, key: string) => readonly Layer[] {
  let parts: PolicyParts | undefined;
  return (effect, key) => {
    const { policy } = effect;
    const rule = gate.rule(effect, key);
    if (policy === undefined && rule === undefined) return NONE;
    parts ??= make();
    const { clock } = parts;
    const layers: Layer[] = [];
    if (rule !== undefined && rule.policy !== 'always_allow') layers.push(approvalLayer(rule, { gate, clock }));
    if (rule?.deadline !== undefined) layers.push(deadlineLayer(rule.deadline, clock));
    return [...layers, ...layersOf(policy ?? FREE, effect, parts)];
  };
}

function layersOf(
  policy: PolicySpec,
  { kind, safety }: Effect,
  { clock, cache, limits }: PolicyParts,
): readonly Layer[] {
  const { filters, fallback = [], retry, rateLimit, timeoutMs } = policy;
  const repeatable = safety !== 'once';
  const layers: Layer[] = [];
  if (filters !== undefined) layers.push(filterLayer(filters, clock));
  if (policy.cache !== undefined && repeatable) layers.push(cacheLayer(policy.cache, cache, clock, fallback));
  if (fallback.length > 0 && kind === 'model') layers.push(fallbackLayer(fallback));
  if (retry !== undefined && repeatable) layers.push(retryLayer(retry));
  if (rateLimit !== undefined) layers.push(rateLimitLayer(rateLimit, limits, clock));
  if (timeoutMs !== undefined) layers.push(timeoutLayer(timeoutMs, clock));
  return layers;
}
