// Layers that change between runs, violate their contract, or crash in the middle of an effect.

import { expect } from 'vitest';
import type { Effect, Scope } from '../../src/protocol/body.js';
import type { Layer } from '../../src/protocol/session.js';
import { crashingStore } from '../../src/testing/crashing-store.js';
import {
  codeOf,
  deferred,
  duplicates,
  kernelFixture,
  run,
  tick,
  ticks,
  unhandled,
  within,
} from '../support/kernel-probe.js';
import { verifies } from '../verifies.js';

const budget: Layer = async (_e, scope, next) => {
  await scope.record('budget.reserved', () => 1);
  return next();
};

verifies('kernel.layer', 'the record of a removed layer is never returned as the result of its effect', async () => {
  const fixture = kernelFixture();
  const slow: Layer = async (_e, scope, next) => {
    await scope.record('budget.reserved', () => 1);
    await scope.wait('approve');
    return next();
  };
  const body = (s: Scope) => s.effect(fixture.effect('pay', 'once'));
  await run(await fixture.open({ layers: [slow] }), body);
  const outcome = await run(await fixture.open({ layers: [] }), body).catch((e) => ({ status: e.code }));
  expect({ outcome, performed: fixture.performed }).not.toEqual({
    outcome: { status: 'ok', output: 1 },
    performed: [],
  });
});

verifies('kernel.layer', 'a timer of a removed layer is never taken for the intent of the effect', async () => {
  const fixture = kernelFixture();
  const delay: Layer = async (_e, scope, next) => {
    await scope.sleep(1000);
    return next();
  };
  const body = (s: Scope) => s.effect(fixture.effect('pay', 'once'));
  await run(await fixture.open({ layers: [delay] }), body);
  const outcome = await run(await fixture.open({ layers: [] }), body).catch((e) => ({ status: e.code }));
  const intents = (await fixture.types()).filter((t) => t.startsWith('effect.requested'));
  expect({ outcome, performed: fixture.performed.length, intents: intents.length }).toMatchObject({
    outcome: { status: 'REPLAY_MISMATCH' },
    performed: 0,
  });
});

verifies('kernel.layer', 'a layer that passes on another effect on replay ends with a mismatch', async () => {
  const fixture = kernelFixture();
  let to = 'alice';
  const route: Layer = async (e, scope, next) => {
    const value = await next({ ...e, input: { to }, name: `pay ${to}` } as Effect);
    await scope.wait('confirm');
    return value;
  };
  const body = (s: Scope) => s.effect(fixture.effect('pay', 'keyed', (i) => ({ paid: i })));
  await run(await fixture.open({ layers: [route] }), body);
  to = 'mallory';
  const session = await fixture.open({ layers: [route] });
  await session.signal({ id: '1', name: 'confirm' });
  expect(await codeOf(run(session, body))).toBe('REPLAY_MISMATCH');
});

verifies('kernel.layer', 'a retry layer repeats a keyed effect under the same idempotency key', async () => {
  const fixture = kernelFixture();
  const retry: Layer = async (_e, _s, next) => {
    try {
      return await next();
    } catch {
      return next();
    }
  };
  let n = 0;
  await run(await fixture.open({ layers: [retry] }), (s) =>
    s.effect(
      fixture.effect('charge', 'keyed', () => {
        if (n++ === 0) throw new Error('timeout');
        return 'ok';
      }),
    ),
  );
  expect(new Set(fixture.keys).size).toBe(1);
});

verifies('kernel.layer', 'a value that a layer changes is the same live and on replay', async () => {
  const fixture = kernelFixture();
  const mark: Layer = async (_e, _s, next) => {
    const v = (await next()) as { seen?: boolean };
    v.seen = true;
    return v;
  };
  const body = async (s: Scope) => {
    const v = await s.effect(fixture.effect('get', 'pure', () => ({ a: 1 })));
    await s.wait('go');
    return v;
  };
  const s1 = await fixture.open({ layers: [mark] });
  const running = run(s1, body, 't1', 'hold');
  await running;
  const live: unknown[] = [];
  const secondFixture = kernelFixture();
  const s2 = await secondFixture.open({ layers: [mark] });
  await s2.signal({ id: '1', name: 'go' });
  live.push(await run(s2, body));
  const s3 = await fixture.open({ layers: [mark] });
  await s3.signal({ id: '1', name: 'go' });
  expect(await run(s3, body)).toEqual(live[0]);
});

verifies('kernel.layer', 'a layer that does not await next() leaves a consistent journal', async () => {
  const fixture = kernelFixture();
  const eager: Layer = async (_e, _s, next) => {
    void next().catch(() => {});
    return 'early';
  };
  const hang = deferred<string>();
  const s = await fixture.open({ layers: [eager] });
  const o = await within(
    1000,
    run(s, async (sc) => [await sc.effect(fixture.effect('slow', 'once', () => hang.promise)), await sc.now()]),
  );
  expect(['ok', 'error']).toContain(o.status);
  hang.resolve('z');
  await s.close();
  expect(duplicates(await fixture.entries())).toEqual([]);
});

