// What the kernel's guards prevent, as checks that hold on the library as it is and fail on it with the guard broken.

import { deepStrictEqual, notStrictEqual, ok, strictEqual } from 'node:assert';
import type { Batch, Scope } from '../../src/index.js';
import type { Library } from './library.js';
import { codeOf, crash, run, stage, tick } from './stage.js';

export type GuardCheck = (library: Library) => Promise<void>;

/** A memory store whose appends become durable only when released. */
function slowStore(library: Library) {
  const inner = library.memoryStore();
  const waiting: (() => void)[] = [];
  let open = false;
  const append = async (batch: Batch): Promise<void> => {
    if (!open) await new Promise<void>((resolve) => waiting.push(resolve));
    await inner.journal.append(batch);
  };
  const claim = (session: string) => inner.journal.claim(session);
  const read = (session: string, from: number) => inner.journal.read(session, from);
  const journal = { append, claim, read, list: inner.journal.list, remove: inner.journal.remove };
  const release = (): void => {
    open = true;
    for (const go of waiting.splice(0)) go();
  };
  return { store: { ...inner, journal }, release };
}

const pureThen = (name: string) => (scope: Scope) =>
  scope.effect({ kind: 'test', name, safety: 'pure', input: null, perform: () => name });

export const kernelChecks = {
  'a result is reported before it is durable': async (library) => {
    const { store, release } = slowStore(library);
    const session = await stage(library, store).open();
    let reported = false;
    const running = run(session, pureThen('p')).then(() => {
      reported = true;
    });
    for (let i = 0; i < 5; i++) await tick();
    strictEqual(reported, false);
    release();
    await running;
  },
  'an external effect starts before its intent is durable': async (library) => {
    const { store, release } = slowStore(library);
    const on = stage(library, store);
    const session = await on.open();
    const running = run(session, (scope) => scope.effect(on.effect('pay', 'once')));
    for (let i = 0; i < 5; i++) await tick();
    deepStrictEqual(on.performed, []);
    release();
    await running;
    deepStrictEqual(on.performed, ['pay']);
  },
  'a once effect is silently done again after a crash': async (library) => {
    const on = stage(library);
    const body = (scope: Scope) => scope.effect(on.effect('pay', 'once'));
    await crash(on, { append: 2, when: 'before' }, body);
    deepStrictEqual(on.performed, ['pay']);
    const outcome = await run(await on.open(), body);
    deepStrictEqual(on.performed, ['pay']);
    strictEqual(outcome.status, 'paused');
    strictEqual(outcome.status === 'paused' && outcome.pending[0]?.kind, 'doubt');
  },
  'a recorded result is computed again': async (library) => {
    const on = stage(library);
    const body = async (scope: Scope) => {
      await scope.effect(on.effect('read', 'idempotent'));
      await scope.wait('go');
    };
    await run(await on.open(), body);
    await run(await on.open(), body);
    deepStrictEqual(on.performed, ['read']);
  },
  'a finished run is run again': async (library) => {
    const on = stage(library);
    let bodies = 0;
    const body = async () => {
      bodies += 1;
      return bodies;
    };
    const first = await run(await on.open(), body);
    deepStrictEqual(await run(await on.open(), body), first);
    strictEqual(bodies, 1);
  },
  'a keyed effect is repeated under another key': async (library) => {
    const on = stage(library);
    const body = (scope: Scope) => scope.effect(on.effect('charge', 'keyed'));
    await crash(on, { append: 2, when: 'before' }, body);
    await run(await on.open(), body);
    strictEqual(on.keys.length, 2);
    strictEqual(on.keys[0], on.keys[1]);
  },
  'two sessions of one name at different times share an idempotency key': async (library) => {
    const on = stage(library);
    const body = (scope: Scope) => scope.effect(on.effect('charge', 'keyed'));
    await run(await on.open(), body);
    await on.store.journal.remove('s');
    await run(await on.open(), body);
    notStrictEqual(on.keys[0], on.keys[1]);
  },
  'code that asks for another step gets the recorded one': async (library) => {
    const on = stage(library);
    const step = (name: string) => async (scope: Scope) => {
      await scope.effect(on.effect(name, 'idempotent', { input: null }));
      await scope.wait('go');
    };
    await run(await on.open(), step('a'));
    strictEqual(await codeOf(run(await on.open(), step('b'))), 'REPLAY_MISMATCH');
    deepStrictEqual(on.performed, ['a']);
  },
  'code that asks with another input gets the recorded answer': async (library) => {
    const on = stage(library);
    const step = (input: object) => async (scope: Scope) => {
      await scope.effect(on.effect('a', 'idempotent', { input }));
      await scope.wait('go');
    };
    await run(await on.open(), step({ to: 'alice', more: [1] }));
    strictEqual(await codeOf(run(await on.open(), step({ to: 'mallory', more: [1] }))), 'REPLAY_MISMATCH');
    strictEqual((await run(await on.open(), step({ more: [1], to: 'alice' }))).status, 'paused');
  },
  'a step taken out of the code goes unnoticed': async (library) => {
    const on = stage(library);
    await run(await on.open(), async (scope) => {
      await scope.effect(on.effect('a', 'idempotent'));
      await scope.wait('go');
    });
    strictEqual(await codeOf(run(await on.open(), async () => 'done')), 'REPLAY_MISMATCH');
  },
  'all becomes race and the replay goes on': async (library) => {
    const on = stage(library);
    const branches = [(scope: Scope) => scope.wait('x'), (scope: Scope) => scope.wait('y')];
    await run(await on.open(), (scope) => scope.all(branches));
    strictEqual(await codeOf(run(await on.open(), (scope) => scope.race(branches))), 'REPLAY_MISMATCH');
  },
  'a body swallows a fault and goes on': async (library) => {
    const on = stage(library);
    const store = library.crashingStore(on.store, { append: 1, when: 'before' });
    let after = false;
    const swallow = async (scope: Scope) => {
      await scope.effect(on.effect('a', 'once')).catch(() => {});
      after = true;
    };
    strictEqual(await codeOf(run(await on.open({ store }), swallow)), 'STORE_FAILED');
    await tick();
    strictEqual(after, false);
    deepStrictEqual(on.performed, []);
  },
  'something is written after an append failed': async (library) => {
    const on = stage(library);
    const store = library.crashingStore(on.store, { append: 2, when: 'before' });
    const session = await on.open({ store });
    await codeOf(run(session, (scope) => scope.effect(on.effect('a', 'once'))));
    strictEqual(await codeOf(session.signal({ id: '1', name: 'x' })), 'STORE_FAILED');
    strictEqual(store.appends, 2);
    let appends = 0;
    const failing = library.memoryStore();
    const append = async (): Promise<void> => {
      appends += 1;
      await tick();
      throw new library.Fault('STORE_FAILED', 'the disk is gone');
    };
    const claim = (name: string) => failing.journal.claim(name);
    const slowly = { ...failing, journal: { ...failing.journal, claim, append } };
    await codeOf(
      run(await stage(library).open({ store: slowly as never }), async (scope) => {
        for (let i = 0; i < 700; i++) await scope.record('a.b', () => i);
      }),
    );
    for (let i = 0; i < 5; i++) await tick();
    strictEqual(appends, 1);
  },
  'a signal delivered twice is taken twice': async (library) => {
    const on = stage(library);
    const session = await on.open();
    strictEqual(await session.signal({ id: '1', name: 'pay', value: 5 }), true);
    strictEqual(await session.signal({ id: '1', name: 'pay', value: 5 }), false);
    strictEqual(await codeOf(session.signal({ id: '1', name: 'pay', value: 6 })), 'SIGNAL_CONFLICT');
    const body = async (scope: Scope) => [await scope.wait('pay'), await scope.wait('pay')];
    strictEqual((await run(session, body)).status, 'paused');
  },
  'a decision is taken for something that is not in doubt': async (library) => {
    const on = stage(library);
    const session = await on.open();
    await run(session, (scope) => scope.effect(on.effect('pay', 'once')));
    strictEqual(await codeOf(session.decide('t1/0', 'retry', 'mallory')), 'DECISION_REFUSED');
    strictEqual(await codeOf(session.decide('t1/9', 'supply', 'mallory')), 'DECISION_REFUSED');
  },
  'an overtaken writer goes on writing': async (library) => {
    const on = stage(library);
    const old = await on.open();
    await run(old, (scope) => scope.wait('x'));
    await on.open();
    strictEqual(await codeOf(old.signal({ id: '1', name: 'x' })), 'STALE_WRITER');
  },
  'a slow store makes the queue grow without end': async (library) => {
    const { store, release } = slowStore(library);
    const on = stage(library, store);
    const session = await on.open();
    let steps = 0;
    const running = run(session, async (scope) => {
      for (; steps < 5_000; steps++) await scope.call({ name: 'p', body: () => null }, null);
    });
    for (let i = 0; i < 5; i++) await tick();
    ok(steps < 2_000, `${steps} steps ran ahead of the store`);
    release();
    await running;
  },
  'a body that outlives its attempt writes its end': async (library) => {
    const on = stage(library);
    const later = { name: 'later', body: () => tick().then(tick) };
    const body = (name: string) => (scope: Scope) =>
      scope.all([(s) => s.call(later, null), (s) => s.effect(on.effect(name, 'idempotent'))]);
    const session = await on.open();
    const running = run(session, body('a'));
    await tick();
    await session.close();
    await codeOf(running);
    const again = await on.open();
    strictEqual(await codeOf(run(again, body('b'))), 'REPLAY_MISMATCH');
    for (let i = 0; i < 5; i++) await tick();
    await again.close();
    strictEqual((await on.entries()).filter(({ type }) => type === 'call.completed').length, 0);
  },
  'an effect starts after the session was closed': async (library) => {
    const { store, release } = slowStore(library);
    const on = stage(library, store);
    const session = await on.open();
    const running = codeOf(run(session, (scope) => scope.effect(on.effect('pay', 'once'))));
    await tick();
    const closing = session.close();
    release();
    await closing;
    strictEqual(await running, 'SESSION_CLOSED');
    deepStrictEqual(on.performed, []);
  },
  'an effect still in flight is begun again by the next attempt': async (library) => {
    const on = stage(library);
    const session = await on.open();
    let finish: (value: string) => void = () => {};
    const slow = on.effect('slow', 'keyed', {
      perform: () => {
        on.performed.push('slow');
        return new Promise((resolve) => (finish = resolve));
      },
    });
    const body = (second: string) => (scope: Scope) =>
      scope.all([(s) => s.effect(slow), (s) => s.wait('x').then(() => s.effect(on.effect(second, 'pure')))]);
    const first = codeOf(run(session, body('a')));
    for (let i = 0; i < 5; i++) await tick();
    await session.signal({ id: '1', name: 'x' });
    for (let i = 0; i < 5; i++) await tick();
    (session as unknown as { attempt: { current: { fail(fault: unknown): void } } }).attempt.current.fail(
      new library.Fault('STORE_FAILED', 'the attempt ends, the session lives'),
    );
    await first;
    const second = run(session, body('a'));
    for (let i = 0; i < 5; i++) await tick();
    deepStrictEqual(on.performed, ['slow', 'a']);
    finish('done');
    strictEqual((await second).status, 'ok');
  },
  'an option with a slip in it switches a guard off': async (library) => {
    const on = stage(library);
    const refusing = async () => {
      throw new library.LoopError('TOOL_NOT_ADMITTED', 'nothing is allowed');
    };
    const opened = await on.open({ layer: [refusing] } as never).catch((error: Error) => error.message);
    if (typeof opened !== 'string') await run(opened, (scope) => scope.effect(on.effect('pay', 'once')));
    deepStrictEqual(on.performed, []);
    ok(typeof opened === 'string' && opened.includes('"layer"'));
  },
} as const satisfies Record<string, GuardCheck>;
