import { expect } from 'vitest';
import { memoryStore } from '../../src/adapters/memory/index.js';
import { LoopError } from '../../src/base/errors.js';
import type { Scope } from '../../src/protocol/body.js';
import { crashingStore } from '../../src/testing/crashing-store.js';
import { codeOf, deferred, kernelFixture, run, tick, ticks, unhandled } from '../support/kernel-probe.js';
import { verifies } from '../verifies.js';

/** What a body sees of `get`, live and on replay. */
async function liveAndReplay(
  get: (s: Scope, fixture: ReturnType<typeof kernelFixture>) => Promise<unknown>,
  look: (v: unknown) => unknown,
  store?: Parameters<typeof kernelFixture>[0],
) {
  const fixture = kernelFixture(store);
  const looks: unknown[] = [];
  const body = async (s: Scope) => {
    const v = await get(s, fixture).catch((e) => e);
    looks.push(look(v));
    await s.wait('go');
  };
  await run(await fixture.open(), body);
  await run(await fixture.open(), body);
  return looks;
}

const keysOf = (v: unknown) => Object.keys(v as object);

for (const [name, get] of [
  [
    'effect',
    (s: Scope, fixture: ReturnType<typeof kernelFixture>) =>
      s.effect(fixture.effect('e', 'pure', () => ({ ok: true, error: undefined }))),
  ],
  ['call', (s: Scope) => s.call({ name: 'c', body: () => ({ ok: true, error: undefined }) }, null)],
  ['record', (s: Scope) => s.record('a.b', () => ({ ok: true, error: undefined }) as never)],
  ['race', (s: Scope) => s.race([() => ({ ok: true, error: undefined })])],
] as const)
  verifies('kernel.value', `V1 ${name}: a field that is undefined is there live and gone on replay`, async () => {
    const [live, replay] = await liveAndReplay(get as never, keysOf);
    expect(live).toEqual(replay);
  });

verifies('kernel.value', 'V2 an error with large data: live has it, replay has not', async () => {
  const [live, replay] = await liveAndReplay(
    (s, fixture) =>
      s.effect(
        fixture.effect('e', 'pure', () => {
          throw new LoopError('X', 'm', 'd'.repeat(9000));
        }),
      ),
    (e) => (e as LoopError).data === undefined,
  );
  expect(live).toBe(replay);
});

verifies('kernel.value', 'V2d error of a child call, race', async () => {
  for (const get of [
    (s: Scope) =>
      s.call(
        {
          name: 'c',
          body: () => {
            throw new LoopError('X', 'm', 'd'.repeat(9000));
          },
        },
        null,
      ),
    (s: Scope) =>
      s.race([
        () => {
          throw new LoopError('X', 'm', 'd'.repeat(9000));
        },
      ]),
  ]) {
    const [live, replay] = await liveAndReplay(get as never, (e) => (e as LoopError).data === undefined);
    expect(live).toBe(replay);
  }
});

verifies('kernel.value', 'V3 -0 live, 0 on replay', async () => {
  const [live, replay] = await liveAndReplay(
    (s, fixture) => s.effect(fixture.effect('e', 'pure', () => -0)),
    (v) => Object.is(v, -0),
  );
  expect(live).toBe(replay);
});

verifies(
  'kernel.value',
  'V4 the input is changed while the effect waits for its barrier: performed with other arguments than journaled',
  async () => {
    const fixture = kernelFixture();
    const input = { amount: 5 };
    let got: unknown;
    await run(await fixture.open(), async (s) => {
      const p = s.effect(
        fixture.effect(
          'pay',
          'once',
          (i) => {
            got = structuredClone(i);
            return null;
          },
          input,
        ),
      );
      input.amount = 500;
      await p;
    });
    const intent = (await fixture.entries()).find((e) => e.type === 'effect.requested');
    expect(got).toEqual(intent?.value);
  },
);

