/** Several writers on one shared stream: the sum of what they take never exceeds the limit, and nothing is lost or doubled. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect } from 'vitest';
import { repetitions } from '../../spec/support/repetitions.js';
import { verifies } from '../../spec/verifies.js';
import { memoryStore } from '../adapters/memory/index.js';
import { openSqlite } from '../adapters/sqlite/index.js';
import { seededRandom } from '../adapters/system/seeded-ids.js';
import { Fault } from '../base/errors.js';
import type { Json } from '../protocol/json.js';
import { crashingStore } from '../testing/crashing-store.js';
import { ManualClock } from '../testing/manual-clock.js';
import { SharedStream, type StreamEntry, type StreamState } from './shared-stream.js';
import type { Batch, Store } from './store.js';

/** Counts what was taken, and how often each taker took something. */
class Takings implements StreamState {
  sum = 0;
  readonly takers = new Map<string, number>();

  constructor(saved?: Json) {
    if (saved === undefined) return;
    const { sum, takers } = saved as unknown as { sum: number; takers: [string, number][] };
    this.sum = sum;
    for (const [taker, count] of takers) this.takers.set(taker, count);
  }

  apply({ key, value }: StreamEntry): void {
    this.sum += value as number;
    this.takers.set(key, (this.takers.get(key) ?? 0) + 1);
  }

  save(): Json {
    return { sum: this.sum, takers: [...this.takers] };
  }
}

const open = (store: Store): Promise<SharedStream<Takings>> =>
  SharedStream.open({ store, clock: new ManualClock(1), name: 'shared', create: (saved) => new Takings(saved) });

const take = (key: string, amount: number, limit: number) => (state: Takings) =>
  state.sum + amount > limit ? undefined : [{ type: 'taken', key, value: amount }];

/** A store whose appends and claims take a random number of iterations of the event loop, in the order of the calls. */
function slowStore(inner: Store, random: () => number): Store {
  let last: Promise<unknown> = Promise.resolve();
  const delayed = <T>(work: () => Promise<T>): Promise<T> => {
    const result = last.then(async () => {
      for (let n = Math.floor(random() * 4); n > 0; n--) await new Promise((resolve) => setImmediate(resolve));
      return work();
    });
    last = result.catch(() => undefined);
    return result;
  };
  return {
    ...inner,
    journal: {
      claim: (name) => delayed(() => inner.journal.claim(name)),
      append: (batch) => delayed(() => inner.journal.append(batch)),
      read: (name, from) => inner.journal.read(name, from),
      list: () => inner.journal.list(),
      remove: (name) => inner.journal.remove(name),
    },
  };
}

/** What writers on one store took, as they were told and as the store has it. */
async function takeTogether(store: Store, seed: number, writers: number, takes: number, limit: number) {
  const random = seededRandom(seed);
  const taken: [string, number][] = [];
  const write = async (writer: number): Promise<void> => {
    const stream = await open(slowStore(store, random));
    const decisions: Promise<void>[] = [];
    for (let n = 0; n < takes; n++) {
      const [key, amount] = [`${writer}.${n}`, 1 + Math.floor(random() * 3)];
      const { durable } = stream.update(take(key, amount, limit));
      decisions.push(durable.then((isTaken) => void (isTaken && taken.push([key, amount]))));
      for (let pause = Math.floor(random() * 3); pause > 0; pause--) await new Promise((go) => setImmediate(go));
    }
    await Promise.all(decisions);
    await stream.flush();
  };
  await Promise.all(Array.from({ length: writers }, (_, writer) => write(writer)));
  const { state } = await open(store);
  return { taken, state };
}

async function expectExact(store: Store, seed: number, writers: number, limit: number): Promise<void> {
  const takes = 12;
  const { taken, state } = await takeTogether(store, seed, writers, takes, limit);
  expect(state.sum, 'the writers took more than the limit').toBeLessThanOrEqual(limit);
  expect([...state.takers.keys()].sort(), 'an acknowledged decision was lost, or a refused one was written').toEqual(
    taken.map(([key]) => key).sort(),
  );
  expect(
    [...state.takers.values()].every((count) => count === 1),
    'a decision was written twice',
  ).toBe(true);
  expect(state.sum).toBe(taken.reduce((sum, [, amount]) => sum + amount, 0));
  if (taken.length < writers * takes) expect(state.sum, 'a taking was refused too early').toBeGreaterThan(limit - 3);
}

const RUNS = repetitions(1000);

verifies(
  'grant.shared',
  `2 to 4 writers in memory never take more than the limit (${RUNS} runs)`,
  async () => {
    for (let seed = 1; seed <= RUNS; seed++) await expectExact(memoryStore(), seed, 2 + (seed % 3), 5 + (seed % 60));
  },
  120_000,
);

