import { expect } from 'vitest';
import { seededIds } from '../../src/adapters/system/seeded-ids.js';
import { Fault } from '../../src/base/errors.js';
import type { Batch, Store } from '../../src/journal/store.js';
import type { View } from '../../src/journal/view.js';
import type { Scope } from '../../src/protocol/body.js';
import type { Entry } from '../../src/protocol/entry.js';
import {
  codeOf,
  deferred,
  duplicates,
  kernelFixture,
  run,
  textStore,
  tick,
  ticks,
  unhandled,
  within,
} from '../support/kernel-probe.js';
import { verifies } from '../verifies.js';

verifies(
  'kernel.fault',
  'W1 an append that was durable but reported as failed: nothing may be written after it',
  async () => {
    const inner = textStore();
    let appends = 0;
    let failed = false;
    let after = 0;
    const store: Store = {
      ...inner,
      journal: {
        ...inner.journal,
        claim: (s) => inner.journal.claim(s),
        read: (s, f) => inner.journal.read(s, f),
        append: async (batch: Batch) => {
          appends += 1;
          if (failed) after += 1;
          await tick();
          await inner.journal.append(batch);
          if (appends === 1) {
            failed = true;
            throw new Fault('STORE_FAILED', 'timeout after commit');
          }
        },
      },
    };
    const fixture = kernelFixture(store);
    const session = await fixture.open();
    const big = 'x'.repeat(9000);
    const code = await codeOf(
      run(session, async (s) => {
        for (let i = 0; i < 700; i++) await s.record('a.b', () => big + i);
      }),
    );
    await ticks(10);
    expect(code).toBe('STORE_FAILED');
    expect(after).toBe(0);
  },
);

verifies('kernel.view', 'W2 a view that throws once', async () => {
  const fixture = kernelFixture();
  let bomb = false;
  const view: View<number> = {
    name: 'v',
    version: 1,
    initial: 0,
    apply: (n, e) => {
      if (bomb && e.type === 'b.b') {
        bomb = false;
        throw new Error('view bug');
      }
      return n + 1;
    },
  };
  const session = await fixture.open({ views: [view as never] });
  bomb = true;
  const o = await run(session, async (s) => {
    await s.record('b.b', () => 1).catch(() => {});
    await s.record('c.c', () => 2);
    return 'fine';
  }).catch((e) => e.code);
  expect(o).not.toBe('STALE_WRITER');
});

verifies('kernel.view', 'W2b a view that throws on race.won: hang or unhandled rejection', async () => {
  const fixture = kernelFixture();
  unhandled.length = 0;
  const view: View<number> = {
    name: 'v',
    version: 1,
    initial: 0,
    apply: (n, e) => {
      if (e.type === 'race.won') throw new Error('view bug');
      return n + 1;
    },
  };
  const session = await fixture.open({ views: [view as never] });
  const o = await within(
    1500,
    run(session, async (s) => s.race([(a) => a.now()])).catch((e) => e.code ?? String(e)),
    'race never settles',
  ).catch((e) => String(e));
  await ticks(3);
  expect({ o, unhandled: unhandled.length }).toEqual({ o: expect.anything(), unhandled: 0 });
  expect(String(JSON.stringify(o))).not.toContain('HANG');
});

verifies('kernel.version', 'W3 upcasts of a value that lies in the blobs', async () => {
  const fixture = kernelFixture();
  await run(await fixture.open(), async (s) => {
    await s.record('text.said', () => 'o'.repeat(9000));
    await s.record('text.said', () => 'o');
  });
  const upcasts = { 'text.said': { current: 2, from: { 1: (e: Entry) => ({ ...e, value: `${e.value}!` }) } } };
  const seen: View<string[]> = {
    name: 'seen',
    version: 1,
    initial: [],
    apply: (l, e) => (e.type === 'text.said' ? [...l, String(e.value)] : l),
  };
  const session = await fixture.open({ upcasts, views: [seen as never] });
  expect(session.state(seen).map((t) => [t.length, t.slice(-2)])).toEqual([
    [9001, 'o!'],
    [2, 'o!'],
  ]);
});

