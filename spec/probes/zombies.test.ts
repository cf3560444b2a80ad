/** Bodies of an attempt that is over. */
import { expect, test } from 'vitest';
import type { Scope } from '../../src/kernel/scope.js';
import { codeOf, deferred, duplicates, gatedStore, kit, run, tick, ticks, unhandled, within } from './kit.js';

test('Z1 close() while an effect waits for its barrier: it is performed after close', async () => {
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

test('Z2 after a mismatch, a branch of the dead attempt still performs its effect; the next run performs it again', async () => {
  const gate = gatedStore();
  const k = kit(gate.store);
  gate.state.open = true;
  // journal: all[ A: wait a ; B: record x ]
  const v1 = (s: Scope) =>
    s.all([
      async (a) => {
        await a.wait('a');
        return a.effect(k.effect('pay', 'keyed'));
      },
      (b) => b.record('x.y', () => 1).then(() => b.wait('b')),
    ]);
  let session = await k.open();
  await run(session, v1);
  await session.signal({ id: '1', name: 'a' });
  await session.close();
  session = await k.open();
  gate.shut();
  const held = deferred<void>();
  // changed code: branch B's record is fetched after a foreign delay, then mismatches
  const v2 = (s: Scope) =>
    s.all([
      async (a) => {
        await a.wait('a');
        return a.effect(k.effect('pay', 'keyed'));
      },
      async (b) => {
        await held.promise;
        return b.now();
      },
    ]);
  const first = codeOf(run(session, v2));
  await ticks(3);
  held.resolve();
  await ticks(3);
  gate.release();
  expect(await first).toBe('REPLAY_MISMATCH');
  await ticks(5);
  expect(k.performed).toEqual([]);
});

test('Z3 in-flight effect of a mismatched attempt, run again at once: duplicate results in the journal', async () => {
  const k = kit();
  const v1 = (s: Scope) => s.all([(a) => a.wait('a'), (b) => b.record('x.y', () => 1).then(() => b.wait('b'))]);
  let session = await k.open();
  await run(session, v1);
  await session.signal({ id: '1', name: 'a' });
  session = await k.open();
  const gates = [deferred<string>(), deferred<string>()];
  let n = 0;
  const slow = () => k.effect('slow', 'idempotent', () => gates[n++]?.promise);
  const held = deferred<void>();
  const v2 = (s: Scope) =>
    s.all([
      async (a) => {
        await a.wait('a');
        return a.effect(slow());
      },
      async (b) => {
        await held.promise;
        return b.now();
      },
    ]);
  const first = codeOf(run(session, v2));
  await ticks(3);
  held.resolve();
  expect(await first).toBe('REPLAY_MISMATCH');
  const v3 = (s: Scope) =>
    s.all([
      async (a) => {
        await a.wait('a');
        return a.effect(slow());
      },
      (b) => b.record('x.y', () => 1).then(() => b.wait('b')),
    ]);
  const second = run(session, v3);
  await ticks(3);
  gates[0]?.resolve('one');
  await ticks(3);
  gates[1]?.resolve('two');
  await second;
  expect(duplicates(await k.entries())).toEqual([]);
});

test('Z4 a wait that begins in the moment of the mismatch stays behind and swallows the next signal', async () => {
  const k = kit();
  let session = await k.open();
  // recorded: all[ A: record; B: record ]
  await run(session, (s) =>
    s.all([
      (a) => a.record('x.y', () => 1).then(() => a.wait('never')),
      (b) => b.record('x.z', () => 2).then(() => b.wait('never')),
    ]),
  );
  session = await k.open();
  // changed: B mismatches while A is between `enter` and `park`
  const changed = (s: Scope) =>
    s.all([
      async (a) => {
        await a.record('x.y', () => 1);
        await a.wait('never');
      },
      (b) => b.now(),
    ]);
  // A's wait is entered in the same few microtasks as B's mismatch
  expect(await codeOf(run(session, changed))).toBe('REPLAY_MISMATCH');
  await ticks(2);
  await session.signal({ id: 'n', name: 'never', value: 7 });
  await tick();
  const settled = (await k.types()).filter((t) => t.startsWith('wait.settled'));
  expect(settled).toEqual([]);
});

test('Z4b same with barrier (sleep) : timer of dead attempt fires and is written', async () => {
  const gate = gatedStore();
  const k = kit(gate.store);
  gate.release();
  let session = await k.open();
  await run(session, (s) => s.all([(a) => a.wait('a'), (b) => b.record('x.z', () => 2).then(() => b.wait('never'))]));
  await session.signal({ id: '1', name: 'a' });
  session = await k.open();
  gate.shut();
  const held = deferred<void>();
  const first = codeOf(
    run(
      session,
      (s) =>
        s.all([
          async (a) => {
            await a.wait('a');
            await a.sleep(50);
          },
          async (b) => {
            await held.promise;
            await b.now();
          },
        ]),
      't1',
      'hold',
    ),
  );
  await ticks(3);
  held.resolve();
  await ticks(3);
  gate.release();
  expect(await first).toBe('REPLAY_MISMATCH');
  await ticks(3);
  await k.clock.advance(1000);
  await ticks(3);
  await session.signal({ id: 'flush', name: 'flush' });
  expect((await k.types()).filter((t) => t.startsWith('timer.fired'))).toEqual([]);
});

test('Z5 child call of a dead attempt completes into the journal, and again by the next run', async () => {
  const k = kit();
  let session = await k.open();
  await run(session, (s) => s.all([(a) => a.wait('a'), (b) => b.record('x.y', () => 1).then(() => b.wait('b'))]));
  await session.signal({ id: '1', name: 'a' });
  session = await k.open();
  const held = deferred<void>();
  const foreign = [deferred<void>(), deferred<void>()];
  let n = 0;
  const child = {
    name: 'child',
    body: async () => {
      await foreign[n++]?.promise;
      return n;
    },
  };
  const first = codeOf(
    run(session, (s) =>
      s.all([
        async (a) => {
          await a.wait('a');
          return a.call(child, null);
        },
        async (b) => {
          await held.promise;
          return b.now();
        },
      ]),
    ),
  );
  await ticks(3);
  held.resolve();
  expect(await first).toBe('REPLAY_MISMATCH');
  const second = run(session, (s) =>
    s.all([
      async (a) => {
        await a.wait('a');
        return a.call(child, null);
      },
      (b) => b.record('x.y', () => 1).then(() => b.wait('b')),
    ]),
  );
  await ticks(3);
  foreign[0]?.resolve();
  await ticks(3);
  foreign[1]?.resolve();
  await second;
  expect(duplicates(await k.entries())).toEqual([]);
});

test('Z6 close() while run() of an errored root loads its past: unhandled rejection', async () => {
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

test('Z7 store fails while close() waits for an effect: close() hangs for ever', async () => {
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
  await within(
    500,
    closing.catch(() => {}),
    'close() never resolves',
  );
});

test('Z8 second close() resolves before the first has made things durable', async () => {
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

test('Z9 after close nothing is written: race and call ends of the dead attempt', async () => {
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
  console.log('Z9', types);
});
