/** Probes of the code as it changed under the attack. */
import { expect, test } from 'vitest';
import type { Layer } from '../../src/kernel/layer.js';
import type { Scope } from '../../src/kernel/scope.js';
import { codeOf, deferred, duplicates, kit, run, tick, ticks, unhandled } from './kit.js';

const micro = async (n: number): Promise<void> => {
  for (let i = 0; i < n; i++) await undefined;
};

test('F1 an older session runs a known root after another one wrote: it must be refused, not spin', async () => {
  const k = kit();
  const old = await k.open();
  await run(old, (s) => s.wait('x'));
  const young = await k.open();
  await young.signal({ id: '1', name: 'x', value: 1 });
  let turns = 0;
  const read = k.store.journal.read.bind(k.store.journal);
  const store = k.store as { journal: { read: typeof read } };
  store.journal.read = (s, f) => {
    if (++turns > 2000) throw new Error('spins');
    return read(s, f);
  };
  const code = await codeOf(run(old, (s) => s.wait('x')));
  expect(turns).toBeLessThan(100);
  expect(code).not.toContain('spins');
});

test('F2 a session whose journal was removed', async () => {
  const k = kit();
  const old = await k.open();
  await run(old, (s) => s.wait('x'));
  await k.store.journal.remove('s');
  let turns = 0;
  const read = k.store.journal.read.bind(k.store.journal);
  const store = k.store as { journal: { read: typeof read } };
  store.journal.read = (s, f) => {
    if (++turns > 2000) throw new Error('spins');
    return read(s, f);
  };
  const code = await codeOf(run(old, (s) => s.wait('x')));
  expect(code).not.toContain('spins');
});

test('F3 copies add up: 40 MiB of small parts in one value', async () => {
  const k = kit();
  const half = 'x'.repeat(20 * 1024 * 1024);
  const session = await k.open();
  const o = await run(session, async (s) => {
    const v = await s.call({ name: 'c', body: () => ({ a: half, b: half }) }, null);
    return (v as { a: string }).a.length;
  });
  expect(o).toEqual({ status: 'ok', output: half.length });
  expect(duplicates(await k.entries())).toEqual([]);
});

test('F4 copies add up: a replay of many records', async () => {
  const k = kit();
  const body = async (s: Scope) => {
    for (let i = 0; i < 30; i++) await s.record('a.b', () => ({ text: 'x'.repeat(4 * 1024 * 1024) }) as never);
    await s.wait('go');
    return 'done';
  };
  await run(await k.open(), body);
  const session = await k.open();
  await session.signal({ id: '1', name: 'go' });
  expect(await run(session, body)).toEqual({ status: 'ok', output: 'done' });
}, 60_000);

test('F5 a call asked again with an input that is no JSON', async () => {
  for (const bad of [10n, Number.NaN]) {
    const k = kit();
    const child = { name: 'c', body: (_: unknown, s: Scope) => s.wait('x') };
    await run(await k.open(), (s) => s.call(child, { n: 1 } as unknown));
    expect(
      await codeOf(run(await k.open(), (s) => s.call(child, { n: bad } as unknown).catch(() => 'went on'))),
      String(bad),
    ).toBe('REPLAY_MISMATCH');
  }
});

test('F6 a kept large signal whose blob is being read when the attempt dies is not lost to this session', async () => {
  const k = kit();
  let session = await k.open();
  await run(session, (s) => s.all([(a) => a.wait('a'), (b) => b.record('x.z', () => 2).then(() => b.wait('never'))]));
  await session.signal({ id: '1', name: 'a', value: 'x'.repeat(9000) });
  const slowly = {
    ...k.store,
    blobs: {
      ...k.store.blobs,
      get: async (s: string, d: string) => {
        await ticks(3);
        return k.store.blobs.get(s, d);
      },
    },
  };
  session = await k.open({ store: slowly });
  const code = await codeOf(
    run(session, (s) =>
      s.all([
        (a) => a.wait('a'),
        async (b) => {
          await tick();
          await b.now();
        },
      ]),
    ),
  );
  expect(code).toBe('REPLAY_MISMATCH');
  await ticks(6);
  const right = await run(session, (s) =>
    s.all([(a) => a.wait('a'), (b) => b.record('x.z', () => 2).then(() => b.wait('never'))]),
  ).catch((e) => e.code);
  expect(right).toMatchObject({ status: 'paused', pending: [{ name: 'never' }] });
});