verifies('kernel.version', 'W3b ...and what a body gets on replay', async () => {
  const fixture = kernelFixture();
  const body = async (s: Scope) => {
    const v = await s.record('text.said', () => 'o'.repeat(9000));
    await s.wait('go');
    return v.length;
  };
  await run(await fixture.open(), body);
  const upcasts = { 'text.said': { current: 2, from: { 1: (e: Entry) => ({ ...e, value: `${e.value}!` }) } } };
  const session = await fixture.open({ upcasts });
  await session.signal({ id: '1', name: 'go' });
  expect(await run(session, body)).toEqual({ status: 'ok', output: 9001 });
});

verifies('kernel.version', 'W4 a signal kept in a snapshot is not brought up to date', async () => {
  const fixture = kernelFixture();
  const session = await fixture.open();
  await session.signal({ id: 'kept', name: 'kept', value: 'old' });
  await run(session, async (s) => {
    for (let i = 0; i < 1100; i++) await s.record('a.b', () => 1);
  });
  expect(await fixture.store.snapshots.load('s')).toBeDefined();
  const upcasts = { 'signal.received': { current: 2, from: { 1: (e: Entry) => ({ ...e, value: `new ${e.value}` }) } } };
  const later = await fixture.open({ upcasts });
  expect(await run(later, (s) => s.wait('kept'), 't2')).toEqual({ status: 'ok', output: 'new old' });
});

verifies('kernel.snapshot', 'W5 a snapshot that cannot be saved fails a run that is done', async () => {
  const fixture = kernelFixture();
  const store = {
    ...fixture.store,
    snapshots: {
      load: fixture.store.snapshots.load,
      save: async () => {
        throw new Fault('STORE_FULL', 'no room for the cache');
      },
    },
  };
  const session = await fixture.open({ store });
  const o = await run(session, async (s) => {
    for (let i = 0; i < 1100; i++) await s.record('a.b', () => 1);
    return 'done';
  }).catch((e) => e.code);
  expect(o).toEqual({ status: 'ok', output: 'done' });
});

verifies('kernel.snapshot', 'W6 a damaged snapshot falls back to the log', async () => {
  const fixture = kernelFixture();
  const session = await fixture.open();
  await run(session, async (s) => {
    for (let i = 0; i < 1100; i++) await s.record('a.b', () => 1);
    return 'done';
  });
  const saved = await fixture.store.snapshots.load('s');
  const results: string[] = [];
  for (const state of [
    null,
    5,
    {},
    { session: null, views: {} },
    { session: {}, views: null },
    { session: { incarnationId: 1, roots: 5, inbox: [], delivered: [] }, views: {} },
  ]) {
    await fixture.store.snapshots.save('s', { ...(saved as object), state } as never);
    const r = await fixture
      .open()
      .then((s) => run(s, () => 'again'))
      .then(
        (o) => JSON.stringify(o),
        (e) => e.code ?? `raw ${e.name}: ${e.message}`,
      );
    results.push(r);
  }
  expect(results.filter((r) => !r.includes('done'))).toEqual([]);
});

verifies(
  'kernel.snapshot',
  'W7 a view whose state is no JSON comes back from a snapshot as something else',
  async () => {
    const fixture = kernelFixture();
    const view: View<Map<string, number>> = {
      name: 'm',
      version: 1,
      initial: new Map(),
      apply: (m, e) => new Map(m).set(e.type, 1),
    };
    const session = await fixture.open({ views: [view as never] });
    await run(session, async (s) => {
      for (let i = 0; i < 1100; i++) await s.record('a.b', () => 1);
      return 'done';
    });
    const r = await fixture
      .open({ views: [view as never] })
      .then((s) => (s.state(view) instanceof Map ? 'map' : `not a map: ${JSON.stringify(s.state(view))}`), String);
    expect(r).toBe('map');
  },
);

verifies('kernel.pressure', 'W8 the buffer is bounded by entries, not bytes', async () => {
  const fixture = kernelFixture();
  let largest = 0;
  const store: Store = {
    ...fixture.store,
    blobs: { ...fixture.store.blobs, put: async () => {} },
    journal: {
      ...fixture.store.journal,
      claim: (s) => fixture.store.journal.claim(s),
      read: (s, f) => fixture.store.journal.read(s, f),
      append: async (b) => {
        let n = 0;
        for (const e of b.entries) n += JSON.stringify(e.value ?? null).length;
        largest = Math.max(largest, n);
        return fixture.store.journal.append(b);
      },
    },
  };
  const session = await fixture.open({ store });
  await run(session, async (s) => {
    for (let i = 0; i < 250; i++) await s.record('a.b', () => 'x'.repeat(400_000) + i);
  });
  expect(largest).toBeLessThan(32 * 1024 * 1024);
});

