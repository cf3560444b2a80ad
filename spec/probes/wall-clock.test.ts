/** The wall clock is set forward and back, in one process and across restarts: nothing stalls, and nothing ends early. */

import { expect } from 'vitest';
import { LoopError } from '../../src/base/errors.js';
import { cacheLayer } from '../../src/layers/cache.js';
import { memoryCache } from '../../src/layers/memory-cache.js';
import { retryLayer } from '../../src/layers/retry.js';
import { timeoutLayer } from '../../src/layers/timeout.js';
import type { Scope } from '../../src/protocol/body.js';
import { ManualClock } from '../../src/testing/manual-clock.js';
import { type Kit, kit, run, ticks, within } from '../support/kernel-probe.js';
import { verifies } from '../verifies.js';

const HOUR = 3_600_000;
const YEAR = 365 * 24 * HOUR;
const JUMPS = [-YEAR, -HOUR, HOUR, YEAR];

const jump = ({ clock }: Kit, ms: number): void => clock.setWallClock(clock.now() + ms);

verifies('time.monotonic', 'a sleep lasts as long as it was to, whatever happens to the wall clock', async () => {
  for (const by of JUMPS) {
    const k = kit();
    const session = await k.open();
    let over = false;
    const running = run(session, (scope) => scope.sleep(10_000), 't1', 'hold').finally(() => {
      over = true;
    });
    await ticks();
    jump(k, by);
    await k.clock.advance(9_999);
    await ticks();
    expect(over, `after ${by} ms`).toBe(false);
    await k.clock.advance(1);
    expect(await within(500, running)).toMatchObject({ status: 'ok' });
  }
});

verifies(
  'time.monotonic',
  'a run that paused and goes on in the same process sleeps by the monotonic clock',
  async () => {
    for (const by of JUMPS) {
      const k = kit();
      const session = await k.open();
      const body = (scope: Scope) => scope.sleep(10_000);
      expect((await run(session, body)).status).toBe('paused');
      jump(k, by);
      await k.clock.advance(9_999);
      expect((await run(session, body)).status, `after ${by} ms`).toBe('paused');
      await k.clock.advance(1);
      expect((await run(session, body)).status, `after ${by} ms`).toBe('ok');
    }
  },
);

/** Sleeps 10 s in one process, which ends after 4 s; then the next one's wall clock shows `by` more. How long it sleeps. */
async function sleepAfterRestart(by: number): Promise<number> {
  const k = kit();
  const body = (scope: Scope) => scope.sleep(10_000);
  await run(await k.open(), body);
  await k.clock.advance(4000);
  const clock = new ManualClock(k.clock.now() + by);
  const running = run(await k.open({ clock }), body, 't1', 'hold');
  await ticks();
  const left = clock.nextWakeAt === undefined ? 0 : clock.nextWakeAt - clock.now();
  await clock.advance(left);
  expect(await within(500, running)).toMatchObject({ status: 'ok' });
  return left;
}

verifies('time.restart', 'after a restart a sleep goes on by the wall clock', async () => {
  expect(await sleepAfterRestart(0)).toBe(6000);
  expect(await sleepAfterRestart(2000)).toBe(4000);
  expect(await sleepAfterRestart(HOUR)).toBe(0);
});

verifies(
  'time.restart',
  'a wall clock that was set back before a restart does not make a sleep longer than it was',
  async () => {
    expect(await sleepAfterRestart(-HOUR)).toBe(10_000);
    expect(await sleepAfterRestart(-YEAR)).toBe(10_000);
  },
);

