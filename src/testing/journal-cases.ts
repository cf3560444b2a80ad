/**
 * What every store must do, as cases that any test runner can run: `for (const c of journalCases(open)) test(c.name, c.run)`.
 * Each case opens a store of its own, empty, through `open`, and closes it. A failed case throws and says what was seen.
 */
import { deepStrictEqual, ok, rejects, strictEqual } from 'node:assert';
import { Fault } from '../base/errors.js';
import { digestOfText } from '../journal/record.js';
import type { Batch, Claim, Store } from '../journal/store.js';
import type { Entry } from '../protocol/entry.js';

export interface JournalCase {
  readonly name: string;
  run(): Promise<void>;
}

/** Opens a store that is empty the first time; `reopen` opens the same one again after it was closed. */
export interface StoreUnderTest {
  open(): Promise<Store>;
  /** Absent for a store that keeps nothing beyond the process. */
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
  for await (const some of store.journal.read(session, from)) all.push(...some);
  return all;
}

function isFault(code: string): (error: unknown) => boolean {
  return (error) => error instanceof Fault && error.code === code;
}

const caseBodies: { readonly [name: string]: CaseBody } = {
  'what was appended is read back, in order, whole and from any place': async (store) => {
    const claim = await store.journal.claim('a');
    strictEqual(claim.nextSeq, 0);
    await store.journal.append(sampleBatch('a', claim, 3));
    await store.journal.append(sampleBatch('a', { ...claim, nextSeq: 3 }, 4));
    const all = [...sampleEntries(0, 3), ...sampleEntries(3, 4)];
    for (let from = 0; from <= 7; from++) deepStrictEqual(await readAll(store, 'a', from), all.slice(from));
  },
  'an append that skips or repeats a place is refused and leaves nothing': async (store) => {
    const claim = await store.journal.claim('a');
    await store.journal.append(sampleBatch('a', claim, 2));
    for (const next of [0, 1, 3]) {
      await rejects(store.journal.append(sampleBatch('a', { ...claim, nextSeq: next }, 1)), isFault('STALE_WRITER'));
    }
    strictEqual((await readAll(store, 'a')).length, 2);
  },
  'the same append again is acknowledged and written once; other content at its place is refused': async (store) => {
    const claim = await store.journal.claim('a');
    const sent = [sampleBatch('a', claim, 2), sampleBatch('a', { ...claim, nextSeq: 2 }, 3)];
    for (const one of sent) await store.journal.append(one);
    for (const one of sent) await store.journal.append(one);
    await rejects(store.journal.append(sampleBatch('a', claim, 2, 'other')), isFault('STALE_WRITER'));
    await rejects(store.journal.append(sampleBatch('a', claim, 5)), isFault('STALE_WRITER'));
    await rejects(
      store.journal.append({ ...sampleBatch('a', claim, 2), fence: claim.fence - 1 }),
      isFault('STALE_WRITER'),
    );
    deepStrictEqual(await readAll(store, 'a'), [...sampleEntries(0, 2), ...sampleEntries(2, 3)]);
    const young = await store.journal.claim('a');
    for (const one of sent) await store.journal.append(one);
    await rejects(store.journal.append(sampleBatch('a', { ...claim, nextSeq: 5 }, 1)), isFault('STALE_WRITER'));
    await store.journal.append(sampleBatch('a', young, 1));
    strictEqual((await readAll(store, 'a')).length, 6);
  },
  'a writer that was overtaken cannot write, even at the right place': async (store) => {
    const old = await store.journal.claim('a');
    await store.journal.append(sampleBatch('a', old, 2, 'old'));
    const young = await store.journal.claim('a');
    strictEqual(young.nextSeq, 2);
    await rejects(store.journal.append(sampleBatch('a', { ...old, nextSeq: 2 }, 1, 'stale')), isFault('STALE_WRITER'));
    await store.journal.append(sampleBatch('a', young, 1, 'young'));
    deepStrictEqual((await readAll(store, 'a')).at(-1), sampleEntries(2, 1, 'young')[0]);
  },
  'appends called one after another without waiting keep their order': async (store) => {
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
  'after a refused append, the ones queued behind it are refused too': async (store) => {
    const claim = await store.journal.claim('a');
    const wrong = store.journal.append(sampleBatch('a', { ...claim, nextSeq: 5 }, 1));
    const after = store.journal.append(sampleBatch('a', { ...claim, nextSeq: 6 }, 1));
    await rejects(wrong, isFault('STALE_WRITER'));
    await rejects(after, isFault('STALE_WRITER'));
    deepStrictEqual(await readAll(store, 'a'), []);
  },
  'a stale writer does not harm the sessions it shares a commit with': async (store) => {
    const claims = await Promise.all(['a', 'b', 'c'].map((name) => store.journal.claim(name)));
    const young = await store.journal.claim('b');
    const results = await Promise.allSettled(
      ['a', 'b', 'c'].map((name, i) => store.journal.append(sampleBatch(name, claims[i] ?? young, 1))),
    );
    deepStrictEqual(
      results.map((result) => result.status),
      ['fulfilled', 'rejected', 'fulfilled'],
    );
    deepStrictEqual(await readAll(store, 'b'), []);
    strictEqual((await readAll(store, 'c')).length, 1);
  },
  'sessions do not see each other': async (store) => {
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
    deepStrictEqual(await readAll(store, 'nobody'), []);
    deepStrictEqual(await store.journal.list(), []);
  },
  'the list tells each session and where it stands': async (store) => {
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
  'a new session never reads the past of a removed one that had its name': async (store) => {
    const old = await store.journal.claim('a');
    await store.blobs.put('a', digestOfText('"secret"'), '"secret"');
    await store.journal.append(sampleBatch('a', old, 3, 'old'));
    await store.snapshots.save('a', { nextSeq: 3, tailDigest: 'x', state: { old: true } });
    await store.journal.remove('a');
    deepStrictEqual(await readAll(store, 'a'), []);
    const young = await store.journal.claim('a');
    strictEqual(young.nextSeq, 0);
    strictEqual(await store.snapshots.load('a'), undefined);
    strictEqual(await store.blobs.get('a', digestOfText('"secret"')), undefined);
    await rejects(store.journal.append(sampleBatch('a', { ...old, nextSeq: 3 }, 1)), isFault('STALE_WRITER'));
    await rejects(store.journal.append(sampleBatch('a', { ...old, nextSeq: 0 }, 1)), isFault('STALE_WRITER'));
    await store.journal.append(sampleBatch('a', young, 1, 'young'));
    deepStrictEqual(await readAll(store, 'a'), sampleEntries(0, 1, 'young'));
  },
  'a large value lies in the blobs, and its entry holds only the digest': async (store) => {
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
  'reading during a write returns a complete prefix': async (store) => {
    const claim = await store.journal.claim('a');
    for (let i = 0; i < 40; i++) await store.journal.append(sampleBatch('a', { ...claim, nextSeq: i * 5 }, 5));
    const seen: number[] = [];
    for await (const some of store.journal.read('a', 0)) {
      seen.push(...some.map((entry) => entry.seq));
      if (seen.length < 60)
        await store.journal.append(
          sampleBatch('a', { ...claim, nextSeq: 200 + seen.length - some.length }, some.length),
        );
    }
    deepStrictEqual(
      seen,
      seen.map((_, i) => i),
    );
    ok(seen.length >= 200, `only ${seen.length} of 200 entries were read`);
  },
  'what was acknowledged is there after the store is opened again': async (store, reopen) => {
    const claim = await store.journal.claim('a');
    const text = JSON.stringify('y'.repeat(10_000));
    await store.blobs.put('a', digestOfText(text), text);
    await store.journal.append(sampleBatch('a', claim, 3));
    await store.close();
    const again = await reopen();
    const next = await again.journal.claim('a');
    ok(next.fence > claim.fence, 'the fence of a new claim must be higher than any before');
    strictEqual(next.nextSeq, 3);
    deepStrictEqual(await readAll(again, 'a'), sampleEntries(0, 3));
    strictEqual(await again.blobs.get('a', digestOfText(text)), text);
    await again.close();
  },
};

const NEEDS_REOPEN = 'what was acknowledged is there after the store is opened again';

/** The cases for one kind of store. */
export function journalCases(under: () => StoreUnderTest): readonly JournalCase[] {
  const lasting = under().reopen !== undefined;
  const names = Object.keys(caseBodies).filter((name) => lasting || name !== NEEDS_REOPEN);
  return names.map((name) => ({
    name,
    run: async () => {
      const subject = under();
      const store = await subject.open();
      const reopen = (): Promise<Store> => subject.reopen?.() ?? Promise.reject(new Error('cannot reopen'));
      await caseBodies[name]?.(store, reopen);
      await store.close();
    },
  }));
}
