// Effects in doubt: when they are listed, and how resolutions combine with crashes, races and cancels.

import { expect } from 'vitest';
import type { Scope } from '../../src/protocol/body.js';
import type { Layer } from '../../src/protocol/session.js';
import { crashingStore } from '../../src/testing/crashing-store.js';
import {
  codeOf,
  deferred,
  duplicates,
  gatedStore,
  kernelFixture,
  micro,
  run,
  tick,
  ticks,
  unhandled,
  within,
} from '../support/kernel-probe.js';
import { verifies } from '../verifies.js';

verifies('kernel.doubt', 'an effect that waits for its barrier is not in doubt', async () => {
  const gate = gatedStore();
  const fixture = kernelFixture(gate.store);
  const session = await fixture.open();
  const running = run(session, (s) => s.effect(fixture.effect('pay', 'once')));
  await ticks(2);
  const doubts = session.effectsInDoubt.map(({ key }) => key);
  gate.release();
  await running;
  expect(doubts).toEqual([]);
});

verifies(
  'kernel.doubt',
  'a retry before the effect was performed does not perform it twice after a crash',
  async () => {
    const gate = gatedStore();
    const fixture = kernelFixture(gate.store);
    const session = await fixture.open();
    const hang = deferred<string>();
    const body = (s: Scope) => s.effect(fixture.effect('pay', 'once', () => hang.promise));
    void run(session, body).catch(() => {});
    await ticks(2);
    const resolved = codeOf(session.resolveEffect('t1/0', 'retry', 'watchdog'));
    gate.release();
    await resolved;
    await ticks(3);
    // The process dies here: the effect was performed once, its result is unknown, and no later resolution exists.
    const again = await fixture.open();
    const second = run(again, (s) => s.effect(fixture.effect('pay', 'once')));
    await within(1000, second);
    expect(fixture.performed).toEqual(['pay']);
  },
);

/** Crashes a run so that its effect `t1/0` is in doubt. */
async function effectInDoubt(fixture = kernelFixture()) {
  const store = crashingStore(fixture.store, { appendNumber: 2, when: 'before' });
  const body = (s: Scope) => s.effect(fixture.effect('pay', 'once'));
  await codeOf(run(await fixture.open({ store }), body));
  await tick();
  return { fixture, body };
}

verifies('kernel.doubt', 'a resolution during the load of a run takes effect', async () => {
  const failures: number[] = [];
  for (let offset = 0; offset < 30; offset++) {
    const { fixture, body } = await effectInDoubt();
    const session = await fixture.open();
    await session.signal({ id: 'x', name: 'x' }); // Discards the journal that was read when the session was opened.
    const running = run(session, body);
    for (let i = 0; i < offset; i++) await undefined;
    await session.resolveEffect('t1/0', 'supply', 'me', { value: 1 }).catch(() => {});
    let outcome = await running;
    if (outcome.status === 'paused') outcome = await run(session, body);
    if (outcome.status !== 'ok' && session.effectsInDoubt.length === 0) failures.push(offset);
  }
  expect(failures, 'a resolution was ignored').toEqual([]);
});

verifies('kernel.doubt', 'an effect of a branch that lost its race is not in doubt', async () => {
  const fixture = kernelFixture();
  const session = await fixture.open();
  // The quick branch wins while the effect of the slow one waits for its barrier.
  const hang = deferred<string>();
  const body = async (s: Scope) => {
    await s.race([
      (a) => a.effect(fixture.effect('slow', 'once', () => hang.promise)),
      (b) => b.now().then(() => b.sleep(0)),
    ]);
    return 'done';
  };
  expect((await run(session, body)).status).toBe('ok');
  const again = await fixture.open();
  expect(again.effectsInDoubt).toEqual([]);
});

verifies('kernel.snapshot', 'an effect of a branch that lost its race does not prevent snapshots', async () => {
  const fixture = kernelFixture();
  let session = await fixture.open();
  const hang = deferred<string>();
  await run(session, async (s) => {
    await s.race([(a) => a.effect(fixture.effect('slow', 'idempotent', () => hang.promise)), (b) => b.sleep(0)]);
  });
  session = await fixture.open(); // After a crash the slow effect has no result.
  for (let r = 0; r < 3; r++)
    await run(
      session,
      async (s) => {
        for (let i = 0; i < 600; i++) await s.record('a.b', () => 1);
      },
      `r${r}`,
    );
  expect(await fixture.store.snapshots.load('s')).toBeDefined();
});

verifies('kernel.doubt', 'an effect of a cancelled root is no longer in doubt', async () => {
  const { fixture, body } = await effectInDoubt();
  const session = await fixture.open();
  await session.cancel('t1', 'enough');
  expect((await run(session, body)).status).toBe('error');
  expect(session.effectsInDoubt).toEqual([]);
});

