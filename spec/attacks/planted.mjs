// Files planted in place of the store's own before it is opened, as a cloned project could bring them.

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

/** All names beside a database that the store or SQLite may open. */
const NAMES = [
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

/** All that is outside of the data directory, as text. @param {string} folder */
function outside(folder) {
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

/** @param {import('../support/store-attack.mjs').Stage} stage */
function precious({ folder, path }) {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  mkdirSync(join(folder, 'out', 'dir'), { recursive: true });
  writeFileSync(join(folder, 'out', 'file'), 'precious', { mode: 0o644 });
  writeFileSync(join(folder, 'out', 'empty'), '', { mode: 0o644 });
}

/**
 * Opens the store over what was planted: it is refused with a Fault, or works; nothing outside is touched, and once what was
 * planted is gone the store works.
 */
async function opened(stage, { accepts = true } = {}) {
  const { folder, path } = stage;
  const before = outside(folder);
  const actor = await stage.actor();
  const answer = await actor.do('open', { path });
  if (answer.fault === undefined) {
    expect(answer.ok !== undefined, 'an answer', answer);
    expect(accepts, 'what was planted to be refused', 'the store was opened');
    const { fence, next } = await actor.must('claim', { session: 'a' });
    const append = await actor.do('append', { session: 'a', fence, first: next });
    if (append.fault !== undefined) expectFault(append, [...REFUSED, 'STORE_MISSING', 'OWNERSHIP_LOST', 'SYNC_FAILED']);
    await actor.do('close');
  } else expectFault(answer, REFUSED);
  expect(outside(folder) === before, 'everything outside to stay as it was', readdirSync(join(folder, 'out')));
  return answer;
}

/** @param {import('../support/store-attack.mjs').Stage} stage @param {string} name @param {string} target */
async function symlink(stage, name, target) {
  precious(stage);
  symlinkSync(join(stage.folder, 'out', target), stage.path + name);
  await opened(stage, { accepts: name.startsWith('.lock-') || name === '.sock' });
  expect(!existsSync(join(stage.folder, 'out', 'absent')), 'no file at the end of the link', 'there is one');
}

const kinds = {
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

/** @param {import('../support/store-attack.mjs').Stage} stage @param {string} name @param {(path: string, stage: any) => unknown} make */
async function kind(stage, name, make) {
  precious(stage);
  await make(stage.path + name, stage);
  if (make !== kinds.socket || name !== '.sock') return void (await opened(stage));
  // Something listens where an owner would: that may be one whose record was removed, so nobody takes its place.
  const actor = await stage.actor();
  const answer = await actor.do('open', { path: stage.path }, 22_000);
  expectFault(answer, ['STORE_OWNED']);
  expect(answer.fault.message.includes(`${stage.path}.sock`), 'the socket to be named', answer.fault);
}

const contents = {
  empty: Buffer.alloc(0),
  text: Buffer.from('not one of ours\n'.repeat(300)),
  zeros: Buffer.alloc(8192),
  random: (stage) => Buffer.from(Array.from({ length: 5000 }, () => Math.floor(stage.random() * 256))),
  'sqlite-header': Buffer.concat([Buffer.from('SQLite format 3\0'), Buffer.alloc(4080, 1)]),
};

/** @param {import('../support/store-attack.mjs').Stage} stage @param {string} name @param {any} content */
async function content(stage, name, content_) {
  precious(stage);
  writeFileSync(stage.path + name, typeof content_ === 'function' ? content_(stage) : content_);
  await opened(stage);
}

/** A huge file without content. */
async function sparse(stage, name) {
  precious(stage);
  writeFileSync(stage.path + name, '');
  truncateSync(stage.path + name, 8 * 2 ** 30);
  await opened(stage);
}

/** A lock that is a database with a write-ahead log, whose log is a link. */
async function lockInWal(stage, suffix, target) {
  precious(stage);
  const driver = openDriver(`${stage.path}.lock`);
  driver.exec('PRAGMA journal_mode=WAL');
  driver.exec('CREATE TABLE t (x)');
  driver.close();
  symlinkSync(join(stage.folder, 'out', target), `${stage.path}.lock${suffix}`);
  await opened(stage);
  expect(!existsSync(join(stage.folder, 'out', 'absent')), 'no file at the end of the link', 'there is one');
}

/** A journal of a transaction that was never there, which names a file that SQLite is to delete. */
async function hot(stage, name) {
  precious(stage);
  const file = stage.path + name;
  const driver = openDriver(file);
  driver.exec('CREATE TABLE t (x)');
  driver.close();
  writeFileSync(`${file}-journal`, hotJournal(readFileSync(file), join(stage.folder, 'out', 'file')));
  await opened(stage);
}

/** A store of ours, whose journal names a file that SQLite is to delete. */
async function hotOfStore(stage) {
  precious(stage);
  const maker = await stage.actor();
  await maker.fill(stage.path);
  await maker.must('close');
  await maker.kill();
  writeFileSync(`${stage.path}-journal`, hotJournal(readFileSync(stage.path), join(stage.folder, 'out', 'file')));
  await opened(stage);
}

/** Names that the store makes up while it opens. */
async function drafts(stage, make) {
  precious(stage);
  const actor = await stage.actor();
  const before = outside(stage.folder);
  make(`${stage.path}.owner.${actor.pid}`, join(stage.folder, 'out', 'file'));
  const answer = await actor.do('open', { path: stage.path });
  if (answer.ok === undefined) expectFault(answer, REFUSED);
  expect(outside(stage.folder) === before, 'everything outside to stay as it was', 'it changed');
  if (answer.ok === undefined) return;
  await actor.must('close');
}

/** The short names under which the socket is made are all taken. */
async function shortNames(stage) {
  precious(stage);
  const target = join(stage.folder, 'out', 'file');
  for (let n = 0; n < 65_536; n++)
    symlinkSync(target, join(dirname(stage.path), `.${n.toString(16).padStart(4, '0')}`));
  const before = outside(stage.folder);
  const actor = await stage.actor();
  const answer = await actor.do('open', { path: stage.path });
  expect(outside(stage.folder) === before, 'everything outside to stay as it was', 'it changed');
  expect(answer.ok !== undefined, 'the store to be opened', answer.fault ?? answer);
}

/** A data directory that is a link, or lies behind one. */
async function linkedDirectory(stage) {
  precious(stage);
  symlinkSync(join(stage.folder, 'out', 'dir'), join(stage.folder, '.rondo'));
  const before = outside(stage.folder);
  const actor = await stage.actor();
  expectFault(await actor.do('open', { path: join(stage.folder, '.rondo', 'journal.db') }), REFUSED);
  expect(outside(stage.folder) === before, 'everything outside to stay as it was', 'it changed');
}

/** After the store was refused, it works again once the planted file is gone. */
async function healed(stage, name) {
  precious(stage);
  const maker = await stage.actor();
  await maker.fill(stage.path);
  await maker.must('close');
  await maker.kill();
  const kept = existsSync(stage.path + name) ? readFileSync(stage.path + name) : undefined;
  execFileSync('rm', ['-f', stage.path + name]);
  symlinkSync(join(stage.folder, 'out', 'file'), stage.path + name);
  await opened(stage, { accepts: false });
  execFileSync('rm', ['-f', stage.path + name]);
  if (kept !== undefined) writeFileSync(stage.path + name, kept, { mode: 0o600 });
  await expectStored(stage, stage.path, 'a', ['v0', 'v1', 'v2']);
}

/** A garbled copy of a file of a whole store: nothing that was acknowledged is lost without a word. */
async function garbled(stage, name, how) {
  precious(stage);
  const maker = await stage.actor();
  await maker.fill(stage.path);
  await maker.kill();
  const bytes = readFileSync(stage.path + name);
  if (how === 'cut') writeFileSync(stage.path + name, bytes.subarray(0, Math.floor(bytes.length / 2)));
  else if (how === 'random') writeFileSync(stage.path + name, randomBytes(bytes.length));
  else writeFileSync(stage.path + name, '');
  const reader = await stage.actor();
  const answer = await reader.do('open', { path: stage.path });
  if (answer.ok === undefined) return expectFault(answer, REFUSED);
  const found = await reader.do('values', { session: 'a' });
  const whole = JSON.stringify(found.ok) === '["v0","v1","v2"]';
  const told = answer.ok.damage.length > 0 || found.fault !== undefined;
  expect(whole || told, 'all values, or a report of the damage', { found, damage: answer.ok.damage });
}

const label = (name) => `j.db${name}`;

export function cases() {
  const all = [];
  const add = (id, run) => all.push({ id: `files.${id}`, run });
  for (const name of NAMES) {
    for (const target of ['file', 'empty', 'absent', 'dir'])
      add(`symlink.${label(name)}.${target}`, (stage) => symlink(stage, name, target));
    for (const [which, make] of Object.entries(kinds))
      add(`kind.${label(name)}.${which}`, (stage) => kind(stage, name, make));
    for (const [which, bytes] of Object.entries(contents))
      add(`content.${label(name)}.${which}`, (stage) => content(stage, name, bytes));
    add(`sparse.${label(name)}`, (stage) => sparse(stage, name));
  }
  for (const suffix of ['-wal', '-shm', '-journal']) {
    for (const target of ['file', 'empty', 'absent'])
      add(`lock-in-wal.${suffix.slice(1)}.${target}`, (stage) => lockInWal(stage, suffix, target));
  }
  for (const name of ['', '.lock']) add(`hot-journal.${label(name)}`, (stage) => hot(stage, name));
  add('hot-journal.store', hotOfStore);
  add('draft.symlink', (stage) => drafts(stage, (path, target) => symlinkSync(target, path)));
  add('draft.file', (stage) => drafts(stage, (path) => writeFileSync(path, 'x', { mode: 0o666 })));
  add('draft.directory', (stage) => drafts(stage, (path) => mkdirSync(path)));
  add('draft.fifo', (stage) => drafts(stage, (path) => execFileSync('mkfifo', [path])));
  add('short-names', shortNames);
  add('linked-directory', linkedDirectory);
  for (const name of ['', '-wal', '-shm', '-journal', '.anchor', '.anchor.new', '.lock', '.owner'])
    add(`healed.${label(name)}`, (stage) => healed(stage, name));
  for (const name of ['', '-wal', '-shm', '.anchor', '.owner', '.lock']) {
    for (const how of ['cut', 'random', 'emptied'])
      add(`garbled.${label(name)}.${how}`, (stage) => garbled(stage, name, how));
  }
  return all;
}
