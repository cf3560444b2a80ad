/** Sessions end to end: pauses, layers, views, snapshots, large values, versions and hostile values. */
import { expect, test } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import { memoryStore } from '../adapters/memory/index.js';
import { seededIds } from '../adapters/system/seeded-ids.js';
import { LoopError } from '../base/errors.js';
import type { SessionOptions } from '../journal/session-options.js';
import type { Store } from '../journal/store.js';
import type { View } from '../journal/view.js';
import type { Effect, Scope } from '../protocol/body.js';
import type { Entry } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import type { Layer, RunOutcome } from '../protocol/session.js';
import { ManualClock } from '../testing/manual-clock.js';
import { Session } from './session.js';

const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

interface Fixture {
  readonly store: Store;
  readonly clock: ManualClock;
  open(options?: Partial<SessionOptions>): Promise<Session>;
  entries(): Promise<Entry[]>;
}

function fixture(): Fixture {
  const store = memoryStore();
  const clock = new ManualClock(1_000);
  let opened = 0;
  const open = (options: Partial<SessionOptions> = {}): Promise<Session> =>
    Session.open('s', { store, clock, ids: seededIds(++opened), ...options });
  const entries = async (): Promise<Entry[]> => {
    const all: Entry[] = [];
    for await (const batch of store.journal.read('s', 0)) all.push(...batch);
    return all;
  };
  return { store, clock, open, entries };
}

function run(session: Session, body: (scope: Scope) => Promise<unknown>, root = 't1'): Promise<RunOutcome> {
  return session.run(root, { name: 'main', body: (_input: null, scope) => body(scope) }, null, { timers: 'pause' });
}

function effect(name: string, perform: Effect['perform'], safety: Effect['safety'] = 'once'): Effect {
  return { kind: 'test', name, safety, input: null, perform };
}

verifies(
  'kernel.pause',
  'a run that can only wait ends as paused and lists everything that it waits for',
  async () => {
    const { open } = fixture();
    const session = await open();
    const body = (scope: Scope) =>
      scope.all([
        (s) => s.wait('approval'),
        (s) => s.sleep(5_000),
        (s) => s.race([(r) => r.wait('either'), (r) => r.wait('or')]),
      ]);
    const outcome = await run(session, body);
    expect(outcome.status === 'paused' && [...outcome.pending].sort((a, b) => (a.key < b.key ? -1 : 1))).toEqual([
      { kind: 'signal', key: 't1/0/0/0', name: 'approval' },
      { kind: 'timer', key: 't1/0/1/0', until: 6_000 },
      { kind: 'signal', key: 't1/0/2/0/0/0', name: 'either' },
      { kind: 'signal', key: 't1/0/2/0/1/0', name: 'or' },
    ]);
  },
  10_000,
);

verifies('kernel.pause', 'a run does not pause while an effect is in flight', async () => {
  const { open } = fixture();
  const session = await open();
  let finish: (value: string) => void = () => {};
  let ended = false;
  const running = run(session, (scope) =>
    scope.all([
      (s) => s.wait('x'),
      (s) => s.effect(effect('slow', () => new Promise((resolve) => (finish = resolve)))),
    ]),
  ).then((outcome) => {
    ended = true;
    return outcome;
  });
  for (let i = 0; i < 5; i++) await tick();
  expect(ended, 'the run paused while its effect was in flight').toBe(false);
  finish('done');
  expect((await running).status).toBe('paused');
});

verifies('kernel.signal', 'a signal that arrives before its wait is received', async () => {
  const { open } = fixture();
  const session = await open();
  await session.signal({ id: 'early', name: 'x', value: 1 });
  const running = session.run(
    't1',
    { name: 'main', body: async (_: null, s) => [await s.wait('x'), await s.wait('x')] },
    null,
  );
  expect((await running).status).toBe('paused');
  const again = await open();
  await again.signal({ id: 'late', name: 'x', value: { large: 'y'.repeat(9_000) } });
  const outcome = await run(again, async (s) => [await s.wait('x'), await s.wait('x')]);
  expect(outcome).toEqual({ status: 'ok', output: [1, { large: 'y'.repeat(9_000) }] });
});

