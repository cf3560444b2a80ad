/**
 * Answers again what was answered before. Whether the answer was there, and which it was, is one record: a replay takes
 * the same way though the cache is empty by then. What is kept is what came back before any filter touched it.
 */

import { ownProperty } from '../base/own-property.js';
import type { Clock } from '../journal/clock.js';
import { digest } from '../journal/record.js';
import { canonical } from '../json/canonical.js';
import { snapshot } from '../json/value.js';
import type { Layer } from '../kernel/layer.js';
import type { Effect } from '../protocol/body.js';
import type { Json } from '../protocol/json.js';
import type { CacheSpec, PolicySpec } from '../protocol/loop.js';
import { setting } from './setting.js';

/** An answer and when it was asked for, by the monotonic clock of the process. */
export interface Answer {
  readonly value: Json;
  readonly at: number;
}

/** The port to kept answers. It answers at once, and may forget anything at any time. */
export interface AnswerCache {
  get(key: string): Answer | undefined;
  put(key: string, answer: Answer): void;
}

/** How a model's answer ends when it is whole; one that was cut off is not worth keeping. */
const WHOLE: ReadonlySet<unknown> = new Set(['stop', 'tool-calls']);

/** Returns a kept answer younger than the policy allows, or keeps the one that comes; `fallback` is part of what is asked. */
export function cacheLayer(
  spec: CacheSpec,
  cache: AnswerCache,
  clock: Clock,
  fallback?: PolicySpec['fallback'],
): Layer {
  return async (effect, scope, next) => {
    if (effect.safety === 'once') return next();
    const key = keyOf(effect, fallback);
    const ttlMs = spec.ttlMs === undefined ? Infinity : setting('cache.ttlMs', spec.ttlMs, { least: 0 });
    let asked: number | undefined;
    const read = await scope.record('rondo.cache.read', (): { [name: string]: Json } => {
      const at = clock.now();
      asked = clock.elapsed();
      const kept = find(cache, key);
      const age = kept === undefined ? -1 : asked - kept.at;
      return kept !== undefined && age >= 0 && age < ttlMs
        ? { key, at, hit: true, value: kept.value }
        : { key, at, hit: false };
    });
    if (read.hit === true) return read.value;
    const value = snapshot(await next(), 'the answer');
    const at = asked ?? askedEarlier(Number(read.at), clock);
    if (value !== undefined && at !== undefined && isWhole(effect, value)) keep(cache, key, { value, at });
    return value;
  };
}

/**
 * When a question of an earlier attempt was asked. Its age counts from then: a run that goes on days later does not make an
 * old answer young. If the wall clock was set back, the age is not known, and the answer is not kept.
 */
function askedEarlier(at: number, clock: Clock): number | undefined {
  const age = clock.now() - at;
  return age >= 0 ? clock.elapsed() - age : undefined;
}

/** The same effect has the same key, whatever the order of its members. Two versions of a tool do not share results. */
function keyOf({ kind, name, input, definition }: Effect, fallback: PolicySpec['fallback']): string {
  const asked =
    snapshot([kind, name, definition ?? null, input ?? null, fallback ?? null], 'what is asked for') ?? null;
  return digest(canonical(asked));
}

function isWhole({ kind }: Effect, value: Json): boolean {
  return kind !== 'model' || WHOLE.has(ownProperty(value, 'finish'));
}

/** A cache that fails is one that holds nothing: it never fails a run. */
function find(cache: AnswerCache, key: string): Answer | undefined {
  try {
    return cache.get(key);
  } catch {
    return undefined;
  }
}

function keep(cache: AnswerCache, key: string, answer: Answer): void {
  try {
    const known = cache.get(key);
    if (known === undefined || known.at <= answer.at) cache.put(key, answer);
  } catch {
    // The answer is not kept, and is asked for again next time.
  }
}
