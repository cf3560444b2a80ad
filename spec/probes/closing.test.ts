// Closing a session while a run, an effect or an append is in progress.
import { expect } from 'vitest';
import type { Scope } from '../../src/index.js';
import { codeOf, deferred, gatedStore, kernelFixture, run, ticks, unhandled, within } from '../support/kernel-probe.js';
import { verifies } from '../verifies.js';

verifies(
  'kernel.close',
  'an effect that waits for its barrier is performed before close() returns, and nothing after it',
  async () => {
    const gate = gatedStore();
    const fixture = kernelFixture(gate.store);
    const session = await fixture.open();
    const pays = async (s: Scope): Promise<unknown> => {
      await s.effect(fixture.effect('pay', 'once'));
      return s.effect(fixture.effect('ship', 'once'));
    };
    const running = codeOf(run(session, pays));
    await ticks(2);
    const closing = session.close();
    gate.release();
    await within(1000, closing);
    const atClose = [...fixture.performed];
    await running;
    await ticks(5);
    expect({ atClose, later: fixture.performed }).toEqual({ atClose: ['pay'], later: ['pay'] });
  },
);

for (const [state, body, code] of [
  ['paused', (s: Scope) => s.wait('x'), 'SESSION_CLOSED'],
  ['ended', () => Promise.reject(new Error('bad')), 'nothing'],
] as const)
  verifies(
    'kernel.close',
    `close() while a run of a root that has ${state} loads causes no unhandled rejection`,
    async () => {
      const fixture = kernelFixture();
      const session = await fixture.open();
      await run(session, body);
      unhandled.length = 0;
      const again = codeOf(run(session, body));
      const closing = session.close();
      expect(await again).toBe(code);
      await closing;
      await ticks(5);
      expect(unhandled.map(String)).toEqual([]);
    },
  );

verifies('kernel.close', 'close() ends even if the store fails while it waits for an effect', async () => {
  const fixture = kernelFixture();
  let broken = false;
  const store = {
    ...fixture.store,
    journal: {
      ...fixture.store.journal,
      append: (b: never) => (broken ? Promise.reject(new Error('disk gone')) : fixture.store.journal.append(b)),
    },
  };
  const session = await fixture.open({ store: store as never });
  const slow = deferred<string>();
  const running = codeOf(run(session, (s) => s.effect(fixture.effect('slow', 'once', () => slow.promise))));
  await ticks(3);
  broken = true;
  const signalled = codeOf(session.signal({ id: '1', name: 'x' }));
  const closing = session.close();
  await signalled;
  slow.resolve('late');
  await running;
  expect(await within(5000, codeOf(closing), 'close() never resolves')).toBe('nothing');
});

verifies('kernel.close', 'a second close() resolves no earlier than the first', async () => {
  const fixture = kernelFixture();
  const session = await fixture.open();
  const slow = deferred<string>();
  const running = codeOf(run(session, (s) => s.effect(fixture.effect('slow', 'once', () => slow.promise))));
  await ticks(3);
  let first = false;
  const closing = session.close().then(() => {
    first = true;
  });
  let early = false;
  const second = session.close().then(() => {
    early = !first;
  });
  await ticks(2);
  slow.resolve('x');
  await second;
  await closing;
  await running;
  expect(early).toBe(false);
});

verifies('kernel.close', 'nothing is written after close(), not even the end of a race or call', async () => {
  const fixture = kernelFixture();
  const session = await fixture.open();
  const slow = deferred<string>();
  const running = codeOf(
    run(session, (s) =>
      s.race([(a) => a.effect(fixture.effect('slow', 'once', () => slow.promise)), (b) => b.wait('x')]),
    ),
  );
  await ticks(3);
  const closing = session.close();
  slow.resolve('x');
  await closing;
  expect(await running).toBe('SESSION_CLOSED');
  const types = await fixture.types();
  expect(types.filter((type) => /^(race|call)\.(won|completed|errored)/.test(type))).toEqual([]);
  await ticks(3);
  expect(await fixture.types()).toEqual(types);
});
