// Values at the limits of JSON: hostile, large and unsupported ones.

import { expect } from 'vitest';
import { LoopError } from '../../src/base/errors.js';
import type { Scope } from '../../src/protocol/body.js';
import { crashingStore } from '../../src/testing/crashing-store.js';
import { codeOf, kernelFixture, run, tick, unhandled } from '../support/kernel-probe.js';
import { verifies } from '../verifies.js';

verifies(
  'kernel.replay',
  'a recorded effect that is requested with a value that is not JSON ends with a mismatch',
  async () => {
    const invalidValues: [string, unknown][] = [
      ['bigint', 10n],
      [
        'cycle',
        (() => {
          const c: unknown[] = [];
          c.push(c);
          return c;
        })(),
      ],
      ['nan', Number.NaN],
    ];
    const codes: string[] = [];
    for (const name of ['a', 'b'])
      for (const [description, value] of invalidValues) {
        const fixture = kernelFixture();
        // Crashes after the result of the first effect is durable.
        await codeOf(
          run(await fixture.open({ store: crashingStore(fixture.store, { appendNumber: 2, when: 'after' }) }), (s) =>
            s
              .effect(fixture.effect('a', 'idempotent', () => 1, { n: 1 }))
              .then(() => s.effect(fixture.effect('z', 'idempotent'))),
          ),
        );
        await tick();
        const entryCount = (await fixture.entries()).filter((e) => e.key === 't1/0').length;
        const code = await codeOf(
          run(await fixture.open(), async (s) => {
            await s.effect(fixture.effect(name, 'idempotent', () => 1, { n: value })).catch(() => {});
            await s.effect(fixture.effect('z', 'idempotent'));
            return 'continued';
          }),
        );
        codes.push(`${name} ${description} ${entryCount}: ${code}`);
      }
    expect(codes.filter((c) => !c.endsWith('REPLAY_MISMATCH'))).toEqual([]);
  },
);

verifies(
  'kernel.replay',
  'an ended root that is requested with a value that is not JSON ends with a mismatch',
  async () => {
    const fixture = kernelFixture();
    const session = await fixture.open();
    await session.run('t1', { name: 'm', body: () => 1 }, { n: 1 } as unknown);
    const o = await session.run('t1', { name: 'm', body: () => 1 }, { n: 1n } as unknown).catch((e) => e.code);
    expect(o).toBe('REPLAY_MISMATCH');
  },
);

verifies('kernel.value', 'large values of every step survive a crash at every append', async () => {
  const big = (n: string) => n.repeat(9000);
  const body = async (s: Scope, fixture: ReturnType<typeof kernelFixture>) => {
    const a = await s.call({ name: 'c', body: (i: string) => i + big('b') }, big('a'));
    const b = await s.record('r.r', () => big('c'));
    const c = await s.race([
      (r) => r.effect(fixture.effect('e', 'idempotent', () => big('d'), big('i'))),
      (r) => r.wait('never'),
    ]);
    const d = await s.wait('x');
    const e = await s
      .call(
        {
          name: 'f',
          body: () => {
            throw new LoopError('BIG', big('m'), { d: big('d') });
          },
        },
        null,
      )
      .catch((x) => [x.code, x.message.length]);
    const f = await s.all([
      (r) => r.effect(fixture.effect('p', 'pure', () => big('p'))),
      (r) => r.effect(fixture.effect('o', 'keyed', () => big('o'))),
    ]);
    return [a, b, c, d, e, f].map((v) => JSON.stringify(v).length);
  };
  const drive = async (fixture: ReturnType<typeof kernelFixture>, store: Parameters<typeof kernelFixture>[0]) => {
    const session = await fixture.open({ store: store as never });
    let o = await run(session, (s) => body(s, fixture));
    if (o.status === 'paused') {
      await session.signal({ id: '1', name: 'x', value: big('s') });
      o = await run(session, (s) => body(s, fixture));
    }
    return o;
  };
  const undisturbed = kernelFixture();
  const counting = crashingStore(undisturbed.store);
  const expected = await drive(undisturbed, counting);
  expect(expected.status).toBe('ok');
  for (let append = 1; append <= counting.appendCount; append++)
    for (const when of ['before', 'after'] as const) {
      const fixture = kernelFixture();
      await codeOf(drive(fixture, crashingStore(fixture.store, { appendNumber: append, when })));
      await tick();
      expect(await drive(fixture, fixture.store), `${append} ${when}`).toEqual(expected);
    }
});

