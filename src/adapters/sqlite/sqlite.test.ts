/** The SQLite store against second owners, full and failing disks, and files of other versions. */
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect } from 'vitest';
import { verifies } from '../../../spec/verifies.js';
import { digest } from '../../journal/record.js';
import { journalCases } from '../../testing/index.js';
import { add, beside, built, cleanUp, faultOf, freshFile, Meddling, root, values } from './fixtures/stage.mjs';
import { openDriver, openSqlite, type SqliteOptions } from './index.js';
import { migrations } from './schema.js';

afterAll(cleanUp);

const cases = journalCases(() => {
  const file = freshFile();
  return { open: () => openSqlite(file), reopen: () => openSqlite(file) };
});
for (const { name, run } of cases) verifies('journal.cases', name, run);

verifies('sqlite.schema', 'an older version opens a newer file and damages it', async () => {
  const file = freshFile();
  await (await openSqlite(file)).close();
  const raw = openDriver(file);
  raw.exec(`INSERT INTO migrations (id, name, check_sum, at) VALUES (${migrations.length + 1}, 'later', 'x', 1)`);
  raw.close();
  const fault = await faultOf(openSqlite(file));
  expect(fault.code).toBe('ENTRY_FROM_THE_FUTURE');
  expect(fault.message).toContain(`migration ${migrations.length + 1}; this version knows ${migrations.length}`);
});

verifies('sqlite.schema', 'a file with another past, or of somebody else, is taken for ours', async () => {
  const changed = freshFile();
  await (await openSqlite(changed)).close();
  const raw = openDriver(changed);
  raw.exec("UPDATE migrations SET check_sum = 'x'");
  raw.close();
  expect((await faultOf(openSqlite(changed))).message).toContain('another checksum');
  const foreign = freshFile();
  const other = openDriver(foreign);
  other.exec('CREATE TABLE notes (text TEXT)');
  other.close();
  expect((await faultOf(openSqlite(foreign))).message).toContain('not a store of ours');
  const junk = freshFile();
  writeFileSync(junk, 'x'.repeat(5000));
  expect(await faultOf(openSqlite(junk))).toMatchObject({ code: 'STORE_DAMAGED', data: { path: junk } });
});

verifies('sqlite.commit', 'sixty-four sessions pay for sixty-four syncs', async () => {
  const store = await openSqlite(freshFile());
  const names = Array.from({ length: 64 }, (_, i) => `s${i}`);
  const claims = await Promise.all(names.map((name) => store.journal.claim(name)));
  const before = store.stats().commits;
  await Promise.all(names.map((name, i) => add(store, name, claims[i]?.fence ?? 0, 0)));
  expect(store.stats().commits - before).toBe(1);
  await store.close();
});

verifies('sqlite.commit', 'a stale append in a group leaves a trace, or takes others down with it', async () => {
  const file = freshFile();
  const store = await openSqlite(file);
  const old = await store.journal.claim('a');
  const young = await store.journal.claim('a');
  const b = await store.journal.claim('b');
  const results = await Promise.allSettled([
    add(store, 'b', b.fence, 0, 'b0'),
    add(store, 'a', old.fence, 0, 'stale'),
    add(store, 'a', young.fence, 0, 'a0'),
    add(store, 'a', young.fence, 5, 'skips'),
    add(store, 'a', young.fence, 1, 'a1'),
    add(store, 'nobody', 1, 0, 'x'),
    add(store, 'b', b.fence, 1, 'b1'),
  ]);
  const kept = results.map(({ status }) => status === 'fulfilled');
  expect(kept).toEqual([true, false, true, false, true, false, true]);
  expect(await faultOf(add(store, 'a', old.fence, 2))).toMatchObject({
    code: 'STALE_WRITER',
    data: { session: 'a', expected: { fence: 1, next: 2 }, found: { fence: 2, next: 2 } },
  });
  await store.close();
  const again = await openSqlite(file, { check: 'full' });
  expect(again.report.damage).toEqual([]);
  expect([await values(again, 'a'), await values(again, 'b')]).toEqual([
    ['a0', 'a1'],
    ['b0', 'b1'],
  ]);
  await again.close();
});

