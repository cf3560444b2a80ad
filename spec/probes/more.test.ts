import { expect, test } from 'vitest';
import type { Scope } from '../../src/kernel/scope.js';
import { codeOf, deferred, kit, run, tick, ticks, within } from './kit.js';

test('X1 a race that is decided still starts the branches of the next lots', async () => {
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

test('X2 after a cancel is answered nothing more is written for the root', async () => {
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

test('X3 opening with a broken option must not fence the writer that works', async () => {
  const k = kit();
  const session = await k.open();
  await run(session, (s) => s.wait('x'));
  const view = { name: 'v', version: 1, initial: 0, apply: (n: number) => n };
  await codeOf(k.open({ views: [view as never, { ...view } as never] }));
  expect(await codeOf(session.signal({ id: '1', name: 'x' }))).toBe('nothing');
});

test('X4 a cancel while the past is read, and a signal, and a close', async () => {
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

test('X5 the clock fails', async () => {
  const k = kit();
  const clock = { now: () => k.clock.now(), sleep: () => Promise.reject(new Error('no timers left')) };
  const session = await k.open({ clock });
  const o = await within(
    300,
    run(session, (s) => s.sleep(10), 't1', 'hold'),
    'a clock that fails leaves the run hanging',
  ).catch((e) => ({ status: e.message }));
  expect(o.status).not.toContain('hanging');
});

test('X6 a clock that goes backwards', async () => {
  const k = kit();
  let skew = 0;
  const clock = { now: () => k.clock.now() + skew, sleep: (u: number, s: AbortSignal) => k.clock.sleep(u - skew, s) };
  const session = await k.open({ clock });
  const running = run(session, (s) => s.sleep(100), 't1', 'hold');
  await ticks(3);
  skew = -5000;
  await k.clock.advance(100);
  expect(await within(500, running)).toMatchObject({ status: 'ok' });
});

test('X7 DEPTH_EXCEEDED caught, then replayed with a larger limit', async () => {
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

test('X9 a retry refused by an invariant live is performed by a replay that finds the rule satisfied', async () => {
  const { crashingStore } = await import('../../src/testing/crashing-journal.js');
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
      await k.open({ store: crashingStore(k.store, { append: 2, when: 'before' }), invariants: [cap as never] }),
      body,
    ),
  );
  await tick();
  strict = true;
  let session = await k.open({ invariants: [cap as never] });
  await run(session, body);
  await session.decide('t1/0', 'retry', 'me');
  await run(session, body);
  const before = k.performed.length;
  session = await k.open({ invariants: [cap as never] });
  await session.signal({ id: '1', name: 'go' });
  const o = await run(session, body).catch((e) => ({ status: e.code }));
  expect({ o, performed: k.performed.length - before }).toEqual({
    o: { status: 'ok', output: 'INVARIANT_VIOLATED' },
    performed: 0,
  });
});

test('X10 a recorded refusal is handed to a step that asks for something else', async () => {
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

test('X11 results that come after their run ended are not kept for ever', async () => {
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
  const landed = (session as unknown as { parts: { landed?: Map<string, unknown> } }).parts.landed;
  expect(landed?.size ?? 0).toBeLessThan(10);
});

test('X12 a paused root asked with an input that is no JSON is not ended by it', async () => {
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

test('X13 an all of 300 branches is cancelled and each branch cleans up', async () => {
  const k = kit();
  const session = await k.open();
  let cleaned = 0;
  const running = run(
    session,
    async (s) =>
      s
        .call(
          {
            name: 'c',
            body: (_: null, c) =>
              c.all(
                Array.from({ length: 300 }, () => async (b: Scope) => {
                  try {
                    await b.wait('x');
                  } catch {
                    await b.now().catch(() => {});
                    cleaned += 1;
                  }
                }),
              ),
          },
          null,
        )
        .catch((e) => e.code),
    't1',
    'hold',
  );
  await ticks(3);
  let o = await Promise.race([running, ticks(5).then(() => undefined)]);
  if (o === undefined || o.status === 'paused') {
    await session.cancel('t1', 'stop');
    o = await within(
      1000,
      run(
        session,
        async (s) =>
          s
            .call(
              {
                name: 'c',
                body: (_: null, c) =>
                  c.all(
                    Array.from({ length: 300 }, () => async (b: Scope) => {
                      try {
                        await b.wait('x');
                      } catch {
                        await b.now().catch(() => {});
                        cleaned += 1;
                      }
                    }),
                  ),
              },
              null,
            )
            .catch((e) => e.code),
        't1',
        'hold',
      ),
    );
  }
  expect(o).toMatchObject({ status: 'error', error: { code: 'CANCELLED' } });
  expect(cleaned).toBe(300);
});