verifies('kernel.layer', 'a wait that a layer does not await never pauses the run', async () => {
  const fixture = kernelFixture();
  const leak: Layer = async (_e, scope, _n) => {
    void scope.wait('x').catch(() => {});
    await tick();
    return 'answer';
  };
  const s = await fixture.open({ layers: [leak] });
  const o = await within(
    1000,
    run(s, async (sc) => {
      const a = await sc.effect(fixture.effect('e', 'pure'));
      return [a, await sc.now()];
    }),
  );
  // The run may refuse the layer or continue, but a pause would wait for a signal that nothing awaits.
  expect(o.status).not.toBe('paused');
});

verifies('kernel.layer', 'concurrent calls of next() perform the effect at most once', async () => {
  const fixture = kernelFixture();
  const twice: Layer = async (_e, _s, next) => Promise.all([next(), next().catch((e) => e.code)]);
  const s = await fixture.open({ layers: [twice] });
  expect(JSON.stringify(await run(s, (sc) => sc.effect(fixture.effect('e', 'once'))))).toContain('SCOPE_BUSY');
  expect(fixture.performed.length).toBeLessThan(2);
});

verifies('kernel.layer', 'nested layers with large values survive a crash at every append', async () => {
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
        const fixture = kernelFixture();
        let n = 0;
        const body = async (s: Scope) => {
          const v = await s.effect(
            fixture.effect(
              'flaky',
              'keyed',
              () => {
                if (n++ === 0) throw new Error('busy');
                return { big };
              },
              { big },
            ),
          );
          const w = await s.effect(fixture.effect('pure', 'pure', () => big));
          return [(v as { big: string }).big.length, (w as string).length];
        };
        await codeOf(
          run(
            await fixture.open({ store: crashingStore(fixture.store, { appendNumber: append, when }), layers }),
            body,
          ),
        );
        await tick();
        const o = await run(await fixture.open({ layers }), body);
        expect(o, `${name} ${append} ${when}`).toEqual({ status: 'ok', output: [9000, 9000] });
        expect(duplicates(await fixture.entries()), `${name} ${append} ${when}`).toEqual([]);
        const p = fixture.performed.length;
        expect(await run(await fixture.open({ layers }), body)).toEqual(o);
        expect(fixture.performed.length).toBe(p);
      }
});

verifies(
  'kernel.layer',
  'an effect that started without layers ends without the layers that were added later',
  async () => {
    const fixture = kernelFixture();
    const body = (s: Scope) => s.effect(fixture.effect('pay', 'keyed'));
    await codeOf(
      run(await fixture.open({ store: crashingStore(fixture.store, { appendNumber: 2, when: 'before' }) }), body),
    );
    await tick();
    const refuse: Layer = async () => {
      throw new Error('not admitted');
    };
    const o = await run(await fixture.open({ layers: [refuse] }), body);
    // The effect was admitted before the crash; a layer that was added later does not apply to it.
    expect(o).toEqual({ status: 'ok', output: 'pay done' });
    expect(new Set(fixture.keys).size).toBe(1);
  },
);

verifies('kernel.layer', 'a layer that skips a recorded step on replay ends with a mismatch', async () => {
  const fixture = kernelFixture();
  let n = 0;
  const flip: Layer = async (_e, scope, next) => {
    const v = await next();
    if (n++ === 0) {
      await scope.record('a.b', () => 1);
      await scope.wait('x');
    }
    return v;
  };
  const body = (s: Scope) => s.effect(fixture.effect('e', 'pure'));
  await run(await fixture.open({ layers: [flip] }), body);
  expect(await codeOf(run(await fixture.open({ layers: [flip] }), body))).toBe('REPLAY_MISMATCH');
});

verifies('kernel.layer', 'a layer that catches the cancel of a lost branch writes nothing afterwards', async () => {
  const fixture = kernelFixture();
  const stubborn: Layer = async (_e, scope, next) => {
    try {
      return await next();
    } catch {
      return scope.record('f.b', () => 'fallback').catch(() => 'plain');
    }
  };
  const hang = deferred<string>();
  const s = await fixture.open({ layers: [stubborn] });
  const body = (sc: Scope) =>
    sc.race([
      (a) => a.effect(fixture.effect('slow', 'once', () => hang.promise)),
      (b) => b.sleep(0).then(() => 'quick'),
    ]);
  expect(await within(1000, run(s, body))).toEqual({ status: 'ok', output: 'quick' });
  hang.resolve('late');
  await ticks(3);
  await s.close();
  const all = await fixture.entries();
  const won = all.findIndex((e) => e.type === 'race.won');
  const after = all.slice(won + 1).filter((e) => e.key.startsWith('t1/0/0/'));
  expect(after.map((e) => e.type)).toEqual(['effect.returned']);
  expect(unhandled).toEqual([]);
});

verifies('kernel.layer', 'an effect is performed with its journaled input, whatever a layer changes', async () => {
  const fixture = kernelFixture();
  const input = { amount: 5 };
  const approve: Layer = async (e, scope, next) => {
    const ok = (e.input as { amount: number }).amount <= 5;
    await scope.sleep(0);
    input.amount = 500;
    (e.input as { amount: number }).amount = 500;
    if (!ok) throw new Error('no');
    return next();
  };
  let performedInput: unknown;
  await run(await fixture.open({ layers: [approve] }), (s) =>
    s.effect(
      fixture.effect(
        'pay',
        'once',
        (i) => {
          performedInput = i;
          return null;
        },
        input,
      ),
    ),
  );
  const requested = (await fixture.entries()).find((e) => e.type === 'effect.requested');
  expect(performedInput).toEqual(requested?.value);
});
