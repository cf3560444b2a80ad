// Signals: each is delivered once, also around races, cancels, pauses and closes.

import { expect } from 'vitest';
import type { Scope } from '../../src/protocol/body.js';
import {
  codeOf,
  deferred,
  kernelFixture,
  run,
  slowBlobs,
  textStore,
  tick,
  ticks,
  within,
} from '../support/kernel-probe.js';
import { verifies } from '../verifies.js';

verifies('kernel.signal', 'the losing wait of a race does not consume a stored signal', async () => {
  const fixture = kernelFixture();
  const session = await fixture.open();
  await session.signal({ id: '1', name: 'a', value: 'A' });
  await session.signal({ id: '2', name: 'b', value: 'B' });
  const body = async (s: Scope) => {
    const first = await s.race([(x) => x.wait('a'), (x) => x.wait('b')]);
    return [first, await s.wait('b')];
  };
  expect(await run(session, body)).toEqual({ status: 'ok', output: ['A', 'B'] });
});

verifies('kernel.signal', 'the losing wait of a race does not consume a signal of the same tick', async () => {
  const fixture = kernelFixture();
  const session = await fixture.open();
  const body = async (s: Scope) => {
    const first = await s.race([(x) => x.wait('a'), (x) => x.wait('b'), (x) => x.sleep(1e6)]);
    return [first, await s.race([(x) => x.wait('b'), (x) => x.sleep(10).then(() => 'no signal')])];
  };
  const running = run(session, body, 't1', 'hold');
  await ticks(3);
  await Promise.all([
    session.signal({ id: '1', name: 'a', value: 'A' }),
    session.signal({ id: '2', name: 'b', value: 'B' }),
  ]);
  await ticks(3);
  await fixture.clock.advance(100);
  expect(await running).toEqual({ status: 'ok', output: ['A', 'B'] });
});

verifies('kernel.signal', 'a wait that loses against a record does not consume a stored signal', async () => {
  const fixture = kernelFixture();
  const session = await fixture.open();
  await session.signal({ id: '1', name: 'a', value: 'x'.repeat(9000) });
  const reopened = await fixture.open();
  const body = async (s: Scope) => {
    const first = await s.race([(x) => x.wait('a').then(() => 'signal'), (x) => x.record('q.r', () => 'quick')]);
    return [first, first === 'quick' ? ((await s.wait('a')) as string).length : 9000];
  };
  const outcome = await run(reopened, body);
  expect(outcome.status).toBe('ok');
});

verifies('kernel.signal', 'a signal of a cancelled root is delivered to a later root', async () => {
  const fixture = kernelFixture();
  const session = await fixture.open();
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
  'a body that changes a signal value changes neither the journal nor a redelivery',
  async () => {
    const fixture = kernelFixture();
    const session = await fixture.open();
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
    const received = (await fixture.entries()).find((e) => e.type === 'signal.received');
    expect(received?.value).toEqual([1]);
  },
);

verifies('kernel.signal', '300 signals around pauses are each delivered once, in order', async () => {
  const fixture = kernelFixture();
  const session = await fixture.open();
  let sent = 0;
  let random = 12345;
  const next = () => (random = (random * 1103515245 + 12345) & 0x7fffffff) / 0x7fffffff;
  const body = async (s: Scope) => {
    const received: unknown[] = [];
    for (let i = 0; i < 300; i++) received.push(await s.wait('x'));
    return received;
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

verifies('kernel.signal', 'a signal during close() is stored and delivered after reopening', async () => {
  const fixture = kernelFixture();
  const session = await fixture.open();
  const hang = deferred<string>();
  const running = codeOf(
    run(session, (s) =>
      s.all([(a) => a.wait('x'), (b) => b.effect(fixture.effect('slow', 'once', () => hang.promise))]),
    ),
  );
  await ticks(3);
  const sent = session.signal({ id: '1', name: 'x', value: 1 });
  const closing = session.close();
  hang.resolve('z');
  await closing;
  await running;
  expect(await codeOf(sent)).toBe('nothing');
  const again = await fixture.open();
  expect(
    await run(again, (s) =>
      s.all([(a) => a.wait('x'), (b) => b.effect(fixture.effect('slow', 'once', () => hang.promise))]),
    ),
  ).toEqual({ status: 'ok', output: [1, 'z'] });
});

verifies('kernel.signal', 'a large signal that a lost branch received is delivered to another wait', async () => {
  const fixture = kernelFixture(textStore());
  const session = await fixture.open();
  await session.signal({ id: '1', name: 'x', value: 'X'.repeat(9000) });
  const again = await fixture.open();
  let lose: (value: string) => void = () => {};
  const gate = new Promise<string>((resolve) => {
    lose = resolve;
  });
  const body = (s: Scope) =>
    s.all([
      (a) =>
        a.race([
          (r) => r.wait('x').then(() => r.wait('never')),
          (r) => r.effect(fixture.effect('gate', 'once', () => gate)),
        ]),
      (b) => b.effect(fixture.effect('later', 'once', () => tick())).then(() => b.wait('x')),
    ]);
  const running = run(again, body, 't1', 'hold');
  await ticks(6);
  lose('lost');
  const outcome = await within(2000, running);
  expect(outcome).toEqual({ status: 'ok', output: ['lost', 'X'.repeat(9000)] });
});

verifies('kernel.signal', 'a large signal of a cancelled root is delivered to a later root', async () => {
  const fixture = kernelFixture();
  let session = await fixture.open();
  await session.signal({ id: '1', name: 'a', value: 'x'.repeat(9000) });
  session = await fixture.open({ store: slowBlobs(fixture.store) });
  const running = run(session, (s) => s.wait('a'));
  await tick();
  await session.cancel('t1', 'no');
  expect(await running).toMatchObject({ status: 'error' });
  const o = await run(session, (s) => s.wait('a').then((v) => (v as string).length), 't2');
  expect(o).toEqual({ status: 'ok', output: 9000 });
});
