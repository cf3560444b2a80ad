/**
 * The files of a store: their permissions, links and planted files in their place, and what happens when they are
 * removed, replaced or shortened.
 */
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { afterAll, expect, onTestFinished } from 'vitest';
import {
  appendEntry,
  builtStoreUrl,
  cleanUp,
  copyStoreFiles,
  expectFault,
  freshFile,
  openInOtherProcess,
  ownerScriptPath,
  root,
} from '../../../spec/support/sqlite-fixture.mjs';
import { verifies } from '../../../spec/verifies.js';
import { isStoreFile } from '../../journal/store-files.js';
import { openSqlite } from './index.js';
import { readOwnerFile, writeOwnerFile } from './owner/owner-file.js';
import { isRuntimeSocketAddress, socketAddressFor } from './owner/socket-address.js';

afterAll(cleanUp);

const modeOf = (path: string): number => lstatSync(path).mode & 0o777;

for (const umask of [0o000, 0o022, 0o077, 0o777]) {
  verifies(
    'sqlite.files',
    `the data directory is 0700 and its files are 0600 under umask ${umask.toString(8)}`,
    async () => {
      const file = join(mkdtempSync(join(root, 'u')), 'data', 'store.db');
      const before = process.umask?.(umask) ?? 0;
      onTestFinished(() => void process.umask(before));
      const store = await openSqlite(file);
      const { fence } = await store.journal.claim('a');
      await appendEntry(store, 'a', fence, 0);
      expect(modeOf(dirname(file))).toBe(0o700);
      const names = readdirSync(dirname(file));
      expect(names).toEqual(expect.arrayContaining(['store.db', 'store.db-wal', 'store.db.owner', 'store.db.sock']));
      for (const name of names)
        expect({ name, mode: modeOf(join(dirname(file), name)) }).toEqual({ name, mode: 0o600 });
      await store.close();
      expect(readdirSync(dirname(file))).toEqual(['store.db', 'store.db.anchor', 'store.db.lock']);
    },
  );
}

verifies('sqlite.files', 'files that others may read are made private when the store is opened', async () => {
  const file = freshFile();
  await (await openSqlite(file)).close();
  for (const path of [file, `${file}.anchor`]) chmodSync(path, 0o644);
  const store = await openSqlite(file);
  for (const path of [file, `${file}.anchor`]) expect(modeOf(path)).toBe(0o600);
  await store.close();
});

for (const suffix of ['', '-wal', '-shm', '.anchor', '.anchor.new', '.lock', '.owner']) {
  verifies(
    'sqlite.files',
    `a symlink in place of store.db${suffix} is refused and its target is unchanged`,
    async () => {
      const file = freshFile();
      const target = join(dirname(file), 'precious');
      writeFileSync(target, 'precious');
      symlinkSync(target, file + suffix);
      expect(await expectFault(openSqlite(file))).toMatchObject({
        code: 'STORE_FAILED',
        data: { path: file + suffix },
      });
      expect(readFileSync(target, 'utf8')).toBe('precious');
      rmSync(file + suffix);
      symlinkSync(join(dirname(file), 'absent'), file + suffix);
      expect(await expectFault(openSqlite(file))).toMatchObject({ code: 'STORE_FAILED' });
      expect(existsSync(join(dirname(file), 'absent'))).toBe(false);
    },
  );
}

verifies('sqlite.files', 'a data directory that is a symlink is refused', async () => {
  const parent = mkdtempSync(join(root, 'l'));
  mkdirSync(join(parent, 'target'));
  symlinkSync(join(parent, 'target'), join(parent, '.rondo'));
  const fault = await expectFault(openSqlite(join(parent, '.rondo', 'journal.db')));
  expect(fault.message).toContain('it is a symbolic link; use the path of the directory that it points to');
  expect(readdirSync(join(parent, 'target'))).toEqual([]);
});

