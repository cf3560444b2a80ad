// Files that exist in place of the store's own files before it is opened, as a cloned project could contain them.

import { execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { openDriver } from 'rondo/sqlite';
import { expect, expectFault, expectStored } from '../support/store-attack.mjs';
import { hotJournal } from './hot-journal.mjs';

/** Suffixes of the files next to a database that the store or SQLite may open. */
const SUFFIXES = [
  '',
  '-wal',
  '-shm',
  '-journal',
  '.anchor',
  '.anchor.new',
  '.lock',
  '.lock-journal',
  '.lock-wal',
  '.lock-shm',
  '.owner',
  '.sock',
];
const REFUSED = ['STORE_FAILED', 'STORE_DAMAGED', 'STORE_READ_ONLY', 'ENTRY_TOO_NEW'];

/** Returns a digest of all files outside of the data directory. @param {string} folder */
function digestOutside(folder) {
  const hash = createHash('sha256');
  const walk = (directory) => {
    for (const name of readdirSync(directory).sort()) {
      const path = join(directory, name);
      const { mode, size } = lstatSync(path);
      hash.update(`${path} ${mode} ${size}\n`);
      if (lstatSync(path).isDirectory()) walk(path);
      else if (lstatSync(path).isFile()) hash.update(readFileSync(path));
    }
  };
  walk(join(folder, 'out'));
  return hash.digest('hex');
}

/**
 * Creates the data directory, and files outside of it that must not change.
 * @param {import('../support/store-attack.mjs').StoreFixture} fixture
 */
function createProtectedFiles({ folder, path }) {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  mkdirSync(join(folder, 'out', 'dir'), { recursive: true });
  writeFileSync(join(folder, 'out', 'file'), 'precious', { mode: 0o644 });
  writeFileSync(join(folder, 'out', 'empty'), '', { mode: 0o644 });
}

/** Opens the store with the planted file: it throws a Fault or works, and no file outside changes. */
async function assertSafeOpen(fixture, { mayOpen = true } = {}) {
  const { folder, path } = fixture;
  const before = digestOutside(folder);
  const actor = await fixture.actor();
  const answer = await actor.do('open', { path });
  if (answer.fault === undefined) {
    expect(answer.ok !== undefined, 'an answer', answer);
    expect(mayOpen, 'the planted file to be refused', 'the store was opened');
    const { fence, next } = await actor.must('claim', { session: 'a' });
    const append = await actor.do('append', { session: 'a', fence, first: next });
    if (append.fault !== undefined) expectFault(append, [...REFUSED, 'STORE_MISSING', 'OWNERSHIP_LOST', 'SYNC_FAILED']);
    await actor.do('close');
  } else expectFault(answer, REFUSED);
  expect(digestOutside(folder) === before, 'no file outside to change', readdirSync(join(folder, 'out')));
  return answer;
}

/**
 * A symbolic link is planted.
 * @param {import('../support/store-attack.mjs').StoreFixture} fixture
 * @param {string} name
 * @param {string} target
 */
async function plantSymlink(fixture, name, target) {
  createProtectedFiles(fixture);
  symlinkSync(join(fixture.folder, 'out', target), fixture.path + name);
  await assertSafeOpen(fixture, { mayOpen: name.startsWith('.lock-') || name === '.sock' });
  expect(!existsSync(join(fixture.folder, 'out', 'absent')), 'no file at the target of the link', 'it exists');
}

/** Creates a file system entry that is not a regular file. */
const fileTypes = {
  directory: (path) => mkdirSync(path),
  fifo: (path) => execFileSync('mkfifo', [path]),
  device: (path) => execFileSync('mknod', [path, 'c', '1', '3']),
  socket: async (path, fixture) => {
    const server = createServer();
    server.listen({ path });
    await once(server, 'listening');
    fixture.atEnd(() => server.close());
  },
};

/**
 * An entry that is not a regular file is planted.
 * @param {import('../support/store-attack.mjs').StoreFixture} fixture @param {string} name
 * @param {(path: string, fixture: any) => unknown} make
 */
async function plantFileType(fixture, name, make) {
  createProtectedFiles(fixture);
  await make(fixture.path + name, fixture);
  if (make !== fileTypes.socket || name !== '.sock') return void (await assertSafeOpen(fixture));
  // A listener at the socket may be an owner whose owner file was removed, so no process takes over.
  const actor = await fixture.actor();
  const answer = await actor.do('open', { path: fixture.path }, 22_000);
  expectFault(answer, ['STORE_OWNED']);
  expect(answer.fault.message.includes(`${fixture.path}.sock`), 'the path of the socket in the message', answer.fault);
}

/** Contents of planted files. */
const contents = {
  empty: Buffer.alloc(0),
  text: Buffer.from('not one of ours\n'.repeat(300)),
  zeros: Buffer.alloc(8192),
  random: (fixture) => Buffer.from(Array.from({ length: 5000 }, () => Math.floor(fixture.random() * 256))),
  'sqlite-header': Buffer.concat([Buffer.from('SQLite format 3\0'), Buffer.alloc(4080, 1)]),
};

/**
 * A file with foreign content is planted.
 * @param {import('../support/store-attack.mjs').StoreFixture} fixture
 * @param {string} name
 * @param {any} content
 */
async function plantContent(fixture, name, content) {
  createProtectedFiles(fixture);
  writeFileSync(fixture.path + name, typeof content === 'function' ? content(fixture) : content);
  await assertSafeOpen(fixture);
}

/** A sparse file of 8 GiB is planted. */
async function plantSparseFile(fixture, name) {
  createProtectedFiles(fixture);
  writeFileSync(fixture.path + name, '');
  truncateSync(fixture.path + name, 8 * 2 ** 30);
  await assertSafeOpen(fixture);
}

/** The lock is a database in WAL mode, and the given file beside it is a link. */
async function plantWalLock(fixture, suffix, target) {
  createProtectedFiles(fixture);
  const driver = openDriver(`${fixture.path}.lock`);
  driver.exec('PRAGMA journal_mode=WAL');
  driver.exec('CREATE TABLE t (x)');
  driver.close();
  symlinkSync(join(fixture.folder, 'out', target), `${fixture.path}.lock${suffix}`);
  await assertSafeOpen(fixture);
  expect(!existsSync(join(fixture.folder, 'out', 'absent')), 'no file at the target of the link', 'it exists');
}

/** A foreign database has a hot journal that names a file for SQLite to delete. */
async function plantHotJournal(fixture, name) {
  createProtectedFiles(fixture);
  const file = fixture.path + name;
  const driver = openDriver(file);
  driver.exec('CREATE TABLE t (x)');
  driver.close();
  writeFileSync(`${file}-journal`, hotJournal(readFileSync(file), join(fixture.folder, 'out', 'file')));
  await assertSafeOpen(fixture);
}

/** A valid store has a hot journal that names a file for SQLite to delete. */
async function plantHotJournalOfStore(fixture) {
  createProtectedFiles(fixture);
  const creator = await fixture.actor();
  await creator.fill(fixture.path);
  await creator.must('close');
  await creator.kill();
  writeFileSync(`${fixture.path}-journal`, hotJournal(readFileSync(fixture.path), join(fixture.folder, 'out', 'file')));
  await assertSafeOpen(fixture);
}

/** The temporary name of the owner file exists already. */
async function plantDraft(fixture, make) {
  createProtectedFiles(fixture);
  const actor = await fixture.actor();
  const before = digestOutside(fixture.folder);
  make(`${fixture.path}.owner.${actor.pid}`, join(fixture.folder, 'out', 'file'));
  const answer = await actor.do('open', { path: fixture.path });
  if (answer.ok === undefined) expectFault(answer, REFUSED);
  expect(digestOutside(fixture.folder) === before, 'no file outside to change', 'a file changed');
  if (answer.ok === undefined) return;
  await actor.must('close');
}

/** The directory contains 65,536 links with short names that resemble the temporary name of the socket. */
async function plantShortNames(fixture) {
  createProtectedFiles(fixture);
  const target = join(fixture.folder, 'out', 'file');
  for (let n = 0; n < 65_536; n++)
    symlinkSync(target, join(dirname(fixture.path), `.${n.toString(16).padStart(4, '0')}`));
  const before = digestOutside(fixture.folder);
  const actor = await fixture.actor();
  const answer = await actor.do('open', { path: fixture.path });
  expect(digestOutside(fixture.folder) === before, 'no file outside to change', 'a file changed');
  expect(answer.ok !== undefined, 'the store to be opened', answer.fault ?? answer);
}

/** A store in a data directory that is a symbolic link is refused. */
async function refusesLinkedDirectory(fixture) {
  createProtectedFiles(fixture);
  symlinkSync(join(fixture.folder, 'out', 'dir'), join(fixture.folder, '.rondo'));
  const before = digestOutside(fixture.folder);
  const actor = await fixture.actor();
  expectFault(await actor.do('open', { path: join(fixture.folder, '.rondo', 'journal.db') }), REFUSED);
  expect(digestOutside(fixture.folder) === before, 'no file outside to change', 'a file changed');
}

/** A refused store works again after the planted file is removed. */
async function worksAfterRemoval(fixture, name) {
  createProtectedFiles(fixture);
  const creator = await fixture.actor();
  await creator.fill(fixture.path);
  await creator.must('close');
  await creator.kill();
  const original = existsSync(fixture.path + name) ? readFileSync(fixture.path + name) : undefined;
  execFileSync('rm', ['-f', fixture.path + name]);
  symlinkSync(join(fixture.folder, 'out', 'file'), fixture.path + name);
  await assertSafeOpen(fixture, { mayOpen: false });
  execFileSync('rm', ['-f', fixture.path + name]);
  if (original !== undefined) writeFileSync(fixture.path + name, original, { mode: 0o600 });
  await expectStored(fixture, fixture.path, 'a', ['v0', 'v1', 'v2']);
}

/** A corrupted file of a complete store: acknowledged values are present, or their loss is reported. */
async function reportsCorruption(fixture, name, how) {
  createProtectedFiles(fixture);
  const creator = await fixture.actor();
  await creator.fill(fixture.path);
  await creator.kill();
  const bytes = readFileSync(fixture.path + name);
  if (how === 'cut') writeFileSync(fixture.path + name, bytes.subarray(0, Math.floor(bytes.length / 2)));
  else if (how === 'random') writeFileSync(fixture.path + name, randomBytes(bytes.length));
  else writeFileSync(fixture.path + name, '');
  const reader = await fixture.actor();
  const answer = await reader.do('open', { path: fixture.path });
  if (answer.ok === undefined) return expectFault(answer, REFUSED);
  const found = await reader.do('values', { session: 'a' });
  const isComplete = JSON.stringify(found.ok) === '["v0","v1","v2"]';
  const isReported = answer.ok.damage.length > 0 || found.fault !== undefined;
  expect(isComplete || isReported, 'all values, or a report of the damage', { found, damage: answer.ok.damage });
}

/** Returns the part of a case id for a file suffix. */
const label = (name) => `j.db${name}`;

export function cases() {
  const all = [];
  const add = (id, run) => all.push({ id: `files.${id}`, run });
  for (const name of SUFFIXES) {
    for (const target of ['file', 'empty', 'absent', 'dir'])
      add(`symlink.${label(name)}.${target}`, (fixture) => plantSymlink(fixture, name, target));
    for (const [which, make] of Object.entries(fileTypes))
      add(`kind.${label(name)}.${which}`, (fixture) => plantFileType(fixture, name, make));
    for (const [which, bytes] of Object.entries(contents))
      add(`content.${label(name)}.${which}`, (fixture) => plantContent(fixture, name, bytes));
    add(`sparse.${label(name)}`, (fixture) => plantSparseFile(fixture, name));
  }
  for (const suffix of ['-wal', '-shm', '-journal']) {
    for (const target of ['file', 'empty', 'absent'])
      add(`lock-in-wal.${suffix.slice(1)}.${target}`, (fixture) => plantWalLock(fixture, suffix, target));
  }
  for (const name of ['', '.lock']) add(`hot-journal.${label(name)}`, (fixture) => plantHotJournal(fixture, name));
  add('hot-journal.store', plantHotJournalOfStore);
  add('draft.symlink', (fixture) => plantDraft(fixture, (path, target) => symlinkSync(target, path)));
  add('draft.file', (fixture) => plantDraft(fixture, (path) => writeFileSync(path, 'x', { mode: 0o666 })));
  add('draft.directory', (fixture) => plantDraft(fixture, (path) => mkdirSync(path)));
  add('draft.fifo', (fixture) => plantDraft(fixture, (path) => execFileSync('mkfifo', [path])));
  add('short-names', plantShortNames);
  add('linked-directory', refusesLinkedDirectory);
  for (const name of ['', '-wal', '-shm', '-journal', '.anchor', '.anchor.new', '.lock', '.owner'])
    add(`healed.${label(name)}`, (fixture) => worksAfterRemoval(fixture, name));
  for (const name of ['', '-wal', '-shm', '.anchor', '.owner', '.lock']) {
    for (const how of ['cut', 'random', 'emptied'])
      add(`garbled.${label(name)}.${how}`, (fixture) => reportsCorruption(fixture, name, how));
  }
  return all;
}
