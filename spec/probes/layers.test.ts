import { expect } from 'vitest';
import type { Effect, Scope } from '../../src/protocol/body.js';
import type { Layer } from '../../src/protocol/session.js';
import { crashingStore } from '../../src/testing/crashing-store.js';
import { codeOf, deferred, duplicates, kit, run, tick, ticks, unhandled, within } from '../support/kernel-probe.js';
import { verifies } from '../verifies.js';

const budget: Layer = async (_e, scope, next) => {
  await scope.record('budget.reserved', () => 1);
  return next();
};

verifies(
  'kernel.layer',
  'L1 layers taken away after a crash: the record of a layer is returned as the result of the effect',
  async () => {
    const k = kit();
    const slow: Layer = async (_e, scope, next) => {
      await scope.record('budget.reserved', () => 1);
      await scope.wait('approve');
      return next();
    };
    const body = (s: Scope) => s.effect(k.effect('pay', 'once'));
    await run(await k.open({ layers: [slow] }), body);
    const outcome = await run(await k.open({ layers: [] }), body).catch((e) => ({ status: e.code }));
    expect({ outcome, performed: k.performed }).not.toEqual({ outcome: { status: 'ok', output: 1 }, performed: [] });
  },
);

verifies(
  'kernel.layer',
  'L2 layers changed: a timer of the old layer is taken for the intent; a once effect is performed without one',
  async () => {
    const k = kit();
    const delay: Layer = async (_e, scope, next) => {
      await scope.sleep(1000);
      return next();
    };
    const body = (s: Scope) => s.effect(k.effect('pay', 'once'));
    await run(await k.open({ layers: [delay] }), body);
    const outcome = await run(await k.open({ layers: [] }), body).catch((e) => ({ status: e.code }));
    const intents = (await k.types()).filter((t) => t.startsWith('effect.requested'));
    expect({ outcome, performed: k.performed.length, intents: intents.length }).toMatchObject({
      outcome: { status: 'REPLAY_MISMATCH' },
      performed: 0,
    });
  },
);

verifies(
  'kernel.layer',
  'L3 a layer that sends another effect inwards on replay gets the recorded answer of the first',
  async () => {
    const k = kit();
    let to = 'alice';
    const route: Layer = async (e, scope, next) => {
      const value = await next({ ...e, input: { to }, name: `pay ${to}` } as Effect);
      await scope.wait('confirm');
      return value;
    };
    const body = (s: Scope) => s.effect(k.effect('pay', 'keyed', (i) => ({ paid: i })));
    await run(await k.open({ layers: [route] }), body);
    to = 'mallory';
    const session = await k.open({ layers: [route] });
    await session.signal({ id: '1', name: 'confirm' });
    expect(await codeOf(run(session, body))).toBe('REPLAY_MISMATCH');
  },
);

verifies('kernel.layer', 'L4 a retry layer repeats a keyed effect under another idempotency key', async () => {
  const k = kit();
  const retry: Layer = async (_e, _s, next) => {
    try {
      return await next();
    } catch {
      return next();
    }
  };
  let n = 0;
  await run(await k.open({ layers: [retry] }), (s) =>
    s.effect(
      k.effect('charge', 'keyed', () => {
        if (n++ === 0) throw new Error('timeout');
        return 'ok';
      }),
    ),
  );
  expect(new Set(k.keys).size).toBe(1);
});

verifies(
  'kernel.layer',
  'L5 a layer changes the value it passes on: the replay gives another value than the live run',
  async () => {
    const k = kit();
    const mark: Layer = async (_e, _s, next) => {
      const v = (await next()) as { seen?: boolean };
      v.seen = true;
      return v;
    };
    const body = async (s: Scope) => {
      const v = await s.effect(k.effect('get', 'pure', () => ({ a: 1 })));
      await s.wait('go');
      return v;
    };
    const s1 = await k.open({ layers: [mark] });
    const running = run(s1, body, 't1', 'hold');
    await running;
    const live: unknown[] = [];
    const k2 = kit();
    const s2 = await k2.open({ layers: [mark] });
    await s2.signal({ id: '1', name: 'go' });
    live.push(await run(s2, body));
    const s3 = await k.open({ layers: [mark] });
    await s3.signal({ id: '1', name: 'go' });
    expect(await run(s3, body)).toEqual(live[0]);
  },
);

verifies('kernel.layer', 'L6 layer returns without waiting for next(): body, journal, strands', async () => {
  const k = kit();
  const eager: Layer = async (_e, _s, next) => {
    void next().catch(() => {});
    return 'early';
  };
  const hang = deferred<string>();
  const s = await k.open({ layers: [eager] });
  const o = await within(
    1000,
    run(s, async (sc) => [await sc.effect(k.effect('slow', 'once', () => hang.promise)), await sc.now()]),
  );
  expect(['ok', 'error']).toContain(o.status);
  hang.resolve('z');
  await s.close();
  expect(duplicates(await k.entries())).toEqual([]);
});

verifies('kernel.layer', 'L7 a layer leaves a wait behind: false pause while the body goes on', async () => {
  const k = kit();
  const leak: Layer = async (_e, scope, _n) => {
    void scope.wait('x').catch(() => {});
    await tick();
    return 'answer';
  };
  const s = await k.open({ layers: [leak] });
  const o = await within(
    1000,
    run(s, async (sc) => {
      const a = await sc.effect(k.effect('e', 'pure'));
      return [a, await sc.now()];
    }),
  );
  // either a refusal of the layer, or the run goes on; but not a pause that waits for something nobody awaits
  expect(o.status).not.toBe('paused');
});

