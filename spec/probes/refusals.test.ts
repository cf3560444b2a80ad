/** What is refused, by a limit, a rule or a clock, and stays refused on replay. */

import { expect } from 'vitest';
import type { Scope } from '../../src/protocol/body.js';
import { crashingStore } from '../../src/testing/crashing-store.js';
import { codeOf, kit, run, tick, ticks, within } from '../support/kernel-probe.js';
import { verifies } from '../verifies.js';

verifies('kernel.fault', 'X5 the clock fails', async () => {
  const k = kit();
  const sleep = (): Promise<never> => Promise.reject(new Error('no timers left'));
  const clock = { now: () => k.clock.now(), elapsed: () => k.clock.elapsed(), sleep };
  const session = await k.open({ clock });
  const o = await within(
    300,
    run(session, (s) => s.sleep(10), 't1', 'hold'),
    'a clock that fails leaves the run hanging',
  ).catch((e) => ({ status: e.message }));
  expect(o.status).not.toContain('hanging');
});

verifies('kernel.timer', 'X6 a clock that goes backwards', async () => {
  const k = kit();
  const session = await k.open();
  const running = run(session, (s) => s.sleep(100), 't1', 'hold');
  await ticks(3);
  k.clock.setWallClock(k.clock.now() - 5000);
  await k.clock.advance(100);
  expect(await within(500, running)).toMatchObject({ status: 'ok' });
});

verifies('kernel.depth', 'X7 DEPTH_EXCEEDED caught, then replayed with a larger limit', async () => {
  const k = kit();
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
  await run(await k.open({ maxDepth: 3 }), body);
  const session = await k.open({ maxDepth: 10 });
  await session.signal({ id: '1', name: 'go' });
  expect(await run(session, body)).toEqual({ status: 'ok', output: 'DEPTH_EXCEEDED' });
});

verifies(
  'kernel.invariant',
  'X9 a retry refused by an invariant live is performed by a replay that finds the rule satisfied',
  async () => {
    const k = kit();
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
      const r = await s.effect(k.effect('pay', 'once')).then(
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
        await k.open({
          store: crashingStore(k.store, { appendNumber: 2, when: 'before' }),
          invariants: [cap as never],
        }),
        body,
      ),
    );
    await tick();
    strict = true;
    let session = await k.open({ invariants: [cap as never] });
    await run(session, body);
    await session.resolveEffect('t1/0', 'retry', 'me');
    await run(session, body);
    const before = k.performed.length;
    session = await k.open({ invariants: [cap as never] });
    await session.signal({ id: '1', name: 'go' });
    const o = await run(session, body).catch((e) => ({ status: e.code }));
    expect({ o, performed: k.performed.length - before }).toEqual({
      o: { status: 'ok', output: 'INVARIANT_VIOLATED' },
      performed: 0,
    });
  },
);

verifies('kernel.invariant', 'X10 a recorded refusal is handed to a step that asks for something else', async () => {
  const k = kit();
  const v = { name: 'v', version: 1, initial: 0, apply: (n: number) => n };
  const no = {
    view: v,
    check: (_n: number, d: { type: string; name?: string }) =>
      d.type === 'effect.requested' && d.name === 'pay mallory' ? { rule: 'no', message: 'no' } : undefined,
  };
  const body = (name: string) => async (s: Scope) => {
    await s.effect(k.effect(name, 'once')).catch(() => {});
    await s.wait('go');
  };
  await run(await k.open({ invariants: [no as never] }), body('pay mallory'));
  expect(await codeOf(run(await k.open({ invariants: [no as never] }), body('pay alice')))).toBe('REPLAY_MISMATCH');
});

verifies('kernel.replay', 'X12 a paused root asked with an input that is no JSON is not ended by it', async () => {
  const k = kit();
  const session = await k.open();
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

verifies('kernel.replay', 'F5 a call asked again with an input that is no JSON', async () => {
  for (const bad of [10n, Number.NaN]) {
    const k = kit();
    const child = { name: 'c', body: (_: unknown, s: Scope) => s.wait('x') };
    await run(await k.open(), (s) => s.call(child, { n: 1 } as unknown));
    expect(
      await codeOf(run(await k.open(), (s) => s.call(child, { n: bad } as unknown).catch(() => 'went on'))),
      String(bad),
    ).toBe('REPLAY_MISMATCH');
  }
});