verifies('sqlite.files', 'an owner file is trusted only if it is a private regular file of this user', async () => {
  const file = freshFile();
  const store = await openSqlite(file);
  const ownerFile = `${file}.owner`;
  expect(readOwnerFile(file)).toMatchObject({ pid: process.pid, socket: `${file}.sock` });
  const copy = `${file}.copy`;
  copyFileSync(ownerFile, copy);
  chmodSync(ownerFile, 0o644);
  expect(readOwnerFile(file)).toBeUndefined();
  chmodSync(ownerFile, 0o600);
  expect(readOwnerFile(file)?.pid).toBe(process.pid);
  renameSync(ownerFile, `${file}.real`);
  symlinkSync(`${file}.real`, ownerFile);
  expect(readOwnerFile(file)).toBeUndefined();
  rmSync(ownerFile);
  for (const invalid of ['', 'no JSON', '{}', '{"pid": -1}', 'null', 'x'.repeat(10_000)]) {
    writeFileSync(ownerFile, invalid, { mode: 0o600 });
    expect(readOwnerFile(file)).toBeUndefined();
    rmSync(ownerFile);
  }
  renameSync(`${file}.real`, ownerFile);
  await store.close();
});

verifies('sqlite.files', 'a planted owner file does not prevent opening the store', async () => {
  const file = freshFile();
  const planted = { pid: process.pid, start: 'another boot 1', socket: `${file}.sock`, secret: 'a'.repeat(64) };
  writeOwnerFile(file, planted);
  const store = await openSqlite(file);
  expect(store.owner.here).toBe(true);
  await store.close();
});

verifies('sqlite.files', 'a copy of the data directory has no owner', async () => {
  const file = freshFile();
  const store = await openSqlite(file);
  const copy = join(mkdtempSync(join(root, 'c')), 'store.db');
  for (const suffix of ['', '-wal', '.anchor', '.owner']) copyFileSync(file + suffix, copy + suffix);
  chmodSync(`${copy}.owner`, 0o600);
  expect(readOwnerFile(copy)).toBeUndefined();
  const other = await openSqlite(copy);
  expect(other.owner.here).toBe(true);
  await other.close();
  await store.close();
});

for (const suffix of ['-wal', '-shm', '.owner', '.lock', '.sock']) {
  verifies('sqlite.files', `no append is acknowledged after store.db${suffix} was removed`, async () => {
    const file = freshFile();
    const store = await openSqlite(file);
    const { fence } = await store.journal.claim('a');
    await appendEntry(store, 'a', fence, 0);
    rmSync(file + suffix);
    const { code } = await expectFault(appendEntry(store, 'a', fence, 1));
    expect(code).toBe(suffix.startsWith('.') ? 'OWNERSHIP_LOST' : 'STORE_MISSING');
    await store.close();
  });
}

for (const suffix of ['', '-wal']) {
  verifies('sqlite.files', `no append is acknowledged after store.db${suffix} was shortened`, async () => {
    const file = freshFile();
    const store = await openSqlite(file);
    const { fence } = await store.journal.claim('a');
    await appendEntry(store, 'a', fence, 0);
    await appendEntry(store, 'a', fence, 1);
    truncateSync(file + suffix, statSync(file + suffix).size - 1);
    expect(await expectFault(appendEntry(store, 'a', fence, 2))).toMatchObject({ code: 'STORE_MISSING' });
    await store.close();
    // This process may still have the files open, so what the next one finds is found in a copy.
    const next = await openSqlite(copyStoreFiles(file));
    expect(next.report.damage.length > 0, 'what was lost is reported').toBe(suffix === '-wal');
    await next.close();
  });
}

verifies(
  'sqlite.files',
  'a copy in place of the data directory is detected even with the original timestamps',
  async () => {
    const file = freshFile();
    const directory = dirname(file);
    const store = await openSqlite(file);
    const { fence } = await store.journal.claim('a');
    // File timestamps are coarse: only after this delay does an unchanged directory skip the check of its files.
    for (let seq = 0; seq < 2; seq++) {
      await setTimeout(150);
      await appendEntry(store, 'a', fence, seq);
    }
    const { atime, mtime } = statSync(directory);
    const copy = `${directory}.copy`;
    mkdirSync(copy);
    for (const name of readdirSync(directory).filter((name) => !name.endsWith('.sock')))
      copyFileSync(join(directory, name), join(copy, name));
    renameSync(directory, `${directory}.moved`);
    utimesSync(copy, atime, mtime);
    renameSync(copy, directory);
    expect((await expectFault(appendEntry(store, 'a', fence, 2))).code).toMatch(/^STORE_MISSING$|^OWNERSHIP_LOST$/);
    await store.close();
  },
);

