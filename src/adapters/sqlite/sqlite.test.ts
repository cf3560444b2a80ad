/** The SQLite store: schema versions, group commits, full and failing disks, and removed sessions. */
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, statSync, writeFileSync } from 'node:fs';
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
import { SHARED_MEMORY_BYTES } from './shared-memory-file.js';

afterAll(cleanUp);

const hasBlocks = process.platform !== 'win32';

const cases = journalCases(() => {
  const file = freshFile();
  return { open: () => openSqlite(file), reopen: () => openSqlite(file) };
});
for (const { name, run } of cases) verifies('journal.cases', name, run);

verifies('sqlite.schema', 'a store of a newer version is refused', async () => {
  const file = freshFile();
  await (await openSqlite(file)).close();
  const raw = openDriver(file);
  raw.exec(`INSERT INTO migrations (id, name, checksum, at) VALUES (${migrations.length + 1}, 'later', 'x', 1)`);
  raw.close();
  const fault = await expectFault(openSqlite(file));
  expect(fault.code).toBe('ENTRY_TOO_NEW');
  expect(fault.message).toContain(`migration ${migrations.length + 1}; this version supports ${migrations.length}`);
});

verifies(
  'sqlite.schema',
  'a file with other migrations, another application or no database at all is refused',
  async () => {
    const changed = freshFile();
    await (await openSqlite(changed)).close();
    const raw = openDriver(changed);
    raw.exec("UPDATE migrations SET checksum = 'x'");
    raw.close();
    expect((await expectFault(openSqlite(changed))).message).toContain('different checksum');
    const foreign = freshFile();
    const other = openDriver(foreign);
    other.exec('CREATE TABLE notes (text TEXT)');
    other.close();
    expect((await expectFault(openSqlite(foreign))).message).toContain('not a Rondo store');
    const junk = freshFile();
    writeFileSync(junk, 'x'.repeat(5000));
    expect(await expectFault(openSqlite(junk))).toMatchObject({ code: 'STORE_DAMAGED', data: { path: junk } });
  },
);

verifies('sqlite.commit', 'appends of sixty-four sessions share one commit', async () => {
  const store = await openSqlite(freshFile());
  const names = Array.from({ length: 64 }, (_, i) => `s${i}`);
  const claims = await Promise.all(names.map((name) => store.journal.claim(name)));
  const before = store.stats().commits;
  await Promise.all(names.map((name, i) => appendEntry(store, name, claims[i]?.fence ?? 0, 0)));
  expect(store.stats().commits - before).toBe(1);
  await store.close();
});