verifies(
  'kernel.layer',
  'layers do not run again for a recorded result, and a retry continues after a restart',
  async () => {
    const { open, entries } = fixture();
    const layerCalls: string[] = [];
    const retry: Layer = async (target, scope, next) => {
      layerCalls.push(target.name);
      for (let attempt = 1; ; attempt++) {
        try {
          return await next();
        } catch (error) {
          if (attempt === 3) throw error;
          await scope.sleep(100 * attempt);
        }
      }
    };
    let performed = 0;
    const flaky = effect('flaky', () => {
      performed += 1;
      if (performed < 3) throw new Error('busy');
      return 'at last';
    });
    const body = async (scope: Scope) => {
      const value = await scope.effect(flaky);
      await scope.wait('go');
      return value;
    };
    const clock = new ManualClock(0);
    for (let round = 0; round < 3; round++) {
      await run(await open({ layers: [retry], clock }), body);
      await clock.advance(1_000);
    }
    expect(performed).toBe(3);
    const callCount = layerCalls.length;
    const session = await open({ layers: [retry], clock });
    await session.signal({ id: '1', name: 'go' });
    expect(await run(session, body)).toEqual({ status: 'ok', output: 'at last' });
    expect(layerCalls.length).toBe(callCount);
    const settled = (await entries()).find(({ type }) => type === 'effect.settled');
    expect(settled).toMatchObject({ key: 't1/0', attemptKey: 't1/0/4' });
  },
);

verifies('kernel.layer', 'a body gets the answer or the refusal of a layer, also after a restart', async () => {
  const { open, entries } = fixture();
  const cache: Layer = async (target, _scope, next) => (target.name === 'cached' ? { from: 'cache' } : next());
  const admit: Layer = async (target, _scope, next) => {
    if (target.name === 'forbidden') throw new LoopError('TOOL_NOT_ADMITTED', 'not in the grant');
    return next();
  };
  const never = (): never => {
    throw new Error('The effect was performed.');
  };
  const body = async (scope: Scope) => [
    await scope.effect(effect('cached', never)),
    await scope.effect(effect('forbidden', never)).catch((error: LoopError) => error.code),
    await scope.wait('go'),
  ];
  await run(await open({ layers: [admit, cache] }), body);
  const session = await open();
  await session.signal({ id: '1', name: 'go', value: 'go' });
  expect(await run(session, body)).toEqual({
    status: 'ok',
    output: [{ from: 'cache' }, 'TOOL_NOT_ADMITTED', 'go'],
  });
  expect((await entries()).some(({ type }) => type === 'effect.requested')).toBe(false);
});

/** The total length of all texts. */
const textLength: View<number> = {
  name: 'texts',
  version: 1,
  initial: 0,
  apply: (sum, { type, value }) => (type === 'text.appended' && typeof value === 'string' ? sum + value.length : sum),
};

verifies('kernel.view', 'a view has the same state after a restart', async () => {
  const { open } = fixture();
  const session = await open({ views: [textLength as never] });
  await run(session, async (scope) => {
    await scope.record('text.appended', () => 'short');
    await scope.record('text.appended', () => 'x'.repeat(20_000));
  });
  expect(session.state(textLength)).toBe(20_005);
  expect((await open({ views: [textLength as never] })).state(textLength)).toBe(20_005);
});

/** Wraps a store and counts the entries that are read from it. */
function countingReads(store: Store): { store: Store; readCount: () => number } {
  let readCount = 0;
  const { journal } = store;
  const counting = {
    claim: (session: string) => journal.claim(session),
    append: (batch: Parameters<typeof journal.append>[0]) => journal.append(batch),
    list: () => journal.list(),
    remove: (session: string) => journal.remove(session),
    async *read(session: string, from: number) {
      for await (const batch of journal.read(session, from)) {
        readCount += batch.length;
        yield batch;
      }
    },
  };
  return { store: { ...store, journal: counting }, readCount: () => readCount };
}

verifies('kernel.snapshot', 'a session opens faster with a snapshot, and to the same state without it', async () => {
  const { open, store } = fixture();
  const views = [textLength as never];
  const session = await open({ views });
  await session.signal({ id: 'kept', name: 'kept', value: 7 });
  await run(session, async (scope) => {
    for (let i = 0; i < 1_500; i++) await scope.record('text.appended', () => 'ab');
  });
  const saved = await store.snapshots.load('s');
  expect(saved?.nextSeq).toBeGreaterThan(1_500);
  const counting = countingReads(store);
  const quick = await open({ views, store: counting.store });
  expect(counting.readCount(), 'the snapshot was not used').toBeLessThan(600);
  expect(quick.state(textLength)).toBe(3_000);
  expect(await quick.signal({ id: 'kept', name: 'kept', value: 7 })).toBe(false);
  const storeWithoutSnapshots = { ...store, snapshots: { load: async () => undefined, save: async () => {} } };
  const slow = await open({ views, store: storeWithoutSnapshots });
  expect(slow.state(textLength)).toBe(3_000);
  expect(await run(slow, async () => 'again')).toEqual(await run(await open({ views }), async () => 'again'));
  const received = await run(await open({ views }), (scope) => scope.wait('kept'), 't2');
  expect(received).toEqual({ status: 'ok', output: 7 });
});

