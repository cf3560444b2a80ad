/** Cancels and races: what is stopped, what still starts, what is left behind. */

import { expect } from 'vitest';
import type { Scope } from '../../src/protocol/body.js';
import { codeOf, deferred, kit, run, tick, ticks, within } from '../support/kernel-probe.js';
import { verifies } from '../verifies.js';

verifies('kernel.race', 'X1 a race that is decided still starts the branches of the next lots', async () => {
  const k = kit();
  const started: number[] = [];
  const session = await k.open();
  const body = (s: Scope) =>
    s.race(
      Array.from({ length: 400 }, (_, i) => async (b: Scope) => {
        started.push(i);
        if (i === 0) return 'first';
        await b.sleep(1e6);
        return i;
      }),
    );
  expect(await within(1000, run(session, body, 't1', 'hold'))).toEqual({ status: 'ok', output: 'first' });
  await ticks(2);
  expect(started.length).toBeLessThanOrEqual(96);
});

verifies('kernel.cancel', 'X2 after a cancel is answered nothing more is written for the root', async () => {
  const k = kit();
  const session = await k.open();
  const child = (n: number) => ({
    name: `c${n}`,
    body: async (_: null, s: Scope) => {
      try {
        await s.wait('x');
      } catch (e) {
        for (let i = 0; i < n * 10; i++) await undefined;
        throw e;
      }
    },
  });
  const running = run(
    session,
    (s) =>
      s.race([
        (a) => a.call(child(0), null),
        (b) => b.call(child(1), null),
        (c) => c.call(child(3), null),
        (d) => d.sleep(1e6),
      ]),
    't1',
    'hold',
  );
  await ticks(2);
  await session.cancel('t1', 'stop');
  await running;
  await ticks(2);
  await session.close();
  const all = await k.entries();
  const end = all.findIndex((e) => e.key === 't1' && e.type === 'call.errored');
  expect(all.slice(end + 1).map((e) => `${e.type} ${e.key}`)).toEqual([]);
});

verifies('kernel.cancel', 'X4 a cancel while the past is read, and a signal, and a close', async () => {
  for (let offset = 0; offset < 30; offset++) {
    const k = kit();
    const session = await k.open();
    await run(session, (s) => s.wait('x'));
    await session.signal({ id: 'y', name: 'y' });
    const running = run(session, (s) => s.wait('x'));
    for (let i = 0; i < offset; i++) await undefined;
    const [c, g] = await Promise.all([session.cancel('t1', 'stop'), codeOf(session.signal({ id: 'x', name: 'x' }))]);
    expect([c, g]).toEqual([true, 'nothing']);
    let o = await running;
    if (o.status === 'paused') o = await run(session, (s) => s.wait('x'));
    expect(o).toMatchObject({ status: 'error', error: { code: 'CANCELLED' } });
  }
});

verifies('kernel.pressure', 'X11 results that come after their run ended are not kept for ever', async () => {
  const k = kit();
  const session = await k.open();
  for (let i = 0; i < 50; i++) {
    const slow = deferred<string>();
    await run(
      session,
      (s) => s.race([(a) => a.effect(k.effect('slow', 'pure', () => slow.promise)), (b) => b.sleep(0)]),
      `r${i}`,
    );
    slow.resolve('x'.repeat(100_000));
    await tick();
  }
  const landed = (session as unknown as { runDeps: { lateResults?: Map<string, unknown> } }).runDeps.lateResults;
  expect(landed?.size ?? 0).toBeLessThan(10);
});

verifies('kernel.cancel', 'X13 an all of 300 branches is cancelled and a branch does not get to clean up', async () => {
  const k = kit();
  const session = await k.open();
  let cleaned = 0;
  const cleansUp = async (b: Scope): Promise<void> => {
    try {
      await b.wait('x');
    } catch {
      await b.now().catch(() => {});
      cleaned += 1;
    }
  };
  const child = { name: 'c', body: (_: null, c: Scope) => c.all(Array.from({ length: 300 }, () => cleansUp)) };
  const body = (s: Scope) => s.call(child, null).catch((e) => e.code);
  expect((await run(session, body)).status).toBe('paused');
  await session.cancel('t1', 'stop');
  const outcome = await within(1000, run(session, body));
  expect(outcome).toMatchObject({ status: 'error', error: { code: 'CANCELLED' } });
  expect(cleaned).toBe(300);
});
