import { expect } from 'vitest';
import { codeOf, type KernelFixture as Kit, kernelFixture as kit, run, tick } from '../../spec/support/kernel-probe.js';
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

const roomy = (): ResultCache => memoryCache({ entries: 100, bytes: 100_000 });

interface Asked {
  readonly input?: unknown;
  readonly answer?: unknown;
  readonly kind?: string;
  readonly safety?: Safety;
  readonly spec?: CacheSpec;
  readonly fallback?: readonly BackendRef[];
}

let asks = 0;

/** Asks once, in a run of its own; what was performed is told by the kit. */
async function ask(k: Kit, cache: ResultCache, asked: Asked = {}): Promise<RunOutcome> {
  const { input = 'q', answer = `answer ${k.performed.length + 1}`, kind = 'tool', spec = {}, fallback } = asked;
  const session = await k.open({ layers: [cacheLayer(spec, cache, k.clock, fallback)] });
  const perform = (): unknown => {
    if (answer instanceof Error) throw answer;
    return answer;
  };
  const effect = { ...k.effect('a', asked.safety ?? 'idempotent', perform, input), kind };
  const outcome = await run(session, (scope) => scope.effect(effect), `ask-${++asks}`);
  await session.close();
  return outcome;
}

const outputOf = (outcome: RunOutcome): unknown => (outcome.status === 'ok' ? outcome.output : outcome);

verifies('policy.cache', 'the same question is asked and paid for again, or another gets its answer', async () => {
  const [k, cache] = [kit(), roomy()];
  expect(outputOf(await ask(k, cache, { input: { a: 1, b: [2, { c: 3, d: 4 }] } }))).toBe('answer 1');
  expect(outputOf(await ask(k, cache, { input: { b: [2, { d: 4, c: 3 }], a: 1 } }))).toBe('answer 1');
  expect(outputOf(await ask(k, cache, { input: { a: 1, b: [{ c: 3, d: 4 }, 2] } }))).toBe('answer 2');
  expect(outputOf(await ask(k, cache, { input: { a: '1', b: [2, { c: 3, d: 4 }] } }))).toBe('answer 3');
  expect(outputOf(await ask(k, cache, { input: '{"a":1}' }))).toBe('answer 4');
  expect(outputOf(await ask(k, cache, { input: { a: 1 } }))).toBe('answer 5');
  expect(k.performed).toHaveLength(5);
});

verifies('policy.cache', 'an answer is given after its time, or for ever because the clock was set back', async () => {
  const [k, cache] = [kit(), roomy()];
  const spec = { ttlMs: 100 };
  await ask(k, cache, { spec });
  await k.clock.advance(99);
  expect(outputOf(await ask(k, cache, { spec }))).toBe('answer 1');
  await k.clock.advance(1);
  expect(outputOf(await ask(k, cache, { spec }))).toBe('answer 2');
  const earlier = kit();
  expect(earlier.clock.now()).toBeLessThan(k.clock.now());
  expect(outputOf(await ask(earlier, cache, { spec, answer: 'fresh' }))).toBe('fresh');
  expect(outputOf(await ask(k, cache, {}))).toBe('answer 2');
});

verifies('policy.cache', 'a failure is kept and returned as if it were an answer', async () => {
  const [k, cache] = [kit(), roomy()];
  const answer = new LoopError('TOOL_FAILED', 'busy');
  expect((await ask(k, cache, { answer })).status).toBe('error');
  expect(outputOf(await ask(k, cache))).toBe('answer 2');
});

verifies('policy.cache', 'an effect that must happen is answered instead', async () => {
  const [k, cache] = [kit(), roomy()];
  for (const safety of ['once', 'once'] as const) await ask(k, cache, { safety });
  expect(k.performed).toHaveLength(2);
  for (const safety of ['keyed', 'keyed', 'pure', 'idempotent'] as const) await ask(k, cache, { safety });
  expect(k.performed).toHaveLength(3);
});

verifies('policy.cache', 'an answer that was cut off is given again and again', async () => {
  for (const [finish, performed] of [
    ['length', 2],
    ['content-filter', 2],
    ['other', 2],
    ['stop', 1],
    ['tool-calls', 1],
  ] as const) {
    const [k, cache] = [kit(), roomy()];
    for (let n = 0; n < 2; n++) await ask(k, cache, { kind: 'model', answer: { text: 'x', finish } });
    expect(k.performed, finish).toHaveLength(performed);
  }
});

verifies('policy.cache', 'a loop gets the answer of a backend that only another loop falls back to', async () => {
  const [k, cache] = [kit(), roomy()];
  await ask(k, cache, { fallback: [{ id: 'weak', model: 'w' }] });
  expect(outputOf(await ask(k, cache, { fallback: [] }))).toBe('answer 2');
  expect(outputOf(await ask(k, cache, { fallback: [{ id: 'weak', model: 'w' }] }))).toBe('answer 1');
});

