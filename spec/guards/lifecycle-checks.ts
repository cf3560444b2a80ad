// Checks of cancellation, races, branches, timers and scopes; see kernel-checks.ts.

import { deepStrictEqual, ok, strictEqual } from 'node:assert';
import type { Scope } from '../../src/index.js';
import { codeOf, crash, loop, run, sessionFixture, tick } from '../support/session-fixture.js';
import type { GuardCheck } from './kernel-checks.js';

export const lifecycleChecks = {
  'a cancelled run starts no further effect': async (library) => {
    const fixture = sessionFixture(library);
    const session = await fixture.open();
    const outcome = await run(session, async (scope) => {
      await scope
        .effect(fixture.effect('a', 'idempotent', { perform: () => session.cancel('t1', 'enough') }))
        .catch(() => {});
      await scope.effect(fixture.effect('b', 'pure')).catch(() => {});
      return 'fine';
    });
    deepStrictEqual(fixture.performed, []);
    strictEqual(outcome.status === 'error' && outcome.error.code, 'CANCELLED');
    strictEqual((await fixture.entries()).filter(({ type }) => type === 'effect.requested').length, 1);
  },
  'a cancelled run does not resume an effect in doubt': async (library) => {
    const fixture = sessionFixture(library);
    const body = (scope: Scope) => scope.effect(fixture.effect('read', 'idempotent'));
    await crash(fixture, { appendNumber: 2, when: 'before' }, body);
    const session = await fixture.open();
    await session.cancel('t1', 'enough');
    await run(session, body);
    deepStrictEqual(fixture.performed, ['read']);
    strictEqual((await fixture.entries()).filter(({ type }) => type.startsWith('effect.')).length, 1);
  },
  'a cancellation survives a restart': async (library) => {
    const fixture = sessionFixture(library);
    const body = async (scope: Scope) => {
      await scope.wait('go').catch(() => {});
      return scope.effect(fixture.effect('b', 'pure'));
    };
    const session = await fixture.open();
    await run(session, body);
    await session.cancel('t1', 'enough');
    const outcome = await run(await fixture.open(), body);
    strictEqual(outcome.status === 'error' && outcome.error.code, 'CANCELLED');
    deepStrictEqual(fixture.performed, []);
  },
  'a cancelled run ends, even if its code has changed': async (library) => {
    const fixture = sessionFixture(library);
    const session = await fixture.open();
    await run(session, (scope) => scope.wait('go'));
    await session.cancel('t1', 'enough');
    const outcome = await run(await fixture.open(), (scope) => scope.now());
    strictEqual(outcome.status === 'error' && outcome.error.code, 'CANCELLED');
    strictEqual((await fixture.entries()).at(-1)?.type, 'call.errored');
  },
  'the result of an effect that ends after a cancellation is recorded': async (library) => {
    const fixture = sessionFixture(library);
    const session = await fixture.open();
    let finish: (value: string) => void = () => {};
    const slow = fixture.effect('slow', 'once', { perform: () => new Promise((resolve) => (finish = resolve)) });
    const running = run(session, (scope) => scope.effect(slow));
    for (let i = 0; i < 5; i++) await tick();
    await session.cancel('t1', 'enough');
    await running;
    finish('late');
    await session.close();
    const types = (await fixture.entries()).map(({ type }) => type);
    ok(types.lastIndexOf('effect.returned') > types.indexOf('cancel.requested'), types.join());
  },
  'a replayed race returns the recorded winner': async (library) => {
    const fixture = sessionFixture(library);
    const body = async (scope: Scope) => {
      const winner = await scope.race([(s) => s.wait('slow'), (s) => s.effect(fixture.effect('quick', 'once'))]);
      await scope.wait('go');
      return winner;
    };
    await run(await fixture.open(), body);
    const session = await fixture.open();
    await session.signal({ id: '1', name: 'slow', value: 'slow' });
    await session.signal({ id: '2', name: 'go' });
    deepStrictEqual(await run(session, body), { status: 'ok', output: 'quick done' });
  },
  'a race ends the branches that lost': async (library) => {
    const fixture = sessionFixture(library);
    const gates: (() => void)[] = [];
    const gate = (name: string) =>
      fixture.effect(name, 'once', { perform: () => new Promise((resolve) => gates.push(() => resolve(name))) });
    const running = run(await fixture.open(), async (scope) => {
      await scope.race([
        async (s) => {
          await s.effect(gate('slow')).catch(() => {});
          await s.effect(fixture.effect('zombie', 'pure'));
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
    deepStrictEqual(fixture.performed, []);
  },
  'all throws the error of the first failed branch by position, not by time': async (library) => {
    const fixture = sessionFixture(library);
    const failing = (name: string) => (scope: Scope) =>
      scope.effect(fixture.effect(name, 'pure', { perform: () => Promise.reject(new Error(name)) }));
    const outcome = await run(await fixture.open(), (scope) =>
      scope.all([(s) => s.wait('x').then(() => failing('first by position')(s)), failing('first by time')]),
    );
    strictEqual(outcome.status, 'paused');
    const session = await fixture.open();
    await session.signal({ id: '1', name: 'x' });
    const end = await run(session, (scope) =>
      scope.all([(s) => s.wait('x').then(() => failing('first by position')(s)), failing('first by time')]),
    );
    strictEqual(end.status === 'error' && end.error.message, 'first by position');
  },
  'a scope refuses concurrent steps': async (library) => {
    const fixture = sessionFixture(library);
    const outcome = await run(await fixture.open(), (scope) => Promise.all([scope.now(), scope.now()]));
    strictEqual(outcome.status === 'error' && outcome.error.code, 'SCOPE_BUSY');
  },
  'a body cannot end while one of its steps runs': async (library) => {
    const fixture = sessionFixture(library);
    const outcome = await run(await fixture.open(), async (scope) => {
      scope.effect(fixture.effect('forgotten', 'once')).catch(() => {});
      return 'done';
    });
    strictEqual(outcome.status === 'error' && outcome.error.code, 'SCOPE_BUSY');
  },
  'a timer keeps its end across a restart': async (library) => {
    const fixture = sessionFixture(library);
    const body = (scope: Scope) => scope.sleep(10_000);
    await run(await fixture.open(), body);
    await fixture.clock.advance(6_000);
    const resumed = await run(await fixture.open(), body);
    deepStrictEqual(resumed.status === 'paused' && resumed.pending, [{ kind: 'timer', key: 't1/0', until: 11_000 }]);
    await fixture.clock.advance(4_000);
    strictEqual((await run(await fixture.open(), body)).status, 'ok');
  },
  'a timer never fires early': async (library) => {
    const fixture = sessionFixture(library);
    const session = await fixture.open();
    let fired = 0;
    const running = session.run(
      't1',
      {
        name: 'nap',
        body: async (_input, scope) => {
          await scope.sleep(40 * 24 * 3600 * 1000);
          fired = fixture.clock.now();
        },
      },
      null,
    );
    for (let i = 0; i < 5; i++) await tick();
    await fixture.clock.advance(39 * 24 * 3600 * 1000);
    strictEqual(fired, 0);
    await fixture.clock.advance(24 * 3600 * 1000);
    await running;
    strictEqual(fired, 1_000 + 40 * 24 * 3600 * 1000);
  },
  'a branch that lost returns the signal that it received': async (library) => {
    const fixture = sessionFixture(library);
    const session = await fixture.open();
    await session.signal({ id: 'a', name: 'a', value: 'A' });
    await session.signal({ id: 'b', name: 'b', value: 'B' });
    const body = async (scope: Scope) => {
      const first = await scope.race([(s) => s.wait('a'), (s) => s.wait('b')]);
      return [first, await scope.wait(first === 'A' ? 'b' : 'a')];
    };
    deepStrictEqual(await run(session, body), { status: 'ok', output: ['A', 'B'] });
  },
  'a body that ignores its cancellation is abandoned': async (library) => {
    const fixture = sessionFixture(library);
    const session = await fixture.open();
    let rounds = 0;
    const again = fixture.effect('again', 'pure', {
      perform: () => (rounds === 10 ? session.cancel('t1', 'enough') : 1),
    });
    const outcome = await run(session, async (scope) => {
      for (; rounds < 20_000; rounds++) await scope.effect(again).catch(() => {});
    });
    strictEqual(outcome.status === 'error' && outcome.error.code, 'CANCELLED');
    ok(rounds < 20_000, 'the body ran to its end');
  },
  'a scope refuses steps once its body has ended': async (library) => {
    const fixture = sessionFixture(library);
    let leakedScope: Scope | undefined;
    const leak = {
      name: 'leak',
      body: async (_: unknown, scope: Scope) => {
        leakedScope = scope;
      },
    };
    const outcome = await run(await fixture.open(), async (scope) => {
      await scope.call(leak, null);
      await leakedScope?.effect(fixture.effect('stray', 'once'));
    });
    strictEqual(outcome.status === 'error' && outcome.error.code, 'SCOPE_BUSY');
    deepStrictEqual(fixture.performed, []);
  },
  'a returned signal keeps its place before later ones': async (library) => {
    const fixture = sessionFixture(library);
    const session = await fixture.open();
    for (const id of ['1', '2', '3']) await session.signal({ id, name: 'a', value: Number(id) });
    await session.signal({ id: 'go', name: 'go' });
    const outcome = await run(session, async (scope) => {
      await scope.race([async (a) => [await a.wait('a'), await a.wait('never')], (b) => b.wait('go')]);
      return [await scope.wait('a'), await scope.wait('a'), await scope.wait('a')];
    });
    deepStrictEqual(outcome, { status: 'ok', output: [1, 2, 3] });
  },
  'a signal is kept for the root that it is addressed to': async (library) => {
    const fixture = sessionFixture(library);
    const session = await fixture.open();
    await session.signal({ id: '1', name: 'a', value: 'for t2', turn: 't2' });
    strictEqual((await run(session, (scope) => scope.wait('a'))).status, 'paused');
    const outcome = await session.run(
      't2',
      loop((scope) => scope.wait('a')),
      null,
    );
    deepStrictEqual(outcome, { status: 'ok', output: 'for t2' });
  },
  'a signal wakes only the root that it is addressed to': async (library) => {
    const fixture = sessionFixture(library);
    const session = await fixture.open();
    const running = session.run(
      't1',
      loop((scope) => scope.race([(s) => s.wait('a'), (s) => s.sleep(10)])),
      null,
    );
    for (let i = 0; i < 5; i++) await tick();
    await session.signal({ id: '1', name: 'a', value: 'for t2', turn: 't2' });
    await fixture.clock.advance(10);
    deepStrictEqual(await running, { status: 'ok', output: undefined });
  },
  'the older of an addressed and an unaddressed signal is received first': async (library) => {
    const fixture = sessionFixture(library);
    const session = await fixture.open();
    for (const id of [1, 2, 3, 4])
      await session.signal({ id: `${id}`, name: 'a', value: id, ...(id % 2 === 1 && { turn: 't1' }) });
    const outcome = await run(session, async (s) => [await s.wait('a'), await s.wait('a'), await s.wait('a')]);
    deepStrictEqual(outcome, { status: 'ok', output: [1, 2, 3] });
  },
  'an ended root refuses signals': async (library) => {
    const fixture = sessionFixture(library);
    const session = await fixture.open();
    await run(session, async () => 'done');
    strictEqual(await codeOf(session.signal({ id: '1', name: 'a', turn: 't1' })), 'TURN_ENDED');
  },
  'a wait discards a payload that its schema refuses': async (library) => {
    const fixture = sessionFixture(library);
    const session = await fixture.open();
    const validate = (value: unknown): number => {
      if (typeof value === 'number') return value;
      throw new library.LoopError('INPUT_VALIDATION_FAILED', 'It is not a number.');
    };
    await session.signal({ id: '1', name: 'a', value: 'five' });
    await session.signal({ id: '2', name: 'a', value: 5 });
    const outcome = await run(session, (scope) => scope.wait({ name: 'a', schema: true, validate }));
    deepStrictEqual(outcome, { status: 'ok', output: 5 });
  },
  'concurrent effects have separate abort signals': async (library) => {
    const fixture = sessionFixture(library);
    const signals: unknown[] = [];
    const captureSignal = (name: string) =>
      fixture.effect(name, 'once', { perform: (_, { sharedSignal }) => signals.push(sharedSignal) && tick() });
    await run(await fixture.open(), async (scope) => {
      await scope.effect(captureSignal('before'));
      await scope.all([(s) => s.effect(captureSignal('one')), (s) => s.effect(captureSignal('other'))]);
      await scope.effect(captureSignal('after'));
    });
    const [before, one, other, after] = signals;
    strictEqual(one, before);
    ok(one instanceof AbortSignal && other instanceof AbortSignal && one !== other);
    ok(after === one || after === other);
  },
  'a reused abort signal still reports a cancellation': async (library) => {
    const fixture = sessionFixture(library);
    const session = await fixture.open();
    let receivedSignal: AbortSignal | undefined;
    const quick = fixture.effect('quick', 'once', { perform: (_, { sharedSignal }) => sharedSignal?.aborted });
    const slow = fixture.effect('slow', 'once', {
      perform: (_, { sharedSignal }) => {
        receivedSignal = sharedSignal;
        return new Promise((resolve) => sharedSignal?.addEventListener('abort', resolve));
      },
    });
    const running = run(session, async (scope) => {
      await scope.effect(quick);
      await scope.effect(slow);
    });
    for (let i = 0; i < 5; i++) await tick();
    strictEqual(receivedSignal?.aborted, false);
    await session.cancel('t1', 'enough');
    await running;
    strictEqual(receivedSignal?.aborted, true);
  },
} as const satisfies Record<string, GuardCheck>;