/** Opens a store whose directory has not changed for a while, right after a check of its files. */
async function openSettledStore(file: string) {
  const store = await openSqlite(file);
  const { fence } = await store.journal.claim('a');
  for (let seq = 0; seq < 2; seq++) {
    await setTimeout(150);
    await appendEntry(store, 'a', fence, seq);
  }
  await appendEntry(store, 'a', fence, 2);
  return { store, fence };
}

/** Changes to a data directory that make the next commit fail. */
const directoryChanges: Readonly<Record<string, (directory: string, file: string) => void>> = {
  'a removed directory': (directory) => rmSync(directory, { recursive: true }),
  'a moved directory': (directory) => renameSync(directory, `${directory}.moved`),
  'a removed file': (_, file) => rmSync(`${file}-wal`),
};

for (const [description, change] of Object.entries(directoryChanges)) {
  verifies('sqlite.files', `${description} is detected by the next of two commits in quick succession`, async () => {
    const file = freshFile();
    const { store, fence } = await openSettledStore(file);
    change(dirname(file), file);
    expect((await expectFault(appendEntry(store, 'a', fence, 3))).code).toBe('STORE_MISSING');
    await store.close();
  });
}

verifies('sqlite.files', 'a moved parent of the data directory is detected', async () => {
  const outer = dirname(freshFile());
  const { store, fence } = await openSettledStore(join(outer, 'inner', 'store.db'));
  renameSync(outer, `${outer}.moved`);
  await setTimeout(20);
  expect((await expectFault(appendEntry(store, 'a', fence, 3))).code).toBe('STORE_MISSING');
  await store.close();
});

for (const suffix of ['-journal', '.lock-journal']) {
  verifies('sqlite.files', `store.db${suffix} cannot make SQLite delete a file that it names`, async () => {
    const file = freshFile();
    const precious = join(dirname(file), 'precious');
    writeFileSync(precious, 'kept');
    await (await openSqlite(file)).close();
    writeFileSync(file + suffix, superJournal(precious));
    expect((await expectFault(openSqlite(file))).message).toContain(`${file}${suffix}`);
    expect(readFileSync(precious, 'utf8')).toBe('kept');
  });
}

/** Returns the end of a rollback journal that names this super-journal, as in a transaction over several databases. */
function superJournal(name: string): Buffer {
  const text = Buffer.from(name);
  const numbers = Buffer.alloc(8);
  numbers.writeUInt32BE(text.length, 0);
  numbers.writeUInt32BE(
    text.reduce((sum, byte) => sum + byte, 0),
    4,
  );
  const magic = Buffer.from('d9d505f920a163d7', 'hex');
  return Buffer.concat([magic, Buffer.alloc(504), Buffer.alloc(4), text, numbers, magic]);
}

verifies('sqlite.files', 'a file next to a database cannot be opened as a database', async () => {
  const file = freshFile();
  await (await openSqlite(file)).close();
  expect((await expectFault(openSqlite(`${file}.lock`))).message).toContain(`it belongs to ${file}`);
  await (await openSqlite(file)).close();
});

verifies('sqlite.files', 'an anchor of excessive size is reported and not read', async () => {
  const file = freshFile();
  await (await openSqlite(file)).close();
  truncateSync(`${file}.anchor`, 8 * 2 ** 30);
  const store = await openSqlite(file);
  expect(store.report.damage).toMatchObject([{ kind: 'anchor', note: expect.stringContaining('bytes') }]);
  await store.close();
});

