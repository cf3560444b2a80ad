// The wall clock is set forward and back, in one process and across restarts: nothing stalls or ends early.

import { expect } from 'vitest';
import { LoopError } from '../../src/base/errors.js';
import { cacheLayer } from '../../src/layers/cache.js';
import { memoryCache } from '../../src/layers/memory-cache.js';
import { retryLayer } from '../../src/layers/retry.js';
import { timeoutLayer } from '../../src/layers/timeout.js';
import type { Scope } from '../../src/protocol/body.js';
import { ManualClock } from '../../src/testing/manual-clock.js';
import { type KernelFixture, kernelFixture, run, ticks, within } from '../support/kernel-probe.js';
import { verifies } from '../verifies.js';

const HOUR = 3_600_000;
const YEAR = 365 * 24 * HOUR;
const JUMPS = [-YEAR, -HOUR, HOUR, YEAR];

const jump = ({ clock }: KernelFixture, ms: number): void => clock.setWallClock(clock.now() + ms);

verifies('time.monotonic', 'a sleep keeps its duration when the wall clock is set', async () => {
  for (const by of JUMPS) {
    const fixture = kernelFixture();
    const session = await fixture.open();
    let over = false;
    const running = run(session, (scope) => scope.sleep(10_000), 't1', 'hold').finally(() => {
      over = true;
    });
    await ticks();
    jump(fixture, by);
    await fixture.clock.advance(9_999);
    await ticks();
    expect(over, `after ${by} ms`).toBe(false);
    await fixture.clock.advance(1);
    expect(await within(5000, running)).toMatchObject({ status: 'ok' });
  }
});

verifies('time.monotonic', 'a run that pauses and resumes in one process sleeps by the monotonic clock', async () => {
  for (const by of JUMPS) {
    const fixture = kernelFixture();
    const session = await fixture.open();
    const body = (scope: Scope) => scope.sleep(10_000);
    expect((await run(session, body)).status).toBe('paused');
    jump(fixture, by);
    await fixture.clock.advance(9_999);
    expect((await run(session, body)).status, `after ${by} ms`).toBe('paused');
    await fixture.clock.advance(1);
    expect((await run(session, body)).status, `after ${by} ms`).toBe('ok');
  }
});

/** Sleeps 10 s in a process that ends after 4 s. Returns the remaining sleep in a process whose wall clock is `by` ahead. */
async function sleepAfterRestart(by: number): Promise<number> {
  const fixture = kernelFixture();
  const body = (scope: Scope) => scope.sleep(10_000);
  await run(await fixture.open(), body);
  await fixture.clock.advance(4000);
  const clock = new ManualClock(fixture.clock.now() + by);
  const running = run(await fixture.open({ clock }), body, 't1', 'hold');
  await ticks();
  const remainingMs = clock.nextWakeAt === undefined ? 0 : clock.nextWakeAt - clock.now();
  await clock.advance(remainingMs);
  expect(await within(5000, running)).toMatchObject({ status: 'ok' });
  return remainingMs;
}

verifies('time.restart', 'after a restart a sleep ends by the wall clock', async () => {
  expect(await sleepAfterRestart(0)).toBe(6000);
  expect(await sleepAfterRestart(2000)).toBe(4000);
  expect(await sleepAfterRestart(HOUR)).toBe(0);
});

verifies('time.restart', 'a wall clock that is set back before a restart does not prolong a sleep', async () => {
  expect(await sleepAfterRestart(-HOUR)).toBe(10_000);
  expect(await sleepAfterRestart(-YEAR)).toBe(10_000);
});

verifies('time.monotonic', 'a timeout keeps its duration when the wall clock is set', async () => {
  for (const by of JUMPS) {
    const fixture = kernelFixture();
    const session = await fixture.open({ layers: [timeoutLayer(500, fixture.clock)] });
    const hangs = fixture.effect('slow', 'idempotent', () => new Promise(() => {}));
    let over = false;
    const running = run(session, (scope) => scope.effect(hangs), 't1', 'hold').finally(() => {
      over = true;
    });
    await ticks();
    jump(fixture, by);
    await fixture.clock.advance(499);
    await ticks();
    expect(over, `after ${by} ms`).toBe(false);
    await fixture.clock.advance(1);
    expect(await within(5000, running)).toMatchObject({ status: 'error', error: { code: 'TIMEOUT' } });
  }
});

