/** The SQLite store against second owners, full and failing disks, and files of other versions. */
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect } from 'vitest';
import {
  appendEntry,
  builtStoreUrl,
  cleanUp,
  expectFault,
  FaultInjectingDriver,
  freshFile,
  ownerScriptPath,
  readValues,
  root,
} from '../../../spec/support/sqlite-fixture.mjs';
import { verifies } from '../../../spec/verifies.js';
import { digestOfText } from '../../journal/record.js';
import { journalCases } from '../../testing/index.js';
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
  raw.exec(`INSERT INTO migrations (id, name, checksum, at) VALUES (${migrations.length + 1}, 'later', 'x', 1)`);
  raw.close();
  const fault = await expectFault(openSqlite(file));
  expect(fault.code).toBe('ENTRY_TOO_NEW');
  expect(fault.message).toContain(`migration ${migrations.length + 1}; this version knows ${migrations.length}`);
});

verifies('sqlite.schema', 'a database with another history or of another program is refused', async () => {
  const changed = freshFile();
  await (await openSqlite(changed)).close();
  const raw = openDriver(changed);
  raw.exec("UPDATE migrations SET checksum = 'x'");
  raw.close();
  expect((await expectFault(openSqlite(changed))).message).toContain('another checksum');
  const foreign = freshFile();
  const other = openDriver(foreign);
  other.exec('CREATE TABLE notes (text TEXT)');
  other.close();
  expect((await expectFault(openSqlite(foreign))).message).toContain('not a store of ours');
  const junk = freshFile();
  writeFileSync(junk, 'x'.repeat(5000));
  expect(await expectFault(openSqlite(junk))).toMatchObject({ code: 'STORE_DAMAGED', data: { path: junk } });
});

verifies('sqlite.commit', 'sixty-four sessions pay for sixty-four syncs', async () => {
  const store = await openSqlite(freshFile());
  const names = Array.from({ length: 64 }, (_, i) => `s${i}`);
  const claims = await Promise.all(names.map((name) => store.journal.claim(name)));
  const before = store.stats().commits;
  await Promise.all(names.map((name, i) => appendEntry(store, name, claims[i]?.fence ?? 0, 0)));
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
    appendEntry(store, 'b', b.fence, 0, 'b0'),
    appendEntry(store, 'a', old.fence, 0, 'stale'),
    appendEntry(store, 'a', young.fence, 0, 'a0'),
    appendEntry(store, 'a', young.fence, 5, 'skips'),
    appendEntry(store, 'a', young.fence, 1, 'a1'),
    appendEntry(store, 'nobody', 1, 0, 'x'),
    appendEntry(store, 'b', b.fence, 1, 'b1'),
  ]);
  const kept = results.map(({ status }) => status === 'fulfilled');
  expect(kept).toEqual([true, false, true, false, true, false, true]);
  expect(await expectFault(appendEntry(store, 'a', old.fence, 2))).toMatchObject({
    code: 'STALE_WRITER',
    data: { session: 'a', expected: { fence: 1, next: 2 }, found: { fence: 2, next: 2 } },
  });
  await store.close();
  const again = await openSqlite(file, { check: 'full' });
  expect(again.report.damage).toEqual([]);
  expect([await readValues(again, 'a'), await readValues(again, 'b')]).toEqual([
    ['a0', 'a1'],
    ['b0', 'b1'],
  ]);
  await again.close();
});