test('F7 same with a cancel: a later root gets the signal', async () => {
  const k = kit();
  let session = await k.open();
  await session.signal({ id: '1', name: 'a', value: 'x'.repeat(9000) });
  const slowly = {
    ...k.store,
    blobs: {
      ...k.store.blobs,
      get: async (s: string, d: string) => {
        await ticks(3);
        return k.store.blobs.get(s, d);
      },
    },
  };
  session = await k.open({ store: slowly });
  const running = run(session, (s) => s.wait('a'));
  await tick();
  await session.cancel('t1', 'no');
  expect(await running).toMatchObject({ status: 'error' });
  const o = await run(session, (s) => s.wait('a').then((v) => (v as string).length), 't2');
  expect(o).toEqual({ status: 'ok', output: 9000 });
});

test('F8 a retry is cancelled at its barrier: what is known of the first try', async () => {
  const k = kit();
  const { crashingStore } = await import('../../src/testing/crashing-journal.js');
  const body = (s: Scope) => s.effect(k.effect('pay', 'once'));
  await codeOf(run(await k.open({ store: crashingStore(k.store, { append: 2, when: 'before' }) }), body));
  await tick();
  const session = await k.open();
  await run(session, body);
  await session.decide('t1/0', 'retry', 'me');
  const running = run(session, body);
  await micro(60);
  await session.cancel('t1', 'stop');
  await running;
  console.log(
    'F8',
    (await k.entries()).slice(2).map((e) => `${e.type} ${e.key} ${e.error?.code ?? ''}`),
    k.performed,
  );
});

test('F9 a layer is asked about the effect: the object it sees is the one that is performed', async () => {
  const k = kit();
  const input = { amount: 5 };
  const approve: Layer = async (e, scope, next) => {
    const ok = (e.input as { amount: number }).amount <= 5;
    await scope.sleep(0);
    input.amount = 500;
    (e.input as { amount: number }).amount = 500;
    if (!ok) throw new Error('no');
    return next();
  };
  let got: unknown;
  await run(await k.open({ layers: [approve] }), (s) =>
    s.effect(
      k.effect(
        'pay',
        'once',
        (i) => {
          got = i;
          return null;
        },
        input,
      ),
    ),
  );
  const asked = (await k.entries()).find((e) => e.type === 'effect.asked');
  const requested = (await k.entries()).find((e) => e.type === 'effect.requested');
  console.log('F9 asked', asked?.value, 'requested', requested?.value, 'performed', got);
  expect(got).toEqual(requested?.value);
});

test('F10 a signal sent in the microtasks around a mismatch never fails', async () => {
  const bad: string[] = [];
  for (let offset = 0; offset < 30; offset++) {
    const k = kit();
    let session = await k.open();
    await run(session, (s) => s.all([(a) => a.wait('a'), (b) => b.record('x.z', () => 2).then(() => b.wait('never'))]));
    session = await k.open();
    const held = deferred<void>();
    const first = codeOf(
      run(session, (s) =>
        s.all([
          async (a) => {
            await held.promise;
            await a.wait('a');
          },
          async (b) => {
            await held.promise;
            await b.now();
          },
        ]),
      ),
    );
    await ticks(2);
    held.resolve();
    await micro(offset);
    const sent = await codeOf(session.signal({ id: 'z', name: 'a', value: 1 }));
    if (sent !== 'nothing') bad.push(`${offset}: ${sent}`);
    await first;
    const right = await run(session, (s) =>
      s.all([(a) => a.wait('a'), (b) => b.record('x.z', () => 2).then(() => b.wait('never'))]),
    );
    if (right.status !== 'paused' || right.pending.length !== 1)
      bad.push(`${offset}: the signal is gone: ${JSON.stringify(right)}`);
  }
  expect(bad).toEqual([]);
  expect(unhandled.map(String)).toEqual([]);
});
