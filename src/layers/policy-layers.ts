/**
 * Maps the policy of an effect and the restrictions of its agents to layers, outermost first: input filter, admission,
 * approval, deadline, output filter, cache, fallback, retry, rate limit, timeout. The budget is reserved for each attempt,
 * inside of the rate limit. The order is deliberate: what is admitted and shown to a person is what runs, a refusal performs
 * nothing, a cache hit calls no backend, every backend gets its own retries, every attempt counts against the rate limit
 * and has its own timeout, and time spent waiting counts against no timeout, only against the deadline of an agent.
 */

import type { Clock } from '../journal/clock.js';
import type { Effect } from '../protocol/body.js';
import type { PolicySpec } from '../protocol/loop.js';
import type { Layer } from '../protocol/session.js';
import { admitLayer } from './admit.js';
import { type ApprovalGate, approvalLayer } from './approval.js';
import { cacheLayer, type ResultCache } from './cache.js';
import { fallbackLayer } from './fallback.js';
import { inputFilterLayer, outputFilterLayer } from './filter.js';
import { fixedInput } from './fixed-input.js';
import { type RateLimiter, rateLimitLayer } from './rate-limit.js';
import { retryLayer } from './retry.js';
import { deadlineLayer, timeoutLayer } from './timeout.js';

/** The clock and the state that all layers of a host share. */
export interface PolicyDeps {
  readonly clock: Clock;
  readonly cache: ResultCache;
  readonly rateLimiter: RateLimiter;
}

const NO_LAYERS: readonly Layer[] = Object.freeze([]);
const EMPTY_POLICY: PolicySpec = {};

/**
 * Returns a function that selects the layers for an effect: those of its own policy and those of the restrictions of
 * its agents. `makeDeps` runs once, when the first effect needs a layer.
 */
export function policyLayers(
  makeDeps: () => PolicyDeps,
  gate: ApprovalGate,
): (effect: Effect, key: string) => readonly Layer[] {
  let deps: PolicyDeps | undefined;
  return (effect, key) => {
    // Own property only: a polluted prototype must not add a policy to every effect.
    const policy = Object.hasOwn(effect, 'policy') ? effect.policy : undefined;
    const rule = gate.ruleFor(effect, key);
    if (policy === undefined && rule === undefined) return NO_LAYERS;
    deps ??= makeDeps();
    const { clock } = deps;
    const layers: Layer[] = [];
    const assertAdmitted = gate.admissionAt(key);
    if (assertAdmitted !== undefined) layers.push(admitLayer(assertAdmitted));
    if (rule !== undefined && rule.policy !== 'always_allow') layers.push(approvalLayer(rule, { gate, clock }));
    if (rule?.deadlineAt !== undefined) layers.push(deadlineLayer(rule.deadlineAt, clock));
    layers.push(...layersForPolicy(policy ?? EMPTY_POLICY, effect, deps));
    return withFixedInput(policy ?? EMPTY_POLICY, layers, clock);
  };
}

/** Returns the layers inside of the filters of the input, none of which changes it any more. */
function withFixedInput(
  { filters: { before } = {}, fallback = [] }: PolicySpec,
  layers: readonly Layer[],
  clock: Clock,
): readonly Layer[] {
  if (layers.length === 0 && before === undefined) return NO_LAYERS;
  const [noteInput, checkInput] = fixedInput(fallback);
  const fixed = [noteInput, ...layers, checkInput];
  return before === undefined ? fixed : [inputFilterLayer(before, clock), ...fixed];
}

/** Returns the layers of a policy inside of its approval. An effect with the safety `once` is neither cached nor retried. */
function layersForPolicy(
  policy: PolicySpec,
  { kind, safety }: Effect,
  { clock, cache, rateLimiter }: PolicyDeps,
): readonly Layer[] {
  const { filters, fallback = [], retry, rateLimit, timeoutMs } = policy;
  const isRepeatable = safety !== 'once';
  const layers: Layer[] = [];
  if (filters?.after !== undefined) layers.push(outputFilterLayer(filters.after, clock));
  if (policy.cache !== undefined && isRepeatable) layers.push(cacheLayer(policy.cache, cache, clock, fallback));
  if (fallback.length > 0 && kind === 'model') layers.push(fallbackLayer(fallback));
  if (retry !== undefined && isRepeatable) layers.push(retryLayer(retry));
  if (rateLimit !== undefined) layers.push(rateLimitLayer(rateLimit, rateLimiter, clock));
  if (timeoutMs !== undefined) layers.push(timeoutLayer(timeoutMs, clock));
  return layers;
}