verifies('kernel.invariant', 'W9 an invariant: refusals are not recorded, a replay may decide otherwise', async () => {
  const fixture = kernelFixture();
  const coins: View<number> = {
    name: 'coins',
    version: 1,
    initial: 0,
    apply: (n, e) => (e.type === 'coin.spent' ? n + 1 : e.type === 'coin.returned' ? n - 1 : n),
  };
  const cap = {
    view: coins,
    check: (n: number, d: { type: string }) =>
      d.type === 'coin.spent' && n >= 1 ? { rule: 'cap', message: 'one' } : undefined,
  };
  const took: string[] = [];
  const body = async (s: Scope) => {
    await s.record('coin.spent', () => 1);
    const second = await s
      .record('coin.spent', () => 2)
      .then(
        () => 'A',
        () => 'B',
      );
    took.push(second);
    await s.record('coin.returned', () => 1);
    await s.wait('go');
    return second;
  };
  const open = () => fixture.open({ invariants: [cap as never] });
  await run(await open(), body);
  const session = await open();
  await session.signal({ id: '1', name: 'go' });
  const o = await run(session, body);
  expect({ took, o }).toEqual({ took: ['B', 'B'], o: { status: 'ok', output: 'B' } });
});

verifies('kernel.invariant', 'W9b an effect refused by an invariant live is performed by the replay', async () => {
  const fixture = kernelFixture();
  const budget: View<number> = {
    name: 'b',
    version: 1,
    initial: 10,
    apply: (n, e) => (e.type === 'budget.added' ? n + 100 : n),
  };
  const cap = {
    view: budget,
    check: (n: number, d: { type: string; name?: string }) =>
      d.type === 'effect.requested' && d.name === 'expensive' && n < 50 ? { rule: 'cap', message: 'no' } : undefined,
  };
  const body = async (s: Scope) => {
    const r = await s.effect(fixture.effect('expensive', 'once')).catch((e) => e.code);
    await s.record('plan.chosen', () => r as string);
    await s.wait('more');
    await s.record('budget.added', () => 1);
    await s.wait('go');
    return r;
  };
  const open = () => fixture.open({ invariants: [cap as never] });
  let session = await open();
  await run(session, body);
  await session.signal({ id: '1', name: 'more' });
  await run(session, body);
  session = await open();
  await session.signal({ id: '2', name: 'go' });
  const o = await run(session, body);
  expect({ o, performed: fixture.performed }).toEqual({
    o: { status: 'ok', output: 'INVARIANT_VIOLATED' },
    performed: [],
  });
});

verifies(
  'kernel.invariant',
  'W10 invariants refusing every kind of proposal leave the session consistent',
  async () => {
    for (const type of [
      'call.started',
      'signal.received',
      'effect.requested',
      'effect.opened',
      'timer.set',
      'wait.opened',
      'group.opened',
      'a.b',
      'cancel.requested',
      'effect.resolved',
    ]) {
      const fixture = kernelFixture();
      let on = true;
      const v: View<number> = { name: 'v', version: 1, initial: 0, apply: (n) => n + 1 };
      const no = {
        view: v,
        check: (_n: number, d: { type: string; key: string }) =>
          on && d.type === type && d.key !== 't1' ? { rule: 'no', message: 'no' } : undefined,
      };
      const layers =
        type === 'effect.opened' ? [async (_e: unknown, _s: unknown, next: () => Promise<unknown>) => next()] : [];
      const session = await fixture.open({ invariants: [no as never], layers: layers as never });
      const body = async (s: Scope) => {
        const out: unknown[] = [];
        const t = (p: Promise<unknown>) =>
          p
            .then(
              () => 'ok',
              (e) => e.code,
            )
            .then((x) => out.push(x));
        await t(s.call({ name: 'c', body: () => 1 }, null));
        await t(s.effect(fixture.effect('e', 'once')));
        await t(s.sleep(0));
        await t(s.all([(a) => a.record('a.b', () => 1), (b) => b.now()]));
        await t(s.race([(a) => a.now(), (b) => b.wait('z')]));
        await t(s.record('a.b', () => 1));
        out.push(await s.now().then(() => 'still'));
        return out;
      };
      const o = await within(1000, run(session, body), type);
      expect(o.status, type).toBe('ok');
      on = false;
      const again = await codeOf(session.signal({ id: 'z', name: 'z' }));
      expect(again, type).toBe('nothing');
      expect(duplicates(await fixture.entries())).toEqual([]);
      expect((await fixture.entries()).map((e) => e.seq)).toEqual((await fixture.entries()).map((_, i) => i));
    }
  },
);

