/** The moments between a check and what it guards: a cancel or a lost race, one microtask apart. */

import { expect } from 'vitest';
import type { Scope } from '../../src/protocol/body.js';
import type { Layer } from '../../src/protocol/session.js';
import { crashingStore } from '../../src/testing/crashing-store.js';
import {
  codeOf,
  gatedStore,
  kit,
  micro,
  run,
  textStore,
  tick,
  ticks,
  unhandled,
  within,
} from '../support/kernel-probe.js';
import { verifies } from '../verifies.js';

const SPAN = 60;

const steps: Record<string, (s: Scope, k: ReturnType<typeof kit>) => Promise<unknown>> = {
  sleep: (s) => s.sleep(1e9),
  wait: (s) => s.wait('x'),
  effect: (s, k) => s.effect(k.effect('pay', 'once', () => new Promise(() => {}))),
  pure: (s, k) => s.effect(k.effect('pure', 'pure', () => new Promise(() => {}))),
  'all of sleeps': (s) => s.all([(a) => a.sleep(1e9), (b) => b.sleep(1e9)]),
  'race of sleeps': (s) => s.race([(a) => a.sleep(1e9), (b) => b.sleep(1e9), (c) => c.wait('x')]),
  call: (s) => s.call({ name: 'c', body: (_: null, c) => c.sleep(1e9) }, null),
};

for (const [name, step] of Object.entries(steps))
  verifies(
    'kernel.cancel',
    `G1 cancel ${name} at every microtask: the run ends and nothing is performed after it`,
    async () => {
      const bad: string[] = [];
      for (let offset = 0; offset < SPAN; offset++) {
        const k = kit();
        const session = await k.open();
        const running = run(session, (s) => step(s, k), 't1', 'hold');
        await micro(offset);
        const performed = k.performed.length;
        const cancelled = session.cancel('t1', 'stop');
        const known = await cancelled;
        const outcome = await within(60, running, 'cancel is not heard').catch((e) => ({ status: String(e.message) }));
        const heard =
          outcome.status === 'paused' ? (await run(session, (s) => step(s, k), 't1', 'hold')).status : outcome.status;
        if (known && heard !== 'error') bad.push(`${offset}: ${outcome.status}`);
        if (known && k.performed.length > performed) bad.push(`${offset}: performed after the cancel`);
        if (!known) await session.close();
      }
      expect(bad).toEqual([]);
      expect(unhandled.map(String)).toEqual([]);
    },
    30_000,
  );

for (const [name, step] of Object.entries(steps))
  verifies(
    'kernel.race',
    `G2 a branch with ${name} loses at every microtask: it leaves nothing behind`,
    async () => {
      const bad: string[] = [];
      for (let offset = 0; offset < SPAN; offset++) {
        const k = kit();
        const session = await k.open();
        const body = async (s: Scope) => {
          await s.race([
            (a) => step(a, k),
            async () => {
              await micro(offset);
              return 'quick';
            },
          ]);
          return s.wait('end');
        };
        const outcome = await within(100, run(session, body, 't1', 'hold'), 'held').catch((e) => ({
          status: String(e.message),
          pending: [],
        }));
        const names = 'pending' in outcome ? outcome.pending.map((p) => `${p.kind} ${p.key}`) : [];
        if (outcome.status !== 'paused' || names.join() !== 'signal t1/1')
          bad.push(`${offset}: ${outcome.status} ${names}`);
        if (outcome.status.includes('HANG')) continue;
        const all = await k.entries();
        const won = all.findIndex((e) => e.type === 'race.won');
        const after = all
          .slice(won + 1)
          .filter((e) => e.key.startsWith('t1/0/') && !/^effect\.(returned|failed)$/.test(e.type));
        if (after.length > 0) bad.push(`${offset}: after the race ${after.map((e) => `${e.type} ${e.key}`)}`);
        const { runDeps: parts } = session as unknown as { runDeps: { waiters: Map<string, unknown> | undefined } };
        if ((parts.waiters?.size ?? 0) > 0) bad.push(`${offset}: a waiter stays`);
        await codeOf(session.signal({ id: 'end', name: 'end' }));
      }
      expect(bad).toEqual([]);
    },
    30_000,
  );

verifies('kernel.cancel', 'G3 cancel a doubt at every microtask', async () => {
  const bad: string[] = [];
  for (let offset = 0; offset < SPAN; offset++) {
    const k = kit();
    const body = (s: Scope) =>
      s.all([(a) => a.effect(k.effect('pay', 'once', () => 1, 'i'.repeat(6000))), (b) => b.sleep(1e9)]);
    await codeOf(
      run(await k.open({ store: crashingStore(k.store, { appendNumber: 2, when: 'before' }) }), body, 't1', 'hold'),
    );
    await tick();
    const session = await k.open();
    const running = run(session, body, 't1', 'hold');
    await micro(offset);
    await session.cancel('t1', 'stop');
    const outcome = await within(60, running, 'cancel is not heard').catch((e) => ({ status: String(e.message) }));
    if (outcome.status !== 'error') bad.push(`${offset}: ${outcome.status}`);
  }
  expect(bad).toEqual([]);
});

