import { expect } from 'vitest';
import { codeOf, type KernelFixture, kernelFixture, run, tick } from '../../spec/support/kernel-probe.js';
import { verifies } from '../../spec/verifies.js';
import { seededIds, seededRandom } from '../adapters/system/seeded-ids.js';
import { LoopError } from '../base/errors.js';
import { Session } from '../kernel/session.js';
import type { Scope } from '../protocol/body.js';
import type { Safety } from '../protocol/entry.js';
import type { BackendRef, CacheSpec } from '../protocol/loop.js';
import type { Layer, RunOutcome } from '../protocol/session.js';
import { crashingStore } from '../testing/crashing-store.js';
import { cacheLayer, type ResultCache } from './cache.js';
import { memoryCache } from './memory-cache.js';

const largeCache = (): ResultCache => memoryCache({ entries: 100, bytes: 100_000 });

interface EffectOptions {
  readonly input?: unknown;
  readonly answer?: unknown;
  readonly kind?: string;
  readonly safety?: Safety;
  readonly spec?: CacheSpec;
  readonly fallback?: readonly BackendRef[];
}

let turnCount = 0;

/** Performs an effect under the cache, in a turn of its own. The fixture records whether it was performed. */
async function perform(k: KernelFixture, cache: ResultCache, options: EffectOptions = {}): Promise<RunOutcome> {
  const { input = 'q', answer = `answer ${k.performed.length + 1}`, kind = 'tool', spec = {}, fallback } = options;
  const session = await k.open({ layers: [cacheLayer(spec, cache, k.clock, fallback)] });
  const compute = (): unknown => {
    if (answer instanceof Error) throw answer;
    return answer;
  };
  const effect = { ...k.effect('a', options.safety ?? 'idempotent', compute, input), kind };
  const outcome = await run(session, (scope) => scope.effect(effect), `turn-${++turnCount}`);
  await session.close();
  return outcome;
}

const outputOf = (outcome: RunOutcome): unknown => (outcome.status === 'ok' ? outcome.output : outcome);

verifies(
  'policy.cache',
  'an equal effect is performed once, whatever the order of its members, and a different one is performed again',
  async () => {
    const [k, cache] = [kernelFixture(), largeCache()];
    expect(outputOf(await perform(k, cache, { input: { a: 1, b: [2, { c: 3, d: 4 }] } }))).toBe('answer 1');
    expect(outputOf(await perform(k, cache, { input: { b: [2, { d: 4, c: 3 }], a: 1 } }))).toBe('answer 1');
    expect(outputOf(await perform(k, cache, { input: { a: 1, b: [{ c: 3, d: 4 }, 2] } }))).toBe('answer 2');
    expect(outputOf(await perform(k, cache, { input: { a: '1', b: [2, { c: 3, d: 4 }] } }))).toBe('answer 3');
    expect(outputOf(await perform(k, cache, { input: '{"a":1}' }))).toBe('answer 4');
    expect(outputOf(await perform(k, cache, { input: { a: 1 } }))).toBe('answer 5');
    expect(k.performed).toHaveLength(5);
  },
);

verifies('policy.cache', 'a cached result expires after its TTL, also if the clock was set back', async () => {
  const [k, cache] = [kernelFixture(), largeCache()];
  const spec = { ttlMs: 100 };
  await perform(k, cache, { spec });
  await k.clock.advance(99);
  expect(outputOf(await perform(k, cache, { spec }))).toBe('answer 1');
  await k.clock.advance(1);
  expect(outputOf(await perform(k, cache, { spec }))).toBe('answer 2');
  const earlier = kernelFixture();
  expect(earlier.clock.now()).toBeLessThan(k.clock.now());
  expect(outputOf(await perform(earlier, cache, { spec, answer: 'fresh' }))).toBe('fresh');
  expect(outputOf(await perform(k, cache, {}))).toBe('answer 2');
});

verifies('policy.cache', 'a failure is not cached', async () => {
  const [k, cache] = [kernelFixture(), largeCache()];
  const answer = new LoopError('TOOL_FAILED', 'busy');
  expect((await perform(k, cache, { answer })).status).toBe('error');
  expect(outputOf(await perform(k, cache))).toBe('answer 2');
});

verifies('policy.cache', 'an effect with the safety once is always performed', async () => {
  const [k, cache] = [kernelFixture(), largeCache()];
  for (const safety of ['once', 'once'] as const) await perform(k, cache, { safety });
  expect(k.performed).toHaveLength(2);
  for (const safety of ['keyed', 'keyed', 'pure', 'idempotent'] as const) await perform(k, cache, { safety });
  expect(k.performed).toHaveLength(3);
});

