/** The key of a store: what was recorded with it cannot be changed without it. */
import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { afterAll, expect } from 'vitest';
import { editStore, forgeEntries } from '../../../spec/support/forge-store.js';
import { withoutAccess } from '../../../spec/support/other-user.js';
import { appendEntry, cleanUp, expectFault, freshFile, readValues } from '../../../spec/support/sqlite-fixture.mjs';
import { verifies } from '../../../spec/verifies.js';
import { genesisHash, RecordHasher } from '../../journal/record.js';
import { storeKeyFileOf } from '../../journal/store-files.js';
import { openSqlite, type SqliteStore } from './index.js';
import { snapshotChecksum } from './snapshot-table.js';

afterAll(cleanUp);

/** Creates a store with the sessions `a` and `b` of three entries each, and returns its path. */
async function createStore(hasKey = true): Promise<string> {
  const file = freshFile();
  const store = await openSqlite(file, hasKey ? { keyFile: storeKeyFileOf(file) } : {});
  for (const session of ['a', 'b']) {
    const { fence } = await store.journal.claim(session);
    for (let seq = 0; seq < 3; seq++) await appendEntry(store, session, fence, seq, `${session}${seq}`);
  }
  await store.close();
  return file;
}

async function withStore<T>(file: string, use: (store: SqliteStore) => Promise<T>): Promise<T> {
  const store = await openSqlite(file);
  try {
    return await use(store);
  } finally {
    await store.close();
  }
}

verifies('store.key', 'a store gets its key when it is created, in a file for its owner only', async () => {
  const file = await createStore();
  const keyFile = storeKeyFileOf(file);
  expect(statSync(keyFile).mode & 0o777).toBe(0o600);
  expect(statSync(dirname(keyFile)).mode & 0o777).toBe(0o700);
  expect(readFileSync(file).includes(readFileSync(keyFile, 'utf8').trim()), 'the key is in the database').toBe(false);
  expect(await withStore(file, async (store) => [await readValues(store, 'a'), store.report.damage])).toEqual([
    ['a0', 'a1', 'a2'],
    [],
  ]);
  expect(existsSync(storeKeyFileOf(await createStore(false))), 'a key without the option').toBe(false);
});

verifies('store.key', 'entries that were changed, added or removed without the key are refused', async () => {
  const changes: Record<string, (entries: readonly { readonly value?: unknown }[]) => unknown[]> = {
    changed: (entries) => entries.map((entry, n) => (n === 1 ? { ...entry, value: 'forged' } : entry)),
    added: (entries) => [...entries, { ...entries[2], value: 'forged' }],
    removed: (entries) => entries.slice(0, 2),
    unchanged: (entries) => [...entries],
  };
  for (const [name, change] of Object.entries(changes)) {
    const [file, plain] = [await createStore(), await createStore(false)];
    for (const each of [file, plain]) forgeEntries(each, 'a', change as never);
    await withStore(file, async (store) => {
      expect(store.report.damage, name).toMatchObject([{ kind: 'damaged', session: 'a' }]);
      for (const use of [store.journal.claim('a'), readValues(store, 'a')])
        expect((await expectFault(use)).code, name).toBe('STORE_DAMAGED');
      expect(await readValues(store, 'b'), name).toEqual(['b0', 'b1', 'b2']);
    });
    const unnoticed = await withStore(plain, async (store) => store.report.damage);
    expect(unnoticed, `the change "${name}" shows without a key`).toEqual([]);
  }
});

verifies('store.key', 'the time and the commit of a record cannot be changed without the key', async () => {
  for (const column of ['at', 'commit_no']) {
    const file = await createStore();
    editStore(file, (run) => run(`UPDATE records SET ${column} = ${column} + 1 WHERE body LIKE '%a0%'`));
    await withStore(file, async (store) => {
      expect(store.report.damage, column).toMatchObject([{ kind: 'damaged', session: 'a', seq: 0 }]);
      expect(await readValues(store, 'b'), column).toEqual(['b0', 'b1', 'b2']);
    });
  }
});

