import fc from 'fast-check';
import { expect } from 'vitest';
import { codeOf, kernelFixture as kit, run, tick, ticks, within } from '../../spec/support/kernel-probe.js';
import { verifies } from '../../spec/verifies.js';
import { memoryStore } from '../adapters/memory/index.js';
import { seededIds } from '../adapters/system/seeded-ids.js';
import { Session } from '../kernel/session.js';
import type { Scope } from '../protocol/body.js';
import type { RateLimitSpec } from '../protocol/loop.js';
import { crashingStore } from '../testing/crashing-store.js';
import { ManualClock } from '../testing/manual-clock.js';
import { RateLimiter, rateLimitLayer } from './rate-limit.js';

const SPEC: RateLimitSpec = { requests: 2, perMs: 1000 };

/** Starts a run in each of many sessions at once, and tells when and in what order they were performed. */
async function startMany(count: number, layered: boolean): Promise<readonly [session: string, at: number][]> {
  const [clock, limits, store] = [new ManualClock(0), new RateLimiter(), memoryStore()];
  const performed: [string, number][] = [];
  const runs: Promise<unknown>[] = [];
  for (let n = 0; n < count; n++) {
    const layers = layered ? [rateLimitLayer(SPEC, limits, clock)] : [];
    const session = await Session.open(`s${n}`, { store, clock, ids: seededIds(n), layers });
    const perform = (): void => void performed.push([session.name, clock.now()]);
    const effect = { kind: 'model', name: 'a', safety: 'idempotent', input: null, perform } as const;
    runs.push(run(session, (scope) => scope.effect(effect), 't1', 'hold'));
    await ticks();
  }
  while (clock.nextWakeAt !== undefined) await clock.advanceTo(clock.nextWakeAt);
  await Promise.all(runs);
  return performed;
}

verifies('policy.rate', 'sessions together ask a backend more often than it allows, or out of turn', async () => {
  expect(await startMany(5, true)).toEqual([
    ['s0', 0],
    ['s1', 0],
    ['s2', 1000],
    ['s3', 1000],
    ['s4', 2000],
  ]);
  const twin = await startMany(5, false);
  expect(twin.map(([, at]) => at)).toEqual([0, 0, 0, 0, 0]);
});

verifies('policy.rate', 'no window contains more starts than the limit, and the order of arrival is kept', () => {
  const arrival = fc.record({ gap: fc.nat(200), leaves: fc.array(fc.nat(9), { maxLength: 4 }) });
  const arrivals = fc.array(arrival, { minLength: 1, maxLength: 80 });
  fc.assert(
    fc.property(arrivals, fc.integer({ min: 1, max: 7 }), fc.integer({ min: 1, max: 500 }), (all, requests, perMs) => {
      const limits = new RateLimiter();
      const starts: { readonly at: number; giveBack(): void }[] = [];
      let now = 0;
      for (const { gap, leaves } of all) {
        now += gap;
        const place = limits.reserve('a', { requests, perMs }, now);
        if (place !== undefined) starts.push({ at: now + place.delayMs, giveBack: place.release });
        for (const back of leaves) {
          const left = starts.at(-1 - back);
          if (left === undefined || left.at <= now) continue;
          left.giveBack();
          starts.splice(starts.indexOf(left), 1);
        }
      }
      for (const [n, { at }] of starts.entries()) {
        expect(at).toBeGreaterThanOrEqual(starts[n - 1]?.at ?? 0);
        expect(at - (starts[n - requests]?.at ?? -perMs)).toBeGreaterThanOrEqual(perMs);
      }
    }),
    { numRuns: 500 },
  );
});

verifies('policy.rate', 'two names, or two limits, hold each other back', () => {
  const limits = new RateLimiter();
  const one = { requests: 1, perMs: 1000 };
  const delays = ['a', 'b', 'a', 'b'].map((name) => limits.reserve(name, one, 0)?.delayMs);
  expect(delays).toEqual([0, 0, 1000, 1000]);
  expect(limits.reserve('a', { requests: 5, perMs: 10 }, 0)?.delayMs).toBe(0);
});

verifies('time.monotonic', 'a wall clock that is set back or forward changes nothing about a rate limit', async () => {
  const one = { requests: 1, perMs: 1000 };
  for (const jump of [-3_600_000, 3_600_000]) {
    const k = kit();
    const limits = new RateLimiter();
    const session = await k.open({ layers: [rateLimitLayer(one, limits, k.clock)] });
    const ask = (scope: Scope) => scope.effect(k.effect('a', 'idempotent'));
    const running = run(session, async (scope) => [await ask(scope), await ask(scope)], 't1', 'hold');
    await ticks();
    k.clock.setWallClock(k.clock.now() + jump);
    await k.clock.advance(999);
    expect(k.performed).toHaveLength(1);
    await k.clock.advance(1);
    expect(await within(500, running)).toMatchObject({ status: 'ok' });
    k.clock.setWallClock(k.clock.now() + jump);
    expect(limits.reserve('a', one, k.clock.elapsed())?.delayMs).toBe(1000);
  }
});

