/** Sessions that are closed while something is under way. */
import { expect } from 'vitest';
import { codeOf, deferred, gatedStore, kit, run, ticks, unhandled, within } from '../support/kernel-probe.js';
import { verifies } from '../verifies.js';

verifies('kernel.close', 'Z1 close() while an effect waits for its barrier: it is performed after close', async () => {
  const gate = gatedStore();
  const k = kit(gate.store);
  const session = await k.open();
  const running = codeOf(run(session, (s) => s.effect(k.effect('pay', 'once'))));
  await ticks(2);
  const closing = session.close();
  gate.release();
  await within(1000, closing);
  const atClose = [...k.performed];
  await running;
  await ticks(5);
  expect({ atClose, later: k.performed }).toEqual({ atClose: [], later: [] });
});

verifies('kernel.close', 'Z6 close() while run() of an errored root loads its past: unhandled rejection', async () => {
  const k = kit();
  const session = await k.open();
  await run(session, () => {
    throw new Error('bad');
  });
  unhandled.length = 0;
  const again = codeOf(run(session, () => 1));
  const closing = session.close();
  expect(await again).toBe('SESSION_CLOSED');
  await closing;
  await ticks(5);
  expect(unhandled.map(String)).toEqual([]);
});

verifies('kernel.close', 'Z7 store fails while close() waits for an effect: close() hangs for ever', async () => {
  const k = kit();
  let broken = false;
  const store = {
    ...k.store,
    journal: {
      ...k.store.journal,
      append: (b: never) => (broken ? Promise.reject(new Error('disk gone')) : k.store.journal.append(b)),
    },
  };
  const session = await k.open({ store: store as never });
  const slow = deferred<string>();
  const running = codeOf(run(session, (s) => s.effect(k.effect('slow', 'once', () => slow.promise))));
  await ticks(3);
  broken = true;
  const signalled = codeOf(session.signal({ id: '1', name: 'x' }));
  const closing = session.close();
  await signalled;
  slow.resolve('late');
  await running;
  expect(await within(500, codeOf(closing), 'close() never resolves')).toBe('nothing');
});

verifies('kernel.close', 'Z8 second close() resolves before the first has made things durable', async () => {
  const k = kit();
  const session = await k.open();
  const slow = deferred<string>();
  const running = codeOf(run(session, (s) => s.effect(k.effect('slow', 'once', () => slow.promise))));
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

verifies('kernel.close', 'Z9 after close nothing is written: race and call ends of the dead attempt', async () => {
  const k = kit();
  const session = await k.open();
  const slow = deferred<string>();
  const running = codeOf(
    run(session, (s) => s.race([(a) => a.effect(k.effect('slow', 'once', () => slow.promise)), (b) => b.wait('x')])),
  );
  await ticks(3);
  const closing = session.close();
  slow.resolve('x');
  await closing;
  expect(await running).toBe('SESSION_CLOSED');
  const types = await k.types();
  expect(types.filter((type) => /^(race|call)\.(won|completed|errored)/.test(type))).toEqual([]);
  await ticks(3);
  expect(await k.types()).toEqual(types);
});
