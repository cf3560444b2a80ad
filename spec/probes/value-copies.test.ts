// Journaled values are private copies: a body sees the same value live and on replay, and later changes have no effect.

import { expect } from 'vitest';
import { memoryStore } from '../../src/adapters/memory/index.js';
import { LoopError } from '../../src/base/errors.js';
import type { Scope } from '../../src/protocol/body.js';
import { codeOf, kernelFixture, run, ticks } from '../support/kernel-probe.js';
import { verifies } from '../verifies.js';

/** Returns what `inspect` finds in the value that a body receives, live and on replay. */
async function liveAndReplay(
  get: (s: Scope, fixture: ReturnType<typeof kernelFixture>) => Promise<unknown>,
  inspect: (v: unknown) => unknown,
  store?: Parameters<typeof kernelFixture>[0],
) {
  const fixture = kernelFixture(store);
  const findings: unknown[] = [];
  const body = async (s: Scope) => {
    const v = await get(s, fixture).catch((e) => e);
    findings.push(inspect(v));
    await s.wait('go');
  };
  await run(await fixture.open(), body);
  await run(await fixture.open(), body);
  return findings;
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
  verifies(
    'kernel.value',
    `the value of a ${name} with an undefined member is the same live and on replay`,
    async () => {
      const [live, replay] = await liveAndReplay(get as never, keysOf);
      expect(live).toEqual(replay);
    },
  );

verifies('kernel.value', 'an error with large data is the same live and on replay', async () => {
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

verifies('kernel.value', 'an error of a call or race with large data is the same live and on replay', async () => {
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

verifies('kernel.value', 'negative zero is the same live and on replay', async () => {
  const [live, replay] = await liveAndReplay(
    (s, fixture) => s.effect(fixture.effect('e', 'pure', () => -0)),
    (v) => Object.is(v, -0),
  );
  expect(live).toBe(replay);
});

verifies(
  'kernel.value',
  'an effect is performed with its journaled input, even if the body changes the object',
  async () => {
    const fixture = kernelFixture();
    const input = { amount: 5 };
    let performedInput: unknown;
    await run(await fixture.open(), async (s) => {
      const p = s.effect(
        fixture.effect(
          'pay',
          'once',
          (i) => {
            performedInput = structuredClone(i);
            return null;
          },
          input,
        ),
      );
      input.amount = 500;
      await p;
    });
    const intent = (await fixture.entries()).find((e) => e.type === 'effect.requested');
    expect(performedInput).toEqual(intent?.value);
  },
);

verifies(
  'kernel.value',
  'an effect is performed with its journaled input, even if a getter returns another value',
  async () => {
    const fixture = kernelFixture();
    let reads = 0;
    const input = {
      get amount() {
        return reads++ === 0 ? 5 : 500;
      },
    };
    let performedInput: unknown;
    await run(await fixture.open(), async (s) => {
      await s.effect(
        fixture.effect(
          'pay',
          'once',
          (i) => {
            performedInput = { amount: (i as { amount: number }).amount };
            return null;
          },
          input,
        ),
      );
    });
    const intent = (await fixture.entries()).find((e) => e.type === 'effect.requested');
    expect(performedInput).toEqual(intent?.value);
  },
);

verifies('kernel.value', 'a child that changes its input object does not affect the replay', async () => {
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

verifies('kernel.value', 'a body that changes a returned value does not change the journal in memory', async () => {
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

verifies('kernel.value', 'a caller that changes the output does not change the journal in memory', async () => {
  const fixture = kernelFixture(memoryStore());
  const session = await fixture.open();
  const body = () => ({ list: [1] });
  await run(session, body);
  const second = await run(session, body);
  (second as unknown as { output: { list: number[] } }).output.list.push(2);
  expect(await run(session, body)).toEqual({ status: 'ok', output: { list: [1] } });
});

verifies('kernel.value', 'a body that changes a signal value does not change the journal in memory', async () => {
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

verifies('kernel.value', 'prototype pollution is never journaled', async () => {
  const fixture = kernelFixture();
  const value = { n: 1, in: { m: 2 } };
  Object.defineProperty(Object.prototype, 'everywhere', { value: 'x', enumerable: true, configurable: true });
  try {
    await run(await fixture.open(), (s) => s.record('a.b', () => value));
  } finally {
    Reflect.deleteProperty(Object.prototype, 'everywhere');
  }
  const fact = (await fixture.entries()).find(({ type }) => type === 'a.b');
  expect(fact?.value).toEqual(value);
  expect(Object.keys(fact?.value as object)).toEqual(['n', 'in']);
  const withoutPrototype = Object.assign(Object.create(null), value);
  await run(await fixture.open(), (s) => s.record('a.b', () => withoutPrototype), 't2');
  expect((await fixture.entries()).findLast(({ type }) => type === 'a.b')?.value).toEqual(value);
});