verifies('sqlite.failure', 'a full disk acknowledges, or ends the store', async () => {
  const file = freshFile();
  const hook = new FaultInjectingDriver(openDriver);
  const store = await openSqlite(file, { driver: hook.open });
  const { fence } = await store.journal.claim('a');
  await appendEntry(store, 'a', fence, 0, 'before');
  hook.raw?.exec('PRAGMA max_page_count=1');
  const large = 'y'.repeat(3000);
  const failed = await Promise.all([1, 2].map((n) => expectFault(appendEntry(store, 'a', fence, n, large.repeat(n)))));
  expect(failed.map(({ code }) => code)).toEqual(['STORE_FULL', 'STORE_FULL']);
  expect(await readValues(store, 'a')).toEqual(['before']);
  hook.raw?.exec('PRAGMA max_page_count=100000');
  await appendEntry(store, 'a', fence, 1, 'after');
  await store.close();
  const again = await openSqlite(file);
  expect(again.report.damage).toEqual([]);
  expect(await readValues(again, 'a')).toEqual(['before', 'after']);
  await again.close();
});

verifies('sqlite.failure', 'a large value is lost on a full disk, and the entry that names it is not', async () => {
  const hook = new FaultInjectingDriver(openDriver);
  const store = await openSqlite(freshFile(), { driver: hook.open });
  const { fence } = await store.journal.claim('a');
  const text = JSON.stringify('z'.repeat(50_000));
  await store.blobs.put('a', digestOfText(text), text);
  expect(await store.blobs.get('a', digestOfText(text))).toBe(text);
  hook.raw?.exec('PRAGMA max_page_count=1');
  expect((await expectFault(appendEntry(store, 'a', fence, 0))).code).toBe('STORE_FULL');
  hook.raw?.exec('PRAGMA max_page_count=100000');
  await appendEntry(store, 'a', fence, 0);
  const rows = hook.raw?.prepare('SELECT count(*) AS n FROM blobs').all();
  expect(rows?.[0]?.n).toBe(1);
  await store.close();
});

verifies('sqlite.failure', 'a failed sync is tried again and then believed', async () => {
  const file = freshFile();
  const hook = new FaultInjectingDriver(openDriver);
  const store = await openSqlite(file, { driver: hook.open });
  const { fence } = await store.journal.claim('a');
  await appendEntry(store, 'a', fence, 0, 'acknowledged');
  hook.fail = 'COMMIT';
  const first = expectFault(appendEntry(store, 'a', fence, 1, 'lost'));
  const second = expectFault(appendEntry(store, 'a', fence, 2, 'lost'));
  expect([(await first).code, (await second).code]).toEqual(['SYNC_FAILED', 'SYNC_FAILED']);
  hook.fail = undefined;
  expect((await expectFault(appendEntry(store, 'a', fence, 1))).code).toBe('SYNC_FAILED');
  expect((await expectFault(readValues(store, 'a'))).code).toBe('SYNC_FAILED');
  expect((await expectFault(store.journal.claim('b'))).code).toBe('SYNC_FAILED');
  await store.close();
  const again = await openSqlite(file);
  expect(again.report.damage).toEqual([]);
  expect((await readValues(again, 'a'))[0]).toBe('acknowledged');
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
      const hook = new FaultInjectingDriver(openDriver);
      const store = await openSqlite(file, { driver: hook.open });
      const { fence } = await store.journal.claim('a');
      await appendEntry(store, 'a', fence, 0, 'kept');
      hook.fail = 'PRAGMA journal_mode=DELETE';
      hook.code = code;
      await store.close();
      const again = await openSqlite(file);
      expect([again.report.damage, await readValues(again, 'a')]).toEqual([[], ['kept']]);
      await again.close();
    },
  );
}

verifies('sqlite.failure', 'a checkpoint that cannot sync goes unnoticed', async () => {
  const hook = new FaultInjectingDriver(openDriver);
  const store = await openSqlite(freshFile(), { driver: hook.open });
  const { fence } = await store.journal.claim('a');
  hook.fail = 'PRAGMA wal_checkpoint';
  for (let n = 0; n < 40 && store.stats().checkpoints === 0; n++)
    await appendEntry(store, 'a', fence, n, 'w'.repeat(200_000));
  expect((await expectFault(store.journal.claim('b'))).code).toBe('SYNC_FAILED');
  await store.close();
});

