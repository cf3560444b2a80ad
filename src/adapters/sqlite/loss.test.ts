/** Stores that lost something: the report must tell, and nobody may go on as if nothing had happened. */
import { copyFileSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { afterAll, expect } from 'vitest';
import {
  appendEntry,
  cleanUp,
  copyStoreFiles,
  expectFault,
  freshFile,
  readValues,
  startOwnerProcess,
} from '../../../spec/support/sqlite-fixture.mjs';
import { verifies } from '../../../spec/verifies.js';
import { openDriver, openSqlite, type SqliteOptions } from './index.js';

afterAll(cleanUp);

/** A store with three sessions whose owner was killed, and a copy of it with the end of its WAL cut off. */
async function cutShort(): Promise<{ file: string; cut: string }> {
  const file = freshFile();
  await (await startOwnerProcess(file)).kill();
  const cut = copyStoreFiles(file);
  truncateSync(`${cut}-wal`, statSync(`${cut}-wal`).size - 3000);
  return { file, cut };
}

verifies('sqlite.anchor', 'SQLite drops the end of a damaged WAL and nobody hears of it', async () => {
  const { cut } = await cutShort();
  const store = await openSqlite(cut);
  expect(store.report.damage).toEqual([
    expect.objectContaining({ kind: 'lost tail', session: 'c', seq: 2, had: 3, have: 2, since: expect.any(Number) }),
  ]);
  const refused = await expectFault(store.journal.claim('c'));
  expect(refused.code).toBe('STORE_DAMAGED');
  expect(refused.message).toContain("open with accept: 'loss' to continue from entry 2");
  expect((await expectFault(readValues(store, 'c'))).code).toBe('STORE_DAMAGED');
  const { fence, nextSeq } = await store.journal.claim('a');
  await appendEntry(store, 'a', fence, nextSeq, 'goes on');
  await store.close();
  const still = await openSqlite(cut);
  expect(still.report.damage).toMatchObject([{ kind: 'lost tail', session: 'c' }]);
  await still.close();
});

verifies(
  'sqlite.anchor',
  'an accepted loss is reported for ever, or entries come back under a continued session',
  async () => {
    const { cut } = await cutShort();
    const store = await openSqlite(cut, { accept: 'loss' });
    expect(store.report.damage).toMatchObject([{ kind: 'lost tail', session: 'c' }]);
    const { fence, nextSeq } = await store.journal.claim('c');
    expect(nextSeq).toBe(2);
    await appendEntry(store, 'c', fence, nextSeq, 'anew');
    await store.close();
    const again = await openSqlite(cut);
    expect(again.report.damage).toEqual([]);
    expect(await readValues(again, 'c')).toEqual(['c0', 'c1', 'anew']);
    await again.close();
  },
);

verifies('sqlite.anchor', 'with the whole WAL gone the sessions in it seem never to have been', async () => {
  const { cut } = await cutShort();
  truncateSync(`${cut}-wal`, 0);
  const store = await openSqlite(cut);
  const told = store.report.damage.map(({ kind, session, had }) => [kind, session, had]);
  expect(told).toEqual([
    ['missing', 'a', 3],
    ['missing', 'b', 3],
    ['missing', 'c', 3],
  ]);
  expect((await expectFault(store.journal.claim('a'))).code).toBe('STORE_DAMAGED');
  expect((await store.journal.list()).map(({ session }) => session)).toEqual(['a', 'b', 'c']);
  await store.journal.remove('a');
  expect((await store.journal.claim('a')).nextSeq).toBe(0);
  await store.close();
  const again = await openSqlite(cut);
  expect(again.report.damage.map(({ session }) => session)).toEqual(['b', 'c']);
  await again.close();
});

verifies('sqlite.anchor', 'a database that became empty takes its WAL with it', async () => {
  const { cut } = await cutShort();
  truncateSync(cut, 0);
  const size = statSync(`${cut}-wal`).size;
  expect((await expectFault(openSqlite(cut))).message).toContain('empty or missing');
  expect(statSync(`${cut}-wal`).size).toBe(size);
});

verifies('sqlite.retention', 'a removed session is back and runs again', async () => {
  const file = freshFile();
  const first = await openSqlite(file);
  const { fence } = await first.journal.claim('a');
  await appendEntry(first, 'a', fence, 0);
  await first.close();
  const before = copyStoreFiles(file);
  const second = await openSqlite(file);
  await second.journal.remove('a');
  await second.close();
  copyFileSync(before, file);
  const store = await openSqlite(file);
  expect(store.report.damage).toMatchObject([{ kind: 'resurrected', session: 'a', have: 1 }]);
  expect((await expectFault(store.journal.claim('a'))).message).toContain('remove it again');
  await store.journal.remove('a');
  await store.close();
  const again = await openSqlite(file);
  expect(again.report.damage).toEqual([]);
  await again.close();
});

verifies('sqlite.anchor', 'a process that ends between COMMIT and the anchor is taken for a loss', async () => {
  const file = freshFile();
  const store = await openSqlite(file);
  for (const session of ['a', 'b']) await appendEntry(store, session, (await store.journal.claim(session)).fence, 0);
  const anchor = readFileSync(`${file}.anchor`);
  await store.journal.remove('a');
  await store.close();
  writeFileSync(`${file}.anchor`, anchor);
  const again = await openSqlite(file);
  expect(again.report.damage).toEqual([]);
  expect(await again.journal.list()).toEqual([{ session: 'b', nextSeq: 1 }]);
  await again.close();
});

verifies('sqlite.anchor', 'a cut, damaged or missing anchor passes for a whole one', async () => {
  const { file } = await cutShort();
  const damage = async (change: (anchor: string) => void): Promise<unknown[]> => {
    const copy = copyStoreFiles(file);
    change(`${copy}.anchor`);
    const store = await openSqlite(copy);
    expect(await readValues(store, 'c')).toHaveLength(3);
    await store.close();
    return store.report.damage.map(({ kind, session }) => [kind, session]);
  };
  const lines = readFileSync(`${file}.anchor`, 'utf8').split('\n');
  const told = [['anchor', undefined]];
  expect(await damage((anchor) => rmSync(anchor))).toEqual(told);
  expect(await damage((anchor) => truncateSync(anchor, 0))).toEqual(told);
  expect(await damage((anchor) => truncateSync(anchor, statSync(anchor).size >> 1))).toEqual(told);
  expect(await damage((anchor) => writeFileSync(anchor, lines.toSpliced(4, 1).join('\n')))).toEqual(told);
  expect(await damage((anchor) => writeFileSync(anchor, lines.with(4, `x${lines[4]}`).join('\n')))).toEqual(told);
  // A process that ended between COMMIT and the anchor leaves it one line short, or torn: that is no damage.
  expect(await damage((anchor) => truncateSync(anchor, statSync(anchor).size - 20))).toEqual([]);
});

verifies('sqlite.damage', 'a changed entry is read back as if it had been written', async () => {
  const file = freshFile();
  const store = await openSqlite(file);
  for (const session of ['a', 'b']) {
    const { fence } = await store.journal.claim(session);
    for (let n = 0; n < 5; n++) await appendEntry(store, session, fence, n, `${session}${n}`);
  }
  await store.close();
  const raw = openDriver(file);
  raw.exec(`UPDATE records SET body = replace(body, 'a2', 'a9') WHERE body LIKE '%"a2"%'`);
  raw.close();
  for (const options of [{ check: 'full' }, { check: 'heads' }] satisfies SqliteOptions[]) {
    const again = await openSqlite(copyStoreFiles(file), options);
    const told = again.report.damage.map(({ kind, session, seq }) => [kind, session, seq]);
    expect(told).toEqual(options.check === 'full' ? [['damaged', 'a', 2]] : []);
    expect(await expectFault(readValues(again, 'a'))).toMatchObject({
      code: 'STORE_DAMAGED',
      data: { session: 'a', seq: 2 },
    });
    expect(await readValues(again, 'b')).toHaveLength(5);
    await again.close();
  }
});

verifies('sqlite.anchor', 'the anchor grows with every commit for ever', async () => {
  const file = freshFile();
  const store = await openSqlite(file, { durability: 'os' });
  const names = Array.from({ length: 400 }, (_, i) => `${'long'.repeat(50)} ${i}`);
  const claims = await Promise.all(names.map((name) => store.journal.claim(name)));
  for (let n = 0; n < 12; n++)
    await Promise.all(names.map((name, i) => appendEntry(store, name, claims[i]?.fence ?? 0, n)));
  expect(store.stats().compactions).toBeGreaterThan(0);
  expect(statSync(`${file}.anchor`).size).toBeLessThan(1_200_000);
  await store.close();
  expect(statSync(`${file}.anchor`).size).toBeLessThan(120_000);
  const again = await openSqlite(file);
  expect(again.report.damage).toEqual([]);
  await again.close();
});