verifies('kernel.doubt', 'a resolution survives a crash at every append, and performs nothing twice', async () => {
  for (const resolution of ['retry', 'supply', 'fail'] as const)
    for (let append = 1; append <= 6; append++)
      for (const when of ['before', 'after'] as const) {
        const { fixture, body } = await effectInDoubt();
        const crashing = crashingStore(fixture.store, { appendNumber: append, when });
        const s1 = await fixture.open({ store: crashing });
        try {
          const paused = await run(s1, body);
          if (paused.status === 'paused') {
            await s1.resolveEffect('t1/0', resolution, 'me', { value: 'big'.repeat(3000) });
            await run(s1, body);
          }
        } catch {}
        await tick();
        const s2 = await fixture.open();
        let outcome = await run(s2, body);
        for (let i = 0; i < 5 && outcome.status === 'paused'; i++) {
          await s2.resolveEffect('t1/0', resolution, 'me', { value: 'big'.repeat(3000) });
          outcome = await run(s2, body);
        }
        const where = `${resolution} ${append} ${when}`;
        expect(outcome.status, where).toBe(resolution === 'fail' ? 'error' : 'ok');
        expect(duplicates(await fixture.entries()), where).toEqual([]);
        const resolutions = (await fixture.entries()).filter((e) => e.type === 'effect.resolved').length;
        const retries = resolution === 'retry' ? resolutions : 0;
        expect(fixture.performed.length, where).toBeLessThanOrEqual(1 + retries);
        const third = await fixture.open();
        const n = fixture.performed.length;
        expect(await run(third, body), where).toEqual(outcome);
        expect(fixture.performed.length).toBe(n);
      }
});

verifies(
  'kernel.doubt',
  'effects in doubt inside of races and layers are resolved after a crash at every append',
  async () => {
    const budget: Layer = async (_e, scope, next) => {
      await scope.record('b.r', () => 1);
      return next();
    };
    for (let append = 1; append <= 8; append++)
      for (const when of ['before', 'after'] as const) {
        const fixture = kernelFixture();
        const body = (s: Scope) =>
          s.race([
            async (a) => {
              await a.effect(fixture.effect('one', 'once'));
              await a.effect(fixture.effect('two', 'once'));
              return 'first';
            },
            (b) => b.wait('never'),
          ]);
        const crashing = crashingStore(fixture.store, { appendNumber: append, when });
        await codeOf(run(await fixture.open({ store: crashing, layers: [budget] }), body));
        await tick();
        const s2 = await fixture.open({ layers: [budget] });
        let o = await run(s2, body);
        let resolutions = 0;
        for (let i = 0; i < 6 && o.status === 'paused'; i++) {
          const d = o.pending.find((p) => p.kind === 'doubt');
          if (d) {
            await s2.resolveEffect(d.key, 'retry', 'me');
            resolutions += 1;
          }
          o = await run(s2, body);
        }
        const where = `${append} ${when}`;
        expect(o, where).toEqual({ status: 'ok', output: 'first' });
        expect(duplicates(await fixture.entries()), where).toEqual([]);
        expect(fixture.performed.length, where).toBeLessThanOrEqual(2 + resolutions);
      }
  },
);

verifies('kernel.doubt', 'the second of two concurrent resolutions is refused', async () => {
  const { fixture } = await effectInDoubt();
  const session = await fixture.open();
  const body = (s: Scope) => s.effect(fixture.effect('pay', 'once'));
  const running = run(session, body, 't1', 'hold');
  const o = await running;
  expect(o.status).toBe('paused');
  const results = await Promise.all([
    codeOf(session.resolveEffect('t1/0', 'supply', 'a', { value: 1 })),
    codeOf(session.resolveEffect('t1/0', 'fail', 'b')),
  ]);
  expect(results.sort()).toEqual(['ANSWER_REFUSED', 'nothing']);
  expect(unhandled).toEqual([]);
});

verifies(
  'kernel.doubt',
  'a retry that is cancelled around its barrier is recorded exactly if it is performed',
  async () => {
    for (let offset = 0; offset < 60; offset += 2) {
      const fixture = kernelFixture();
      const body = (s: Scope) => s.effect(fixture.effect('pay', 'once'));
      await codeOf(
        run(await fixture.open({ store: crashingStore(fixture.store, { appendNumber: 2, when: 'before' }) }), body),
      );
      await tick();
      const session = await fixture.open();
      await run(session, body);
      await session.resolveEffect('t1/0', 'retry', 'me');
      const performedBefore = fixture.performed.length;
      const running = run(session, body);
      await micro(offset);
      const stopped = await session.cancel('t1', 'stop');
      const outcome = await running;
      const types = await fixture.types();
      const ended = types.filter((type) => /^effect\.(returned|failed) /.test(type)).length;
      expect(outcome.status, `${offset}`).toBe(stopped ? 'error' : 'ok');
      expect(fixture.performed.length - performedBefore, `${offset}: ${types}`).toBeLessThanOrEqual(ended);
      expect(duplicates(await fixture.entries()), `${offset}`).toEqual([]);
      expect(await run(await fixture.open(), body), `${offset}`).toEqual(outcome);
    }
  },
);
