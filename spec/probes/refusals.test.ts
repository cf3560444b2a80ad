// Refusals by a limit, an invariant or a clock, and their replay.

import { expect } from 'vitest';
import type { Scope } from '../../src/protocol/body.js';
import { crashingStore } from '../../src/testing/crashing-store.js';
import { codeOf, kernelFixture, run, tick, ticks, within } from '../support/kernel-probe.js';
import { verifies } from '../verifies.js';

verifies('kernel.fault', 'a clock that fails does not hang the run', async () => {
  const fixture = kernelFixture();
  const sleep = (): Promise<never> => Promise.reject(new Error('no timers left'));
  const clock = { now: () => fixture.clock.now(), elapsed: () => fixture.clock.elapsed(), sleep };
  const session = await fixture.open({ clock });
  const o = await within(
    300,
    run(session, (s) => s.sleep(10), 't1', 'hold'),
    'the run is hanging',
  ).catch((e) => ({ status: e.message }));
  expect(o.status).not.toContain('hanging');
});

verifies('kernel.timer', 'a wall clock that is set back does not stall a sleep', async () => {
  const fixture = kernelFixture();
  const session = await fixture.open();
  const running = run(session, (s) => s.sleep(100), 't1', 'hold');
  await ticks(3);
  fixture.clock.setWallClock(fixture.clock.now() - 5000);
  await fixture.clock.advance(100);
  expect(await within(5000, running)).toMatchObject({ status: 'ok' });
});

verifies('kernel.depth', 'a recorded DEPTH_EXCEEDED is replayed, even with a larger limit', async () => {
  const fixture = kernelFixture();
  const deep = {
    name: 'd',
    body: async (n: number, s: Scope): Promise<unknown> =>
      n === 0 ? 'bottom' : s.call(deep, n - 1).catch((e) => e.code),
  };
  const body = async (s: Scope) => {
    const v = await s.call(deep, 5);
    await s.wait('go');
    return v;
  };
  await run(await fixture.open({ maxDepth: 3 }), body);
  const session = await fixture.open({ maxDepth: 10 });
  await session.signal({ id: '1', name: 'go' });
  expect(await run(session, body)).toEqual({ status: 'ok', output: 'DEPTH_EXCEEDED' });
});

verifies('kernel.invariant', 'a retry that an invariant refused stays refused on replay', async () => {
  const fixture = kernelFixture();
  const budget = {
    name: 'b',
    version: 1,
    initial: 0,
    apply: (n: number, e: { type: string }) => (e.type === 'budget.added' ? n + 1 : n),
  };
  let strict = false;
  const cap = {
    view: budget,
    check: (n: number, d: { type: string }) =>
      strict && d.type === 'effect.requested' && n === 0 ? { rule: 'cap', message: 'no' } : undefined,
  };
  const body = async (s: Scope) => {
    const r = await s.effect(fixture.effect('pay', 'once')).then(
      () => 'paid',
      (e) => e.code,
    );
    await s.record('plan.chosen', () => r as string);
    await s.record('budget.added', () => 1);
    await s.wait('go');
    return r;
  };
  await codeOf(
    run(
      await fixture.open({
        store: crashingStore(fixture.store, { appendNumber: 2, when: 'before' }),
        invariants: [cap as never],
      }),
      body,
    ),
  );
  await tick();
  strict = true;
  let session = await fixture.open({ invariants: [cap as never] });
  await run(session, body);
  await session.resolveEffect('t1/0', 'retry', 'me');
  await run(session, body);
  const before = fixture.performed.length;
  session = await fixture.open({ invariants: [cap as never] });
  await session.signal({ id: '1', name: 'go' });
  const o = await run(session, body).catch((e) => ({ status: e.code }));
  expect({ o, performed: fixture.performed.length - before }).toEqual({
    o: { status: 'ok', output: 'INVARIANT_VIOLATED' },
    performed: 0,
  });
});

verifies('kernel.invariant', 'a recorded refusal is not returned to a different step', async () => {
  const fixture = kernelFixture();
  const v = { name: 'v', version: 1, initial: 0, apply: (n: number) => n };
  const no = {
    view: v,
    check: (_n: number, d: { type: string; name?: string }) =>
      d.type === 'effect.requested' && d.name === 'pay mallory' ? { rule: 'no', message: 'no' } : undefined,
  };
  const body = (name: string) => async (s: Scope) => {
    await s.effect(fixture.effect(name, 'once')).catch(() => {});
    await s.wait('go');
  };
  await run(await fixture.open({ invariants: [no as never] }), body('pay mallory'));
  expect(await codeOf(run(await fixture.open({ invariants: [no as never] }), body('pay alice')))).toBe(
    'REPLAY_MISMATCH',
  );
});

verifies('kernel.replay', 'a request with an input that is not JSON does not end a paused root', async () => {
  const fixture = kernelFixture();
  const session = await fixture.open();
  const loop = { name: 'm', body: (_: unknown, s: Scope) => s.wait('x') };
  await session.run('t1', loop, { n: 1 } as unknown);
  const code = await session.run('t1', loop, { n: 1n } as unknown).then(
    (o) => o.status,
    (e) => e.code,
  );
  await session.signal({ id: '1', name: 'x', value: 5 });
  expect([code, await session.run('t1', loop, { n: 1 } as unknown)]).toEqual([
    'REPLAY_MISMATCH',
    { status: 'ok', output: 5 },
  ]);
});

verifies('kernel.replay', 'a recorded call with an input that is not JSON ends with a mismatch', async () => {
  for (const bad of [10n, Number.NaN]) {
    const fixture = kernelFixture();
    const child = { name: 'c', body: (_: unknown, s: Scope) => s.wait('x') };
    await run(await fixture.open(), (s) => s.call(child, { n: 1 } as unknown));
    expect(
      await codeOf(run(await fixture.open(), (s) => s.call(child, { n: bad } as unknown).catch(() => 'continued'))),
      String(bad),
    ).toBe('REPLAY_MISMATCH');
  }
});