verifies(
  'store.key',
  'records of an earlier version, whose hash does not cover their time and commit, are read',
  async () => {
    const file = await createStore(false);
    const hasher = new RecordHasher();
    editStore(file, (run, select) => {
      const hashes = new Map<number, string>();
      for (const row of select('SELECT id, count, fence, at, commit_no, body FROM records ORDER BY id')) {
        const [sid, firstSeq] = [Math.floor(Number(row.id) / 2 ** 26), Number(row.id) % 2 ** 26];
        const prevHash = hashes.get(sid) ?? genesisHash(sid === 1 ? 'a' : 'b', sid);
        const [count, fence, body] = [Number(row.count), Number(row.fence), String(row.body)];
        const commit = { committedAt: Number(row.at), commitNumber: Number(row.commit_no) };
        const hash = hasher.hashOfEarlierRecord(sid, { firstSeq, count, fence, ...commit, prevHash, body });
        hashes.set(sid, hash);
        run('UPDATE records SET prev = ?, hash = ? WHERE id = ?', prevHash, hash, Number(row.id));
      }
    });
    rmSync(`${file}.anchor`);
    await withStore(file, async (store) => {
      expect(store.report.damage).toMatchObject([{ kind: 'anchor' }]);
      const { fence } = await store.journal.claim('a');
      await appendEntry(store, 'a', fence, 3, 'a3');
      expect(await readValues(store, 'a')).toEqual(['a0', 'a1', 'a2', 'a3']);
    });
  },
);

verifies('store.key', 'a removal cannot be added or changed in the log of removals without the key', async () => {
  const insert = `INSERT INTO tombstones (session, entries, head, removed_at, removed_by, reason) VALUES ('x', 1, '', 1, 'eve', '')`;
  const changes = [insert, `UPDATE tombstones SET removed_by = 'eve'`, `UPDATE tombstones SET session = 'b'`];
  for (const change of changes) {
    const file = await createStore();
    await withStore(file, (store) => store.maintenance.remove('a', { by: 'ada' }));
    await withStore(file, async (store) => expect(store.report.damage, 'before the change').toEqual([]));
    editStore(file, (run) => run(change));
    await withStore(file, async (store) => expect(store.report.damage, change).toMatchObject([{ kind: 'removal' }]));
  }
});

verifies('store.key', 'a removal cannot be deleted from the log of removals without the key', async () => {
  const last = '(SELECT max(id) FROM tombstones)';
  for (const [where, count] of [
    ['1', 2],
    ['id = 1', 1],
    [`id = ${last}`, 1],
  ] as const) {
    const file = await createStore();
    for (const session of ['x', 'y'])
      await withStore(file, async (store) => {
        await store.journal.claim(session);
        await store.maintenance.remove(session, { by: 'ada' });
      });
    await withStore(file, async (store) => expect(store.report.damage, 'before the change').toEqual([]));
    editStore(file, (run) => run(`DELETE FROM tombstones WHERE ${where}`));
    await withStore(file, async (store) => {
      const note = `the log of removed sessions: ${count} of its rows were deleted`;
      expect(store.report.damage, where).toMatchObject([{ kind: 'removal', note }]);
      // The next removal does not hide it.
      await store.maintenance.remove('a', { by: 'ada' });
      expect((await store.maintenance.verify()).damage, where).toMatchObject([{ kind: 'removal', note }]);
    });
  }
});

verifies('store.key', 'the removals of a version without a chain are taken over as they are', async () => {
  const file = await createStore();
  await withStore(file, (store) => store.maintenance.remove('a', { by: 'ada' }));
  const keyId = new RecordHasher(readFileSync(storeKeyFileOf(file), 'utf8').trim()).checksumOf('key', 'id 2', () => '');
  editStore(file, (run) => run(`UPDATE protection SET key_id = ?, removals = ''`, keyId));
  await withStore(file, async (store) => expect(store.report.damage).toEqual([]));
  editStore(file, (run) => run('DELETE FROM tombstones'));
  await withStore(file, async (store) => expect(store.report.damage).toMatchObject([{ kind: 'removal' }]));
});

verifies('store.key', 'the removals of an earlier version are taken over once, and no others', async () => {
  const file = await createStore();
  await withStore(file, (store) => store.maintenance.remove('a', { by: 'ada' }));
  const keyId = new RecordHasher(readFileSync(storeKeyFileOf(file), 'utf8').trim()).checksumOf('key', 'id', () => '');
  editStore(file, (run) => {
    run(`UPDATE tombstones SET checksum = ''`);
    run('UPDATE protection SET key_id = ?', keyId);
  });
  await withStore(file, async (store) => expect(store.report.damage).toEqual([]));
  editStore(file, (run) => run(`UPDATE tombstones SET checksum = ''`));
  await withStore(file, async (store) => expect(store.report.damage).toMatchObject([{ kind: 'removal' }]));
});