verifies('sqlite.failure', 'a store that cannot be written says it could', async () => {
  const directory = mkdtempSync(join(root, 'ro'));
  const file = join(directory, 'store.db');
  await (await openSqlite(file)).close();
  for (const path of [file, `${file}.anchor`]) chmodSync(path, 0o444);
  chmodSync(directory, 0o555);
  chmodSync(root, 0o755);
  // Root may write anywhere, so as root the attempt is made by another user.
  const as = process.getuid?.() === 0 ? ['65534'] : [];
  const { stdout } = spawnSync(process.execPath, [ownerScriptPath, builtStoreUrl, file, 'try', ...as], {
    encoding: 'utf8',
  });
  chmodSync(directory, 0o755);
  expect(JSON.parse(stdout).code).toBe('STORE_READ_ONLY');
});

verifies('sqlite.retention', 'what a removed session held is still in the tables', async () => {
  const hook = new FaultInjectingDriver(openDriver);
  const store = await openSqlite(freshFile(), { driver: hook.open });
  const { fence } = await store.journal.claim('a');
  const text = JSON.stringify('secret'.repeat(2000));
  await store.blobs.put('a', digestOfText(text), text);
  await appendEntry(store, 'a', fence, 0, 'secret');
  await store.snapshots.save('a', { nextSeq: 1, tailDigest: 'x', state: 'secret' });
  await store.journal.remove('a');
  for (const table of ['sessions', 'records', 'blobs', 'snapshots']) {
    expect(hook.raw?.prepare(`SELECT count(*) AS n FROM ${table}`).all()[0]?.n, table).toBe(0);
  }
  expect((await expectFault(appendEntry(store, 'a', fence, 1))).code).toBe('STALE_WRITER');
  const young = await store.journal.claim('a');
  expect(young.nextSeq).toBe(0);
  expect((await expectFault(appendEntry(store, 'a', fence, 0))).code).toBe('STALE_WRITER');
  expect(await readValues(store, 'a')).toEqual([]);
  await store.close();
});

verifies(
  'sqlite.retention',
  'a reader meets a session that is removed under it and takes the part for the whole',
  async () => {
    const store = await openSqlite(freshFile());
    const { fence } = await store.journal.claim('a');
    await Promise.all(Array.from({ length: 200 }, (_, n) => appendEntry(store, 'a', fence, n)));
    const reading = store.journal.read('a', 0)[Symbol.asyncIterator]();
    expect((await reading.next()).value).toHaveLength(64);
    await store.journal.remove('a');
    expect((await expectFault(reading.next())).message).toContain('was removed while it was read, at entry 64');
    await store.close();
  },
);

verifies('sqlite.commit', 'what was queued is dropped by closing, or taken after it', async () => {
  const file = freshFile();
  const store = await openSqlite(file);
  const { fence } = await store.journal.claim('a');
  const queued = appendEntry(store, 'a', fence, 0, 'queued');
  await Promise.all([store.close(), store.close(), queued]);
  expect((await expectFault(appendEntry(store, 'a', fence, 1))).code).toBe('STORE_CLOSED');
  expect((await expectFault(readValues(store, 'a'))).code).toBe('STORE_CLOSED');
  const again = await openSqlite(file, { durability: 'os' });
  expect(await readValues(again, 'a')).toEqual(['queued']);
  await again.close();
});

verifies('sqlite.schema', 'a name or an option with a slip in it is accepted', async () => {
  const store = await openSqlite(freshFile());
  for (const name of ['', 'a\nb', 'a\tb', '\ud800', 'x'.repeat(257)]) {
    expect((await expectFault(store.journal.claim(name))).message).toContain('cannot name a session');
  }
  await store.close();
  const slip = { durabilty: 'os' } as SqliteOptions;
  expect((await expectFault(openSqlite(freshFile(), slip))).message).toContain('no option "durabilty"');
});