verifies(
  'kernel.value',
  'V4b a getter gives another value at each reading: journaled 5, performed with 500',
  async () => {
    const fixture = kernelFixture();
    let reads = 0;
    const input = {
      get amount() {
        return reads++ === 0 ? 5 : 500;
      },
    };
    let got: unknown;
    await run(await fixture.open(), async (s) => {
      await s.effect(
        fixture.effect(
          'pay',
          'once',
          (i) => {
            got = { amount: (i as { amount: number }).amount };
            return null;
          },
          input,
        ),
      );
    });
    const intent = (await fixture.entries()).find((e) => e.type === 'effect.requested');
    expect(got).toEqual(intent?.value);
  },
);

verifies('kernel.value', 'V5 a child changes its input object: replay of a right program mismatches', async () => {
  const fixture = kernelFixture();
  const child = {
    name: 'c',
    body: (list: number[]) => {
      list.push(1);
      return 'ok';
    },
  };
  const body = async (s: Scope) => {
    const list: number[] = [];
    await s.call(child, list);
    await s.effect(fixture.effect('use', 'idempotent', () => null, { list }));
    await s.wait('go');
  };
  await run(await fixture.open(), body);
  expect(await codeOf(run(await fixture.open(), body))).toBe('nothing');
});

verifies('kernel.value', 'V6 memory store: a body that changes a value it got back changes the journal', async () => {
  const fixture = kernelFixture(memoryStore());
  const body = async (s: Scope) => {
    const list = (await s.effect(fixture.effect('get', 'pure', () => [1]))) as number[];
    list.push(2);
    await s.record('length.seen', () => list.length);
    await s.call({ name: 'c', body: () => null }, list);
    await s.wait('go');
    return list.length;
  };
  await run(await fixture.open(), body);
  await run(await fixture.open(), body);
  expect(await codeOf(run(await fixture.open(), body))).toBe('nothing');
});

verifies('kernel.value', 'V6b memory store: the caller changes the output it was given', async () => {
  const fixture = kernelFixture(memoryStore());
  const session = await fixture.open();
  const body = () => ({ list: [1] });
  await run(session, body);
  const second = await run(session, body);
  (second as unknown as { output: { list: number[] } }).output.list.push(2);
  expect(await run(session, body)).toEqual({ status: 'ok', output: { list: [1] } });
});

verifies('kernel.value', 'V6c memory store: body changes the signal it got; redelivery conflicts', async () => {
  const fixture = kernelFixture(memoryStore());
  const session = await fixture.open();
  const running = run(
    session,
    async (s) => {
      ((await s.wait('a')) as number[]).push(99);
      await s.now();
      return 1;
    },
    't1',
    'hold',
  );
  await ticks(2);
  await session.signal({ id: '1', name: 'a', value: [1] }).catch(() => {});
  await running;
  await run(session, async (s) => {
    ((await s.wait('a')) as number[]).push(99);
    await s.now();
    return 1;
  });
  expect(await codeOf(session.signal({ id: '1', name: 'a', value: [1] }))).toBe('nothing');
});

