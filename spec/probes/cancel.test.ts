// Cancels and races: which branches stop, which effects start, and what remains afterwards.

import { expect } from 'vitest';
import type { Scope } from '../../src/protocol/body.js';
import { codeOf, deferred, kernelFixture, run, tick, ticks, within } from '../support/kernel-probe.js';
import { verifies } from '../verifies.js';

verifies('kernel.race', 'a race that is won starts no further branches', async () => {
  const fixture = kernelFixture();
  const started: number[] = [];
  const session = await fixture.open();
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

verifies('kernel.cancel', 'nothing is written for a root after its cancel is acknowledged', async () => {
  const fixture = kernelFixture();
  const session = await fixture.open();
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
  const all = await fixture.entries();
  const end = all.findIndex((e) => e.key === 't1' && e.type === 'call.errored');
  expect(all.slice(end + 1).map((e) => `${e.type} ${e.key}`)).toEqual([]);
});

verifies(
  'kernel.cancel',
  'a cancel during the load of a run takes effect, and a concurrent signal is accepted',
  async () => {
    for (let offset = 0; offset < 30; offset++) {
      const fixture = kernelFixture();
      const session = await fixture.open();
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
  },
);

verifies('kernel.pressure', 'results that arrive after the end of their run are not retained', async () => {
  const fixture = kernelFixture();
  const session = await fixture.open();
  for (let i = 0; i < 50; i++) {
    const slow = deferred<string>();
    await run(
      session,
      (s) => s.race([(a) => a.effect(fixture.effect('slow', 'pure', () => slow.promise)), (b) => b.sleep(0)]),
      `r${i}`,
    );
    slow.resolve('x'.repeat(100_000));
    await tick();
  }
  const lateResults = (session as unknown as { runDeps: { lateResults?: Map<string, unknown> } }).runDeps.lateResults;
  expect(lateResults?.size ?? 0).toBeLessThan(10);
});

verifies('kernel.cancel', 'every one of 300 cancelled branches can clean up', async () => {
  const fixture = kernelFixture();
  const session = await fixture.open();
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