verifies('time.monotonic', 'a timeout ends an attempt after its time, whatever happens to the wall clock', async () => {
  for (const by of JUMPS) {
    const k = kit();
    const session = await k.open({ layers: [timeoutLayer(500, k.clock)] });
    const hangs = k.effect('slow', 'idempotent', () => new Promise(() => {}));
    let over = false;
    const running = run(session, (scope) => scope.effect(hangs), 't1', 'hold').finally(() => {
      over = true;
    });
    await ticks();
    jump(k, by);
    await k.clock.advance(499);
    await ticks();
    expect(over, `after ${by} ms`).toBe(false);
    await k.clock.advance(1);
    expect(await within(500, running)).toMatchObject({ status: 'error', error: { code: 'TIMEOUT' } });
  }
});

verifies('time.monotonic', 'a retry waits for its delay, whatever happens to the wall clock', async () => {
  for (const by of JUMPS) {
    const k = kit();
    const layers = [retryLayer({ attempts: 2, backoffMs: 1000, jitter: 0 })];
    const fails = k.effect('busy', 'idempotent', () => {
      if (k.performed.length > 1) return 'done';
      throw new LoopError('BACKEND_FAILED', 'busy', { retryable: true });
    });
    const running = run(await k.open({ layers }), (scope) => scope.effect(fails), 't1', 'hold');
    await ticks();
    jump(k, by);
    await k.clock.advance(999);
    await ticks();
    expect(k.performed, `after ${by} ms`).toHaveLength(1);
    await k.clock.advance(1);
    expect(await within(500, running)).toEqual({ status: 'ok', output: 'done' });
  }
});

verifies('time.monotonic', 'a kept answer grows old by the monotonic clock', async () => {
  for (const by of JUMPS) {
    const k = kit();
    const cache = memoryCache({ entries: 10, bytes: 10_000 });
    const session = await k.open({ layers: [cacheLayer({ ttlMs: 1000 }, cache, k.clock)] });
    const asks = (turn: string) => run(session, (scope) => scope.effect(k.effect('a', 'idempotent')), turn);
    await asks('t1');
    jump(k, by);
    await k.clock.advance(999);
    await asks('t2');
    expect(k.performed, `after ${by} ms`).toHaveLength(1);
    await k.clock.advance(1);
    await asks('t3');
    expect(k.performed, `after ${by} ms`).toHaveLength(2);
  }
});

verifies(
  'time.restart',
  'an answer whose age is not known, because the wall clock was set back, is not kept',
  async () => {
    for (const [by, asked] of [
      [-HOUR, 2],
      [0, 1],
    ] as const) {
      const k = kit();
      const cache = memoryCache({ entries: 10, bytes: 10_000 });
      const layersOf = (clock: ManualClock) => [cacheLayer({ ttlMs: HOUR }, cache, clock), retryLayer(ONE_MORE)];
      const ask = (scope: Scope) =>
        scope.effect(k.effect('a', 'idempotent', k.performed.length === 0 ? busy : () => 1));
      expect((await run(await k.open({ layers: layersOf(k.clock) }), ask)).status).toBe('paused');
      const clock = new ManualClock(k.clock.now() + by);
      const session = await k.open({ clock, layers: layersOf(clock) });
      const running = run(session, ask, 't1', 'hold');
      await ticks();
      await clock.advance(1000);
      expect(await within(500, running)).toMatchObject({ status: 'ok' });
      k.performed.splice(0, 1);
      await run(session, ask, 't2');
      expect(k.performed, `after ${by} ms`).toHaveLength(asked);
    }
  },
);

const ONE_MORE = { attempts: 2, backoffMs: 1000, jitter: 0 };
const busy = (): never => {
  throw new LoopError('BACKEND_FAILED', 'busy', { retryable: true });
};

verifies('time.stamps', 'entries are in the order of their times, and their distance is time that passed', async () => {
  const k = kit();
  const session = await k.open();
  const running = run(session, (scope) => scope.sleep(10_000), 't1', 'hold');
  await ticks();
  jump(k, -HOUR);
  await k.clock.advance(10_000);
  await within(500, running);
  const times = (await k.entries()).filter(({ key }) => key.startsWith('t1')).map(({ at }) => at);
  expect(times).toEqual([1000, 1000, 11_000, 11_000]);
});