verifies(
  'kernel.replay',
  'V7 a changed program asks with a value that is no JSON: not a mismatch but an outcome that is journaled',
  async () => {
    const bads: [string, unknown][] = [
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
      for (const [what, bad] of bads) {
        const fixture = kernelFixture();
        // crashes after the result of the first effect is durable
        await codeOf(
          run(await fixture.open({ store: crashingStore(fixture.store, { appendNumber: 2, when: 'after' }) }), (s) =>
            s
              .effect(fixture.effect('a', 'idempotent', () => 1, { n: 1 }))
              .then(() => s.effect(fixture.effect('z', 'idempotent'))),
          ),
        );
        await tick();
        const kept = (await fixture.entries()).filter((e) => e.key === 't1/0').length;
        const code = await codeOf(
          run(await fixture.open(), async (s) => {
            await s.effect(fixture.effect(name, 'idempotent', () => 1, { n: bad })).catch(() => {});
            await s.effect(fixture.effect('z', 'idempotent'));
            return 'went on';
          }),
        );
        codes.push(`${name} ${what} ${kept}: ${code}`);
      }
    expect(codes.filter((c) => !c.endsWith('REPLAY_MISMATCH'))).toEqual([]);
  },
);

verifies('kernel.replay', 'V7b root: an ended root asked with no-JSON input', async () => {
  const fixture = kernelFixture();
  const session = await fixture.open();
  await session.run('t1', { name: 'm', body: () => 1 }, { n: 1 } as unknown);
  const o = await session.run('t1', { name: 'm', body: () => 1 }, { n: 1n } as unknown).catch((e) => e.code);
  expect(o).toBe('REPLAY_MISMATCH');
});

verifies('kernel.value', 'V8 large values everywhere, crash at each append', async () => {
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
  const calm = kernelFixture();
  const counting = crashingStore(calm.store);
  const want = await drive(calm, counting);
  expect(want.status).toBe('ok');
  for (let append = 1; append <= counting.appendCount; append++)
    for (const when of ['before', 'after'] as const) {
      const fixture = kernelFixture();
      await codeOf(drive(fixture, crashingStore(fixture.store, { appendNumber: append, when })));
      await tick();
      expect(await drive(fixture, fixture.store), `${append} ${when}`).toEqual(want);
    }
});

verifies(
  'kernel.value',
  'V9 hostile values are refused or kept, never crash',
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
    for (const [name, value, fine] of cases) {
      const fixture = kernelFixture();
      const o = await run(await fixture.open(), async () => ({ value }));
      const code = o.status === 'error' ? o.error.code : o.status;
      if (fine) {
        expect(o.status, name).toBe('ok');
        const again = await run(await fixture.open(), () => 0);
        expect(JSON.stringify(again), name).toBe(JSON.stringify({ status: 'ok', output: { value } }));
      } else expect(['VALUE_INVALID', 'EXECUTION_FAILED'], `${name} ${code}`).toContain(code);
    }
    expect(unhandled).toEqual([]);
  },
  60_000,
);

verifies(
  'kernel.value',
  'V10 signal, decide, cancel with values that are no JSON leave the session usable',
  async () => {
    const fixture = kernelFixture();
    const session = await fixture.open();
    const running = run(session, (s) => s.wait('x'), 't1');
    await running;
    expect(await codeOf(session.signal({ id: 'a', name: 'x', value: 10n }))).toBe('VALUE_INVALID');
    expect(await codeOf(session.signal({ id: 'a', name: 'x', value: 1 }))).toBe('nothing');
    expect(await codeOf(session.cancel('t1', 10n as never))).not.toBe('STORE_FAILED');
    expect(await codeOf(session.signal({ id: 'b', name: 'x', value: 1 }))).toBe('nothing');
  },
);

verifies('kernel.value', 'V11 loop or effect names that are no text kill the session', async () => {
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

verifies('kernel.value', 'V12 thenables', async () => {
  const fixture = kernelFixture();
  const session = await fixture.open();
  expect(await run(session, () => ({ then: (r: (v: number) => void) => r(5) }))).toEqual({ status: 'ok', output: 5 });
  const again = await fixture.open();
  const hang = deferred();
  void hang;
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

verifies('kernel.value', 'members of a polluted Object.prototype are never journaled', async () => {
  const fixture = kernelFixture();
  const given = { n: 1, in: { m: 2 } };
  Object.defineProperty(Object.prototype, 'everywhere', { value: 'x', enumerable: true, configurable: true });
  try {
    await run(await fixture.open(), (s) => s.record('a.b', () => given));
  } finally {
    Reflect.deleteProperty(Object.prototype, 'everywhere');
  }
  const fact = (await fixture.entries()).find(({ type }) => type === 'a.b');
  expect(fact?.value).toEqual(given);
  expect(Object.keys(fact?.value as object)).toEqual(['n', 'in']);
  const bare = Object.assign(Object.create(null), given);
  await run(await fixture.open(), (s) => s.record('a.b', () => bare), 't2');
  expect((await fixture.entries()).findLast(({ type }) => type === 'a.b')?.value).toEqual(given);
});