verifies('sqlite.failure', 'a full disk acknowledges, or ends the store', async () => {
  const file = freshFile();
  const hook = new Meddling(openDriver);
  const store = await openSqlite(file, { driver: hook.open });
  const { fence } = await store.journal.claim('a');
  await add(store, 'a', fence, 0, 'before');
  hook.raw?.exec('PRAGMA max_page_count=1');
  const large = 'y'.repeat(3000);
  const failed = await Promise.all([1, 2].map((n) => faultOf(add(store, 'a', fence, n, large.repeat(n)))));
  expect(failed.map(({ code }) => code)).toEqual(['STORE_FULL', 'STORE_FULL']);
  expect(await values(store, 'a')).toEqual(['before']);
  hook.raw?.exec('PRAGMA max_page_count=100000');
  await add(store, 'a', fence, 1, 'after');
  await store.close();
  const again = await openSqlite(file);
  expect(again.report.damage).toEqual([]);
  expect(await values(again, 'a')).toEqual(['before', 'after']);
  await again.close();
});

verifies('sqlite.failure', 'a large value is lost on a full disk, and the entry that names it is not', async () => {
  const hook = new Meddling(openDriver);
  const store = await openSqlite(freshFile(), { driver: hook.open });
  const { fence } = await store.journal.claim('a');
  const text = JSON.stringify('z'.repeat(50_000));
  await store.blobs.put('a', digest(text), text);
  expect(await store.blobs.get('a', digest(text))).toBe(text);
  hook.raw?.exec('PRAGMA max_page_count=1');
  expect((await faultOf(add(store, 'a', fence, 0))).code).toBe('STORE_FULL');
  hook.raw?.exec('PRAGMA max_page_count=100000');
  await add(store, 'a', fence, 0);
  const rows = hook.raw?.prepare('SELECT count(*) AS n FROM blobs').all();
  expect(rows?.[0]?.n).toBe(1);
  await store.close();
});

verifies('sqlite.failure', 'a failed sync is tried again and then believed', async () => {
  const file = freshFile();
  const hook = new Meddling(openDriver);
  const store = await openSqlite(file, { driver: hook.open });
  const { fence } = await store.journal.claim('a');
  await add(store, 'a', fence, 0, 'acknowledged');
  hook.fail = 'COMMIT';
  const first = faultOf(add(store, 'a', fence, 1, 'lost'));
  const second = faultOf(add(store, 'a', fence, 2, 'lost'));
  expect([(await first).code, (await second).code]).toEqual(['SYNC_FAILED', 'SYNC_FAILED']);
  hook.fail = undefined;
  expect((await faultOf(add(store, 'a', fence, 1))).code).toBe('SYNC_FAILED');
  expect((await faultOf(values(store, 'a'))).code).toBe('SYNC_FAILED');
  expect((await faultOf(store.journal.claim('b'))).code).toBe('SYNC_FAILED');
  await store.close();
  const again = await openSqlite(file);
  expect(again.report.damage).toEqual([]);
  expect((await values(again, 'a'))[0]).toBe('acknowledged');
  await again.close();
});

for (const [why, code] of [
  ['a full disk', 13],
  ['another connection of its process', 5],
] as const) {
  verifies(
    'sqlite.failure',
    `a store is closed, and loses nothing, although ${why} keeps the WAL in place`,
    async () => {
      const file = freshFile();
      const hook = new Meddling(openDriver);
      const store = await openSqlite(file, { driver: hook.open });
      const { fence } = await store.journal.claim('a');
      await add(store, 'a', fence, 0, 'kept');
      hook.fail = 'PRAGMA journal_mode=DELETE';
      hook.code = code;
      await store.close();
      const again = await openSqlite(file);
      expect([again.report.damage, await values(again, 'a')]).toEqual([[], ['kept']]);
      await again.close();
    },
  );
}

