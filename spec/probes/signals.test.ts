import { expect } from 'vitest';
import type { Scope } from '../../src/protocol/body.js';
import { codeOf, deferred, kit, run, slowBlobs, textStore, tick, ticks, within } from '../support/kernel-probe.js';
import { verifies } from '../verifies.js';

verifies('kernel.signal', 'S1 two signals kept before a race of two waits: the loser swallows its signal', async () => {
  const k = kit();
  const session = await k.open();
  await session.signal({ id: '1', name: 'a', value: 'A' });
  await session.signal({ id: '2', name: 'b', value: 'B' });
  const body = async (s: Scope) => {
    const first = await s.race([(x) => x.wait('a'), (x) => x.wait('b')]);
    return [first, await s.wait('b')];
  };
  expect(await run(session, body)).toEqual({ status: 'ok', output: ['A', 'B'] });
});

verifies('kernel.signal', 'S2 two signals in one tick to a live race: the loser swallows its signal', async () => {
  const k = kit();
  const session = await k.open();
  const body = async (s: Scope) => {
    const first = await s.race([(x) => x.wait('a'), (x) => x.wait('b'), (x) => x.sleep(1e6)]);
    return [first, await s.race([(x) => x.wait('b'), (x) => x.sleep(10).then(() => 'nothing came')])];
  };
  const running = run(session, body, 't1', 'hold');
  await ticks(3);
  await Promise.all([
    session.signal({ id: '1', name: 'a', value: 'A' }),
    session.signal({ id: '2', name: 'b', value: 'B' }),
  ]);
  await ticks(3);
  await k.clock.advance(100);
  expect(await running).toEqual({ status: 'ok', output: ['A', 'B'] });
});

verifies('kernel.signal', 'S3 a wait beside a quick effect: kept signal swallowed by the lost branch', async () => {
  const k = kit();
  const session = await k.open();
  await session.signal({ id: '1', name: 'a', value: 'x'.repeat(9000) });
  const reopened = await k.open();
  const body = async (s: Scope) => {
    const first = await s.race([(x) => x.wait('a').then(() => 'signal'), (x) => x.record('q.r', () => 'quick')]);
    return [first, first === 'quick' ? ((await s.wait('a')) as string).length : 9000];
  };
  const outcome = await run(reopened, body);
  expect(outcome.status).toBe('ok');
});

verifies('kernel.signal', 'S4 cancelled while a kept signal is taken; a later root waits for it', async () => {
  const k = kit();
  const session = await k.open();
  await session.signal({ id: '1', name: 'a', value: 1 });
  const running = run(session, (s) => s.wait('a'));
  await session.cancel('t1', 'no');
  const outcome = await running;
  const next = await run(session, (s) => s.wait('a'), 't2');
  expect(outcome).toMatchObject({ status: 'error', error: { code: 'CANCELLED' } });
  expect(next).toEqual({ status: 'ok', output: 1 });
});

verifies(
  'kernel.signal',
  'S5 body changes the signal value it got: the journal and a redelivery see the change',
  async () => {
    const k = kit();
    const session = await k.open();
    const running = run(
      session,
      async (s) => {
        const list = (await s.wait('a')) as number[];
        (list as number[]).push(99);
        await s.now();
        return list;
      },
      't1',
      'hold',
    );
    await ticks(2);
    await session.signal({ id: '1', name: 'a', value: [1] });
    await running;
    expect(await codeOf(session.signal({ id: '1', name: 'a', value: [1] }))).toBe('nothing');
    const received = (await k.entries()).find((e) => e.type === 'signal.received');
    expect(received?.value).toEqual([1]);
  },
);

verifies('kernel.signal', 'S6 10,000 signals exactly around pauses: none lost, none twice', async () => {
  const k = kit();
  const session = await k.open();
  let sent = 0;
  let random = 12345;
  const next = () => (random = (random * 1103515245 + 12345) & 0x7fffffff) / 0x7fffffff;
  const body = async (s: Scope) => {
    const got: unknown[] = [];
    for (let i = 0; i < 300; i++) got.push(await s.wait('x'));
    return got;
  };
  let outcome = await run(session, body);
  let rounds = 0;
  while (outcome.status === 'paused' && rounds++ < 2000) {
    const running = run(session, body);
    const sends: Promise<unknown>[] = [];
    const n = Math.floor(next() * 4);
    for (let i = 0; i < n && sent < 300; i++) {
      for (let m = Math.floor(next() * 30); m > 0; m--) await undefined;
      sends.push(session.signal({ id: `s${sent}`, name: 'x', value: sent++ }));
    }
    if (next() < 0.3) await tick();
    outcome = await running;
    await Promise.all(sends);
  }
  expect(outcome).toEqual({ status: 'ok', output: Array.from({ length: 300 }, (_, i) => i) });
});

verifies('kernel.signal', 'S7 signal during close', async () => {
  const k = kit();
  const session = await k.open();
  const hang = deferred<string>();
  const running = codeOf(
    run(session, (s) => s.all([(a) => a.wait('x'), (b) => b.effect(k.effect('slow', 'once', () => hang.promise))])),
  );
  await ticks(3);
  const sent = session.signal({ id: '1', name: 'x', value: 1 });
  const closing = session.close();
  hang.resolve('z');
  await closing;
  await running;
  expect(await codeOf(sent)).toBe('nothing');
  const again = await k.open();
  expect(
    await run(again, (s) => s.all([(a) => a.wait('x'), (b) => b.effect(k.effect('slow', 'once', () => hang.promise))])),
  ).toEqual({ status: 'ok', output: [1, 'z'] });
});

verifies(
  'kernel.signal',
  'S9 a large signal, read from the store, taken by a lost branch and given to a wait that stands elsewhere',
  async () => {
    const k = kit(textStore());
    const session = await k.open();
    await session.signal({ id: '1', name: 'x', value: 'X'.repeat(9000) });
    const again = await k.open();
    let lose: (value: string) => void = () => {};
    const gate = new Promise<string>((resolve) => {
      lose = resolve;
    });
    const body = (s: Scope) =>
      s.all([
        (a) =>
          a.race([
            (r) => r.wait('x').then(() => r.wait('never')),
            (r) => r.effect(k.effect('gate', 'once', () => gate)),
          ]),
        (b) => b.effect(k.effect('later', 'once', () => tick())).then(() => b.wait('x')),
      ]);
    const running = run(again, body, 't1', 'hold');
    await ticks(6);
    lose('lost');
    const outcome = await within(2000, running);
    expect(outcome).toEqual({ status: 'ok', output: ['lost', 'X'.repeat(9000)] });
  },
);

verifies('kernel.signal', 'F7 same with a cancel: a later root gets the signal', async () => {
  const k = kit();
  let session = await k.open();
  await session.signal({ id: '1', name: 'a', value: 'x'.repeat(9000) });
  session = await k.open({ store: slowBlobs(k.store) });
  const running = run(session, (s) => s.wait('a'));
  await tick();
  await session.cancel('t1', 'no');
  expect(await running).toMatchObject({ status: 'error' });
  const o = await run(session, (s) => s.wait('a').then((v) => (v as string).length), 't2');
  expect(o).toEqual({ status: 'ok', output: 9000 });
});