verifies('time.monotonic', 'a retry keeps its delay when the wall clock is set', async () => {
  for (const by of JUMPS) {
    const fixture = kernelFixture();
    const layers = [retryLayer({ attempts: 2, backoffMs: 1000, jitter: 0 })];
    const fails = fixture.effect('busy', 'idempotent', () => {
      if (fixture.performed.length > 1) return 'done';
      throw new LoopError('BACKEND_FAILED', 'busy', { retryable: true });
    });
    const running = run(await fixture.open({ layers }), (scope) => scope.effect(fails), 't1', 'hold');
    await ticks();
    jump(fixture, by);
    await fixture.clock.advance(999);
    await ticks();
    expect(fixture.performed, `after ${by} ms`).toHaveLength(1);
    await fixture.clock.advance(1);
    expect(await within(5000, running)).toEqual({ status: 'ok', output: 'done' });
  }
});

verifies('time.monotonic', 'a cached answer expires by the monotonic clock', async () => {
  for (const by of JUMPS) {
    const fixture = kernelFixture();
    const cache = memoryCache({ entries: 10, bytes: 10_000 });
    const session = await fixture.open({ layers: [cacheLayer({ ttlMs: 1000 }, cache, fixture.clock)] });
    const request = (turn: string) => run(session, (scope) => scope.effect(fixture.effect('a', 'idempotent')), turn);
    await request('t1');
    jump(fixture, by);
    await fixture.clock.advance(999);
    await request('t2');
    expect(fixture.performed, `after ${by} ms`).toHaveLength(1);
    await fixture.clock.advance(1);
    await request('t3');
    expect(fixture.performed, `after ${by} ms`).toHaveLength(2);
  }
});

verifies(
  'time.restart',
  'an answer whose age is unknown because the wall clock was set back is not cached',
  async () => {
    for (const [by, expectedCount] of [
      [-HOUR, 2],
      [0, 1],
    ] as const) {
      const fixture = kernelFixture();
      const cache = memoryCache({ entries: 10, bytes: 10_000 });
      const layersOf = (clock: ManualClock) => [cacheLayer({ ttlMs: HOUR }, cache, clock), retryLayer(ONE_RETRY)];
      const body = (scope: Scope) =>
        scope.effect(fixture.effect('a', 'idempotent', fixture.performed.length === 0 ? busy : () => 1));
      expect((await run(await fixture.open({ layers: layersOf(fixture.clock) }), body)).status).toBe('paused');
      const clock = new ManualClock(fixture.clock.now() + by);
      const session = await fixture.open({ clock, layers: layersOf(clock) });
      const running = run(session, body, 't1', 'hold');
      await ticks();
      await clock.advance(1000);
      expect(await within(5000, running)).toMatchObject({ status: 'ok' });
      fixture.performed.splice(0, 1);
      await run(session, body, 't2');
      expect(fixture.performed, `after ${by} ms`).toHaveLength(expectedCount);
    }
  },
);

const ONE_RETRY = { attempts: 2, backoffMs: 1000, jitter: 0 };
const busy = (): never => {
  throw new LoopError('BACKEND_FAILED', 'busy', { retryable: true });
};

verifies('time.stamps', 'entry times never decrease, and their differences are elapsed time', async () => {
  const fixture = kernelFixture();
  const session = await fixture.open();
  const running = run(session, (scope) => scope.sleep(10_000), 't1', 'hold');
  await ticks();
  jump(fixture, -HOUR);
  await fixture.clock.advance(10_000);
  await within(5000, running);
  const times = (await fixture.entries()).filter(({ key }) => key.startsWith('t1')).map(({ at }) => at);
  expect(times).toEqual([1000, 1000, 11_000, 11_000]);
});