verifies(
  'kernel.value',
  'hostile values are refused or stored, and never crash the session',
  async () => {
    const deep = (n: number) => {
      let v: unknown = 1;
      for (let i = 0; i < n; i++) v = [v];
      return v;
    };
    const sparse: unknown[] = [];
    sparse[5] = 1;
    const cases: [string, unknown, boolean][] = [
      ['depth 255', deep(255), true],
      ['depth 256', deep(256), false],
      ['sparse', sparse, false],
      ['huge sparse', new Array(4e9), false],
      [
        'throwing getter',
        {
          get a() {
            throw new Error('no');
          },
        },
        false,
      ],
      ['proxy', new Proxy({ a: 1 }, {}), true],
      [
        'proxy throws',
        new Proxy(
          {},
          {
            ownKeys() {
              throw new Error('p');
            },
          },
        ),
        false,
      ],
      ['proxy endless', new Proxy([], { get: (_t, p) => (p === 'length' ? Infinity : 'x'.repeat(1000)) }), false],
      [
        'revoked',
        (() => {
          const { proxy, revoke } = Proxy.revocable({}, {});
          revoke();
          return proxy;
        })(),
        false,
      ],
      ['symbol key', { [Symbol('x')]: 1, a: 1 }, true],
      ['lone surrogate', '\ud800', true],
      ['lone surrogate key', { '\udfff': 1 }, true],
      ['toJSON', { toJSON: () => 1 }, false],
      ['frozen', Object.freeze({ a: Object.freeze([1]) }), true],
      ['null proto', Object.assign(Object.create(null), { a: 1 }), true],
      [
        'constructor',
        { constructor: 1, prototype: 2, toString: 3, hasOwnProperty: 4, length: 5, then: 6, value: 7, blob: 8 },
        true,
      ],
      ['string 65MiB', 's'.repeat(65 * 1024 * 1024), false],
      ['boxed', Object(1), false],
      ['date', new Date(), false],
      ['uint8', new Uint8Array(3), false],
    ];
    for (const [name, value, isValid] of cases) {
      const fixture = kernelFixture();
      const o = await run(await fixture.open(), async () => ({ value }));
      const code = o.status === 'error' ? o.error.code : o.status;
      if (isValid) {
        expect(o.status, name).toBe('ok');
        const again = await run(await fixture.open(), () => 0);
        expect(JSON.stringify(again), name).toBe(JSON.stringify({ status: 'ok', output: { value } }));
      } else expect(['VALUE_INVALID', 'EXECUTION_FAILED'], `${name} ${code}`).toContain(code);
    }
    expect(unhandled).toEqual([]);
  },
  60_000,
);

verifies('kernel.value', 'a signal or cancel with a value that is not JSON leaves the session usable', async () => {
  const fixture = kernelFixture();
  const session = await fixture.open();
  const running = run(session, (s) => s.wait('x'), 't1');
  await running;
  expect(await codeOf(session.signal({ id: 'a', name: 'x', value: 10n }))).toBe('VALUE_INVALID');
  expect(await codeOf(session.signal({ id: 'a', name: 'x', value: 1 }))).toBe('nothing');
  expect(await codeOf(session.cancel('t1', 10n as never))).not.toBe('STORE_FAILED');
  expect(await codeOf(session.signal({ id: 'b', name: 'x', value: 1 }))).toBe('nothing');
});

verifies('kernel.value', 'an effect name that is not a string leaves the session usable', async () => {
  const fixture = kernelFixture();
  const session = await fixture.open();
  const o = await codeOf(
    run(session, (s) =>
      s.effect({ kind: 'x', name: 10n as never, safety: 'once', input: null, perform: () => 1 }).catch(() => 'caught'),
    ),
  );
  expect(o).toBe('nothing');
  expect(await codeOf(session.signal({ id: 'b', name: 'x', value: 1 }))).toBe('nothing');
});

verifies('kernel.value', 'a thenable is awaited, and settles once', async () => {
  const fixture = kernelFixture();
  const session = await fixture.open();
  expect(await run(session, () => ({ then: (r: (v: number) => void) => r(5) }))).toEqual({ status: 'ok', output: 5 });
  const again = await fixture.open();
  expect(
    await run(
      again,
      (s) =>
        s.effect(
          fixture.effect('e', 'pure', (() => ({
            then: (r: (v: number) => void) => {
              r(1);
              r(2);
              throw new Error('x');
            },
          })) as never),
        ),
      't2',
    ),
  ).toEqual({ status: 'ok', output: 1 });
});
