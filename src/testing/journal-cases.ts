/**
 * The promises that every store must keep, as cases for any test runner. Each case opens its own empty store and, if it
 * succeeds, closes it, possibly twice. A case that fails throws an AssertionError or the error of the store.
 */
import { deepStrictEqual, ok, rejects, strictEqual } from 'node:assert';
import { Fault } from '../base/errors.js';
import { digestOfText } from '../journal/record.js';
import type { Batch, Claim, Store } from '../journal/store.js';
import type { Entry } from '../protocol/entry.js';
import { dueTurnCases, REOPENED_INDEX_CASE } from './due-turn-cases.js';

/** One promise of a store and the test for it. */
export interface JournalCase {
  readonly name: string;
  run(): Promise<void>;
}

/** A store to test. */
export interface StoreUnderTest {
  /** Opens the store, which must be empty. */
  open(): Promise<Store>;
  /** Opens the same store again after it was closed. Absent for a store that does not outlive its process. */
  reopen?(): Promise<Store>;
}

type CaseBody = (store: Store, reopen: () => Promise<Store>) => Promise<void>;

function sampleEntries(first: number, count: number, mark = ''): Entry[] {
  return Array.from({ length: count }, (_, i) => ({
    seq: first + i,
    at: 1_700_000_000_000 + i,
    type: 'step.taken',
    key: `t1/${first + i}`,
    value: { mark, text: 'ø\u2028"\\\n\ud83d\ude00', n: first + i },
  }));
}

function sampleBatch(session: string, { fence, nextSeq }: Claim, count: number, mark = ''): Batch {
  return { session, fence, firstSeq: nextSeq, entries: sampleEntries(nextSeq, count, mark) };
}

async function readAll(store: Store, session: string, from = 0): Promise<Entry[]> {
  const all: Entry[] = [];
  for await (const batch of store.journal.read(session, from)) all.push(...batch);
  return all;
}

function isFault(code: string): (error: unknown) => boolean {
  return (error) => error instanceof Fault && error.code === code;
}

const REOPENED_STORE_CASE = 'acknowledged entries and blobs are there after the store is opened again';
const CASES_WITH_REOPEN: ReadonlySet<string> = new Set([REOPENED_STORE_CASE, REOPENED_INDEX_CASE]);