verifies(
  'grant.shared',
  `2 to 4 writers on SQLite never take more than the limit (${RUNS / 5} runs)`,
  async () => {
    const directory = mkdtempSync(join(tmpdir(), 'rondo-stream-'));
    try {
      for (let seed = 1; seed <= RUNS / 5; seed++) {
        const store = await openSqlite(join(directory, `${seed}.db`));
        await expectExact(store, seed, 2 + (seed % 3), 5 + (seed % 60));
        await store.close();
      }
    } finally {
      rmSync(directory, { recursive: true });
    }
  },
  120_000,
);

verifies('grant.shared', 'two writers that decide in lockstep both finish', async () => {
  const store = memoryStore();
  const streams = await Promise.all([open(store), open(store), open(store), open(store)]);
  const all = streams.flatMap((stream, writer) =>
    Array.from({ length: 20 }, (_, n) => stream.update(take(`${writer}.${n}`, 1, 1000)).durable),
  );
  expect(await Promise.all(all)).not.toContain(false);
  expect((await open(store)).state.sum).toBe(80);
});

verifies('grant.shared', 'an append that is under way when another one is stale is not written again', async () => {
  const store = memoryStore();
  const appends: { batch: Batch; end(): void }[] = [];
  const held: Store = {
    ...store,
    journal: {
      claim: (name) => store.journal.claim(name),
      read: (name, from) => store.journal.read(name, from),
      list: () => store.journal.list(),
      remove: (name) => store.journal.remove(name),
      // The first append is durable at once and reported late.
      append: async (batch) => {
        await store.journal.append(batch);
        if (appends.length === 0) await new Promise<void>((end) => appends.push({ batch, end }));
      },
    },
  };
  const stream = await open(held);
  const first = stream.update(take('first', 1, 10));
  await Promise.resolve();
  const other = await open(store);
  const second = stream.update(take('second', 1, 10));
  for (let n = 0; n < 10; n++) await new Promise((go) => setImmediate(go));
  appends[0]?.end();
  expect(await Promise.all([first.durable, second.durable])).toEqual([true, true]);
  expect(other.failure).toBeUndefined();
  const { state } = await open(store);
  expect([...state.takers], 'a decision was written twice').toEqual([
    ['first', 1],
    ['second', 1],
  ]);
});

verifies('grant.shared', 'a decision without entries is final only with the decisions that it depends on', async () => {
  const store = memoryStore();
  const stream = await open(slowStore(store, () => 0.9));
  const other = await open(store);
  await other.update(take('other', 10, 10)).durable;
  const once = (state: Takings) =>
    state.takers.has('mine') ? [] : state.sum + 1 > 10 ? undefined : [{ type: 'taken', key: 'mine', value: 1 }];
  const first = stream.update(once);
  await new Promise((go) => setImmediate(go));
  const second = stream.update(once);
  expect([first.isAccepted, second.isAccepted]).toEqual([true, true]);
  expect(await Promise.all([first.durable, second.durable]), 'it was final although refused').toEqual([false, false]);
});

verifies('grant.shared', 'a failure of the store rejects every decision that is not durable', async () => {
  for (const when of ['before', 'after'] as const) {
    const inner = memoryStore();
    const stream = await open(crashingStore(inner, { appendNumber: 2, when }));
    expect(await stream.update(take('a', 1, 10)).durable).toBe(true);
    const decision = stream.update(take('b', 1, 10));
    await expect(decision.durable).rejects.toBeInstanceOf(Fault);
    expect(stream.failure).toBeInstanceOf(Fault);
    await expect(stream.update(take('c', 1, 10)).durable).rejects.toBeInstanceOf(Fault);
    await expect(stream.flush()).rejects.toBeInstanceOf(Fault);
    expect((await open(inner)).state.sum).toBe(when === 'before' ? 1 : 2);
  }
});

verifies(
  'grant.shared',
  'a stream continues from its snapshot, and reads everything if the snapshot does not match',
  async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1001, max: 2300 }), fc.constantFrom(1, 7, 400), async (count, perUpdate) => {
        const store = memoryStore();
        const stream = await open(store);
        for (let n = 0; n < count; n += perUpdate) {
          for (let i = n; i < Math.min(count, n + perUpdate); i++) stream.update(take(`${i}`, 1, 1e9));
          await stream.flush();
        }
        const saved = await store.snapshots.load('shared');
        expect(saved?.nextSeq, 'no snapshot was saved').toBeGreaterThanOrEqual(1000);
        expect((await open(store)).state.save()).toEqual(stream.state.save());
        await store.snapshots.save('shared', { nextSeq: 900, tailDigest: 'forged', state: { sum: 0, takers: [] } });
        expect((await open(store)).state.sum, 'a snapshot of other entries was used').toBe(count);
      }),
      { numRuns: 6 },
    );
  },
);

