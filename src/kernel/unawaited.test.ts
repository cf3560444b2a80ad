import { expect } from 'vitest';
import { kernelFixture, run, ticks } from '../../spec/support/kernel-probe.js';
import { verifies } from '../../spec/verifies.js';
import type { Scope } from '../protocol/body.js';

const fixture = kernelFixture();
const child = { name: 'child', body: async () => 1 };

/** One step of each kind, as quick as it can be. */
const STEPS: { readonly [name: string]: (scope: Scope) => Promise<unknown> } = {
  'a call of an async body': (scope) => scope.call(child, null),
  'a call of a synchronous body': (scope) => scope.call({ name: 'sync', body: () => 1 }, null),
  'a call that fails': (scope) =>
    scope.call(
      {
        name: 'fails',
        body: () => {
          throw new Error('at once');
        },
      },
      null,
    ),
  'a call that is refused': (scope) => scope.call({ name: 5 as never, body: () => 1 }, null),
  'a call that calls': (scope) =>
    scope.call({ name: 'outer', body: (_: null, inner) => inner.call(child, null) }, null),
  'a pure effect': (scope) => scope.effect(fixture.effect('a', 'pure', () => 1)),
  'an invalid effect': (scope) => scope.effect({ ...fixture.effect('a'), safety: 'never' as never }),
  'a record': (scope) => scope.record('shop.fact', () => 1),
  'a record that fails': (scope) =>
    scope.record('shop.fact', () => {
      throw new Error('at once');
    }),
  'a reserved record': (scope) => scope.record('call.completed', () => 1),
  'a log line': (scope) => scope.log('info', 'quick'),
  'the time': (scope) => scope.now(),
  'a random number': (scope) => scope.random(),
  'an empty group': (scope) => scope.all([]),
  'a group': (scope) => scope.all([() => 1]),
  'a race': (scope) => scope.race([() => 1]),
  'a race without branches': (scope) => scope.race([]),
  'an invalid timer': (scope) => scope.sleep(-1),
  'a timer of zero': (scope) => scope.sleep(0),
};

/** Starts a step. An error is ignored, except of a record: a record whose promise is used counts as awaited. */
function start(step: (scope: Scope) => Promise<unknown>, scope: Scope): void {
  const started = step(scope);
  if (!RECORDS.has(step)) started.catch(() => {});
}

const RECORDS = new Set(['a record', 'a log line', 'the time', 'a random number'].map((name) => STEPS[name]));

/** Starts a step without awaiting it and returns at once. */
const careless =
  (step: (scope: Scope) => Promise<unknown>) =>
  async (scope: Scope): Promise<string> => {
    start(step, scope);
    return 'done';
  };

const BUSY = { status: 'error', error: { code: 'SCOPE_BUSY' } };

for (const [name, step] of Object.entries(STEPS)) {
  verifies('kernel.scope', `a body that does not await its step ends with SCOPE_BUSY: ${name}`, async () => {
    const body = careless(step);
    expect(await run(await kernelFixture().open(), body), 'in the root').toMatchObject(BUSY);
    const later = async (scope: Scope): Promise<string> => {
      await scope.now();
      start(step, scope);
      return 'done';
    };
    expect(await run(await kernelFixture().open(), later), 'after a step').toMatchObject(BUSY);
    const inChild = (scope: Scope): Promise<unknown> =>
      scope.call({ name: 'careless', body: (_: null, inner) => body(inner) }, null);
    expect(await run(await kernelFixture().open(), inChild), 'in a call').toMatchObject(BUSY);
    expect(await run(await kernelFixture().open(), (scope) => scope.all([body])), 'in a branch').toMatchObject(BUSY);
    expect(await run(await kernelFixture().open(), (scope) => scope.race([body])), 'in a race').toMatchObject(BUSY);
  });

  verifies(
    'kernel.scope',
    `a recorded step that the body does not await ends it with SCOPE_BUSY: ${name}`,
    async () => {
      const k = kernelFixture();
      const awaiting = async (scope: Scope): Promise<unknown> => {
        await step(scope).catch(() => {});
        return scope.wait('x');
      };
      expect((await run(await k.open(), awaiting)).status).toBe('paused');
      await ticks();
      const replay = async (scope: Scope): Promise<unknown> => {
        void careless(step)(scope);
        return 'done';
      };
      expect(await run(await k.open(), replay)).toMatchObject(BUSY);
    },
  );
}

verifies(
  'kernel.scope',
  'a record that the body never awaits ends it with SCOPE_BUSY, however long the body goes on',
  async () => {
    const leaving = async (scope: Scope): Promise<string> => {
      void scope.log('info', 'forgotten');
      return 'done';
    };
    const bodies: readonly ((scope: Scope) => Promise<unknown>)[] = [
      leaving,
      async (scope) => leaving(scope),
      async (scope) => (async () => leaving(scope))(),
      async (scope) => {
        void scope.record('shop.fact', () => 1);
        await ticks();
        return 'done';
      },
      async (scope) => {
        void scope.now();
        await ticks();
        return scope.call(child, null);
      },
    ];
    for (const body of bodies) {
      const k = kernelFixture();
      expect(await run(await k.open(), body)).toMatchObject(BUSY);
    }
  },
);

verifies('kernel.scope', 'a record may be awaited later, chained, returned or combined', async () => {
  const bodies: readonly ((scope: Scope) => unknown)[] = [
    async (scope) => {
      const fact = scope.record('shop.fact', () => 1);
      await ticks();
      return fact;
    },
    (scope) => scope.record('shop.fact', () => 1),
    (scope) => scope.record('shop.fact', () => 0).then((fact) => fact + 1),
    (scope) => scope.record('shop.fact', () => 1).finally(() => {}),
    async (scope) => (await Promise.all([scope.record('shop.fact', () => 1)]))[0],
  ];
  for (const body of bodies) {
    expect(await run(await kernelFixture().open(), body)).toEqual({ status: 'ok', output: 1 });
    const tracked = kernelFixture();
    expect(
      await run(await tracked.open(), (scope) => scope.call({ name: 'c', body: (_: null, s) => body(s) }, null)),
    ).toEqual({
      status: 'ok',
      output: 1,
    });
  }
});

verifies('kernel.scope', 'a call of a value that is no loop fails, and the body may go on', async () => {
  const body = async (scope: Scope): Promise<unknown> => {
    await expect(scope.call(undefined as never, null)).rejects.toThrow(TypeError);
    return scope.call(child, null);
  };
  expect(await run(await kernelFixture().open(), body)).toEqual({ status: 'ok', output: 1 });
});