verifies('store.key', 'a store with a trigger, which could change what is written, can only be read', async () => {
  for (const check of ['full', 'heads'] as const) {
    const file = await createStore();
    editStore(file, (run) => run('CREATE TRIGGER t AFTER INSERT ON records BEGIN DELETE FROM blobs; END'));
    const store = await openSqlite(file, { check });
    expect(store.report.damage).toMatchObject([{ kind: 'file', note: expect.stringContaining('trigger "t"') }]);
    expect((await expectFault(store.journal.claim('a'))).code).toBe('STORE_DAMAGED');
    await store.close();
  }
});

verifies('store.key', 'sessions that were renamed or exchanged without the key are refused', async () => {
  const file = await createStore();
  editStore(file, (run) => {
    run(`UPDATE sessions SET name = 'x' WHERE name = 'a'`);
    run(`UPDATE sessions SET name = 'a' WHERE name = 'b'`);
    run(`UPDATE sessions SET name = 'b' WHERE name = 'x'`);
  });
  await withStore(file, async (store) => {
    for (const session of ['a', 'b'])
      expect((await expectFault(store.journal.claim(session))).code).toBe('STORE_DAMAGED');
  });
});

verifies('store.key', 'a snapshot that was made without the key is not used', async () => {
  const file = await createStore();
  const load = () => withStore(file, (store) => store.snapshots.load('a'));
  await withStore(file, (store) => store.snapshots.save('a', { nextSeq: 3, tailDigest: 't', state: { spent: 5 } }));
  expect(await load()).toMatchObject({ state: { spent: 5 } });
  editStore(file, (run, select) => {
    const sid = Number(select(`SELECT sid FROM sessions WHERE name = 'a'`)[0]?.sid);
    const state = '{"spent":0}';
    const checksum = snapshotChecksum(new RecordHasher(), sid, { next: 3, tail: 't', state });
    run('UPDATE snapshots SET state = ?, checksum = ? WHERE sid = ?', state, checksum, sid);
  });
  expect(await load()).toBeUndefined();
});

verifies('store.key', 'a store is not opened without its key, or with that of another one', async () => {
  const [file, other] = [await createStore(), await createStore()];
  const keyFile = storeKeyFileOf(file);
  const saved = readFileSync(keyFile);
  const opening = async () => (await expectFault(openSqlite(file))).message;
  rmSync(keyFile);
  expect(await opening()).toContain('is missing. Restore');
  copyFileSync(storeKeyFileOf(other), keyFile);
  expect(await opening()).toContain('is not the key of');
  writeFileSync(keyFile, 'short\n');
  expect(await opening()).toContain('is damaged');
  writeFileSync(keyFile, saved);
  chmodSync(keyFile, 0o640);
  expect(await opening()).toContain('can be read by others');
  chmodSync(keyFile, 0o600);
  expect(await withStore(file, (store) => readValues(store, 'a'))).toEqual(['a0', 'a1', 'a2']);
});

verifies('store.key', 'a store that had a key is not used as one without', async () => {
  const file = await createStore();
  editStore(file, (run) => run('DELETE FROM protection'));
  for (const session of ['a', 'b']) forgeEntries(file, session, (entries) => entries);
  const fault = await expectFault(openSqlite(file));
  expect([fault.code, fault.message]).toEqual([
    'STORE_DAMAGED',
    expect.stringContaining('was written without its key'),
  ]);
});

verifies(
  'store.key',
  'a store that began without a key has none later, and one that was interrupted gets its own',
  async () => {
    const plain = await createStore(false);
    await (await openSqlite(plain, { keyFile: storeKeyFileOf(plain) })).close();
    expect(existsSync(storeKeyFileOf(plain))).toBe(false);
    // The process ended after it made the key, and before it recorded that.
    const file = freshFile();
    mkdirSync(dirname(storeKeyFileOf(file)));
    copyFileSync(storeKeyFileOf(await createStore()), storeKeyFileOf(file));
    await withStore(file, async (store) => {
      const { fence } = await store.journal.claim('a');
      await appendEntry(store, 'a', fence, 0, 'a0');
    });
    forgeEntries(file, 'a', (entries) => entries);
    expect(await withStore(file, async (store) => store.report.damage)).toMatchObject([{ session: 'a' }]);
  },
);

verifies('store.key', 'a key that this user may not read is not said to be missing', async () => {
  const file = freshFile();
  const store = await openSqlite(file, { keyFile: storeKeyFileOf(file) });
  const refused = withoutAccess(dirname(storeKeyFileOf(file)), () => store.assertKey());
  await expect(refused).rejects.toMatchObject({
    code: 'KEYS_UNUSABLE',
    message: expect.stringMatching(/store-key cannot be read by this user \(EACCES\)\. Make it .* chmod 600/),
  });
  store.assertKey();
  await store.close();
});
