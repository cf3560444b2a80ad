/**
 * Answers again what was answered before. Whether the answer was there, and which it was, is one record: a replay takes
 * the same way though the cache is empty by then. What is kept is what came back before any filter touched it.
 */

import { ownProperty } from '../base/own-property.js';
import type { Clock } from '../journal/clock.js';
import { digestOfText } from '../journal/record.js';
import { canonicalJson } from '../json/canonical.js';
import { copyAsJson } from '../json/value.js';
import type { Effect } from '../protocol/body.js';
import type { Json } from '../protocol/json.js';
import type { CacheSpec, PolicySpec } from '../protocol/loop.js';
import type { Layer } from '../protocol/session.js';
import { policyNumber } from './policy-number.js';

/** An answer and when it was asked for, by the monotonic clock of the process. */
export interface CachedResult {
  readonly value: Json;
  readonly requestedAt: number;
}

/** The port to kept answers. It answers at once, and may forget anything at any time. */
export interface ResultCache {
  get(key: string): CachedResult | undefined;
  put(key: string, answer: CachedResult): void;
}

/** How a model's answer ends when it is whole; one that was cut off is not worth keeping. */
const COMPLETE_FINISH_REASONS: ReadonlySet<unknown> = new Set(['stop', 'tool-calls']);

/** Returns a kept answer younger than the policy allows, or keeps the one that comes; `fallback` is part of what is asked. */
export function cacheLayer(
  spec: CacheSpec,
  cache: ResultCache,
  clock: Clock,
  fallback?: PolicySpec['fallback'],
): Layer {
  return async (effect, scope, next) => {
    if (effect.safety === 'once') return next();
    const key = cacheKeyOf(effect, fallback);
    const ttlMs = spec.ttlMs === undefined ? Infinity : policyNumber('cache.ttlMs', spec.ttlMs, { min: 0 });
    let asked: number | undefined;
    const read = await scope.record('rondo.cache.read', (): { [name: string]: Json } => {
      const at = clock.now();
      asked = clock.elapsed();
      const kept = readCache(cache, key);
      const age = kept === undefined ? -1 : asked - kept.requestedAt;
      return kept !== undefined && age >= 0 && age < ttlMs
        ? { key, at, hit: true, value: kept.value }
        : { key, at, hit: false };
    });
    if (read.hit === true) return read.value;
    const value = copyAsJson(await next(), 'the answer');
    const at = asked ?? earlierRequestTime(Number(read.at), clock);
    if (value !== undefined && at !== undefined && isComplete(effect, value))
      writeCache(cache, key, { value, requestedAt: at });
    return value;
  };
}

/**
 * When a question of an earlier attempt was asked. Its age counts from then: a run that goes on days later does not make an
 * old answer young. If the wall clock was set back, the age is not known, and the answer is not kept.
 */
function earlierRequestTime(at: number, clock: Clock): number | undefined {
  const age = clock.now() - at;
  return age >= 0 ? clock.elapsed() - age : undefined;
}

/** The same effect has the same key, whatever the order of its members. Two versions of a tool do not share results. */
function cacheKeyOf({ kind, name, input, definition }: Effect, fallback: PolicySpec['fallback']): string {
  const asked =
    copyAsJson([kind, name, definition ?? null, input ?? null, fallback ?? null], 'what is asked for') ?? null;
  return digestOfText(canonicalJson(asked));
}

function isComplete({ kind }: Effect, value: Json): boolean {
  return kind !== 'model' || COMPLETE_FINISH_REASONS.has(ownProperty(value, 'finish'));
}

/** A cache that fails is one that holds nothing: it never fails a run. */
function readCache(cache: ResultCache, key: string): CachedResult | undefined {
  try {
    return cache.get(key);
  } catch {
    return undefined;
  }
}

function writeCache(cache: ResultCache, key: string, answer: CachedResult): void {
  try {
    const known = cache.get(key);
    if (known === undefined || known.requestedAt <= answer.requestedAt) cache.put(key, answer);
  } catch {
    // The answer is not kept, and is asked for again next time.
  }
}