verifies('policy.cache', 'a truncated or filtered reply is not cached', async () => {
  for (const [finish, performed] of [
    ['length', 2],
    ['content-filter', 2],
    ['other', 2],
    ['stop', 1],
    ['tool-calls', 1],
  ] as const) {
    const [k, cache] = [kernelFixture(), largeCache()];
    for (let n = 0; n < 2; n++) await perform(k, cache, { kind: 'model', answer: { text: 'x', finish } });
    expect(k.performed, finish).toHaveLength(performed);
  }
});

verifies('policy.cache', 'loops with different fallbacks do not share cached results', async () => {
  const [k, cache] = [kernelFixture(), largeCache()];
  await perform(k, cache, { fallback: [{ id: 'weak', model: 'w' }] });
  expect(outputOf(await perform(k, cache, { fallback: [] }))).toBe('answer 2');
  expect(outputOf(await perform(k, cache, { fallback: [{ id: 'weak', model: 'w' }] }))).toBe('answer 1');
});

verifies('policy.cache', 'a failing cache does not fail the turn', async () => {
  const broken = (): never => {
    throw new Error('the cache is gone');
  };
  expect(outputOf(await perform(kernelFixture(), { get: broken, put: broken }))).toBe('answer 1');
  expect(outputOf(await perform(kernelFixture(), { get: () => undefined, put: broken }))).toBe('answer 1');
  expect(outputOf(await perform(kernelFixture(), largeCache(), { answer: undefined, spec: { ttlMs: 5 } }))).toBe(
    'answer 1',
  );
});

verifies('policy.cache', 'a change of a value that was put or returned does not change the cached value', async () => {
  const cache = largeCache();
  const value = { list: [1] };
  cache.put('k', { value, requestedAt: 1 });
  value.list.push(2);
  const returned = cache.get('k')?.value as { list: number[] };
  returned.list.push(3);
  expect(cache.get('k')).toEqual({ value: { list: [1] }, requestedAt: 1 });
});

/** A cache layer that does not record its reads. */
const unrecorded = (cache: ResultCache): Layer => {
  return async (effect, _scope, next) => cache.get(String(effect.input))?.value ?? (await next());
};

interface ResumedOutcome {
  /** True if the first process recorded a read of the cache or a request. */
  readonly began: boolean;
  /** The output of the second process, or the code of its error. */
  readonly end: string | string[];
}

/** Crashes at every append of a turn that reads the cache twice. The second process has another cache. */
async function outcomesAfterCrashes(
  first: (k: KernelFixture) => Layer,
  second: (k: KernelFixture) => Layer,
): Promise<ResumedOutcome[]> {
  const outcomes: ResumedOutcome[] = [];
  for (let append = 1; append < 7; append++) {
    for (const when of ['before', 'after'] as const) {
      const k = kernelFixture();
      const body = async (scope: Scope) => {
        const answer = await scope.effect(k.effect('a', 'idempotent', () => 'fresh', 'q'));
        return [answer, await scope.effect(k.effect('b', 'idempotent', () => answer, 'r'))];
      };
      const store = crashingStore(k.store, { appendNumber: append, when });
      await codeOf(k.open({ store, layers: [first(k)] }).then((session) => run(session, body)));
      await tick();
      const { length } = (await k.entries()).filter(({ type }) =>
        /^(rondo\.cache\.read|effect\.requested)$/.test(type),
      );
      const outcome = await k.open({ layers: [second(k)] }).then((session) => run(session, body).catch((e) => e.code));
      outcomes.push({
        began: length > 0,
        end: typeof outcome === 'string' ? outcome : (outputOf(outcome as RunOutcome) as string[]),
      });
    }
  }
  return outcomes;
}

verifies(
  'policy.replay',
  'a replay takes the recorded branch, whatever the cache of the new process contains',
  async () => {
    const full = (k: KernelFixture, answer: string): Layer => {
      const cache: ResultCache = { get: () => ({ value: answer, requestedAt: 0 }), put: () => undefined };
      return cacheLayer({}, cache, k.clock);
    };
    const empty = (k: KernelFixture): Layer => cacheLayer({}, memoryCache({ entries: 0, bytes: 0 }), k.clock);
    for (const { began, end } of await outcomesAfterCrashes((k) => full(k, 'cached'), empty)) {
      expect(end[0]).toBe(began ? 'cached' : 'fresh');
    }
    for (const { began, end } of await outcomesAfterCrashes(empty, (k) => full(k, 'cached'))) {
      expect(end[0]).toBe(began ? 'fresh' : 'cached');
    }
    const filled = memoryCache({ entries: 9, bytes: 999 });
    filled.put('q', { value: 'cached', requestedAt: 0 });
    const twin = await outcomesAfterCrashes(
      () => unrecorded(largeCache()),
      () => unrecorded(filled),
    );
    expect(twin).toContainEqual({ began: true, end: 'REPLAY_MISMATCH' });
  },
);

