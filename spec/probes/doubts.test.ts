import { expect } from 'vitest';
import type { Scope } from '../../src/protocol/body.js';
import type { Layer } from '../../src/protocol/session.js';
import { crashingStore } from '../../src/testing/crashing-store.js';
import {
  codeOf,
  deferred,
  duplicates,
  gatedStore,
  kit,
  micro,
  run,
  tick,
  ticks,
  unhandled,
  within,
} from '../support/kernel-probe.js';
import { verifies } from '../verifies.js';

verifies('kernel.doubt', 'D1 an effect that waits for its barrier is listed in doubt and can be decided', async () => {
  const gate = gatedStore();
  const k = kit(gate.store);
  const session = await k.open();
  const running = run(session, (s) => s.effect(k.effect('pay', 'once')));
  await ticks(2);
  const doubts = session.effectsInDoubt.map(({ key }) => key);
  gate.release();
  await running;
  expect(doubts).toEqual([]);
});

verifies(
  'kernel.doubt',
  'D2 a retry decided before the effect was even performed makes it happen twice after a crash',
  async () => {
    const gate = gatedStore();
    const k = kit(gate.store);
    const session = await k.open();
    const hang = deferred<string>();
    const body = (s: Scope) => s.effect(k.effect('pay', 'once', () => hang.promise));
    void run(session, body).catch(() => {});
    await ticks(2);
    const decided = codeOf(session.resolveEffect('t1/0', 'retry', 'watchdog'));
    gate.release();
    await decided;
    await ticks(3);
    // process dies here: the effect was performed once, result unknown. Nobody decided anything after that.
    const again = await k.open();
    const second = run(again, (s) => s.effect(k.effect('pay', 'once')));
    await within(1000, second);
    expect(k.performed).toEqual(['pay']);
  },
);

async function doubt(k = kit()) {
  const store = crashingStore(k.store, { appendNumber: 2, when: 'before' });
  const body = (s: Scope) => s.effect(k.effect('pay', 'once'));
  await codeOf(run(await k.open({ store }), body));
  await tick();
  return { k, body };
}

verifies('kernel.doubt', 'D3 a decision made while the run loads is not heard', async () => {
  const bad: number[] = [];
  for (let offset = 0; offset < 30; offset++) {
    const { k, body } = await doubt();
    const session = await k.open();
    await session.signal({ id: 'x', name: 'x' }); // so that opening's reading is not used
    const running = run(session, body);
    for (let i = 0; i < offset; i++) await undefined;
    await session.resolveEffect('t1/0', 'supply', 'me', { value: 1 }).catch(() => {});
    let outcome = await running;
    if (outcome.status === 'paused') outcome = await run(session, body);
    if (outcome.status !== 'ok' && session.effectsInDoubt.length === 0) bad.push(offset);
  }
  expect(bad).toEqual([]);
});

verifies('kernel.doubt', 'D4 a doubt in a branch that lost stays in doubts for ever and stops snapshots', async () => {
  const k = kit();
  const session = await k.open();
  // lost branch's intent is never performed: the quick branch wins while the slow one waits for its barrier
  const hang = deferred<string>();
  const body = async (s: Scope) => {
    await s.race([
      (a) => a.effect(k.effect('slow', 'once', () => hang.promise)),
      (b) => b.now().then(() => b.sleep(0)),
    ]);
    return 'done';
  };
  expect((await run(session, body)).status).toBe('ok');
  const again = await k.open();
  expect(again.effectsInDoubt).toEqual([]);
});

verifies('kernel.snapshot', 'D4b ...and no snapshot is ever taken again', async () => {
  const k = kit();
  let session = await k.open();
  const hang = deferred<string>();
  await run(session, async (s) => {
    await s.race([(a) => a.effect(k.effect('slow', 'idempotent', () => hang.promise)), (b) => b.sleep(0)]);
  });
  session = await k.open(); // crash: the slow one never got a result
  for (let r = 0; r < 3; r++)
    await run(
      session,
      async (s) => {
        for (let i = 0; i < 600; i++) await s.record('a.b', () => 1);
      },
      `r${r}`,
    );
  expect(await k.store.snapshots.load('s')).toBeDefined();
});

verifies('kernel.doubt', 'D4c a cancelled root with a doubt: doubts, decide', async () => {
  const { k, body } = await doubt();
  const session = await k.open();
  await session.cancel('t1', 'enough');
  expect((await run(session, body)).status).toBe('error');
  expect(session.effectsInDoubt).toEqual([]);
});

