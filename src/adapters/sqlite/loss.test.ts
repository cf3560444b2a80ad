/** Stores with lost entries: every loss is reported, and no session continues as if nothing had happened. */
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

/** Creates a store with three sessions whose owner was killed, and a copy of it with a truncated WAL. */
async function createTruncatedStore(): Promise<{ file: string; truncated: string }> {
  const file = freshFile();
  await (await startOwnerProcess(file)).kill();
  const truncated = copyStoreFiles(file);
  truncateSync(`${truncated}-wal`, statSync(`${truncated}-wal`).size - 3000);
  return { file, truncated };
}

verifies('sqlite.anchor', 'the end of a damaged WAL, which SQLite drops silently, is reported as lost', async () => {
  const { truncated } = await createTruncatedStore();
  const store = await openSqlite(truncated);
  expect(store.report.damage).toEqual([
    expect.objectContaining({ kind: 'lost tail', session: 'c', seq: 2, had: 3, have: 2, since: expect.any(Number) }),
  ]);
  const refused = await expectFault(store.journal.claim('c'));
  expect(refused.code).toBe('STORE_DAMAGED');
  expect(refused.message).toContain("open with accept: 'loss' to continue from entry 2");
  expect((await expectFault(readValues(store, 'c'))).code).toBe('STORE_DAMAGED');
  const { fence, nextSeq } = await store.journal.claim('a');
  await appendEntry(store, 'a', fence, nextSeq, 'continued');
  await store.close();
  const again = await openSqlite(truncated);
  expect(again.report.damage).toMatchObject([{ kind: 'lost tail', session: 'c' }]);
  await again.close();
});

verifies(
  'sqlite.anchor',
  'an accepted loss is reported once, and the session continues without the lost entries',
  async () => {
    const { truncated } = await createTruncatedStore();
    const store = await openSqlite(truncated, { accept: 'loss' });
    expect(store.report.damage).toMatchObject([{ kind: 'lost tail', session: 'c' }]);
    const { fence, nextSeq } = await store.journal.claim('c');
    expect(nextSeq).toBe(2);
    await appendEntry(store, 'c', fence, nextSeq, 'anew');
    await store.close();
    const again = await openSqlite(truncated);
    expect(again.report.damage).toEqual([]);
    expect(await readValues(again, 'c')).toEqual(['c0', 'c1', 'anew']);
    await again.close();
  },
);

verifies('sqlite.anchor', 'sessions that were only in a lost WAL are reported as missing', async () => {
  const { truncated } = await createTruncatedStore();
  truncateSync(`${truncated}-wal`, 0);
  const store = await openSqlite(truncated);
  const reported = store.report.damage.map(({ kind, session, had }) => [kind, session, had]);
  expect(reported).toEqual([
    ['missing', 'a', 3],
    ['missing', 'b', 3],
    ['missing', 'c', 3],
  ]);
  expect((await expectFault(store.journal.claim('a'))).code).toBe('STORE_DAMAGED');
  expect((await store.journal.list()).map(({ session }) => session)).toEqual(['a', 'b', 'c']);
  await store.journal.remove('a');
  expect((await store.journal.claim('a')).nextSeq).toBe(0);
  await store.close();
  const again = await openSqlite(truncated);
  expect(again.report.damage.map(({ session }) => session)).toEqual(['b', 'c']);
  await again.close();
});

verifies('sqlite.anchor', 'an emptied database is refused and its WAL is preserved', async () => {
  const { truncated } = await createTruncatedStore();
  truncateSync(truncated, 0);
  const size = statSync(`${truncated}-wal`).size;
  expect((await expectFault(openSqlite(truncated))).message).toContain('empty or missing');
  expect(statSync(`${truncated}-wal`).size).toBe(size);
});

verifies('sqlite.retention', 'a removed session that reappears is refused', async () => {
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

verifies(
  'sqlite.anchor',
  'a process that ends between COMMIT and the write to the anchor causes no false report',
  async () => {
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
  },
);

verifies('sqlite.anchor', 'a truncated, damaged or missing anchor is detected', async () => {
  const { file } = await createTruncatedStore();
  const damageAfter = async (change: (anchor: string) => void): Promise<unknown[]> => {
    const copy = copyStoreFiles(file);
    change(`${copy}.anchor`);
    const store = await openSqlite(copy);
    expect(await readValues(store, 'c')).toHaveLength(3);
    await store.close();
    return store.report.damage.map(({ kind, session }) => [kind, session]);
  };
  const lines = readFileSync(`${file}.anchor`, 'utf8').split('\n');
  const anchorDamage = [['anchor', undefined]];
  expect(await damageAfter((anchor) => rmSync(anchor))).toEqual(anchorDamage);
  expect(await damageAfter((anchor) => truncateSync(anchor, 0))).toEqual(anchorDamage);
  expect(await damageAfter((anchor) => truncateSync(anchor, statSync(anchor).size >> 1))).toEqual(anchorDamage);
  expect(await damageAfter((anchor) => writeFileSync(anchor, lines.toSpliced(4, 1).join('\n')))).toEqual(anchorDamage);
  expect(await damageAfter((anchor) => writeFileSync(anchor, lines.with(4, `x${lines[4]}`).join('\n')))).toEqual(
    anchorDamage,
  );
  // A process that ends between COMMIT and the write to the anchor leaves a missing or torn line, which is not damage.
  expect(await damageAfter((anchor) => truncateSync(anchor, statSync(anchor).size - 20))).toEqual([]);
});

verifies('sqlite.damage', 'a changed entry is never read back', async () => {
  const file = freshFile();
  const store = await openSqlite(file);
  for (const session of ['a', 'b']) {
    const { fence } = await store.journal.claim(session);
    for (let n = 0; n < 5; n++) await appendEntry(store, session, fence, n, `${session}${n}`);
  }
  await store.close();
  const driver = openDriver(file);
  driver.exec(`UPDATE records SET body = replace(body, 'a2', 'a9') WHERE body LIKE '%"a2"%'`);
  driver.close();
  for (const options of [{ check: 'full' }, { check: 'heads' }] satisfies SqliteOptions[]) {
    const again = await openSqlite(copyStoreFiles(file), options);
    const reported = again.report.damage.map(({ kind, session, seq }) => [kind, session, seq]);
    expect(reported).toEqual(options.check === 'full' ? [['damaged', 'a', 2]] : []);
    expect(await expectFault(readValues(again, 'a'))).toMatchObject({
      code: 'STORE_DAMAGED',
      data: { session: 'a', seq: 2 },
    });
    expect(await readValues(again, 'b')).toHaveLength(5);
    await again.close();
  }
});

verifies('sqlite.anchor', 'the anchor is compacted, so its size stays bounded', async () => {
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
