// What the guards of cancels, races, branches, timers and scopes prevent; see kernel-checks.ts.

import { deepStrictEqual, ok, strictEqual } from 'node:assert';
import type { Scope } from '../../src/index.js';
import type { GuardCheck } from './kernel-checks.js';
import { crash, run, stage, tick } from './stage.js';

export const lifeChecks = {
  'a cancelled run starts another effect': async (library) => {
    const on = stage(library);
    const session = await on.open();
    const outcome = await run(session, async (scope) => {
      await scope
        .effect(on.effect('a', 'idempotent', { perform: () => session.cancel('t1', 'enough') }))
        .catch(() => {});
      await scope.effect(on.effect('b', 'pure')).catch(() => {});
      return 'fine';
    });
    deepStrictEqual(on.performed, []);
    strictEqual(outcome.status === 'error' && outcome.error.code, 'CANCELLED');
    strictEqual((await on.entries()).filter(({ type }) => type === 'effect.requested').length, 1);
  },
  'a cancelled run takes up an effect in doubt': async (library) => {
    const on = stage(library);
    const body = (scope: Scope) => scope.effect(on.effect('read', 'idempotent'));
    await crash(on, { append: 2, when: 'before' }, body);
    const session = await on.open();
    await session.cancel('t1', 'enough');
    await run(session, body);
    deepStrictEqual(on.performed, ['read']);
    strictEqual((await on.entries()).filter(({ type }) => type.startsWith('effect.')).length, 1);
  },
  'a cancel is forgotten by a restart': async (library) => {
    const on = stage(library);
    const body = async (scope: Scope) => {
      await scope.wait('go').catch(() => {});
      return scope.effect(on.effect('b', 'pure'));
    };
    const session = await on.open();
    await run(session, body);
    await session.cancel('t1', 'enough');
    const outcome = await run(await on.open(), body);
    strictEqual(outcome.status === 'error' && outcome.error.code, 'CANCELLED');
    deepStrictEqual(on.performed, []);
  },
  'an effect that ends after the cancel leaves no trace': async (library) => {
    const on = stage(library);
    const session = await on.open();
    let finish: (value: string) => void = () => {};
    const slow = on.effect('slow', 'once', { perform: () => new Promise((resolve) => (finish = resolve)) });
    const running = run(session, (scope) => scope.effect(slow));
    for (let i = 0; i < 5; i++) await tick();
    await session.cancel('t1', 'enough');
    await running;
    finish('late');
    await session.close();
    const types = (await on.entries()).map(({ type }) => type);
    ok(types.lastIndexOf('effect.returned') > types.indexOf('cancel.requested'), types.join());
  },
  'a replay takes another winner': async (library) => {
    const on = stage(library);
    const body = async (scope: Scope) => {
      const winner = await scope.race([(s) => s.wait('slow'), (s) => s.effect(on.effect('quick', 'once'))]);
      await scope.wait('go');
      return winner;
    };
    await run(await on.open(), body);
    const session = await on.open();
    await session.signal({ id: '1', name: 'slow', value: 'slow' });
    await session.signal({ id: '2', name: 'go' });
    deepStrictEqual(await run(session, body), { status: 'ok', output: 'quick done' });
  },
  'a branch that lost goes on': async (library) => {
    const on = stage(library);
    const gates: (() => void)[] = [];
    const gate = (name: string) =>
      on.effect(name, 'once', { perform: () => new Promise((resolve) => gates.push(() => resolve(name))) });
    const running = run(await on.open(), async (scope) => {
      await scope.race([
        async (s) => {
          await s.effect(gate('slow')).catch(() => {});
          await s.effect(on.effect('zombie', 'pure'));
        },
        (s) => s.effect(gate('quick')),
      ]);
      await scope.effect(gate('later'));
    });
    for (let i = 0; i < 5; i++) await tick();
    gates[1]?.();
    for (let i = 0; i < 5; i++) await tick();
    gates[0]?.();
    for (let i = 0; i < 5; i++) await tick();
    gates[2]?.();
    await running;
    deepStrictEqual(on.performed, []);
  },
  'which error is thrown depends on who was faster': async (library) => {
    const on = stage(library);
    const failing = (name: string) => (scope: Scope) =>
      scope.effect(on.effect(name, 'pure', { perform: () => Promise.reject(new Error(name)) }));
    const outcome = await run(await on.open(), (scope) =>
      scope.all([(s) => s.wait('x').then(() => failing('by place')(s)), failing('by time')]),
    );
    strictEqual(outcome.status, 'paused');
    const session = await on.open();
    await session.signal({ id: '1', name: 'x' });
    const end = await run(session, (scope) =>
      scope.all([(s) => s.wait('x').then(() => failing('by place')(s)), failing('by time')]),
    );
    strictEqual(end.status === 'error' && end.error.message, 'by place');
  },
  'two steps of one scope run at once and their keys depend on speed': async (library) => {
    const on = stage(library);
    const outcome = await run(await on.open(), (scope) => Promise.all([scope.now(), scope.now()]));
    strictEqual(outcome.status === 'error' && outcome.error.code, 'SCOPE_BUSY');
  },
  'a body ends while one of its steps still runs': async (library) => {
    const on = stage(library);
    const outcome = await run(await on.open(), async (scope) => {
      scope.effect(on.effect('forgotten', 'once')).catch(() => {});
      return 'done';
    });
    strictEqual(outcome.status === 'error' && outcome.error.code, 'SCOPE_BUSY');
  },
  'a timer begins anew after a restart': async (library) => {
    const on = stage(library);
    const body = (scope: Scope) => scope.sleep(10_000);
    await run(await on.open(), body);
    await on.clock.advance(6_000);
    const again = await run(await on.open(), body);
    deepStrictEqual(again.status === 'paused' && again.pending, [{ kind: 'timer', key: 't1/0', until: 11_000 }]);
    await on.clock.advance(4_000);
    strictEqual((await run(await on.open(), body)).status, 'ok');
  },
  'a timer fires early': async (library) => {
    const on = stage(library);
    const session = await on.open();
    let fired = 0;
    const running = session.run(
      't1',
      {
        name: 'nap',
        body: async (_input, scope) => {
          await scope.sleep(40 * 24 * 3600 * 1000);
          fired = on.clock.now();
        },
      },
      null,
    );
    for (let i = 0; i < 5; i++) await tick();
    await on.clock.advance(39 * 24 * 3600 * 1000);
    strictEqual(fired, 0);
    await on.clock.advance(24 * 3600 * 1000);
    await running;
    strictEqual(fired, 1_000 + 40 * 24 * 3600 * 1000);
  },
  'a branch that lost keeps the signal it took': async (library) => {
    const on = stage(library);
    const session = await on.open();
    await session.signal({ id: 'a', name: 'a', value: 'A' });
    await session.signal({ id: 'b', name: 'b', value: 'B' });
    const body = async (scope: Scope) => {
      const first = await scope.race([(s) => s.wait('a'), (s) => s.wait('b')]);
      return [first, await scope.wait(first === 'A' ? 'b' : 'a')];
    };
    deepStrictEqual(await run(session, body), { status: 'ok', output: ['A', 'B'] });
  },
  'a body that will not hear of its cancel spins for ever': async (library) => {
    const on = stage(library);
    const session = await on.open();
    let rounds = 0;
    const again = on.effect('again', 'pure', { perform: () => (rounds === 10 ? session.cancel('t1', 'enough') : 1) });
    const outcome = await run(session, async (scope) => {
      for (; rounds < 20_000; rounds++) await scope.effect(again).catch(() => {});
    });
    strictEqual(outcome.status === 'error' && outcome.error.code, 'CANCELLED');
    ok(rounds < 20_000, 'the body went on to its own end');
  },
  'a scope is used after its body ended': async (library) => {
    const on = stage(library);
    let kept: Scope | undefined;
    const leak = {
      name: 'leak',
      body: async (_: unknown, scope: Scope) => {
        kept = scope;
      },
    };
    const outcome = await run(await on.open(), async (scope) => {
      await scope.call(leak, null);
      await kept?.effect(on.effect('stray', 'once'));
    });
    strictEqual(outcome.status === 'error' && outcome.error.code, 'SCOPE_BUSY');
    deepStrictEqual(on.performed, []);
  },
  'a signal that was given back is taken after the younger ones': async (library) => {
    const on = stage(library);
    const session = await on.open();
    for (const id of ['1', '2', '3']) await session.signal({ id, name: 'a', value: Number(id) });
    await session.signal({ id: 'go', name: 'go' });
    const outcome = await run(session, async (scope) => {
      await scope.race([async (a) => [await a.wait('a'), await a.wait('never')], (b) => b.wait('go')]);
      return [await scope.wait('a'), await scope.wait('a'), await scope.wait('a')];
    });
    deepStrictEqual(outcome, { status: 'ok', output: [1, 2, 3] });
  },
  'two effects at once are told to stop by one signal': async (library) => {
    const on = stage(library);
    const signals: unknown[] = [];
    const taking = (name: string) =>
      on.effect(name, 'once', { perform: (_, { sharedSignal }) => signals.push(sharedSignal) && tick() });
    await run(await on.open(), async (scope) => {
      await scope.effect(taking('before'));
      await scope.all([(s) => s.effect(taking('one')), (s) => s.effect(taking('other'))]);
      await scope.effect(taking('after'));
    });
    const [before, one, other, after] = signals;
    strictEqual(one, before);
    ok(one instanceof AbortSignal && other instanceof AbortSignal && one !== other);
    ok(after === one || after === other);
  },
  'a signal that is used again does not hear of the cancel': async (library) => {
    const on = stage(library);
    const session = await on.open();
    let heard: AbortSignal | undefined;
    const quick = on.effect('quick', 'once', { perform: (_, { sharedSignal }) => sharedSignal?.aborted });
    const slow = on.effect('slow', 'once', {
      perform: (_, { sharedSignal }) => {
        heard = sharedSignal;
        return new Promise((resolve) => sharedSignal?.addEventListener('abort', resolve));
      },
    });
    const running = run(session, async (scope) => {
      await scope.effect(quick);
      await scope.effect(slow);
    });
    for (let i = 0; i < 5; i++) await tick();
    strictEqual(heard?.aborted, false);
    await session.cancel('t1', 'enough');
    await running;
    strictEqual(heard?.aborted, true);
  },
} as const satisfies Record<string, GuardCheck>;
