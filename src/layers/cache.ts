/**
 * The cache layer: returns the stored result of an equal effect. A hit is recorded with its value and a miss as such,
 * so a replay takes the same branch whatever the cache holds. Results are stored before any content filter changes
 * them.
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

/** A stored result of an effect. */
export interface CachedResult {
  readonly value: Json;
  /** When the effect was requested, in milliseconds of the monotonic clock of the process. */
  readonly requestedAt: number;
}

/** The port to cached results. It is synchronous and may evict any entry at any time. */
export interface ResultCache {
  /** Returns the stored result of a key; undefined if there is none. */
  get(key: string): CachedResult | undefined;
  /** Stores the result of a key in place of an earlier one. */
  put(key: string, result: CachedResult): void;
}

/** Finish reasons of a complete model reply. Truncated and filtered replies are not cached. */
const COMPLETE_FINISH_REASONS: ReadonlySet<unknown> = new Set(['stop', 'tool-calls']);

/**
 * Returns a layer that returns a cached result younger than `ttlMs`, or performs the effect and caches its result. It
 * caches neither `once` effects nor incomplete model replies. `fallback` is part of the key.
 */
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
    let requestedAt: number | undefined;
    const read = await scope.record('rondo.cache.read', (): { [name: string]: Json } => {
      const at = clock.now();
      requestedAt = clock.elapsed();
      const cached = readCache(cache, key);
      const age = cached === undefined ? -1 : requestedAt - cached.requestedAt;
      return cached !== undefined && age >= 0 && age < ttlMs
        ? { key, at, hit: true, value: cached.value }
        : { key, at, hit: false };
    });
    if (read.hit === true) return read.value;
    const value = copyAsJson(await next(), 'the answer');
    requestedAt ??= earlierRequestTime(Number(read.at), clock);
    if (value !== undefined && requestedAt !== undefined && isComplete(effect, value))
      writeCache(cache, key, { value, requestedAt });
    return value;
  };
}

/**
 * Converts the recorded wall-clock time of a request to the monotonic clock, for a turn that resumed in another
 * process. The age of the result counts from the original request. Returns undefined if the wall clock was set back,
 * because the age is then unknown.
 */
function earlierRequestTime(at: number, clock: Clock): number | undefined {
  const age = clock.now() - at;
  return age >= 0 ? clock.elapsed() - age : undefined;
}

/**
 * Returns the cache key of an effect. Equal effects have equal keys, whatever the order of their members. Different
 * versions of a tool, and the same version with another source text, have different keys.
 */
function cacheKeyOf({ kind, name, input, definition, source }: Effect, fallback: PolicySpec['fallback']): string {
  const request =
    copyAsJson(
      [kind, name, definition ?? null, source ?? null, input ?? null, fallback ?? null],
      'what is asked for',
    ) ?? null;
  return digestOfText(canonicalJson(request));
}

function isComplete({ kind }: Effect, value: Json): boolean {
  return kind !== 'model' || COMPLETE_FINISH_REASONS.has(ownProperty(value, 'finish'));
}

/** A failing cache counts as empty: it never fails a turn. */
function readCache(cache: ResultCache, key: string): CachedResult | undefined {
  try {
    return cache.get(key);
  } catch {
    return undefined;
  }
}

function writeCache(cache: ResultCache, key: string, result: CachedResult): void {
  try {
    const cached = cache.get(key);
    if (cached === undefined || cached.requestedAt <= result.requestedAt) cache.put(key, result);
  } catch {
    // Without a stored result, the next equal effect is performed.
  }
}