verifies('sqlite.files', 'closing a replaced store does not touch the files of the new store', async () => {
  const file = freshFile();
  const replaced = await openSqlite(file);
  const { fence } = await replaced.journal.claim('a');
  await appendEntry(replaced, 'a', fence, 0);
  rmSync(dirname(file), { recursive: true });
  const current = await openSqlite(file);
  const claim = await current.journal.claim('b');
  await appendEntry(current, 'b', claim.fence, 0);
  const before = readdirSync(dirname(file));
  await replaced.close();
  expect(readdirSync(dirname(file))).toEqual(before);
  expect(before).toEqual(expect.arrayContaining(['store.db-wal', 'store.db.sock', 'store.db.owner']));
  await appendEntry(current, 'b', claim.fence, 1);
  expect(await openInOtherProcess(file)).toMatchObject({ owner: { here: false } });
  await current.close();
});

for (const change of ['removed', 'replaced'] as const) {
  verifies('sqlite.files', `a ${change} data directory is detected at the next commit`, async () => {
    const file = freshFile();
    const store = await openSqlite(file);
    const { fence } = await store.journal.claim('a');
    await appendEntry(store, 'a', fence, 0);
    rmSync(dirname(file), { recursive: true });
    if (change === 'replaced') {
      mkdirSync(dirname(file));
      writeFileSync(file, '');
    }
    const faults = await Promise.all([
      expectFault(appendEntry(store, 'a', fence, 1)),
      expectFault(store.journal.claim('b')),
    ]);
    for (const { code, message } of faults) {
      expect(code).toBe('STORE_MISSING');
      expect(message).toContain(`was ${change} while the store was open`);
    }
    expect((await expectFault(appendEntry(store, 'a', fence, 1))).code).toBe('STORE_MISSING');
    await store.close().catch(() => undefined);
  });
}

verifies(
  'sqlite.files',
  'a store whose path is too long for a socket listens in a private runtime directory',
  async () => {
    const runtime = mkdtempSync(join(root, 'r'));
    const before = process.env.XDG_RUNTIME_DIR;
    onTestFinished(() => {
      if (before === undefined) delete process.env.XDG_RUNTIME_DIR;
      else process.env.XDG_RUNTIME_DIR = before;
    });
    process.env.XDG_RUNTIME_DIR = runtime;
    const file = join(mkdtempSync(join(root, 'n')), 'x'.repeat(60), 'y'.repeat(60), 'store.db');
    const store = await openSqlite(file);
    const { socket = '' } = readOwnerFile(file) ?? {};
    expect(dirname(socket)).toBe(join(runtime, 'rondo'));
    expect(modeOf(dirname(socket))).toBe(0o700);
    expect(await openInOtherProcess(file)).toMatchObject({ owner: { pid: process.pid, here: false } });
    await store.close();
    expect(isRuntimeSocketAddress(socket)).toBe(true);
    expect(isRuntimeSocketAddress(join(runtime, 'rondo', 'other.sock'))).toBe(false);
    chmodSync(dirname(socket), 0o755);
    expect(isRuntimeSocketAddress(socket)).toBe(false);
    const next = socketAddressFor(file);
    expect(dirname(next)).not.toBe(dirname(socket));
    expect(modeOf(dirname(next))).toBe(0o700);
  },
);

verifies(
  'sqlite.files',
  'every file of an open store is recognized as a store file, which tools must not open',
  async () => {
    const file = freshFile();
    const store = await openSqlite(file);
    for (const name of readdirSync(dirname(file)))
      expect(isStoreFile(join(dirname(file), name)), `tools could open ${name}`).toBe(true);
    expect(isStoreFile(join(dirname(file), 'other.db'))).toBe(false);
    await store.close();
  },
);

verifies('sqlite.files', 'a store of another user is refused as read-only', () => {
  const file = freshFile();
  const created = spawnSync(process.execPath, [ownerScriptPath, builtStoreUrl, file, 'try'], { encoding: 'utf8' });
  expect(JSON.parse(created.stdout)).toMatchObject({ damage: [] });
  linkSync(file, `${file}.backup`);
  chmodSync(root, 0o755);
  chmodSync(dirname(file), 0o755);
  const userArgs = process.getuid?.() === 0 ? ['65534'] : [];
  if (userArgs.length === 0) chmodSync(file, 0o000);
  const { stdout } = spawnSync(process.execPath, [ownerScriptPath, builtStoreUrl, file, 'try', ...userArgs], {
    encoding: 'utf8',
  });
  expect(JSON.parse(stdout).code).toBe('STORE_READ_ONLY');
});