verifies(
  'policy.cache',
  'the age of a result counts from its request, also if the turn resumes days later',
  async () => {
    const [k, cache] = [kernelFixture(), largeCache()];
    const hold: Layer = async (_effect, scope, next) => {
      const answer = await next();
      await scope.wait('go');
      return answer;
    };
    const body = (scope: Scope) => scope.effect(k.effect('a', 'idempotent', () => 'old', 'q'));
    await run(await k.open({ layers: [cacheLayer({}, cache, k.clock), hold] }), body);
    await k.clock.advance(86_400_000);
    const session = await k.open({ layers: [cacheLayer({}, cache, k.clock), hold] });
    await session.signal({ id: '1', name: 'go' });
    expect(outputOf(await run(session, body))).toBe('old');
    const later = (spec: CacheSpec) => perform(k, cache, { spec, answer: 'new', kind: 'test' });
    expect(outputOf(await later({}))).toBe('old');
    expect(outputOf(await later({ ttlMs: 86_400_000 }))).toBe('new');
    expect(k.performed).toHaveLength(2);
  },
);

verifies('policy.cache', 'a result of an older request does not replace a newer one', async () => {
  const [k, cache] = [kernelFixture(), largeCache()];
  const overtaken = async (): Promise<string> => {
    await k.clock.advance(10);
    await perform(k, cache, { answer: 'newer', kind: 'test' });
    return 'old';
  };
  const session = await Session.open('slow', {
    store: k.store,
    clock: k.clock,
    ids: seededIds(9),
    layers: [cacheLayer({}, cache, k.clock)],
  });
  expect(outputOf(await run(session, (scope) => scope.effect(k.effect('a', 'idempotent', overtaken, 'q'))))).toBe(
    'old',
  );
  expect(outputOf(await perform(k, cache, { kind: 'test' }))).toBe('newer');
});

verifies('policy.cache', 'the cache is bounded and evicts the least recently used result first', () => {
  const cache = memoryCache({ entries: 3, bytes: 10_000 });
  for (const key of ['a', 'b', 'c']) cache.put(key, { value: key, requestedAt: 1 });
  cache.get('a');
  cache.put('d', { value: 'd', requestedAt: 1 });
  expect(['a', 'b', 'c', 'd'].map((key) => cache.get(key)?.value)).toEqual(['a', undefined, 'c', 'd']);
  cache.put('e', { value: 'x'.repeat(10_000), requestedAt: 1 });
  expect(cache.get('e')).toBeUndefined();
  expect(cache.get('a')?.value).toBe('a');
  cache.put('f', { value: 'x'.repeat(9_996), requestedAt: 1 });
  expect(['a', 'c', 'd'].map((key) => cache.get(key))).toEqual([undefined, undefined, undefined]);
  const invalidBounds = memoryCache({ entries: Number.NaN, bytes: Number.NaN });
  invalidBounds.put('a', { value: 1, requestedAt: 1 });
  expect(invalidBounds.get('a')).toBeUndefined();
});

verifies('policy.cache', 'the cache stays within its bounds after many results of different sizes', () => {
  const random = seededRandom(7);
  const cache = memoryCache({ entries: 20, bytes: 2000 });
  const keys = Array.from({ length: 60 }, (_, n) => `k${n}`);
  for (let n = 0; n < 2000; n++) {
    const key = keys[Math.floor(random() * keys.length)] ?? '';
    if (random() < 0.3) cache.get(key);
    else cache.put(key, { value: 'ü'.repeat(Math.floor(random() * 200)), requestedAt: n });
  }
  const cached = keys.flatMap((key) => cache.get(key) ?? []);
  const bytes = cached.reduce((sum, { value }) => sum + Buffer.byteLength(String(value)), 0);
  expect(cached.length).toBeGreaterThan(0);
  expect(cached.length).toBeLessThanOrEqual(20);
  expect(bytes).toBeLessThanOrEqual(2000);
});