const caseBodies: { readonly [name: string]: CaseBody } = {
  'entries are read back unchanged and in order, from any position': async (store) => {
    const claim = await store.journal.claim('a');
    strictEqual(claim.nextSeq, 0);
    await store.journal.append(sampleBatch('a', claim, 3));
    await store.journal.append(sampleBatch('a', { ...claim, nextSeq: 3 }, 4));
    const all = [...sampleEntries(0, 3), ...sampleEntries(3, 4)];
    for (let from = 0; from <= 7; from++) deepStrictEqual(await readAll(store, 'a', from), all.slice(from));
  },
  'an append that skips or repeats a position is refused and writes nothing': async (store) => {
    const claim = await store.journal.claim('a');
    await store.journal.append(sampleBatch('a', claim, 2));
    for (const next of [0, 1, 3]) {
      await rejects(store.journal.append(sampleBatch('a', { ...claim, nextSeq: next }, 1)), isFault('STALE_WRITER'));
    }
    strictEqual((await readAll(store, 'a')).length, 2);
  },
  'a repeated append is acknowledged and written once; other content at its position is refused': async (store) => {
    const claim = await store.journal.claim('a');
    const sent = [sampleBatch('a', claim, 2), sampleBatch('a', { ...claim, nextSeq: 2 }, 3)];
    for (const batch of sent) await store.journal.append(batch);
    for (const batch of sent) await store.journal.append(batch);
    await rejects(store.journal.append(sampleBatch('a', claim, 2, 'other')), isFault('STALE_WRITER'));
    await rejects(store.journal.append(sampleBatch('a', claim, 5)), isFault('STALE_WRITER'));
    await rejects(
      store.journal.append({ ...sampleBatch('a', claim, 2), fence: claim.fence - 1 }),
      isFault('STALE_WRITER'),
    );
    deepStrictEqual(await readAll(store, 'a'), [...sampleEntries(0, 2), ...sampleEntries(2, 3)]);
    const newClaim = await store.journal.claim('a');
    for (const batch of sent) await store.journal.append(batch);
    await rejects(store.journal.append(sampleBatch('a', { ...claim, nextSeq: 5 }, 1)), isFault('STALE_WRITER'));
    await store.journal.append(sampleBatch('a', newClaim, 1));
    strictEqual((await readAll(store, 'a')).length, 6);
  },
  'a writer with a stale fence cannot write, even at the right position': async (store) => {
    const oldClaim = await store.journal.claim('a');
    await store.journal.append(sampleBatch('a', oldClaim, 2, 'old'));
    const newClaim = await store.journal.claim('a');
    strictEqual(newClaim.nextSeq, 2);
    await rejects(
      store.journal.append(sampleBatch('a', { ...oldClaim, nextSeq: 2 }, 1, 'stale')),
      isFault('STALE_WRITER'),
    );
    await store.journal.append(sampleBatch('a', newClaim, 1, 'new'));
    deepStrictEqual((await readAll(store, 'a')).at(-1), sampleEntries(2, 1, 'new')[0]);
  },
  'appends that are not awaited keep the order of their calls': async (store) => {
    const claim = await store.journal.claim('a');
    const appends = Array.from({ length: 50 }, (_, i) =>
      store.journal.append(sampleBatch('a', { ...claim, nextSeq: i * 2 }, 2)),
    );
    await Promise.all(appends);
    deepStrictEqual(
      (await readAll(store, 'a')).map((entry) => entry.seq),
      Array.from({ length: 100 }, (_, i) => i),
    );
  },
  'appends that are queued after a refused one are refused too': async (store) => {
    const claim = await store.journal.claim('a');
    const refused = store.journal.append(sampleBatch('a', { ...claim, nextSeq: 5 }, 1));
    const queued = store.journal.append(sampleBatch('a', { ...claim, nextSeq: 6 }, 1));
    await rejects(refused, isFault('STALE_WRITER'));
    await rejects(queued, isFault('STALE_WRITER'));
    deepStrictEqual(await readAll(store, 'a'), []);
  },
  'a stale writer does not affect other sessions of the same commit': async (store) => {
    const claims = await Promise.all(['a', 'b', 'c'].map((name) => store.journal.claim(name)));
    const newClaim = await store.journal.claim('b');
    const results = await Promise.allSettled(
      ['a', 'b', 'c'].map((name, i) => store.journal.append(sampleBatch(name, claims[i] ?? newClaim, 1))),
    );
    deepStrictEqual(
      results.map((result) => result.status),
      ['fulfilled', 'rejected', 'fulfilled'],
    );
    deepStrictEqual(await readAll(store, 'b'), []);
    strictEqual((await readAll(store, 'c')).length, 1);
  },
  'sessions are isolated from each other': async (store) => {
    for (const name of ['a', 'a/b', 'a%', '__proto__', 'constructor', 'é', 'é'.normalize('NFD')]) {
      const claim = await store.journal.claim(name);
      strictEqual(claim.nextSeq, 0);
      await store.journal.append(sampleBatch(name, claim, 1, name));
    }
    deepStrictEqual(await readAll(store, 'a%'), sampleEntries(0, 1, 'a%'));
    deepStrictEqual(await readAll(store, '__proto__'), sampleEntries(0, 1, '__proto__'));
    strictEqual((await store.journal.list()).length, 7);
  },
  'a session that was never claimed is empty': async (store) => {
    deepStrictEqual(await readAll(store, 'unclaimed'), []);
    deepStrictEqual(await store.journal.list(), []);
  },
  'the list contains each session with its next sequence number': async (store) => {
    const claim = await store.journal.claim('a');
    await store.journal.append(sampleBatch('a', claim, 3));
    await store.journal.claim('b');
    const list = [...(await store.journal.list())].sort((x, y) => (x.session < y.session ? -1 : 1));
    deepStrictEqual(
      list.map(({ session, nextSeq }) => [session, nextSeq]),
      [
        ['a', 3],
        ['b', 0],
      ],
    );
  },
  'a new session reads nothing of a removed session of the same name': async (store) => {
    const oldClaim = await store.journal.claim('a');
    await store.blobs.put('a', digestOfText('"secret"'), '"secret"');
    await store.journal.append(sampleBatch('a', oldClaim, 3, 'old'));
    await store.snapshots.save('a', { nextSeq: 3, tailDigest: 'x', state: { old: true } });
    await store.journal.remove('a');
    deepStrictEqual(await readAll(store, 'a'), []);
    const newClaim = await store.journal.claim('a');
    strictEqual(newClaim.nextSeq, 0);
    strictEqual(await store.snapshots.load('a'), undefined);
    strictEqual(await store.blobs.get('a', digestOfText('"secret"')), undefined);
    await rejects(store.journal.append(sampleBatch('a', { ...oldClaim, nextSeq: 3 }, 1)), isFault('STALE_WRITER'));
    await rejects(store.journal.append(sampleBatch('a', { ...oldClaim, nextSeq: 0 }, 1)), isFault('STALE_WRITER'));
    await store.journal.append(sampleBatch('a', newClaim, 1, 'new'));
    deepStrictEqual(await readAll(store, 'a'), sampleEntries(0, 1, 'new'));
  },
  'a large value is stored as a blob, and its entry contains the digest': async (store) => {
    const claim = await store.journal.claim('a');
    const text = JSON.stringify('x'.repeat(100_000));
    const blob = digestOfText(text);
    await store.blobs.put('a', blob, text);
    await store.blobs.put('a', blob, text);
    const [plain] = sampleEntries(0, 1);
    ok(plain);
    await store.journal.append({ session: 'a', fence: claim.fence, firstSeq: 0, entries: [{ ...plain, blob }] });
    const [read] = await readAll(store, 'a');
    strictEqual(read?.blob, blob);
    strictEqual(await store.blobs.get('a', blob), text);
    strictEqual(await store.blobs.get('b', blob), undefined);
  },
  'a snapshot is replaced as a whole': async (store) => {
    await store.journal.claim('a');
    strictEqual(await store.snapshots.load('a'), undefined);
    for (const next of [1, 2])
      await store.snapshots.save('a', { nextSeq: next, tailDigest: `t${next}`, state: { n: [next] } });
    deepStrictEqual(await store.snapshots.load('a'), { nextSeq: 2, tailDigest: 't2', state: { n: [2] } });
  },
  'a read during appends yields entries in order and without gaps': async (store) => {
    const claim = await store.journal.claim('a');
    for (let i = 0; i < 40; i++) await store.journal.append(sampleBatch('a', { ...claim, nextSeq: i * 5 }, 5));
    const seqs: number[] = [];
    for await (const batch of store.journal.read('a', 0)) {
      seqs.push(...batch.map((entry) => entry.seq));
      if (seqs.length < 60)
        await store.journal.append(
          sampleBatch('a', { ...claim, nextSeq: 200 + seqs.length - batch.length }, batch.length),
        );
    }
    deepStrictEqual(
      seqs,
      seqs.map((_, i) => i),
    );
    ok(seqs.length >= 200, `only ${seqs.length} of 200 entries were read`);
  },
  [REOPENED_STORE_CASE]: async (store, reopen) => {
    const claim = await store.journal.claim('a');
    const text = JSON.stringify('y'.repeat(10_000));
    await store.blobs.put('a', digestOfText(text), text);
    await store.journal.append(sampleBatch('a', claim, 3));
    await store.close();
    const reopened = await reopen();
    const nextClaim = await reopened.journal.claim('a');
    ok(nextClaim.fence > claim.fence, 'the fence of a new claim must be higher than all earlier ones');
    strictEqual(nextClaim.nextSeq, 3);
    deepStrictEqual(await readAll(reopened, 'a'), sampleEntries(0, 3));
    strictEqual(await reopened.blobs.get('a', digestOfText(text)), text);
    await reopened.close();
  },
  ...dueTurnCases,
};

/**
 * Returns the cases for one kind of store. `createStore` is called once at first, to see whether the store has
 * `reopen`, and once for each case that runs. The cases that reopen the store are left out if it has none.
 *
 * @example for (const { name, run } of journalCases(() => ({ open: async () => memoryStore() }))) test(name, run);
 */
export function journalCases(createStore: () => StoreUnderTest): readonly JournalCase[] {
  const isPersistent = createStore().reopen !== undefined;
  const names = Object.keys(caseBodies).filter((name) => isPersistent || !CASES_WITH_REOPEN.has(name));
  return names.map((name) => ({
    name,
    run: async () => {
      const underTest = createStore();
      const store = await underTest.open();
      const reopen = (): Promise<Store> =>
        underTest.reopen?.() ?? Promise.reject(new Error('This store has no reopen.'));
      await caseBodies[name]?.(store, reopen);
      await store.close();
    },
  }));
}