verifies('kernel.fence', 'W11 two sessions of one name in one process', async () => {
  const fixture = kernelFixture();
  const a = await fixture.open();
  const hang = deferred<string>();
  const running = codeOf(
    run(a, async (s) => {
      await s.effect(fixture.effect('one', 'once', () => hang.promise));
      await s.effect(fixture.effect('two', 'once'));
    }),
  );
  await ticks(3);
  const b = await fixture.open();
  hang.resolve('x');
  expect(await running).toBe('STALE_WRITER');
  expect(fixture.performed).toEqual(['one']);
  expect(
    (
      await run(b, async (s) => {
        await s.effect(fixture.effect('one', 'once'));
      })
    ).status,
  ).toBe('paused');
});

verifies('kernel.replay', 'W12 session usable after mismatch; run same root at once; run after close', async () => {
  const fixture = kernelFixture();
  const session = await fixture.open();
  await run(session, (s) => s.wait('x'));
  expect(await codeOf(run(session, (s) => s.now()))).toBe('REPLAY_MISMATCH');
  const [a, b] = await Promise.all([
    codeOf(run(session, (s) => s.wait('x'))),
    codeOf(run(session, (s) => s.wait('x'))),
  ]);
  expect([a, b]).toEqual(['nothing', 'SESSION_BUSY']);
  await session.signal({ id: '1', name: 'x', value: 3 });
  expect(await run(session, (s) => s.wait('x'))).toEqual({ status: 'ok', output: 3 });
  await session.close();
  expect(await codeOf(run(session, (s) => s.wait('x')))).toBe('SESSION_CLOSED');
});

verifies('kernel.replay', 'W13 same seed twice: byte-identical journal', async () => {
  const journal = async () => {
    const fixture = kernelFixture();
    const session = await fixture.open({ ids: seededIds(7) });
    await run(session, async (s) => [
      await s.random(),
      await s.now(),
      await s.all([
        (a) => a.effect(fixture.effect('x', 'once')),
        (b) => b.call({ name: 'c', body: (_: null, c) => c.random() }, null),
      ]),
    ]);
    return JSON.stringify(await fixture.entries());
  };
  expect(await journal()).toBe(await journal());
});

verifies('kernel.fault', 'W14 an adapter that throws synchronously', async () => {
  const fixture = kernelFixture();
  let boom = false;
  const store: Store = {
    ...fixture.store,
    journal: {
      ...fixture.store.journal,
      claim: (s) => fixture.store.journal.claim(s),
      read: (s, f) => fixture.store.journal.read(s, f),
      append: (b) => {
        if (boom) throw new Fault('STORE_FULL', 'sync');
        return fixture.store.journal.append(b);
      },
    },
  };
  const session = await fixture.open({ store });
  await run(session, (s) => s.now());
  boom = true;
  const first = await codeOf(session.signal({ id: '1', name: 'x' }));
  boom = false;
  const second = await codeOf(session.signal({ id: '2', name: 'x' }));
  expect([first, second]).toEqual(['STORE_FULL', 'STORE_FULL']);
});

verifies('kernel.cancel', 'W15 cancel at the moment a root ends, twice, unknown', async () => {
  const fixture = kernelFixture();
  const session = await fixture.open();
  expect(await session.cancel('t9', 'x')).toBe(false);
  await run(session, (s) => s.wait('x'));
  expect(await Promise.all([session.cancel('t1', 'a'), session.cancel('t1', 'b')])).toEqual([true, false]);
  expect(duplicates(await fixture.entries())).toEqual([]);
});
