// Checks of the key of a store and of the kept lengths of ledgers: each holds on the intact library and fails when its
// guard is broken.

import { deepStrictEqual, rejects, strictEqual, throws } from 'node:assert/strict';
import { chmodSync, copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { editStore } from '../support/forge-store.js';
import { withoutAccess } from '../support/other-user.js';
import type { LibraryParts } from './library.js';

export const storeKeyParts: LibraryParts = [
  'adapters/memory/index.js',
  'adapters/sqlite/index.js',
  'adapters/keys/index.js',
  'testing/manual-clock.js',
  'host/budget/ledger.js',
];

type StoreKeyLibrary = typeof import('../../src/adapters/memory/index.js') &
  typeof import('../../src/adapters/sqlite/index.js') &
  typeof import('../../src/adapters/keys/index.js') &
  typeof import('../../src/testing/manual-clock.js') &
  typeof import('../../src/host/budget/ledger.js');

type StoreKeyCheck = (library: StoreKeyLibrary) => Promise<void>;

const grant = { allowedTools: ['*'], limits: { effects: 2 } };

async function inDirectory(use: (directory: string) => Promise<void>): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'rondo-guard-'));
  try {
    await use(directory);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Creates a store with a key and one session, and returns its path. */
async function createStore({ openSqlite }: StoreKeyLibrary, directory: string): Promise<string> {
  const file = join(directory, 'store.db');
  const store = await openSqlite(file, { keyFile: `${file}.key` });
  await store.journal.claim('a');
  await store.snapshots.save('a', { nextSeq: 0, tailDigest: 't', state: 1 });
  await store.close();
  return file;
}

/** Returns a ledger in which a turn has spent something, with its store and its witness. */
async function spentLedger({ Ledger, ManualClock, memoryStore }: StoreKeyLibrary) {
  const kept = new Map<string, number>();
  const witness = {
    read: async (id: string) => kept.get(id) ?? 0,
    has: async (id: string) => kept.has(id),
    areIntact: async () => true,
    write: async (id: string, length: number) => void kept.set(id, length),
  };
  const deps = { store: memoryStore(), clock: new ManualClock(1), witness };
  await (await Ledger.open(deps, 'g', grant)).endTurn('t');
  return deps;
}

export const storeKeyChecks = {
  'a snapshot that was changed without the key is not used': (library) =>
    inDirectory(async (directory) => {
      const file = await createStore(library, directory);
      editStore(file, (run) => run('UPDATE snapshots SET state = ?', '2'));
      const store = await library.openSqlite(file, { keyFile: `${file}.key` });
      const loaded = await store.snapshots.load('a');
      await store.close();
      strictEqual(loaded, undefined);
    }),
  'a store that had a key is not used as one without': (library) =>
    inDirectory(async (directory) => {
      const file = await createStore(library, directory);
      editStore(file, (run) => run('DELETE FROM protection'));
      await rejects(library.openSqlite(file, { keyFile: `${file}.key` }), { code: 'STORE_DAMAGED' });
    }),
  'the key of another store is refused': (library) =>
    inDirectory(async (directory) => {
      const file = await createStore(library, directory);
      await (await library.openSqlite(join(directory, 'other.db'), { keyFile: join(directory, 'other.key') })).close();
      copyFileSync(join(directory, 'other.key'), `${file}.key`);
      await rejects(library.openSqlite(file, { keyFile: `${file}.key` }), { code: 'KEYS_UNUSABLE' });
    }),
  'the key of another store is not used by a client': (library) =>
    inDirectory(async (directory) => {
      const [keyFile, other] = [join(directory, 'store.key'), join(directory, 'other.key')];
      const owner = await library.openSqlite(join(directory, 'store.db'), { keyFile });
      await (await library.openSqlite(join(directory, 'other.db'), { keyFile: other })).close();
      const client = await library.openSqlite(join(directory, 'store.db'), { keyFile });
      client.assertKey();
      copyFileSync(other, keyFile);
      throws(() => client.assertKey(), { code: 'KEYS_UNUSABLE' });
      for (const store of [client, owner]) await store.close();
    }),
  'a key that this user may not read is not missing': (library) =>
    inDirectory(async (directory) => {
      const keyFile = join(directory, 'keys', 'store.key');
      const store = await library.openSqlite(join(directory, 'store.db'), { keyFile });
      const refused = withoutAccess(join(directory, 'keys'), () => store.assertKey());
      await rejects(refused, { code: 'KEYS_UNUSABLE' });
      await store.close();
    }),
  'a full disk is no problem of the keys': ({ KeyDirectory }) =>
    inDirectory(async (directory) => {
      const cause = Object.assign(new Error('no space'), { code: 'ENOSPC' });
      const file = await open(join(directory, 'probe'), 'w');
      const handle = Object.getPrototypeOf(file) as { writeFile: unknown };
      const { writeFile } = handle;
      await file.close();
      handle.writeFile = () => Promise.reject(cause);
      try {
        await rejects(new KeyDirectory(directory).signer('receipt'), { code: 'STORE_FULL' });
      } finally {
        handle.writeFile = writeFile;
      }
    }),
  'a key that others can read is refused': (library) =>
    inDirectory(async (directory) => {
      const file = await createStore(library, directory);
      chmodSync(`${file}.key`, 0o644);
      await rejects(library.openSqlite(file, { keyFile: `${file}.key` }), { code: 'KEYS_UNUSABLE' });
    }),
  'a store with a trigger can only be read': (library) =>
    inDirectory(async (directory) => {
      const file = await createStore(library, directory);
      editStore(file, (run) => run('CREATE TRIGGER t AFTER INSERT ON records BEGIN SELECT 1; END'));
      const store = await library.openSqlite(file, { keyFile: `${file}.key` });
      await rejects(store.journal.claim('a'), { code: 'STORE_DAMAGED' });
      await store.close();
    }),
  'a removal that was added without the key is noticed': (library) =>
    inDirectory(async (directory) => {
      const file = await createStore(library, directory);
      const columns = 'session, entries, head, removed_at, removed_by, reason';
      editStore(file, (run) => run(`INSERT INTO tombstones (${columns}) VALUES ('x', 1, '', 1, 'eve', '')`));
      const store = await library.openSqlite(file, { keyFile: `${file}.key` });
      const notes = store.report.damage.map(({ note }) => note);
      await store.close();
      deepStrictEqual(notes, ['the removal 1 in its log, of session "x", is not what was written']);
    }),
  'a removal that was deleted without the key is noticed': (library) =>
    inDirectory(async (directory) => {
      const file = await createStore(library, directory);
      const open = () => library.openSqlite(file, { keyFile: `${file}.key` });
      const store = await open();
      await store.journal.remove('a');
      await store.close();
      editStore(file, (run) => run('DELETE FROM tombstones'));
      const edited = await open();
      const kinds = edited.report.damage.map(({ kind }) => kind);
      await edited.close();
      deepStrictEqual(kinds, ['removal']);
    }),
  'a kept length is not lowered': ({ StreamLengths }) =>
    inDirectory(async (directory) => {
      const lengths = new StreamLengths(directory);
      for (const length of [5, 3]) await lengths.write('g', length);
      strictEqual(await lengths.read('g'), 5);
    }),
  'a ledger that is shorter than it was is refused': async (library) => {
    const deps = await spentLedger(library);
    await deps.store.journal.remove(library.ledgerName('g'));
    await rejects(library.Ledger.open(deps, 'g', grant), { code: 'STORE_DAMAGED' });
  },
  'a turn does not continue under a grant that is not registered': async (library) => {
    const { store, clock } = await spentLedger(library);
    await store.journal.remove(library.ledgerName('g'));
    await rejects(library.Ledger.open({ store, clock }, 'g', grant, true), { code: 'STORE_DAMAGED' });
    deepStrictEqual((await library.Ledger.open({ store, clock }, 'g', grant)).budget.totals(), {});
  },
} satisfies Record<string, StoreKeyCheck>;
