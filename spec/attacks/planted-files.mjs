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
 * @param {import('../support/store-attack.mjs').Stage} stage
 */
function createProtectedFiles({ folder, path }) {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  mkdirSync(join(folder, 'out', 'dir'), { recursive: true });
  writeFileSync(join(folder, 'out', 'file'), 'precious', { mode: 0o644 });
  writeFileSync(join(folder, 'out', 'empty'), '', { mode: 0o644 });
}

/** Opens the store with the planted file: it throws a Fault or works, and no file outside changes. */
async function assertSafeOpen(stage, { mayOpen = true } = {}) {
  const { folder, path } = stage;
  const before = digestOutside(folder);
  const actor = await stage.actor();
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
 * @param {import('../support/store-attack.mjs').Stage} stage
 * @param {string} name
 * @param {string} target
 */
async function plantSymlink(stage, name, target) {
  createProtectedFiles(stage);
  symlinkSync(join(stage.folder, 'out', target), stage.path + name);
  await assertSafeOpen(stage, { mayOpen: name.startsWith('.lock-') || name === '.sock' });
  expect(!existsSync(join(stage.folder, 'out', 'absent')), 'no file at the target of the link', 'it exists');
}

/** Creates a file system entry that is not a regular file. */
const fileTypes = {
  directory: (path) => mkdirSync(path),
  fifo: (path) => execFileSync('mkfifo', [path]),
  device: (path) => execFileSync('mknod', [path, 'c', '1', '3']),
  socket: async (path, stage) => {
    const server = createServer();
    server.listen({ path });
    await once(server, 'listening');
    stage.atEnd(() => server.close());
  },
};

/**
 * An entry that is not a regular file is planted.
 * @param {import('../support/store-attack.mjs').Stage} stage @param {string} name
 * @param {(path: string, stage: any) => unknown} make
 */
async function plantFileType(stage, name, make) {
  createProtectedFiles(stage);
  await make(stage.path + name, stage);
  if (make !== fileTypes.socket || name !== '.sock') return void (await assertSafeOpen(stage));
  // A listener at the socket may be an owner whose owner file was removed, so no process takes over.
  const actor = await stage.actor();
  const answer = await actor.do('open', { path: stage.path }, 22_000);
  expectFault(answer, ['STORE_OWNED']);
  expect(answer.fault.message.includes(`${stage.path}.sock`), 'the path of the socket in the message', answer.fault);
}

/** Contents of planted files. */
const contents = {
  empty: Buffer.alloc(0),
  text: Buffer.from('not one of ours\n'.repeat(300)),
  zeros: Buffer.alloc(8192),
  random: (stage) => Buffer.from(Array.from({ length: 5000 }, () => Math.floor(stage.random() * 256))),
  'sqlite-header': Buffer.concat([Buffer.from('SQLite format 3\0'), Buffer.alloc(4080, 1)]),
};

/**
 * A file with foreign content is planted.
 * @param {import('../support/store-attack.mjs').Stage} stage
 * @param {string} name
 * @param {any} content
 */
async function plantContent(stage, name, content) {
  createProtectedFiles(stage);
  writeFileSync(stage.path + name, typeof content === 'function' ? content(stage) : content);
  await assertSafeOpen(stage);
}

/** A sparse file of 8 GiB is planted. */
async function plantSparseFile(stage, name) {
  createProtectedFiles(stage);
  writeFileSync(stage.path + name, '');
  truncateSync(stage.path + name, 8 * 2 ** 30);
  await assertSafeOpen(stage);
}

/** The lock is a database in WAL mode, and the given file beside it is a link. */
async function plantWalLock(stage, suffix, target) {
  createProtectedFiles(stage);
  const driver = openDriver(`${stage.path}.lock`);
  driver.exec('PRAGMA journal_mode=WAL');
  driver.exec('CREATE TABLE t (x)');
  driver.close();
  symlinkSync(join(stage.folder, 'out', target), `${stage.path}.lock${suffix}`);
  await assertSafeOpen(stage);
  expect(!existsSync(join(stage.folder, 'out', 'absent')), 'no file at the target of the link', 'it exists');
}

/** A foreign database has a hot journal that names a file for SQLite to delete. */
async function plantHotJournal(stage, name) {
  createProtectedFiles(stage);
  const file = stage.path + name;
  const driver = openDriver(file);
  driver.exec('CREATE TABLE t (x)');
  driver.close();
  writeFileSync(`${file}-journal`, hotJournal(readFileSync(file), join(stage.folder, 'out', 'file')));
  await assertSafeOpen(stage);
}

/** A valid store has a hot journal that names a file for SQLite to delete. */
async function plantHotJournalOfStore(stage) {
  createProtectedFiles(stage);
  const creator = await stage.actor();
  await creator.fill(stage.path);
  await creator.must('close');
  await creator.kill();
  writeFileSync(`${stage.path}-journal`, hotJournal(readFileSync(stage.path), join(stage.folder, 'out', 'file')));
  await assertSafeOpen(stage);
}

/** The temporary name of the owner file exists already. */
async function plantDraft(stage, make) {
  createProtectedFiles(stage);
  const actor = await stage.actor();
  const before = digestOutside(stage.folder);
  make(`${stage.path}.owner.${actor.pid}`, join(stage.folder, 'out', 'file'));
  const answer = await actor.do('open', { path: stage.path });
  if (answer.ok === undefined) expectFault(answer, REFUSED);
  expect(digestOutside(stage.folder) === before, 'no file outside to change', 'a file changed');
  if (answer.ok === undefined) return;
  await actor.must('close');
}

/** The directory contains 65,536 links with short names that resemble the temporary name of the socket. */
async function plantShortNames(stage) {
  createProtectedFiles(stage);
  const target = join(stage.folder, 'out', 'file');
  for (let n = 0; n < 65_536; n++)
    symlinkSync(target, join(dirname(stage.path), `.${n.toString(16).padStart(4, '0')}`));
  const before = digestOutside(stage.folder);
  const actor = await stage.actor();
  const answer = await actor.do('open', { path: stage.path });
  expect(digestOutside(stage.folder) === before, 'no file outside to change', 'a file changed');
  expect(answer.ok !== undefined, 'the store to be opened', answer.fault ?? answer);
}

/** A store in a data directory that is a symbolic link is refused. */
async function refusesLinkedDirectory(stage) {
  createProtectedFiles(stage);
  symlinkSync(join(stage.folder, 'out', 'dir'), join(stage.folder, '.rondo'));
  const before = digestOutside(stage.folder);
  const actor = await stage.actor();
  expectFault(await actor.do('open', { path: join(stage.folder, '.rondo', 'journal.db') }), REFUSED);
  expect(digestOutside(stage.folder) === before, 'no file outside to change', 'a file changed');
}

/** A refused store works again after the planted file is removed. */
async function worksAfterRemoval(stage, name) {
  createProtectedFiles(stage);
  const creator = await stage.actor();
  await creator.fill(stage.path);
  await creator.must('close');
  await creator.kill();
  const original = existsSync(stage.path + name) ? readFileSync(stage.path + name) : undefined;
  execFileSync('rm', ['-f', stage.path + name]);
  symlinkSync(join(stage.folder, 'out', 'file'), stage.path + name);
  await assertSafeOpen(stage, { mayOpen: false });
  execFileSync('rm', ['-f', stage.path + name]);
  if (original !== undefined) writeFileSync(stage.path + name, original, { mode: 0o600 });
  await expectStored(stage, stage.path, 'a', ['v0', 'v1', 'v2']);
}

/** A corrupted file of a complete store: acknowledged values are present, or their loss is reported. */
async function reportsCorruption(stage, name, how) {
  createProtectedFiles(stage);
  const creator = await stage.actor();
  await creator.fill(stage.path);
  await creator.kill();
  const bytes = readFileSync(stage.path + name);
  if (how === 'cut') writeFileSync(stage.path + name, bytes.subarray(0, Math.floor(bytes.length / 2)));
  else if (how === 'random') writeFileSync(stage.path + name, randomBytes(bytes.length));
  else writeFileSync(stage.path + name, '');
  const reader = await stage.actor();
  const answer = await reader.do('open', { path: stage.path });
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
      add(`symlink.${label(name)}.${target}`, (stage) => plantSymlink(stage, name, target));
    for (const [which, make] of Object.entries(fileTypes))
      add(`kind.${label(name)}.${which}`, (stage) => plantFileType(stage, name, make));
    for (const [which, bytes] of Object.entries(contents))
      add(`content.${label(name)}.${which}`, (stage) => plantContent(stage, name, bytes));
    add(`sparse.${label(name)}`, (stage) => plantSparseFile(stage, name));
  }
  for (const suffix of ['-wal', '-shm', '-journal']) {
    for (const target of ['file', 'empty', 'absent'])
      add(`lock-in-wal.${suffix.slice(1)}.${target}`, (stage) => plantWalLock(stage, suffix, target));
  }
  for (const name of ['', '.lock']) add(`hot-journal.${label(name)}`, (stage) => plantHotJournal(stage, name));
  add('hot-journal.store', plantHotJournalOfStore);
  add('draft.symlink', (stage) => plantDraft(stage, (path, target) => symlinkSync(target, path)));
  add('draft.file', (stage) => plantDraft(stage, (path) => writeFileSync(path, 'x', { mode: 0o666 })));
  add('draft.directory', (stage) => plantDraft(stage, (path) => mkdirSync(path)));
  add('draft.fifo', (stage) => plantDraft(stage, (path) => execFileSync('mkfifo', [path])));
  add('short-names', plantShortNames);
  add('linked-directory', refusesLinkedDirectory);
  for (const name of ['', '-wal', '-shm', '-journal', '.anchor', '.anchor.new', '.lock', '.owner'])
    add(`healed.${label(name)}`, (stage) => worksAfterRemoval(stage, name));
  for (const name of ['', '-wal', '-shm', '.anchor', '.owner', '.lock']) {
    for (const how of ['cut', 'random', 'emptied'])
      add(`garbled.${label(name)}.${how}`, (stage) => reportsCorruption(stage, name, how));
  }
  return all;
}
