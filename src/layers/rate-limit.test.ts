import fc from 'fast-check';
import { expect } from 'vitest';
import { codeOf, kernelFixture, run, tick, ticks, within } from '../../spec/support/kernel-probe.js';
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

/** Starts a turn in each of `count` sessions at once. Returns when and in which order their effects were performed. */
async function startMany(count: number, isLimited: boolean): Promise<readonly [session: string, at: number][]> {
  const [clock, limiter, store] = [new ManualClock(0), new RateLimiter(), memoryStore()];
  const performed: [string, number][] = [];
  const runs: Promise<unknown>[] = [];
  for (let n = 0; n < count; n++) {
    const layers = isLimited ? [rateLimitLayer(SPEC, limiter, clock)] : [];
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

verifies('policy.rate', 'all sessions of a process share a rate limit, in the order of arrival', async () => {
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

verifies('policy.rate', 'no window of time contains more starts than the limit, and starts stay in order', () => {
  const arrival = fc.record({ gap: fc.nat(200), released: fc.array(fc.nat(9), { maxLength: 4 }) });
  const arrivals = fc.array(arrival, { minLength: 1, maxLength: 80 });
  fc.assert(
    fc.property(arrivals, fc.integer({ min: 1, max: 7 }), fc.integer({ min: 1, max: 500 }), (all, requests, perMs) => {
      const limiter = new RateLimiter();
      const starts: { readonly at: number; release(): void }[] = [];
      let now = 0;
      for (const { gap, released } of all) {
        now += gap;
        const reservation = limiter.reserve('a', { requests, perMs }, now);
        if (reservation !== undefined) starts.push({ at: now + reservation.delayMs, release: reservation.release });
        for (const offset of released) {
          const start = starts.at(-1 - offset);
          if (start === undefined || start.at <= now) continue;
          start.release();
          starts.splice(starts.indexOf(start), 1);
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

verifies('policy.rate', 'different names and different limits are independent', () => {
  const limiter = new RateLimiter();
  const one = { requests: 1, perMs: 1000 };
  const delays = ['a', 'b', 'a', 'b'].map((name) => limiter.reserve(name, one, 0)?.delayMs);
  expect(delays).toEqual([0, 0, 1000, 1000]);
  expect(limiter.reserve('a', { requests: 5, perMs: 10 }, 0)?.delayMs).toBe(0);
});

verifies('time.monotonic', 'a jump of the wall clock does not affect a rate limit', async () => {
  const one = { requests: 1, perMs: 1000 };
  for (const jump of [-3_600_000, 3_600_000]) {
    const k = kernelFixture();
    const limiter = new RateLimiter();
    const session = await k.open({ layers: [rateLimitLayer(one, limiter, k.clock)] });
    const effect = (scope: Scope) => scope.effect(k.effect('a', 'idempotent'));
    const running = run(session, async (scope) => [await effect(scope), await effect(scope)], 't1', 'hold');
    await ticks();
    k.clock.setWallClock(k.clock.now() + jump);
    await k.clock.advance(999);
    expect(k.performed).toHaveLength(1);
    await k.clock.advance(1);
    expect(await within(500, running)).toMatchObject({ status: 'ok' });
    k.clock.setWallClock(k.clock.now() + jump);
    expect(limiter.reserve('a', one, k.clock.elapsed())?.delayMs).toBe(1000);
  }
});

verifies('policy.rate', 'an effect fails with a retryable error if too many are waiting', async () => {
  for (const [kind, code] of [
    ['model', 'BACKEND_FAILED'],
    ['tool', 'TOOL_FAILED'],
  ] as const) {
    const k = kernelFixture();
    const limiter = new RateLimiter({ maxWaiting: 2 });
    const session = await k.open({ layers: [rateLimitLayer({ requests: 1, perMs: 1000 }, limiter, k.clock)] });
    const effect = (scope: Scope) => scope.effect({ ...k.effect('a', 'idempotent'), kind });
    const running = run(session, (scope) => scope.all([effect, effect, effect, effect, effect]), 't1', 'hold');
    await ticks();
    while (k.clock.nextWakeAt !== undefined) await k.clock.advanceTo(k.clock.nextWakeAt);
    const data = { name: 'a', retryable: true };
    expect(await running).toMatchObject({ status: 'error', error: { code, data } });
    expect([k.performed.length, k.clock.now()]).toEqual([3, 3000]);
  }
  const withoutQueue = new RateLimiter({ maxWaiting: 0 });
  expect(withoutQueue.reserve('a', SPEC, 0)?.delayMs).toBe(0);
  expect(withoutQueue.reserve('a', SPEC, 0)?.delayMs).toBe(0);
  expect(withoutQueue.reserve('a', SPEC, 0)).toBeUndefined();
});

verifies('policy.rate', 'cancelled effects release their reservations', async () => {
  const k = kernelFixture();
  const [limiter, one] = [new RateLimiter(), { requests: 1, perMs: 1000 }];
  const session = await k.open({ layers: [rateLimitLayer(one, limiter, k.clock)] });
  const effect = (scope: Scope) => scope.effect(k.effect('a', 'idempotent'));
  const running = run(session, (scope) => scope.all([effect, effect, effect, effect]), 't1', 'hold');
  await ticks();
  await session.cancel('t1', 'enough');
  expect(await running).toMatchObject({ status: 'error', error: { code: 'CANCELLED' } });
  expect(limiter.reserve('a', one, k.clock.elapsed())?.delayMs).toBe(1000);
});

verifies('policy.replay', 'a turn that resumes after a crash keeps its recorded reservation', async () => {
  const one = { requests: 1, perMs: 1000 };
  for (let append = 1; append < 6; append++) {
    for (const when of ['before', 'after'] as const) {
      const k = kernelFixture();
      const body = (scope: Scope) => scope.effect(k.effect('a', 'idempotent'));
      /** The layers of a process with this many earlier reservations. */
      const layersAfter = (reserved: number, limiter = new RateLimiter()) => {
        for (let n = 0; n < reserved; n++) limiter.reserve('a', one, k.clock.elapsed());
        return [rateLimitLayer(one, limiter, k.clock)];
      };
      const store = crashingStore(k.store, { appendNumber: append, when });
      await codeOf(k.open({ store, layers: layersAfter(1) }).then((session) => run(session, body)));
      await tick();
      const isRecorded = (await k.types()).some((type) => type.startsWith('rondo.rate.waited'));
      const limiter = new RateLimiter();
      const session = await k.open({ layers: layersAfter(2, limiter) });
      const label = `${when} append ${append}`;
      expect((await run(session, body)).status, label).toBe('paused');
      expect(limiter.reserve('a', one, k.clock.elapsed())?.delayMs, label).toBe(isRecorded ? 2000 : 3000);
      await k.clock.advance(isRecorded ? 1000 : 2000);
      expect(await run(session, body), label).toEqual({ status: 'ok', output: 'a done' });
      expect(k.performed, label).toHaveLength(1);
    }
  }
});

verifies('policy.rate', 'an invalid rate limit is DEFINITION_INVALID and never means unlimited', async () => {
  const invalid = [
    { requests: 0, perMs: 1 },
    { requests: Number.NaN, perMs: 1 },
    { requests: 1, perMs: 0 },
    { requests: 0.5, perMs: 100 },
    { requests: '1' as unknown as number, perMs: 1 },
  ];
  for (const spec of invalid) {
    const k = kernelFixture();
    const session = await k.open({ layers: [rateLimitLayer(spec, new RateLimiter(), k.clock)] });
    const outcome = await run(session, (scope) => scope.effect(k.effect('a')));
    expect(outcome).toMatchObject({ status: 'error', error: { code: 'DEFINITION_INVALID' } });
    expect(k.performed).toEqual([]);
  }
});

verifies('policy.rate', 'idle windows are dropped, and windows in use are kept', () => {
  const limiter = new RateLimiter();
  const one = { requests: 1, perMs: 1000 };
  limiter.reserve('used', one, 0);
  for (let n = 0; n < 5000; n++) limiter.reserve(`name ${n}`, one, n);
  limiter.reserve('used', one, 5500);
  for (let n = 0; n < 1500; n++) limiter.reserve(`other ${n}`, one, 5600);
  const { size } = (limiter as unknown as { windows: Map<string, unknown> }).windows;
  expect(size).toBeLessThan(3000);
  expect(limiter.reserve('used', one, 5600)?.delayMs).toBe(900);
});