verifies(
  'sqlite.commit',
  'a stale append in a group leaves no trace, and the other appends are committed',
  async () => {
    const file = freshFile();
    const store = await openSqlite(file);
    const stale = await store.journal.claim('a');
    const current = await store.journal.claim('a');
    const b = await store.journal.claim('b');
    const results = await Promise.allSettled([
      appendEntry(store, 'b', b.fence, 0, 'b0'),
      appendEntry(store, 'a', stale.fence, 0, 'stale'),
      appendEntry(store, 'a', current.fence, 0, 'a0'),
      appendEntry(store, 'a', current.fence, 5, 'skips'),
      appendEntry(store, 'a', current.fence, 1, 'a1'),
      appendEntry(store, 'absent', 1, 0, 'x'),
      appendEntry(store, 'b', b.fence, 1, 'b1'),
    ]);
    const committed = results.map(({ status }) => status === 'fulfilled');
    expect(committed).toEqual([true, false, true, false, true, false, true]);
    expect(await expectFault(appendEntry(store, 'a', stale.fence, 2))).toMatchObject({
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
  },
);

verifies('sqlite.failure', 'a full disk rejects an append, and the store continues once there is space', async () => {
  const file = freshFile();
  const injector = new FaultInjectingDriver(openDriver);
  const store = await openSqlite(file, { driver: injector.open });
  const { fence } = await store.journal.claim('a');
  await appendEntry(store, 'a', fence, 0, 'before');
  injector.raw?.exec('PRAGMA max_page_count=1');
  const large = 'y'.repeat(3000);
  const failed = await Promise.all([1, 2].map((n) => expectFault(appendEntry(store, 'a', fence, n, large.repeat(n)))));
  expect(failed.map(({ code }) => code)).toEqual(['STORE_FULL', 'STORE_FULL']);
  expect(await readValues(store, 'a')).toEqual(['before']);
  injector.raw?.exec('PRAGMA max_page_count=100000');
  await appendEntry(store, 'a', fence, 1, 'after');
  await store.close();
  const again = await openSqlite(file);
  expect(again.report.damage).toEqual([]);
  expect(await readValues(again, 'a')).toEqual(['before', 'after']);
  await again.close();
});

verifies('sqlite.failure', 'a blob that a full disk rejected is stored with the next append', async () => {
  const injector = new FaultInjectingDriver(openDriver);
  const store = await openSqlite(freshFile(), { driver: injector.open });
  const { fence } = await store.journal.claim('a');
  const text = JSON.stringify('z'.repeat(50_000));
  await store.blobs.put('a', digestOfText(text), text);
  expect(await store.blobs.get('a', digestOfText(text))).toBe(text);
  injector.raw?.exec('PRAGMA max_page_count=1');
  expect((await expectFault(appendEntry(store, 'a', fence, 0))).code).toBe('STORE_FULL');
  injector.raw?.exec('PRAGMA max_page_count=100000');
  await appendEntry(store, 'a', fence, 0);
  const rows = injector.raw?.prepare('SELECT count(*) AS n FROM blobs').all();
  expect(rows?.[0]?.n).toBe(1);
  await store.close();
});

verifies('sqlite.failure', 'a failed sync stops the store and is never retried', async () => {
  const file = freshFile();
  const injector = new FaultInjectingDriver(openDriver);
  const store = await openSqlite(file, { driver: injector.open });
  const { fence } = await store.journal.claim('a');
  await appendEntry(store, 'a', fence, 0, 'acknowledged');
  injector.fail = 'COMMIT';
  const first = expectFault(appendEntry(store, 'a', fence, 1, 'lost'));
  const second = expectFault(appendEntry(store, 'a', fence, 2, 'lost'));
  expect([(await first).code, (await second).code]).toEqual(['SYNC_FAILED', 'SYNC_FAILED']);
  injector.fail = undefined;
  expect((await expectFault(appendEntry(store, 'a', fence, 1))).code).toBe('SYNC_FAILED');
  expect((await expectFault(readValues(store, 'a'))).code).toBe('SYNC_FAILED');
  expect((await expectFault(store.journal.claim('b'))).code).toBe('SYNC_FAILED');
  await store.close();
  const again = await openSqlite(file);
  expect(again.report.damage).toEqual([]);
  expect((await readValues(again, 'a'))[0]).toBe('acknowledged');
  await again.close();
});

for (const [reason, code] of [
  ['a full disk', 13],
  ['another connection of its process', 5],
] as const) {
  verifies('sqlite.failure', `closing a store loses nothing although ${reason} keeps the WAL in place`, async () => {
    const file = freshFile();
    const injector = new FaultInjectingDriver(openDriver);
    const store = await openSqlite(file, { driver: injector.open });
    const { fence } = await store.journal.claim('a');
    await appendEntry(store, 'a', fence, 0, 'kept');
    injector.fail = 'PRAGMA journal_mode=DELETE';
    injector.code = code;
    await store.close();
    const again = await openSqlite(file);
    expect([again.report.damage, await readValues(again, 'a')]).toEqual([[], ['kept']]);
    await again.close();
  });
}

verifies('sqlite.failure', 'closing a store on a full disk neither closes nor reopens its WAL', async () => {
  const file = freshFile();
  const injector = new FaultInjectingDriver(openDriver);
  const executed: string[] = [];
  const driver: typeof openDriver = (path) => {
    const { exec, ...rest } = injector.open(path);
    const note = (sql: string): void => {
      executed.push(sql);
      exec(sql);
    };
    return { ...rest, exec: note };
  };
  const store = await openSqlite(file, { driver });
  const { fence } = await store.journal.claim('a');
  await appendEntry(store, 'a', fence, 0, 'kept');
  injector.fail = 'PRAGMA wal_checkpoint';
  injector.code = 13;
  await store.close();
  expect(executed, 'SQLite makes a new shared-memory file, with holes').not.toContain('PRAGMA journal_mode=DELETE');
  const again = await openSqlite(file);
  expect([again.report.damage, await readValues(again, 'a')]).toEqual([[], ['kept']]);
  await again.close();
});

verifies(
  'sqlite.failure',
  'the shared memory of a store has its space on the disk from the beginning',
  async (context) => {
    context.skip(!hasBlocks, 'needs blocks of files');
    const file = freshFile();
    const sizes: number[] = [];
    const driver: typeof openDriver = (path) => {
      sizes.push(statSync(`${path}-shm`, { throwIfNoEntry: false })?.size ?? 0);
      return openDriver(path);
    };
    const store = await openSqlite(file, { driver });
    const { size, blocks } = statSync(`${file}-shm`);
    expect([...sizes, size], 'a full disk ends the process').toEqual([SHARED_MEMORY_BYTES, SHARED_MEMORY_BYTES]);
    expect(blocks * 512).toBeGreaterThanOrEqual(SHARED_MEMORY_BYTES);
    await store.close();
    expect(existsSync(`${file}-shm`)).toBe(false);
  },
);

verifies('sqlite.failure', 'a failed sync of a checkpoint stops the store', async () => {
  const injector = new FaultInjectingDriver(openDriver);
  const store = await openSqlite(freshFile(), { driver: injector.open });
  const { fence } = await store.journal.claim('a');
  injector.fail = 'PRAGMA wal_checkpoint';
  for (let n = 0; n < 40 && store.stats().checkpoints === 0; n++)
    await appendEntry(store, 'a', fence, n, 'w'.repeat(200_000));
  expect((await expectFault(store.journal.claim('b'))).code).toBe('SYNC_FAILED');
  injector.fail = undefined;
  await store.close();
});

verifies('sqlite.failure', 'a store without write permission is refused as read-only', async () => {
  const directory = mkdtempSync(join(root, 'ro'));
  const file = join(directory, 'store.db');
  await (await openSqlite(file)).close();
  for (const path of [file, `${file}.anchor`]) chmodSync(path, 0o444);
  chmodSync(directory, 0o555);
  chmodSync(root, 0o755);
  // Root may write anywhere, so the process changes to another user.
  const userArgs = process.getuid?.() === 0 ? ['65534'] : [];
  const { stdout } = spawnSync(process.execPath, [ownerScriptPath, builtStoreUrl, file, 'try', ...userArgs], {
    encoding: 'utf8',
  });
  chmodSync(directory, 0o755);
  expect(JSON.parse(stdout).code).toBe('STORE_READ_ONLY');
});

verifies('sqlite.retention', 'a removed session leaves no rows, and its old writer stays stale', async () => {
  const injector = new FaultInjectingDriver(openDriver);
  const store = await openSqlite(freshFile(), { driver: injector.open });
  const { fence } = await store.journal.claim('a');
  const text = JSON.stringify('secret'.repeat(2000));
  await store.blobs.put('a', digestOfText(text), text);
  await appendEntry(store, 'a', fence, 0, 'secret');
  await store.snapshots.save('a', { nextSeq: 1, tailDigest: 'x', state: 'secret' });
  await store.journal.remove('a');
  for (const table of ['sessions', 'records', 'blobs', 'snapshots']) {
    const [row] = injector.raw?.prepare(`SELECT count(*) AS n FROM ${table}`).all() ?? [];
    expect(row?.n, `rows of a removed session are still in ${table}`).toBe(0);
  }
  expect((await expectFault(appendEntry(store, 'a', fence, 1))).code).toBe('STALE_WRITER');
  const claim = await store.journal.claim('a');
  expect(claim.nextSeq).toBe(0);
  expect((await expectFault(appendEntry(store, 'a', fence, 0))).code).toBe('STALE_WRITER');
  expect(await readValues(store, 'a')).toEqual([]);
  await store.close();
});

verifies('sqlite.retention', 'a read fails if its session is removed meanwhile', async () => {
  const store = await openSqlite(freshFile());
  const { fence } = await store.journal.claim('a');
  await Promise.all(Array.from({ length: 200 }, (_, n) => appendEntry(store, 'a', fence, n)));
  const reading = store.journal.read('a', 0)[Symbol.asyncIterator]();
  expect((await reading.next()).value).toHaveLength(64);
  await store.journal.remove('a');
  expect((await expectFault(reading.next())).message, 'a part was read as the whole session').toContain(
    'was removed while it was read, at entry 64',
  );
  await store.close();
});

verifies('sqlite.commit', 'closing a store commits queued appends and refuses later ones', async () => {
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

verifies('sqlite.schema', 'an invalid session name and a misspelled option are refused', async () => {
  const store = await openSqlite(freshFile());
  for (const name of ['', 'a\nb', 'a\tb', '\ud800', 'x'.repeat(257)]) {
    expect((await expectFault(store.journal.claim(name))).message).toContain('is not a valid session name');
  }
  await store.close();
  const misspelled = { durabilty: 'os' } as SqliteOptions;
  expect((await expectFault(openSqlite(freshFile(), misspelled))).message).toContain('no option "durabilty"');
});
