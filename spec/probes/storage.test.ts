// Stores that fail, views, old entry versions, and snapshots.

import { expect } from 'vitest';
import { Fault } from '../../src/base/errors.js';
import type { Batch, Store } from '../../src/journal/store.js';
import type { View } from '../../src/journal/view.js';
import type { Scope } from '../../src/protocol/body.js';
import type { Entry } from '../../src/protocol/entry.js';
import { codeOf, kernelFixture, run, textStore, tick, ticks, unhandled, within } from '../support/kernel-probe.js';
import { verifies } from '../verifies.js';

verifies('kernel.fault', 'nothing is written after an append that was durable but reported as failed', async () => {
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
});

verifies('kernel.fault', 'a store that throws synchronously fails the append and every later one', async () => {
  const fixture = kernelFixture();
  let shouldThrow = false;
  const store: Store = {
    ...fixture.store,
    journal: {
      ...fixture.store.journal,
      claim: (s) => fixture.store.journal.claim(s),
      read: (s, f) => fixture.store.journal.read(s, f),
      append: (b) => {
        if (shouldThrow) throw new Fault('STORE_FULL', 'sync');
        return fixture.store.journal.append(b);
      },
    },
  };
  const session = await fixture.open({ store });
  await run(session, (s) => s.now());
  shouldThrow = true;
  const first = await codeOf(session.signal({ id: '1', name: 'x' }));
  shouldThrow = false;
  const second = await codeOf(session.signal({ id: '2', name: 'x' }));
  expect([first, second]).toEqual(['STORE_FULL', 'STORE_FULL']);
});

verifies('kernel.pressure', 'one append has less than 32 MiB of values', async () => {
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

verifies('kernel.view', 'a view that throws once does not make the writer stale', async () => {
  const fixture = kernelFixture();
  let shouldThrow = false;
  const view: View<number> = {
    name: 'v',
    version: 1,
    initial: 0,
    apply: (n, e) => {
      if (shouldThrow && e.type === 'b.b') {
        shouldThrow = false;
        throw new Error('view bug');
      }
      return n + 1;
    },
  };
  const session = await fixture.open({ views: [view as never] });
  shouldThrow = true;
  const o = await run(session, async (s) => {
    await s.record('b.b', () => 1).catch(() => {});
    await s.record('c.c', () => 2);
    return 'fine';
  }).catch((e) => e.code);
  expect(o).not.toBe('STALE_WRITER');
});

verifies(
  'kernel.view',
  'a view that throws on race.won neither hangs the run nor causes an unhandled rejection',
  async () => {
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
  },
);

verifies('kernel.version', 'a view receives the upgraded value of an entry whose value is a blob', async () => {
  const fixture = kernelFixture();
  await run(await fixture.open(), async (s) => {
    await s.record('text.appended', () => 'o'.repeat(9000));
    await s.record('text.appended', () => 'o');
  });
  const upcasts = { 'text.appended': { current: 2, from: { 1: (e: Entry) => ({ ...e, value: `${e.value}!` }) } } };
  const texts: View<string[]> = {
    name: 'texts',
    version: 1,
    initial: [],
    apply: (l, e) => (e.type === 'text.appended' ? [...l, String(e.value)] : l),
  };
  const session = await fixture.open({ upcasts, views: [texts as never] });
  expect(session.state(texts).map((t) => [t.length, t.slice(-2)])).toEqual([
    [9001, 'o!'],
    [2, 'o!'],
  ]);
});

verifies('kernel.version', 'a body receives the upgraded value of an entry whose value is a blob', async () => {
  const fixture = kernelFixture();
  const body = async (s: Scope) => {
    const v = await s.record('text.appended', () => 'o'.repeat(9000));
    await s.wait('go');
    return v.length;
  };
  await run(await fixture.open(), body);
  const upcasts = { 'text.appended': { current: 2, from: { 1: (e: Entry) => ({ ...e, value: `${e.value}!` }) } } };
  const session = await fixture.open({ upcasts });
  await session.signal({ id: '1', name: 'go' });
  expect(await run(session, body)).toEqual({ status: 'ok', output: 9001 });
});

verifies('kernel.version', 'a signal that is stored in a snapshot is upgraded', async () => {
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

verifies('kernel.snapshot', 'a snapshot that cannot be saved does not fail the run', async () => {
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

verifies('kernel.snapshot', 'a damaged snapshot is ignored, and the session is read from the journal', async () => {
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

verifies('kernel.snapshot', 'a view whose state is not JSON is not restored from a snapshot', async () => {
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
});