verifies('kernel.doubt', 'G4 decide at every microtask while the run is live in hold mode', async () => {
  const bad: string[] = [];
  for (let offset = 0; offset < 80; offset++) {
    const k = kit();
    const body = (s: Scope) =>
      s.race([
        (a) => a.effect(k.effect('pay', 'once', () => 1, 'i'.repeat(6000))),
        (b) => b.sleep(1e6).then(() => 'timer'),
      ]);
    await codeOf(
      run(await k.open({ store: crashingStore(k.store, { appendNumber: 2, when: 'before' }) }), body, 't1', 'hold'),
    );
    await tick();
    const session = await k.open();
    const running = run(session, body, 't1', 'hold');
    await micro(offset);
    const code = await codeOf(session.resolveEffect('t1/0/0/0', 'supply', 'me', { value: 'decided' }));
    if (code !== 'nothing') bad.push(`${offset}: ${code}`);
    const outcome = await within(60, running, 'the decision is not heard').catch((e) => ({
      status: String(e.message),
    }));
    if (outcome.status !== 'ok') bad.push(`${offset}: ${outcome.status}`);
    else if ((outcome as { output: unknown }).output !== 'decided') bad.push(`${offset}: ${JSON.stringify(outcome)}`);
  }
  expect(bad).toEqual([]);
});

verifies(
  'kernel.signal',
  'G5 signal at every microtask of a live run: heard once, by the wait that stays',
  async () => {
    const bad: string[] = [];
    for (const gated of [false, true])
      for (let offset = 0; offset < 60; offset++) {
        const gate = gatedStore(textStore());
        const k = kit(gated ? gate.store : textStore());
        if (!gated) gate.release();
        const session = await k.open();
        const body = async (s: Scope) => {
          const first = await s.race([
            (a) => a.wait('x'),
            async () => {
              await micro(20);
              return 'quick';
            },
          ]);
          return [first, first === 'quick' ? await s.wait('x') : 'X'];
        };
        const running = run(session, body, 't1', 'hold');
        await micro(offset);
        const sent = session.signal({ id: '1', name: 'x', value: 'X' });
        await ticks(2);
        gate.release();
        await sent;
        let outcome = await running;
        if (outcome.status === 'paused') outcome = await run(session, body, 't1', 'hold');
        const out = outcome.status === 'ok' ? (outcome.output as string[]) : [];
        if (out[1] !== 'X') bad.push(`${gated} ${offset}: ${JSON.stringify(outcome)}`);
      }
    expect(bad).toEqual([]);
  },
);

verifies('kernel.close', 'G6 close at every microtask: nothing performed or written after close resolves', async () => {
  const bad: string[] = [];
  const layer: Layer = async (_e, s, next) => {
    await s.record('l.l', () => 1);
    return next();
  };
  for (const layers of [[], [layer]])
    for (let offset = 0; offset < 80; offset++) {
      const k = kit();
      const session = await k.open({ layers });
      const running = codeOf(
        run(
          session,
          async (s) => {
            await s.effect(k.effect('one', 'keyed'));
            await s.race([(a) => a.effect(k.effect('two', 'once')), (b) => b.sleep(5)]);
            await s.call(
              { name: 'c', body: (_: null, c) => c.effect(k.effect('three', 'pure', () => tick().then(() => 3))) },
              null,
            );
            await s.wait('x');
          },
          't1',
          'hold',
        ),
      );
      await micro(offset);
      await within(1000, session.close(), 'close');
      const performed = k.performed.length;
      const written = (await k.entries()).length;
      await ticks(4);
      if (k.performed.length !== performed) bad.push(`${offset}: performed after close`);
      if ((await k.entries()).length !== written) bad.push(`${offset}: written after close`);
      const code = await within(100, running, 'run never ends').catch(String);
      if (code !== 'SESSION_CLOSED' && code !== 'nothing') bad.push(`${offset}: ${code}`);
    }
  expect(bad).toEqual([]);
  expect(unhandled.map(String)).toEqual([]);
});

verifies(
  'kernel.fence',
  'G7 another writer claims at every microtask: the old one performs nothing whose intent is not durable',
  async () => {
    const bad: string[] = [];
    for (let offset = 0; offset < 80; offset++) {
      const k = kit();
      const session = await k.open();
      let _at = '';
      const running = codeOf(
        run(
          session,
          async (s) => {
            await s.effect(
              k.effect('one', 'once', () => {
                _at += 'one';
                return 1;
              }),
            );
            await s.effect(
              k.effect('two', 'once', () => {
                _at += 'two';
                return 1;
              }),
            );
          },
          't1',
          'hold',
        ),
      );
      await micro(offset);
      await k.open();
      const code = await within(200, running, 'run never ends').catch(String);
      const intents = (await k.entries()).filter((e) => e.type === 'effect.requested').length;
      if (k.performed.length > intents) bad.push(`${offset}: ${k.performed} with ${intents} intents, ${code}`);
    }
    expect(bad).toEqual([]);
  },
);
