// Sessions: two writers, use after a mismatch or a close, deterministic journals, and repeated cancels.

import { expect } from 'vitest';
import { seededIds } from '../../src/adapters/system/seeded-ids.js';
import { codeOf, deferred, duplicates, kernelFixture, run, ticks } from '../support/kernel-probe.js';
import { verifies } from '../verifies.js';

verifies('kernel.fence', 'the older of two sessions of one name performs nothing further', async () => {
  const fixture = kernelFixture();
  const a = await fixture.open();
  const hang = deferred<string>();
  const running = codeOf(
    run(a, async (s) => {
      await s.effect(fixture.effect('one', 'once', () => hang.promise));
      await s.effect(fixture.effect('two', 'once'));
    }),
  );
  await ticks(3);
  const b = await fixture.open();
  hang.resolve('x');
  expect(await running).toBe('STALE_WRITER');
  expect(fixture.performed).toEqual(['one']);
  expect(
    (
      await run(b, async (s) => {
        await s.effect(fixture.effect('one', 'once'));
      })
    ).status,
  ).toBe('paused');
});

verifies(
  'kernel.replay',
  'a session works after a mismatch, runs a root once at a time, and not after close()',
  async () => {
    const fixture = kernelFixture();
    const session = await fixture.open();
    await run(session, (s) => s.wait('x'));
    expect(await codeOf(run(session, (s) => s.now()))).toBe('REPLAY_MISMATCH');
    const [a, b] = await Promise.all([
      codeOf(run(session, (s) => s.wait('x'))),
      codeOf(run(session, (s) => s.wait('x'))),
    ]);
    expect([a, b]).toEqual(['nothing', 'SESSION_BUSY']);
    await session.signal({ id: '1', name: 'x', value: 3 });
    expect(await run(session, (s) => s.wait('x'))).toEqual({ status: 'ok', output: 3 });
    await session.close();
    expect(await codeOf(run(session, (s) => s.wait('x')))).toBe('SESSION_CLOSED');
  },
);

verifies('kernel.replay', 'the same seed produces the same journal', async () => {
  const journal = async () => {
    const fixture = kernelFixture();
    const session = await fixture.open({ ids: seededIds(7) });
    await run(session, async (s) => [
      await s.random(),
      await s.now(),
      await s.all([
        (a) => a.effect(fixture.effect('x', 'once')),
        (b) => b.call({ name: 'c', body: (_: null, c) => c.random() }, null),
      ]),
    ]);
    return JSON.stringify(await fixture.entries());
  };
  expect(await journal()).toBe(await journal());
});

verifies('kernel.cancel', 'a cancel is recorded once, and is refused for an unknown root', async () => {
  const fixture = kernelFixture();
  const session = await fixture.open();
  expect(await session.cancel('t9', 'x')).toBe(false);
  await run(session, (s) => s.wait('x'));
  expect(await Promise.all([session.cancel('t1', 'a'), session.cancel('t1', 'b')])).toEqual([true, false]);
  expect(duplicates(await fixture.entries())).toEqual([]);
});