verifies('grant.shared', 'a snapshot contains nothing that is not durable', async () => {
  const inner = memoryStore();
  const saved: { nextSeq: number; state: Json }[] = [];
  const store: Store = {
    ...slowStore(inner, () => 0.5),
    snapshots: {
      load: (name) => inner.snapshots.load(name),
      save: async (name, snapshot) => {
        saved.push(snapshot);
        await inner.snapshots.save(name, snapshot);
      },
    },
  };
  const stream = await open(store);
  for (let n = 0; n < 1100; n++) stream.update(take(`${n}`, 1, 1e9));
  await new Promise((go) => setImmediate(go));
  stream.update(take('later', 1, 1e9));
  await stream.flush();
  stream.update(take('last', 1, 1e9));
  await stream.flush();
  expect(saved.length).toBeGreaterThan(0);
  for (const { nextSeq, state } of saved) expect((state as { sum: number }).sum).toBe(nextSeq);
});

verifies('grant.shared', 'a decision at any moment of a recovery is applied once', async () => {
  for (let microtasks = 0; microtasks < 60; microtasks++) {
    const store = memoryStore();
    const [stream, other] = [await open(store), await open(store)];
    await other.update(take('other', 1, 100)).durable;
    // A decision that depends on itself: what is applied before it is decided again changes its entry.
    const once = (key: string) => (state: Takings) => [{ type: 'taken', key, value: state.takers.has(key) ? 50 : 1 }];
    const first = stream.update(once('first'));
    for (let n = 0; n < microtasks; n++) await undefined;
    const second = stream.update(once('second'));
    expect(await Promise.all([first.durable, second.durable])).toEqual([true, true]);
    const { state } = await open(store);
    expect(state.sum, `after ${microtasks} microtasks a decision was applied twice`).toBe(3);
    expect(stream.state.sum).toBe(3);
  }
});

verifies('grant.shared', 'a refresh reads what others wrote, claims nothing and repeats nothing', async () => {
  const store = memoryStore();
  const [reader, writer] = [await open(store), await open(store)];
  for (let n = 0; n < 3; n++) await writer.update(take(`w${n}`, 1, 10)).durable;
  expect(reader.state.sum).toBe(0);
  await Promise.all([reader.refresh(), reader.refresh(), reader.refresh()]);
  expect([reader.state.sum, reader.length]).toEqual([3, 3]);
  expect(await writer.update(take('w3', 1, 10)).durable, 'the refresh took the stream from its writer').toBe(true);
  await reader.refresh();
  expect(reader.state.sum).toBe(4);
});

verifies('grant.shared', 'a decision during and after a refresh counts what others wrote', async () => {
  for (let microtasks = 0; microtasks < 40; microtasks++) {
    const store = memoryStore();
    const [mine, other] = [await open(store), await open(store)];
    await other.update(take('other', 6, 10)).durable;
    const refreshing = mine.refresh();
    for (let n = 0; n < microtasks; n++) await undefined;
    const tooMuch = mine.update(take('mine', 5, 10));
    const fits = mine.update(take('mine', 4, 10));
    await refreshing;
    expect([await tooMuch.durable, await fits.durable]).toEqual([false, true]);
    const { sum, takers } = (await open(store)).state;
    expect([sum, mine.state.sum, takers.get('mine')]).toEqual([10, 10, 1]);
  }
});

verifies('grant.shared', 'a refresh of a stream that has failed rejects', async () => {
  const inner = memoryStore();
  const append = () => Promise.reject(new Fault('STORE_FULL', 'The disk is full.'));
  const { journal } = inner;
  const methods = { claim: journal.claim, read: journal.read, list: journal.list, remove: journal.remove };
  const bound = Object.fromEntries(Object.entries(methods).map(([name, method]) => [name, method.bind(journal)]));
  const stream = await open({ ...inner, journal: { ...bound, append } as never });
  await stream.update(take('a', 1, 10)).durable.catch(() => undefined);
  await expect(stream.refresh()).rejects.toMatchObject({ code: 'STORE_FULL' });
  expect(stream.failure).toMatchObject({ code: 'STORE_FULL' });
});

verifies('kernel.due', 'the row of a stream in the index of due turns follows its state', async () => {
  const store = memoryStore();
  const due = ({ sum }: Takings) => ({ turn: 'shared', dueAt: sum >= 3 ? undefined : sum * 100 });
  const create = (saved?: Json): Takings => new Takings(saved);
  const clock = new ManualClock(1);
  const openDue = () => SharedStream.open({ store, clock, name: 'shared', create, due });
  const rows = () => store.dueTurns.list(1000, 10);
  const [stream, other] = [await openDue(), await openDue()];
  expect(await rows()).toEqual([]);
  await stream.update(take('a', 1, 10)).durable;
  expect(await rows()).toEqual([{ session: 'shared', turn: 'shared', dueAt: 100 }]);
  await other.update(take('b', 1, 10)).durable;
  expect(await rows(), 'a decision that is made again').toEqual([{ session: 'shared', turn: 'shared', dueAt: 200 }]);
  await other.update(take('c', 1, 10)).durable;
  expect(await rows()).toEqual([]);
});
