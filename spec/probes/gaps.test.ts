// Cancels, lost races, resolutions, signals and closes at every microtask of a step.

import { expect } from 'vitest';
import type { Scope } from '../../src/protocol/body.js';
import type { Layer } from '../../src/protocol/session.js';
import { crashingStore } from '../../src/testing/crashing-store.js';
import { leafLoop } from '../../src/testing/random-programs.js';
import {
  codeOf,
  gatedStore,
  kernelFixture,
  micro,
  run,
  textStore,
  tick,
  ticks,
  unhandled,
  within,
} from '../support/kernel-probe.js';
import { verifies } from '../verifies.js';

const MICROTASKS = 60;

const steps: Record<string, (s: Scope, fixture: ReturnType<typeof kernelFixture>) => Promise<unknown>> = {
  sleep: (s) => s.sleep(1e9),
  wait: (s) => s.wait('x'),
  effect: (s, fixture) => s.effect(fixture.effect('pay', 'once', () => new Promise(() => {}))),
  pure: (s, fixture) => s.effect(fixture.effect('pure', 'pure', () => new Promise(() => {}))),
  'all of sleeps': (s) => s.all([(a) => a.sleep(1e9), (b) => b.sleep(1e9)]),
  'race of sleeps': (s) => s.race([(a) => a.sleep(1e9), (b) => b.sleep(1e9), (c) => c.wait('x')]),
  'leaf call': (s, fixture) => s.call(leafLoop(fixture.effect('pay', 'once', () => new Promise(() => {}))), null),
  call: (s) => s.call({ name: 'c', body: (_: null, c) => c.sleep(1e9) }, null),
};

for (const [name, step] of Object.entries(steps))
  verifies(
    'kernel.cancel',
    `a cancel at any microtask of ${name} ends the run, and nothing is performed after it`,
    async () => {
      const failures: string[] = [];
      for (let offset = 0; offset < MICROTASKS; offset++) {
        const fixture = kernelFixture();
        const session = await fixture.open();
        const running = run(session, (s) => step(s, fixture), 't1', 'hold');
        await micro(offset);
        const performed = fixture.performed.length;
        const cancelled = session.cancel('t1', 'stop');
        const isKnown = await cancelled;
        const outcome = await within(5000, running, 'the cancel has no effect').catch((e) => ({
          status: String(e.message),
        }));
        const finalStatus =
          outcome.status === 'paused'
            ? (await run(session, (s) => step(s, fixture), 't1', 'hold')).status
            : outcome.status;
        if (isKnown && finalStatus !== 'error') failures.push(`${offset}: ${outcome.status}`);
        if (isKnown && fixture.performed.length > performed) failures.push(`${offset}: performed after the cancel`);
        if (!isKnown) await session.close();
      }
      expect(failures).toEqual([]);
      expect(unhandled.map(String)).toEqual([]);
    },
    30_000,
  );

for (const [name, step] of Object.entries(steps))
  verifies(
    'kernel.race',
    `a branch with ${name} that loses at any microtask leaves nothing behind`,
    async () => {
      const failures: string[] = [];
      for (let offset = 0; offset < MICROTASKS; offset++) {
        const fixture = kernelFixture();
        const session = await fixture.open();
        const body = async (s: Scope) => {
          await s.race([
            (a) => step(a, fixture),
            async () => {
              await micro(offset);
              return 'quick';
            },
          ]);
          return s.wait('end');
        };
        const outcome = await within(5000, run(session, body, 't1', 'hold'), 'held').catch((e) => ({
          status: String(e.message),
          pending: [],
        }));
        const names = 'pending' in outcome ? outcome.pending.map((p) => `${p.kind} ${p.key}`) : [];
        if (outcome.status !== 'paused' || names.join() !== 'signal t1/1')
          failures.push(`${offset}: ${outcome.status} ${names}`);
        if (outcome.status.includes('HANG')) continue;
        const all = await fixture.entries();
        const won = all.findIndex((e) => e.type === 'race.won');
        const after = all
          .slice(won + 1)
          .filter((e) => e.key.startsWith('t1/0/') && !/^effect\.(returned|failed)$/.test(e.type));
        if (after.length > 0) failures.push(`${offset}: after the race ${after.map((e) => `${e.type} ${e.key}`)}`);
        const { runDeps } = session as unknown as { runDeps: { waiters: Map<string, unknown> | undefined } };
        if ((runDeps.waiters?.size ?? 0) > 0) failures.push(`${offset}: a waiter remains`);
        await codeOf(session.signal({ id: 'end', name: 'end' }));
      }
      expect(failures).toEqual([]);
    },
    30_000,
  );

