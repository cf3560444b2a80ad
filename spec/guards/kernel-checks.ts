// Checks of the kernel: each holds on the intact library and fails when its guard is broken.

import { deepStrictEqual, notStrictEqual, ok, strictEqual } from 'node:assert';
import type { Batch } from '../../src/host-entry.js';
import type { Scope } from '../../src/index.js';
import { codeOf, crash, run, sessionFixture, tick } from '../support/session-fixture.js';
import type { Library } from './library.js';

export type GuardCheck = (library: Library) => Promise<void>;

/** A memory store whose appends become durable only when released. */
function slowStore(library: Library) {
  const inner = library.memoryStore();
  const blockedAppends: (() => void)[] = [];
  let isReleased = false;
  const append = async (batch: Batch): Promise<void> => {
    if (!isReleased) await new Promise<void>((resolve) => blockedAppends.push(resolve));
    await inner.journal.append(batch);
  };
  const claim = (session: string) => inner.journal.claim(session);
  const read = (session: string, from: number) => inner.journal.read(session, from);
  const journal = { append, claim, read, list: inner.journal.list, remove: inner.journal.remove };
  const release = (): void => {
    isReleased = true;
    for (const resolve of blockedAppends.splice(0)) resolve();
  };
  return { store: { ...inner, journal }, release };
}

const pureEffect = (name: string) => (scope: Scope) =>
  scope.effect({ kind: 'test', name, safety: 'pure', input: null, perform: () => name });