verifies('policy.rate', 'the line of those who wait grows without end', async () => {
  for (const [kind, code] of [
    ['model', 'BACKEND_FAILED'],
    ['tool', 'TOOL_FAILED'],
  ] as const) {
    const k = kit();
    const limits = new RateLimiter({ waiting: 2 });
    const session = await k.open({ layers: [rateLimitLayer({ requests: 1, perMs: 1000 }, limits, k.clock)] });
    const ask = (scope: Scope) => scope.effect({ ...k.effect('a', 'idempotent'), kind });
    const running = run(session, (scope) => scope.all([ask, ask, ask, ask, ask]), 't1', 'hold');
    await ticks();
    while (k.clock.nextWakeAt !== undefined) await k.clock.advanceTo(k.clock.nextWakeAt);
    const data = { name: 'a', retryable: true };
    expect(await running).toMatchObject({ status: 'error', error: { code, data } });
    expect([k.performed.length, k.clock.now()]).toEqual([3, 3000]);
  }
  const none = new RateLimiter({ waiting: 0 });
  expect(none.reserve('a', SPEC, 0)?.delayMs).toBe(0);
  expect(none.reserve('a', SPEC, 0)?.delayMs).toBe(0);
  expect(none.reserve('a', SPEC, 0)).toBeUndefined();
});

verifies('policy.rate', 'those who were cancelled keep their place in the line', async () => {
  const k = kit();
  const [limits, one] = [new RateLimiter(), { requests: 1, perMs: 1000 }];
  const session = await k.open({ layers: [rateLimitLayer(one, limits, k.clock)] });
  const ask = (scope: Scope) => scope.effect(k.effect('a', 'idempotent'));
  const running = run(session, (scope) => scope.all([ask, ask, ask, ask]), 't1', 'hold');
  await ticks();
  await session.cancel('t1', 'enough');
  expect(await running).toMatchObject({ status: 'error', error: { code: 'CANCELLED' } });
  expect(limits.reserve('a', one, k.clock.elapsed())?.delayMs).toBe(1000);
});

verifies('policy.replay', 'after a crash a run takes a second place under the limit, or waits anew', async () => {
  const one = { requests: 1, perMs: 1000 };
  for (let append = 1; append < 6; append++) {
    for (const when of ['before', 'after'] as const) {
      const k = kit();
      const body = (scope: Scope) => scope.effect(k.effect('a', 'idempotent'));
      /** A process in which so many have asked before. */
      const layersAfter = (asked: number, limits = new RateLimiter()) => {
        for (let n = 0; n < asked; n++) limits.reserve('a', one, k.clock.elapsed());
        return [rateLimitLayer(one, limits, k.clock)];
      };
      const store = crashingStore(k.store, { appendNumber: append, when });
      await codeOf(k.open({ store, layers: layersAfter(1) }).then((session) => run(session, body)));
      await tick();
      const recorded = (await k.types()).some((type) => type.startsWith('rondo.rate.waited'));
      const limits = new RateLimiter();
      const session = await k.open({ layers: layersAfter(2, limits) });
      const place = `${when} append ${append}`;
      expect((await run(session, body)).status, place).toBe('paused');
      expect(limits.reserve('a', one, k.clock.elapsed())?.delayMs, place).toBe(recorded ? 2000 : 3000);
      await k.clock.advance(recorded ? 1000 : 2000);
      expect(await run(session, body), place).toEqual({ status: 'ok', output: 'a done' });
      expect(k.performed, place).toHaveLength(1);
    }
  }
});

verifies('policy.rate', 'a limit out of a definition is none, and switches itself off', async () => {
  const bad = [
    { requests: 0, perMs: 1 },
    { requests: Number.NaN, perMs: 1 },
    { requests: 1, perMs: 0 },
    { requests: 0.5, perMs: 100 },
    { requests: '1' as unknown as number, perMs: 1 },
  ];
  for (const spec of bad) {
    const k = kit();
    const session = await k.open({ layers: [rateLimitLayer(spec, new RateLimiter(), k.clock)] });
    const outcome = await run(session, (scope) => scope.effect(k.effect('a')));
    expect(outcome).toMatchObject({ status: 'error', error: { code: 'DEFINITION_INVALID' } });
    expect(k.performed).toEqual([]);
  }
});

verifies('policy.rate', 'windows of names that are long gone fill the memory, or those in use are forgotten', () => {
  const limits = new RateLimiter();
  const one = { requests: 1, perMs: 1000 };
  limits.reserve('used', one, 0);
  for (let n = 0; n < 5000; n++) limits.reserve(`name ${n}`, one, n);
  limits.reserve('used', one, 5500);
  for (let n = 0; n < 1500; n++) limits.reserve(`other ${n}`, one, 5600);
  const { size } = (limits as unknown as { windows: Map<string, unknown> }).windows;
  expect(size).toBeLessThan(3000);
  expect(limits.reserve('used', one, 5600)?.delayMs).toBe(900);
});