verifies('kernel.doubt', 'D5 decide twice, crash at each append of the decision path', async () => {
  for (const decision of ['retry', 'supply', 'fail'] as const)
    for (let append = 1; append <= 6; append++)
      for (const when of ['before', 'after'] as const) {
        const { k, body } = await doubt();
        const crashing = crashingStore(k.store, { appendNumber: append, when });
        const s1 = await k.open({ store: crashing });
        try {
          const paused = await run(s1, body);
          if (paused.status === 'paused') {
            await s1.resolveEffect('t1/0', decision, 'me', { value: 'big'.repeat(3000) });
            await run(s1, body);
          }
        } catch {}
        await tick();
        const s2 = await k.open();
        let outcome = await run(s2, body);
        for (let i = 0; i < 5 && outcome.status === 'paused'; i++) {
          await s2.resolveEffect('t1/0', decision, 'me', { value: 'big'.repeat(3000) });
          outcome = await run(s2, body);
        }
        const where = `${decision} ${append} ${when}`;
        expect(outcome.status, where).toBe(decision === 'fail' ? 'error' : 'ok');
        expect(duplicates(await k.entries()), where).toEqual([]);
        const decisions = (await k.entries()).filter((e) => e.type === 'effect.resolved').length;
        const retries = decision === 'retry' ? decisions : 0;
        expect(k.performed.length, where).toBeLessThanOrEqual(1 + retries);
        const third = await k.open();
        const n = k.performed.length;
        expect(await run(third, body), where).toEqual(outcome);
        expect(k.performed.length).toBe(n);
      }
});

verifies('kernel.doubt', 'D6 doubts inside race branches and layers', async () => {
  const budget: Layer = async (_e, scope, next) => {
    await scope.record('b.r', () => 1);
    return next();
  };
  for (let append = 1; append <= 8; append++)
    for (const when of ['before', 'after'] as const) {
      const k = kit();
      const body = (s: Scope) =>
        s.race([
          async (a) => {
            await a.effect(k.effect('one', 'once'));
            await a.effect(k.effect('two', 'once'));
            return 'first';
          },
          (b) => b.wait('never'),
        ]);
      const crashing = crashingStore(k.store, { appendNumber: append, when });
      await codeOf(run(await k.open({ store: crashing, layers: [budget] }), body));
      await tick();
      const s2 = await k.open({ layers: [budget] });
      let o = await run(s2, body);
      let decisions = 0;
      for (let i = 0; i < 6 && o.status === 'paused'; i++) {
        const d = o.pending.find((p) => p.kind === 'doubt');
        if (d) {
          await s2.resolveEffect(d.key, 'retry', 'me');
          decisions += 1;
        }
        o = await run(s2, body);
      }
      const where = `${append} ${when}`;
      expect(o, where).toEqual({ status: 'ok', output: 'first' });
      expect(duplicates(await k.entries()), where).toEqual([]);
      expect(k.performed.length, where).toBeLessThanOrEqual(2 + decisions);
    }
});

verifies('kernel.doubt', 'D7 live decision in hold mode, twice', async () => {
  const { k } = await doubt();
  const session = await k.open();
  const body = (s: Scope) => s.effect(k.effect('pay', 'once'));
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
  'F8 a retry is cancelled around its barrier: performed and not recorded, or recorded and not performed',
  async () => {
    for (let offset = 0; offset < 60; offset += 2) {
      const k = kit();
      const body = (s: Scope) => s.effect(k.effect('pay', 'once'));
      await codeOf(run(await k.open({ store: crashingStore(k.store, { appendNumber: 2, when: 'before' }) }), body));
      await tick();
      const session = await k.open();
      await run(session, body);
      await session.resolveEffect('t1/0', 'retry', 'me');
      const tried = k.performed.length;
      const running = run(session, body);
      await micro(offset);
      const stopped = await session.cancel('t1', 'stop');
      const outcome = await running;
      const types = await k.types();
      const ended = types.filter((type) => /^effect\.(returned|failed) /.test(type)).length;
      expect(outcome.status, `${offset}`).toBe(stopped ? 'error' : 'ok');
      expect(k.performed.length - tried, `${offset}: ${types}`).toBeLessThanOrEqual(ended);
      expect(duplicates(await k.entries()), `${offset}`).toEqual([]);
      expect(await run(await k.open(), body), `${offset}`).toEqual(outcome);
    }
  },
);
