// Invariants: a refusal is recorded, stays a refusal on replay, and leaves the session consistent.

import { expect } from 'vitest';
import type { View } from '../../src/journal/view.js';
import type { Scope } from '../../src/protocol/body.js';
import { codeOf, duplicates, kernelFixture, run, within } from '../support/kernel-probe.js';
import { verifies } from '../verifies.js';

verifies('kernel.invariant', 'a record that an invariant refused stays refused on replay', async () => {
  const fixture = kernelFixture();
  const coins: View<number> = {
    name: 'coins',
    version: 1,
    initial: 0,
    apply: (n, e) => (e.type === 'coin.spent' ? n + 1 : e.type === 'coin.returned' ? n - 1 : n),
  };
  const cap = {
    view: coins,
    check: (n: number, d: { type: string }) =>
      d.type === 'coin.spent' && n >= 1 ? { rule: 'cap', message: 'one' } : undefined,
  };
  const branches: string[] = [];
  const body = async (s: Scope) => {
    await s.record('coin.spent', () => 1);
    const second = await s
      .record('coin.spent', () => 2)
      .then(
        () => 'A',
        () => 'B',
      );
    branches.push(second);
    await s.record('coin.returned', () => 1);
    await s.wait('go');
    return second;
  };
  const open = () => fixture.open({ invariants: [cap as never] });
  await run(await open(), body);
  const session = await open();
  await session.signal({ id: '1', name: 'go' });
  const o = await run(session, body);
  expect({ branches, o }).toEqual({ branches: ['B', 'B'], o: { status: 'ok', output: 'B' } });
});

verifies('kernel.invariant', 'an effect that an invariant refused is not performed on replay', async () => {
  const fixture = kernelFixture();
  const budget: View<number> = {
    name: 'b',
    version: 1,
    initial: 10,
    apply: (n, e) => (e.type === 'budget.added' ? n + 100 : n),
  };
  const cap = {
    view: budget,
    check: (n: number, d: { type: string; name?: string }) =>
      d.type === 'effect.requested' && d.name === 'expensive' && n < 50 ? { rule: 'cap', message: 'no' } : undefined,
  };
  const body = async (s: Scope) => {
    const r = await s.effect(fixture.effect('expensive', 'once')).catch((e) => e.code);
    await s.record('plan.chosen', () => r as string);
    await s.wait('more');
    await s.record('budget.added', () => 1);
    await s.wait('go');
    return r;
  };
  const open = () => fixture.open({ invariants: [cap as never] });
  let session = await open();
  await run(session, body);
  await session.signal({ id: '1', name: 'more' });
  await run(session, body);
  session = await open();
  await session.signal({ id: '2', name: 'go' });
  const o = await run(session, body);
  expect({ o, performed: fixture.performed }).toEqual({
    o: { status: 'ok', output: 'INVARIANT_VIOLATED' },
    performed: [],
  });
});

verifies('kernel.invariant', 'an invariant that refuses any type of entry leaves the session consistent', async () => {
  for (const type of [
    'call.started',
    'signal.received',
    'effect.requested',
    'effect.opened',
    'timer.set',
    'wait.opened',
    'group.opened',
    'a.b',
    'cancel.requested',
    'effect.resolved',
  ]) {
    const fixture = kernelFixture();
    let isActive = true;
    const v: View<number> = { name: 'v', version: 1, initial: 0, apply: (n) => n + 1 };
    const no = {
      view: v,
      check: (_n: number, d: { type: string; key: string }) =>
        isActive && d.type === type && d.key !== 't1' ? { rule: 'no', message: 'no' } : undefined,
    };
    const layers =
      type === 'effect.opened' ? [async (_e: unknown, _s: unknown, next: () => Promise<unknown>) => next()] : [];
    const session = await fixture.open({ invariants: [no as never], layers: layers as never });
    const body = async (s: Scope) => {
      const out: unknown[] = [];
      const t = (p: Promise<unknown>) =>
        p
          .then(
            () => 'ok',
            (e) => e.code,
          )
          .then((x) => out.push(x));
      await t(s.call({ name: 'c', body: () => 1 }, null));
      await t(s.effect(fixture.effect('e', 'once')));
      await t(s.sleep(0));
      await t(s.all([(a) => a.record('a.b', () => 1), (b) => b.now()]));
      await t(s.race([(a) => a.now(), (b) => b.wait('z')]));
      await t(s.record('a.b', () => 1));
      out.push(await s.now().then(() => 'still'));
      return out;
    };
    const o = await within(1000, run(session, body), type);
    expect(o.status, type).toBe('ok');
    isActive = false;
    const again = await codeOf(session.signal({ id: 'z', name: 'z' }));
    expect(again, type).toBe('nothing');
    expect(duplicates(await fixture.entries())).toEqual([]);
    expect((await fixture.entries()).map((e) => e.seq)).toEqual((await fixture.entries()).map((_, i) => i));
  }
});