verifies('kernel.snapshot', 'a view of a newer version does not start from the snapshot of an older one', async () => {
  const { open } = fixture();
  await run(await open({ views: [textLength as never] }), async (scope) => {
    for (let i = 0; i < 1_500; i++) await scope.record('text.appended', () => 'ab');
  });
  const newer: View<number> = { ...textLength, version: 2, apply: (sum, entry) => textLength.apply(sum, entry) };
  expect((await open({ views: [newer as never] })).state(newer)).toBe(3_000);
});

verifies('kernel.blob', 'a large value that is passed on many times is stored once', async () => {
  const { open, entries, store } = fixture();
  const large = 'z'.repeat(50_000);
  const echo = { name: 'echo', body: async (input: Json) => input };
  await run(await open(), async (scope) => {
    for (let i = 0; i < 20; i++) await scope.call(echo, large);
    return large;
  });
  const all = await entries();
  const digests = new Set(all.flatMap(({ blob }) => blob ?? []));
  expect(digests.size).toBe(1);
  expect(JSON.stringify(all).length).toBeLessThan(10_000);
  for (const digest of digests) expect(await store.blobs.get('s', digest)).toBe(JSON.stringify(large));
});

verifies('kernel.version', 'an entry of an older program is upcast step by step when it is read', async () => {
  const { open } = fixture();
  await run(await open(), async (scope) => scope.record('text.appended', () => 'old'));
  const upcasts = {
    'text.appended': {
      current: 3,
      from: {
        1: (e: Entry) => ({ ...e, value: `${e.value} but` }),
        2: (e: Entry) => ({ ...e, value: `${e.value} good` }),
      },
    },
  };
  const latestText: View<string> = {
    name: 'latest-text',
    version: 1,
    initial: '',
    apply: (state, { type, value, schemaVersion }) => (type === 'text.appended' ? `${schemaVersion} ${value}` : state),
  };
  expect((await open({ upcasts, views: [latestText as never] })).state(latestText)).toBe('3 old but good');
});

verifies('kernel.once', 'a root that runs again with another input is refused', async () => {
  const { open } = fixture();
  const loop = { name: 'main', body: async (input: Json) => input };
  const session = await open();
  expect(await session.run('t1', loop, { amount: 5 })).toEqual({ status: 'ok', output: { amount: 5 } });
  await expect(session.run('t1', loop, { amount: 500 })).rejects.toMatchObject({
    code: 'REPLAY_MISMATCH',
    message: expect.stringMatching(
      /^Step t1: the code asked for the call "main" with another input than the recorded one\./,
    ),
    data: { asked: expect.stringContaining('{"amount":500}') },
  });
  expect(await session.run('t1', loop, { amount: 5 })).toEqual({ status: 'ok', output: { amount: 5 } });
});

verifies('kernel.fault', 'a session refuses a second concurrent run, and every run once it is closed', async () => {
  const { open } = fixture();
  const session = await open();
  const first = run(session, (scope) => scope.wait('x'));
  await expect(run(session, async () => 1, 't2')).rejects.toMatchObject({ code: 'SESSION_BUSY' });
  await first;
  await session.close();
  await expect(run(session, async () => 1, 't3')).rejects.toMatchObject({ code: 'SESSION_CLOSED' });
});

verifies('kernel.value', 'a run that throws a value that is not an error ends with an error', async () => {
  const { open } = fixture();
  const hostile: unknown[] = [
    'text',
    null,
    42,
    {
      toString: () => {
        throw new Error('no');
      },
    },
    new LoopError('X', 'm', { n: 10n } as never),
  ];
  for (const [index, thrown] of hostile.entries()) {
    const outcome = await run(await open(), () => Promise.reject(thrown), `t${index}`);
    expect(outcome.status).toBe('error');
    expect(outcome.status === 'error' && typeof outcome.error.message).toBe('string');
  }
});

verifies('kernel.parallel', 'ten thousand branches return their results by position, also after a replay', async () => {
  const { open } = fixture();
  const double = { name: 'double', body: async (n: number) => n * 2 };
  const body = async (scope: Scope) => {
    const all = await scope.all(Array.from({ length: 10_000 }, (_, i) => (s: Scope) => s.call(double, i)));
    await scope.wait('go');
    return all.every((value, i) => value === i * 2) && all.length;
  };
  await run(await open(), body);
  const session = await open();
  await session.signal({ id: '1', name: 'go' });
  expect(await run(session, body)).toEqual({ status: 'ok', output: 10_000 });
});

test('entries are plain objects: they can be values, and compare equal to their own JSON', async () => {
  const { open, entries } = fixture();
  const session = await open();
  await run(session, (scope) => scope.call({ name: 'child', body: () => 1 }, null));
  await session.close();
  for (const entry of await entries()) {
    expect(Object.getPrototypeOf(entry)).toBe(Object.prototype);
    expect(entry).toEqual(JSON.parse(JSON.stringify(entry)));
  }
});