verifies('policy.cache', 'a cache that fails takes the run with it', async () => {
  const broken = (): never => {
    throw new Error('the cache is gone');
  };
  expect(outputOf(await ask(kit(), { get: broken, put: broken }))).toBe('answer 1');
  expect(outputOf(await ask(kit(), { get: () => undefined, put: broken }))).toBe('answer 1');
  expect(outputOf(await ask(kit(), roomy(), { answer: undefined, spec: { ttlMs: 5 } }))).toBe('answer 1');
});

verifies('policy.cache', 'changing a result does not change the cached one', async () => {
  const cache = roomy();
  const value = { list: [1] };
  cache.put('k', { value, requestedAt: 1 });
  value.list.push(2);
  const got = cache.get('k')?.value as { list: number[] };
  got.list.push(3);
  expect(cache.get('k')).toEqual({ value: { list: [1] }, requestedAt: 1 });
});

/** The layer as it would be without its record. */
const unrecorded = (cache: ResultCache): Layer => {
  return async (effect, _scope, next) => cache.get(String(effect.input))?.value ?? (await next());
};

/** Crashes at every append of a run that reads the cache twice; the second process has another cache. */
async function crashes(first: (k: Kit) => Layer, second: (k: Kit) => Layer): Promise<unknown[]> {
  const ends: unknown[] = [];
  for (let append = 1; append < 7; append++) {
    for (const when of ['before', 'after'] as const) {
      const k = kit();
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
      ends.push({ began: length > 0, end: typeof outcome === 'string' ? outcome : outputOf(outcome as RunOutcome) });
    }
  }
  return ends;
}

verifies('policy.replay', 'the cache is empty, or full, after a crash, and the run takes another way', async () => {
  const full = (k: Kit, answer: string): Layer => {
    const cache: ResultCache = { get: () => ({ value: answer, requestedAt: 0 }), put: () => undefined };
    return cacheLayer({}, cache, k.clock);
  };
  const empty = (k: Kit): Layer => cacheLayer({}, memoryCache({ entries: 0, bytes: 0 }), k.clock);
  for (const end of (await crashes((k) => full(k, 'kept'), empty)) as { began: boolean; end: string[] }[]) {
    expect(end.end[0]).toBe(end.began ? 'kept' : 'fresh');
  }
  for (const end of (await crashes(empty, (k) => full(k, 'kept'))) as { began: boolean; end: string[] }[]) {
    expect(end.end[0]).toBe(end.began ? 'fresh' : 'kept');
  }
  const filled = memoryCache({ entries: 9, bytes: 999 });
  filled.put('q', { value: 'kept', requestedAt: 0 });
  const twin = await crashes(
    () => unrecorded(roomy()),
    () => unrecorded(filled),
  );
  expect(twin).toContainEqual({ began: true, end: 'REPLAY_MISMATCH' });
});

verifies('policy.cache', 'a run that goes on days later makes an old answer young', async () => {
  const [k, cache] = [kit(), roomy()];
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
  const later = (spec: CacheSpec) => ask(k, cache, { spec, answer: 'new', kind: 'test' });
  expect(outputOf(await later({}))).toBe('old');
  expect(outputOf(await later({ ttlMs: 86_400_000 }))).toBe('new');
  expect(k.performed).toHaveLength(2);
});

verifies('policy.cache', 'an old answer that comes late takes the place of a young one', async () => {
  const [k, cache] = [kit(), roomy()];
  const young = async (): Promise<string> => {
    await k.clock.advance(10);
    await ask(k, cache, { answer: 'young', kind: 'test' });
    return 'old';
  };
  const session = await Session.open('slow', {
    store: k.store,
    clock: k.clock,
    ids: seededIds(9),
    layers: [cacheLayer({}, cache, k.clock)],
  });
  expect(outputOf(await run(session, (scope) => scope.effect(k.effect('a', 'idempotent', young, 'q'))))).toBe('old');
  expect(outputOf(await ask(k, cache, { kind: 'test' }))).toBe('young');
});

verifies('policy.cache', 'the cache grows without end, or forgets what is used most', () => {
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
  const nothing = memoryCache({ entries: Number.NaN, bytes: Number.NaN });
  nothing.put('a', { value: 1, requestedAt: 1 });
  expect(nothing.get('a')).toBeUndefined();
});

verifies('policy.cache', 'after many answers of many sizes the cache holds more than it may', () => {
  const random = seededRandom(7);
  const cache = memoryCache({ entries: 20, bytes: 2000 });
  const keys = Array.from({ length: 60 }, (_, n) => `k${n}`);
  for (let n = 0; n < 2000; n++) {
    const key = keys[Math.floor(random() * keys.length)] ?? '';
    if (random() < 0.3) cache.get(key);
    else cache.put(key, { value: 'ü'.repeat(Math.floor(random() * 200)), requestedAt: n });
  }
  const held = keys.flatMap((key) => cache.get(key) ?? []);
  const bytes = held.reduce((sum, { value }) => sum + Buffer.byteLength(String(value)), 0);
  expect(held.length).toBeGreaterThan(0);
  expect(held.length).toBeLessThanOrEqual(20);
  expect(bytes).toBeLessThanOrEqual(2000);
});