verifies('kernel.layer', 'L8 next() twice concurrently', async () => {
  const k = kit();
  const twice: Layer = async (_e, _s, next) => Promise.all([next(), next().catch((e) => e.code)]);
  const s = await k.open({ layers: [twice] });
  expect(JSON.stringify(await run(s, (sc) => sc.effect(k.effect('e', 'once'))))).toContain('SCOPE_BUSY');
  expect(k.performed.length).toBeLessThan(2);
});

verifies(
  'kernel.layer',
  'L9 crash at every append with retry + budget layers and large values, nested redo',
  async () => {
    const retry: Layer = async (_e, scope, next) => {
      for (let i = 0; ; i++) {
        try {
          return await next();
        } catch (e) {
          if (i === 2) throw e;
          await scope.record('retry.counted', () => i);
        }
      }
    };
    const big = 'v'.repeat(9000);
    for (const [name, layers] of [
      ['retry+budget', [retry, budget]],
      ['budget+retry', [budget, retry]],
    ] as const)
      for (let append = 1; append < 12; append++)
        for (const when of ['before', 'after'] as const) {
          const k = kit();
          let n = 0;
          const body = async (s: Scope) => {
            const v = await s.effect(
              k.effect(
                'flaky',
                'keyed',
                () => {
                  if (n++ === 0) throw new Error('busy');
                  return { big };
                },
                { big },
              ),
            );
            const w = await s.effect(k.effect('pure', 'pure', () => big));
            return [(v as { big: string }).big.length, (w as string).length];
          };
          await codeOf(
            run(await k.open({ store: crashingStore(k.store, { appendNumber: append, when }), layers }), body),
          );
          await tick();
          const o = await run(await k.open({ layers }), body);
          expect(o, `${name} ${append} ${when}`).toEqual({ status: 'ok', output: [9000, 9000] });
          expect(duplicates(await k.entries()), `${name} ${append} ${when}`).toEqual([]);
          const p = k.performed.length;
          expect(await run(await k.open({ layers }), body)).toEqual(o);
          expect(k.performed.length).toBe(p);
        }
  },
);

verifies('kernel.layer', 'L10 layers added after a crash to an effect begun without', async () => {
  const k = kit();
  const body = (s: Scope) => s.effect(k.effect('pay', 'keyed'));
  await codeOf(run(await k.open({ store: crashingStore(k.store, { appendNumber: 2, when: 'before' }) }), body));
  await tick();
  const refuse: Layer = async () => {
    throw new Error('not admitted');
  };
  const o = await run(await k.open({ layers: [refuse] }), body);
  // What was admitted before the crash stays admitted: the layer that came later does not see it.
  expect(o).toEqual({ status: 'ok', output: 'pay done' });
  expect(new Set(k.keys).size).toBe(1);
});

verifies('kernel.layer', 'L11 layer whose steps are not asked for on replay (record dropped)', async () => {
  const k = kit();
  let n = 0;
  const flip: Layer = async (_e, scope, next) => {
    const v = await next();
    if (n++ === 0) {
      await scope.record('a.b', () => 1);
      await scope.wait('x');
    }
    return v;
  };
  const body = (s: Scope) => s.effect(k.effect('e', 'pure'));
  await run(await k.open({ layers: [flip] }), body);
  expect(await codeOf(run(await k.open({ layers: [flip] }), body))).toBe('REPLAY_MISMATCH');
});

verifies('kernel.layer', 'L12 layered effect in a lost branch and cancelled; layer that catches', async () => {
  const k = kit();
  const stubborn: Layer = async (_e, scope, next) => {
    try {
      return await next();
    } catch {
      return scope.record('f.b', () => 'fallback').catch(() => 'plain');
    }
  };
  const hang = deferred<string>();
  const s = await k.open({ layers: [stubborn] });
  const body = (sc: Scope) =>
    sc.race([(a) => a.effect(k.effect('slow', 'once', () => hang.promise)), (b) => b.sleep(0).then(() => 'quick')]);
  expect(await within(1000, run(s, body))).toEqual({ status: 'ok', output: 'quick' });
  hang.resolve('late');
  await ticks(3);
  await s.close();
  const all = await k.entries();
  const won = all.findIndex((e) => e.type === 'race.won');
  const after = all.slice(won + 1).filter((e) => e.key.startsWith('t1/0/0/'));
  expect(after.map((e) => e.type)).toEqual(['effect.returned']);
  expect(unhandled).toEqual([]);
});

verifies(
  'kernel.layer',
  'F9 a layer is asked about the effect: the object it sees is the one that is performed',
  async () => {
    const k = kit();
    const input = { amount: 5 };
    const approve: Layer = async (e, scope, next) => {
      const ok = (e.input as { amount: number }).amount <= 5;
      await scope.sleep(0);
      input.amount = 500;
      (e.input as { amount: number }).amount = 500;
      if (!ok) throw new Error('no');
      return next();
    };
    let got: unknown;
    await run(await k.open({ layers: [approve] }), (s) =>
      s.effect(
        k.effect(
          'pay',
          'once',
          (i) => {
            got = i;
            return null;
          },
          input,
        ),
      ),
    );
    const requested = (await k.entries()).find((e) => e.type === 'effect.requested');
    expect(got).toEqual(requested?.value);
  },
);