verifies('sqlite.failure', 'a checkpoint that cannot sync goes unnoticed', async () => {
  const hook = new Meddling(openDriver);
  const store = await openSqlite(freshFile(), { driver: hook.open });
  const { fence } = await store.journal.claim('a');
  hook.fail = 'PRAGMA wal_checkpoint';
  for (let n = 0; n < 40 && store.stats().checkpoints === 0; n++) await add(store, 'a', fence, n, 'w'.repeat(200_000));
  expect((await faultOf(store.journal.claim('b'))).code).toBe('SYNC_FAILED');
  await store.close();
});

verifies('sqlite.failure', 'a store that cannot be written says it could', async () => {
  const directory = mkdtempSync(join(root, 'ro'));
  const file = join(directory, 'store.db');
  await (await openSqlite(file)).close();
  for (const path of [file, `${file}.anchor`]) chmodSync(path, 0o444);
  chmodSync(directory, 0o555);
  chmodSync(root, 0o755);
  // Root may write anywhere, so as root the attempt is made by somebody else.
  const as = process.getuid?.() === 0 ? ['65534'] : [];
  const { stdout } = spawnSync(process.execPath, [beside, built, file, 'try', ...as], { encoding: 'utf8' });
  chmodSync(directory, 0o755);
  expect(JSON.parse(stdout).code).toBe('STORE_READ_ONLY');
});

verifies('sqlite.retention', 'what a removed session held is still in the tables', async () => {
  const hook = new Meddling(openDriver);
  const store = await openSqlite(freshFile(), { driver: hook.open });
  const { fence } = await store.journal.claim('a');
  const text = JSON.stringify('secret'.repeat(2000));
  await store.blobs.put('a', digest(text), text);
  await add(store, 'a', fence, 0, 'secret');
  await store.snapshots.save('a', { next: 1, tail: 'x', state: 'secret' });
  await store.journal.remove('a');
  for (const table of ['sessions', 'records', 'blobs', 'snapshots']) {
    expect(hook.raw?.prepare(`SELECT count(*) AS n FROM ${table}`).all()[0]?.n, table).toBe(0);
  }
  expect((await faultOf(add(store, 'a', fence, 1))).code).toBe('STALE_WRITER');
  const young = await store.journal.claim('a');
  expect(young.next).toBe(0);
  expect((await faultOf(add(store, 'a', fence, 0))).code).toBe('STALE_WRITER');
  expect(await values(store, 'a')).toEqual([]);
  await store.close();
});

verifies(
  'sqlite.retention',
  'a reader meets a session that is removed under it and takes the part for the whole',
  async () => {
    const store = await openSqlite(freshFile());
    const { fence } = await store.journal.claim('a');
    await Promise.all(Array.from({ length: 200 }, (_, n) => add(store, 'a', fence, n)));
    const reading = store.journal.read('a', 0)[Symbol.asyncIterator]();
    expect((await reading.next()).value).toHaveLength(64);
    await store.journal.remove('a');
    expect((await faultOf(reading.next())).message).toContain('was removed while it was read, at entry 64');
    await store.close();
  },
);

verifies('sqlite.commit', 'what was queued is dropped by closing, or taken after it', async () => {
  const file = freshFile();
  const store = await openSqlite(file);
  const { fence } = await store.journal.claim('a');
  const queued = add(store, 'a', fence, 0, 'queued');
  await Promise.all([store.close(), store.close(), queued]);
  expect((await faultOf(add(store, 'a', fence, 1))).code).toBe('STORE_CLOSED');
  expect((await faultOf(values(store, 'a'))).code).toBe('STORE_CLOSED');
  const again = await openSqlite(file, { durability: 'os' });
  expect(await values(again, 'a')).toEqual(['queued']);
  await again.close();
});

verifies('sqlite.schema', 'a name or an option with a slip in it is accepted', async () => {
  const store = await openSqlite(freshFile());
  for (const name of ['', 'a\nb', 'a\tb', '\ud800', 'x'.repeat(257)]) {
    expect((await faultOf(store.journal.claim(name))).message).toContain('cannot name a session');
  }
  await store.close();
  const slip = { durabilty: 'os' } as SqliteOptions;
  expect((await faultOf(openSqlite(freshFile(), slip))).message).toContain('no option "durabilty"');
});