verifies('kernel.cancel', 'a cancel at any microtask ends a run with an effect in doubt', async () => {
  const failures: string[] = [];
  for (let offset = 0; offset < MICROTASKS; offset++) {
    const fixture = kernelFixture();
    const body = (s: Scope) =>
      s.all([(a) => a.effect(fixture.effect('pay', 'once', () => 1, 'i'.repeat(6000))), (b) => b.sleep(1e9)]);
    await codeOf(
      run(
        await fixture.open({ store: crashingStore(fixture.store, { appendNumber: 2, when: 'before' }) }),
        body,
        't1',
        'hold',
      ),
    );
    await tick();
    const session = await fixture.open();
    const running = run(session, body, 't1', 'hold');
    await micro(offset);
    await session.cancel('t1', 'stop');
    const outcome = await within(5000, running, 'the cancel has no effect').catch((e) => ({
      status: String(e.message),
    }));
    if (outcome.status !== 'error') failures.push(`${offset}: ${outcome.status}`);
  }
  expect(failures).toEqual([]);
});

verifies('kernel.doubt', 'a resolution at any microtask of a running turn takes effect', async () => {
  const failures: string[] = [];
  for (let offset = 0; offset < 80; offset++) {
    const fixture = kernelFixture();
    const body = (s: Scope) =>
      s.race([
        (a) => a.effect(fixture.effect('pay', 'once', () => 1, 'i'.repeat(6000))),
        (b) => b.sleep(1e6).then(() => 'timer'),
      ]);
    await codeOf(
      run(
        await fixture.open({ store: crashingStore(fixture.store, { appendNumber: 2, when: 'before' }) }),
        body,
        't1',
        'hold',
      ),
    );
    await tick();
    const session = await fixture.open();
    const running = run(session, body, 't1', 'hold');
    await micro(offset);
    const code = await codeOf(session.resolveEffect('t1/0/0/0', 'supply', 'me', { value: 'resolved' }));
    if (code !== 'nothing') failures.push(`${offset}: ${code}`);
    const outcome = await within(5000, running, 'the resolution has no effect').catch((e) => ({
      status: String(e.message),
    }));
    if (outcome.status !== 'ok') failures.push(`${offset}: ${outcome.status}`);
    else if ((outcome as { output: unknown }).output !== 'resolved')
      failures.push(`${offset}: ${JSON.stringify(outcome)}`);
  }
  expect(failures).toEqual([]);
});

verifies('kernel.signal', 'a signal at any microtask is delivered once, to the wait that remains', async () => {
  const failures: string[] = [];
  for (const gated of [false, true])
    for (let offset = 0; offset < 60; offset++) {
      const gate = gatedStore(textStore());
      const fixture = kernelFixture(gated ? gate.store : textStore());
      if (!gated) gate.release();
      const session = await fixture.open();
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
      if (out[1] !== 'X') failures.push(`${gated} ${offset}: ${JSON.stringify(outcome)}`);
    }
  expect(failures).toEqual([]);
});

verifies('kernel.close', 'nothing is performed or written after a close() at any microtask', async () => {
  const failures: string[] = [];
  const layer: Layer = async (_e, s, next) => {
    await s.record('l.l', () => 1);
    return next();
  };
  for (const layers of [[], [layer]])
    for (let offset = 0; offset < 80; offset++) {
      const fixture = kernelFixture();
      const session = await fixture.open({ layers });
      const running = codeOf(
        run(
          session,
          async (s) => {
            await s.effect(fixture.effect('one', 'keyed'));
            await s.race([(a) => a.effect(fixture.effect('two', 'once')), (b) => b.sleep(5)]);
            await s.call(
              {
                name: 'c',
                body: (_: null, c) => c.effect(fixture.effect('three', 'pure', () => tick().then(() => 3))),
              },
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
      const performed = fixture.performed.length;
      const written = (await fixture.entries()).length;
      await ticks(4);
      if (fixture.performed.length !== performed) failures.push(`${offset}: performed after close`);
      if ((await fixture.entries()).length !== written) failures.push(`${offset}: written after close`);
      const code = await within(5000, running, 'run never ends').catch(String);
      if (code !== 'SESSION_CLOSED' && code !== 'nothing') failures.push(`${offset}: ${code}`);
    }
  expect(failures).toEqual([]);
  expect(unhandled.map(String)).toEqual([]);
});

verifies(
  'kernel.fence',
  'a writer that loses its claim at any microtask performs only effects with a durable intent',
  async () => {
    const failures: string[] = [];
    for (let offset = 0; offset < 80; offset++) {
      const fixture = kernelFixture();
      const session = await fixture.open();
      const running = codeOf(
        run(
          session,
          async (s) => {
            await s.effect(
              fixture.effect('one', 'once', () => {
                return 1;
              }),
            );
            await s.effect(
              fixture.effect('two', 'once', () => {
                return 1;
              }),
            );
          },
          't1',
          'hold',
        ),
      );
      await micro(offset);
      await fixture.open();
      const code = await within(5000, running, 'run never ends').catch(String);
      const intents = (await fixture.entries()).filter((e) => e.type === 'effect.requested').length;
      if (fixture.performed.length > intents)
        failures.push(`${offset}: ${fixture.performed} with ${intents} intents, ${code}`);
    }
    expect(failures).toEqual([]);
  },
);