export const kernelChecks = {
  'a result is durable before it is reported': async (library) => {
    const { store, release } = slowStore(library);
    const session = await sessionFixture(library, store).open();
    let isReported = false;
    const running = run(session, pureEffect('p')).then(() => {
      isReported = true;
    });
    for (let i = 0; i < 5; i++) await tick();
    strictEqual(isReported, false);
    release();
    await running;
  },
  'the intent of an external effect is durable before the effect starts': async (library) => {
    const { store, release } = slowStore(library);
    const fixture = sessionFixture(library, store);
    const session = await fixture.open();
    const running = run(session, (scope) => scope.effect(fixture.effect('pay', 'once')));
    for (let i = 0; i < 5; i++) await tick();
    deepStrictEqual(fixture.performed, []);
    release();
    await running;
    deepStrictEqual(fixture.performed, ['pay']);
  },
  'the repetition of an interrupted effect is durable before it starts': async (library) => {
    const fixture = sessionFixture(library);
    const recorded = async () => (await fixture.entries()).filter(({ type }) => type === 'effect.repeated').length;
    const starts: number[] = [];
    const perform = async () => starts.push(await recorded());
    const body = (scope: Scope) => scope.effect(fixture.effect('pay', 'keyed', { perform }));
    await crash(fixture, { appendNumber: 2, when: 'before' }, body);
    await run(await fixture.open(), body);
    deepStrictEqual(starts, [0, 1]);
  },
  'a once effect is not repeated after a crash until it is resolved': async (library) => {
    const fixture = sessionFixture(library);
    const body = (scope: Scope) => scope.effect(fixture.effect('pay', 'once'));
    await crash(fixture, { appendNumber: 2, when: 'before' }, body);
    deepStrictEqual(fixture.performed, ['pay']);
    const outcome = await run(await fixture.open(), body);
    deepStrictEqual(fixture.performed, ['pay']);
    strictEqual(outcome.status, 'paused');
    strictEqual(outcome.status === 'paused' && outcome.pending[0]?.kind, 'doubt');
  },
  'a recorded result is never computed again': async (library) => {
    const fixture = sessionFixture(library);
    const body = async (scope: Scope) => {
      await scope.effect(fixture.effect('read', 'idempotent'));
      await scope.wait('go');
    };
    await run(await fixture.open(), body);
    await run(await fixture.open(), body);
    deepStrictEqual(fixture.performed, ['read']);
  },
  'a finished run never runs again': async (library) => {
    const fixture = sessionFixture(library);
    let bodyRuns = 0;
    const body = async () => {
      bodyRuns += 1;
      return bodyRuns;
    };
    const first = await run(await fixture.open(), body);
    deepStrictEqual(await run(await fixture.open(), body), first);
    strictEqual(bodyRuns, 1);
  },
  'a repeated effect keeps its idempotency key': async (library) => {
    const fixture = sessionFixture(library);
    const body = (scope: Scope) => scope.effect(fixture.effect('charge', 'keyed'));
    await crash(fixture, { appendNumber: 2, when: 'before' }, body);
    await run(await fixture.open(), body);
    strictEqual(fixture.keys.length, 2);
    strictEqual(fixture.keys[0], fixture.keys[1]);
  },
  'sessions that reuse a name use different idempotency keys': async (library) => {
    const fixture = sessionFixture(library);
    const body = (scope: Scope) => scope.effect(fixture.effect('charge', 'keyed'));
    await run(await fixture.open(), body);
    await fixture.store.journal.remove('s');
    await run(await fixture.open(), body);
    notStrictEqual(fixture.keys[0], fixture.keys[1]);
  },
  'a replay rejects a step that differs from the recorded one': async (library) => {
    const fixture = sessionFixture(library);
    const step = (name: string) => async (scope: Scope) => {
      await scope.effect(fixture.effect(name, 'idempotent', { input: null }));
      await scope.wait('go');
    };
    await run(await fixture.open(), step('a'));
    strictEqual(await codeOf(run(await fixture.open(), step('b'))), 'REPLAY_MISMATCH');
    deepStrictEqual(fixture.performed, ['a']);
  },
  'a replay rejects an input that differs from the recorded one': async (library) => {
    const fixture = sessionFixture(library);
    const step = (input: object) => async (scope: Scope) => {
      await scope.effect(fixture.effect('a', 'idempotent', { input }));
      await scope.wait('go');
    };
    await run(await fixture.open(), step({ to: 'alice', more: [1] }));
    strictEqual(await codeOf(run(await fixture.open(), step({ to: 'mallory', more: [1] }))), 'REPLAY_MISMATCH');
    strictEqual((await run(await fixture.open(), step({ more: [1], to: 'alice' }))).status, 'paused');
  },
  'a replay rejects code that omits a recorded step': async (library) => {
    const fixture = sessionFixture(library);
    await run(await fixture.open(), async (scope) => {
      await scope.effect(fixture.effect('a', 'idempotent'));
      await scope.wait('go');
    });
    strictEqual(await codeOf(run(await fixture.open(), async () => 'done')), 'REPLAY_MISMATCH');
  },
  'a replay rejects a race in place of a recorded all': async (library) => {
    const fixture = sessionFixture(library);
    const branches = [(scope: Scope) => scope.wait('x'), (scope: Scope) => scope.wait('y')];
    await run(await fixture.open(), (scope) => scope.all(branches));
    strictEqual(await codeOf(run(await fixture.open(), (scope) => scope.race(branches))), 'REPLAY_MISMATCH');
  },
  'a body that catches a fault does not continue': async (library) => {
    const fixture = sessionFixture(library);
    const store = library.crashingStore(fixture.store, { appendNumber: 1, when: 'before' });
    let hasContinued = false;
    const swallow = async (scope: Scope) => {
      await scope.effect(fixture.effect('a', 'once')).catch(() => {});
      hasContinued = true;
    };
    strictEqual(await codeOf(run(await fixture.open({ store }), swallow)), 'STORE_FAILED');
    await tick();
    strictEqual(hasContinued, false);
    deepStrictEqual(fixture.performed, []);
  },
  'nothing is written after an append has failed': async (library) => {
    const fixture = sessionFixture(library);
    const store = library.crashingStore(fixture.store, { appendNumber: 2, when: 'before' });
    const session = await fixture.open({ store });
    await codeOf(run(session, (scope) => scope.effect(fixture.effect('a', 'once'))));
    strictEqual(await codeOf(session.signal({ id: '1', name: 'x' })), 'STORE_FAILED');
    strictEqual(store.appendCount, 2);
    let appends = 0;
    const inner = library.memoryStore();
    const append = async (): Promise<void> => {
      appends += 1;
      await tick();
      throw new library.Fault('STORE_FAILED', 'the disk failed');
    };
    const claim = (name: string) => inner.journal.claim(name);
    const failingStore = { ...inner, journal: { ...inner.journal, claim, append } };
    await codeOf(
      run(await sessionFixture(library).open({ store: failingStore as never }), async (scope) => {
        for (let i = 0; i < 700; i++) await scope.record('a.b', () => i);
      }),
    );
    for (let i = 0; i < 5; i++) await tick();
    strictEqual(appends, 1);
  },
  'a signal that is delivered twice is received once': async (library) => {
    const fixture = sessionFixture(library);
    const session = await fixture.open();
    strictEqual(await session.signal({ id: '1', name: 'pay', value: 5 }), true);
    strictEqual(await session.signal({ id: '1', name: 'pay', value: 5 }), false);
    strictEqual(await codeOf(session.signal({ id: '1', name: 'pay', value: 6 })), 'SIGNAL_CONFLICT');
    const body = async (scope: Scope) => [await scope.wait('pay'), await scope.wait('pay')];
    strictEqual((await run(session, body)).status, 'paused');
  },
  'a resolution is refused for an effect that is not in doubt': async (library) => {
    const fixture = sessionFixture(library);
    const session = await fixture.open();
    await run(session, (scope) => scope.effect(fixture.effect('pay', 'once')));
    strictEqual(await codeOf(session.resolveEffect('t1/0', 'retry', 'mallory')), 'ANSWER_REFUSED');
    strictEqual(await codeOf(session.resolveEffect('t1/9', 'supply', 'mallory')), 'ANSWER_REFUSED');
  },
  'a writer with a stale fence cannot append': async (library) => {
    const fixture = sessionFixture(library);
    const staleSession = await fixture.open();
    await run(staleSession, (scope) => scope.wait('x'));
    await fixture.open();
    strictEqual(await codeOf(staleSession.signal({ id: '1', name: 'x' })), 'STALE_WRITER');
  },
  'a slow store does not grow the queue without bound': async (library) => {
    const { store, release } = slowStore(library);
    const fixture = sessionFixture(library, store);
    const session = await fixture.open();
    let steps = 0;
    const running = run(session, async (scope) => {
      for (; steps < 5_000; steps++) await scope.call({ name: 'p', body: () => null }, null);
    });
    for (let i = 0; i < 5; i++) await tick();
    ok(steps < 2_000, `${steps} steps ran ahead of the store`);
    release();
    await running;
  },
  'a body that outlives its attempt writes nothing': async (library) => {
    const fixture = sessionFixture(library);
    const later = { name: 'later', body: () => tick().then(tick) };
    const body = (name: string) => (scope: Scope) =>
      scope.all([(s) => s.call(later, null), (s) => s.effect(fixture.effect(name, 'idempotent'))]);
    const session = await fixture.open();
    const running = run(session, body('a'));
    await tick();
    await session.close();
    await codeOf(running);
    const reopened = await fixture.open();
    strictEqual(await codeOf(run(reopened, body('b'))), 'REPLAY_MISMATCH');
    for (let i = 0; i < 5; i++) await tick();
    await reopened.close();
    strictEqual((await fixture.entries()).filter(({ type }) => type === 'call.completed').length, 0);
  },
  'a replay performs no effect past the end of its record': async (library) => {
    const fixture = sessionFixture(library);
    const session = await fixture.open({ replayOnly: true });
    strictEqual(
      await codeOf(run(session, (scope) => scope.effect(fixture.effect('pay', 'once')))),
      'REPLAY_INCOMPLETE',
    );
    for (let i = 0; i < 5; i++) await tick();
    deepStrictEqual(fixture.performed, []);
  },
  'an effect whose intent is written when its session closes is performed, and not left in doubt': async (library) => {
    const { store, release } = slowStore(library);
    const fixture = sessionFixture(library, store);
    const session = await fixture.open();
    const body = async (scope: Scope): Promise<unknown> => {
      await scope.effect(fixture.effect('pay', 'once'));
      return scope.effect(fixture.effect('ship', 'once'));
    };
    const running = codeOf(run(session, body));
    for (let i = 0; i < 10; i++) await tick();
    const closing = session.close();
    release();
    await closing;
    strictEqual(await running, 'SESSION_CLOSED');
    deepStrictEqual(fixture.performed, ['pay']);
    deepStrictEqual(
      (await fixture.entries()).filter(({ type }) => type.startsWith('effect.')).map(({ type }) => type),
      ['effect.requested', 'effect.returned'],
    );
  },
  'the next attempt joins an effect that is still in flight': async (library) => {
    const fixture = sessionFixture(library);
    const session = await fixture.open();
    let finish: (value: string) => void = () => {};
    const slow = fixture.effect('slow', 'keyed', {
      perform: () => {
        fixture.performed.push('slow');
        return new Promise((resolve) => (finish = resolve));
      },
    });
    const body = (second: string) => (scope: Scope) =>
      scope.all([(s) => s.effect(slow), (s) => s.wait('x').then(() => s.effect(fixture.effect(second, 'pure')))]);
    const first = codeOf(run(session, body('a')));
    for (let i = 0; i < 5; i++) await tick();
    await session.signal({ id: '1', name: 'x' });
    for (let i = 0; i < 5; i++) await tick();
    (session as unknown as { activeRun: { attempt: { fail(fault: unknown): void } } }).activeRun.attempt.fail(
      new library.Fault('STORE_FAILED', 'the attempt ends, the session stays open'),
    );
    await first;
    const second = run(session, body('a'));
    for (let i = 0; i < 5; i++) await tick();
    deepStrictEqual(fixture.performed, ['slow', 'a']);
    finish('done');
    strictEqual((await second).status, 'ok');
  },
  'a misspelt session option is refused': async (library) => {
    const fixture = sessionFixture(library);
    const refuseAll = async () => {
      throw new library.LoopError('TOOL_NOT_ADMITTED', 'nothing is allowed');
    };
    const opened = await fixture.open({ layer: [refuseAll] } as never).catch((error: Error) => error.message);
    if (typeof opened !== 'string') await run(opened, (scope) => scope.effect(fixture.effect('pay', 'once')));
    deepStrictEqual(fixture.performed, []);
    ok(typeof opened === 'string' && opened.includes('"layer"'));
  },
} as const satisfies Record<string, GuardCheck>;
