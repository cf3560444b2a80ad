// Long and unusual paths, full and read-only file systems, and resource limits of the process.

import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { dirname, join } from 'node:path';
import { ExpectationError, expect, expectFault, sleep } from '../support/store-attack.mjs';
import { assertAckedStored } from './owner-files.mjs';

const sh = (command, ...args) => execFileSync(command, args, { stdio: 'ignore' });
/** The codes of Faults that a limit may cause. */
const ERROR_CODES = [
  'STORE_FAILED',
  'STORE_FULL',
  'STORE_READ_ONLY',
  'SYNC_FAILED',
  'STORE_DAMAGED',
  'STORE_MISSING',
  'STORE_OWNED',
  'OWNERSHIP_LOST',
  'STALE_WRITER',
];

/** An owner and a client can use a store at this path; with `mayRefuse`, it may throw a Fault instead. */
async function assertUsable(fixture, path, mayRefuse = false) {
  const owner = await fixture.actor();
  const opened = await owner.do('open', { path });
  if (opened.fault !== undefined && mayRefuse) {
    expectFault(opened, ERROR_CODES);
    return expect(
      /too long|longer/i.test(opened.fault.message),
      'a message that the path is too long',
      opened.fault.message.slice(-200),
    );
  }
  expect(opened.ok?.owner.here === true, 'an owner', opened);
  const { fence } = await owner.must('claim', { session: 'a' });
  await owner.must('append', { session: 'a', fence, first: 0 });
  const client = await fixture.actor();
  expect((await client.fill(path, 'b', 1)).owner.here === false, 'a client', 'an owner');
  await owner.kill();
  await client.must('append', { session: 'b', fence: 1, first: 1 });
  await client.must('close');
  await client.kill();
  await assertAckedStored(
    fixture,
    path,
    new Map([
      ['a', 1],
      ['b', 2],
    ]),
  );
}

/**
 * Returns a path whose socket path has exactly `length` bytes; undefined if the folder is too long.
 * @param {string} folder
 * @param {number} length
 */
function pathOf(folder, length) {
  let path = folder;
  while (length - Buffer.byteLength(path) > 220) path = join(path, 'x'.repeat(200));
  const left = length - Buffer.byteLength(path) - '/'.length - '/j.db.sock'.length;
  return left < 1 ? undefined : join(path, 'y'.repeat(left), 'j.db');
}

/** A store works at a long path. @param {import('../support/store-attack.mjs').StoreFixture} fixture @param {number} length */
async function longPath(fixture, length) {
  const path = pathOf(fixture.folder, length);
  if (path === undefined) throw new ExpectationError('skipped: the path of the temporary directory is too long');
  await assertUsable(fixture, path, length > 500);
}

/**
 * The directory of a store at a long path is removed while its owner is idle: another process can create a new store.
 */
async function longPathReplaced(fixture, length) {
  const path = pathOf(fixture.folder, length) ?? fixture.path;
  const owner = await fixture.actor();
  await owner.fill(path);
  rmSync(dirname(path), { recursive: true });
  const other = await fixture.actor();
  await other.fill(path, 'b', 1);
}

/** Unusual file names. */
const unusualNames = {
  space: 'a b.db',
  spaces: '   ',
  dot: '.db',
  'two-dots': '..db',
  dash: '-db',
  'dash-option': '--help',
  unicode: 'jöurnal-日本-🙂.db',
  decomposed: 'jo\u0308urnal.db',
  newline: 'a\nb.db',
  tab: 'a\tb.db',
  quote: `a'b"c.db`,
  backslash: 'a\\b.db',
  percent: 'a%00b%2f.db',
  question: 'a?mode=ro.db',
  hash: 'a#b.db',
  colon: ':memory:',
  uri: 'file:x.db',
  'uri-memory': 'file::memory:?cache=shared',
  dollar: '$HOME.db',
  glob: '*.db',
  semicolon: 'a;b.db',
  'control-1': 'a\u0001b.db',
  'right-to-left': 'a\u202eb.db',
  'ends-with-dot': 'a.',
  owner: 'a.owner',
  'ends-like-wal': 'a-wal',
  'ends-like-lock': 'a.lock',
  long: 'n'.repeat(230),
};

/**
 * Mounts a small file system at the data directory.
 * @param {import('../support/store-attack.mjs').StoreFixture} fixture
 * @param {string} options
 */
function mountSmall(fixture, options) {
  const directory = dirname(fixture.path);
  mkdirSync(directory, { mode: 0o700 });
  try {
    sh('mount', '-t', 'tmpfs', '-o', options, 'tmpfs', directory);
  } catch {
    throw new ExpectationError('skipped: a file system cannot be mounted');
  }
  fixture.atEnd(() => sh('umount', '-l', directory));
}

/** Appends `count` values of `size` characters; returns the first Fault. */
async function appendUntilRefused(actor, fence, acked, count, size) {
  for (let n = 0; n < count; n++) {
    const first = acked.get('a') ?? 0;
    const answer = await actor.do('append', { session: 'a', fence, first, value: 'x'.repeat(size) });
    if (answer.fault !== undefined) return answer;
    expect('ok' in answer, 'an answer', { answer, crash: actor.crash });
    acked.set('a', first + 1);
  }
  return undefined;
}

/**
 * The disk becomes full, and later has space again.
 * @param {import('../support/store-attack.mjs').StoreFixture} fixture
 * @param {number} kib
 */
async function fullDisk(fixture, kib) {
  mountSmall(fixture, `size=${kib}k`);
  const { path } = fixture;
  const actor = await fixture.actor();
  const opened = await actor.do('open', { path });
  if (opened.ok === undefined) expectFault(opened, ERROR_CODES);
  const acked = new Map();
  const claim = opened.ok === undefined ? opened : await actor.do('claim', { session: 'a' });
  if (claim.ok === undefined) expectFault(claim, ERROR_CODES);
  const refused = claim.ok === undefined ? claim : await appendUntilRefused(actor, claim.ok.fence, acked, 400, 20_000);
  expect(refused?.fault !== undefined, 'the disk to be full', refused);
  expectFault(refused, ERROR_CODES);
  sh('mount', '-o', 'remount,size=64m', dirname(path));
  if (claim.ok !== undefined && refused.fault.code === 'STORE_FULL') {
    const more = await appendUntilRefused(actor, claim.ok.fence, acked, 3, 20_000);
    if (more !== undefined) expectFault(more, ERROR_CODES);
  }
  await actor.kill();
  await assertAckedStored(fixture, path, acked);
}

/** The file system runs out of inodes. */
async function noInodes(fixture, count) {
  mountSmall(fixture, `size=16m,nr_inodes=${count}`);
  const { path } = fixture;
  const actor = await fixture.actor();
  const opened = await actor.do('open', { path });
  const acked = new Map();
  if (opened.ok === undefined) expectFault(opened, ERROR_CODES);
  else {
    const { fence } = await actor.must('claim', { session: 'a' });
    const refused = await appendUntilRefused(actor, fence, acked, 30, 20_000);
    if (refused !== undefined) expectFault(refused, ERROR_CODES);
  }
  sh('mount', '-o', 'remount,nr_inodes=1000', dirname(path));
  await actor.kill();
  await assertAckedStored(fixture, path, acked);
}

/** The file system becomes read-only. */
async function readOnly(fixture, when) {
  mountSmall(fixture, 'size=16m');
  const { path } = fixture;
  const actor = await fixture.actor();
  const acked = new Map();
  if (when === 'open') {
    const { fence, next } = await actor.fill(path);
    acked.set('a', next);
    writeFileSync(join(dirname(path), 'x'), '');
    try {
      sh('mount', '-o', 'remount,ro', dirname(path));
    } catch {
      sh('mount', '--bind', dirname(path), dirname(path));
      sh('mount', '-o', 'remount,bind,ro', dirname(path));
      fixture.atEnd(() => sh('umount', '-l', dirname(path)));
    }
    const answer = await actor.do('append', { session: 'a', fence, first: next });
    if (answer.fault === undefined) acked.set('a', next + 1);
    else expectFault(answer, ERROR_CODES);
    const client = await fixture.actor();
    const joined = await client.do('open', { path });
    if (joined.ok === undefined) expectFault(joined, ERROR_CODES);
    await actor.kill();
    await client.kill();
    try {
      sh('mount', '-o', 'remount,rw', dirname(path));
    } catch {
      sh('mount', '-o', 'remount,bind,rw', dirname(path));
    }
    return assertAckedStored(fixture, path, acked);
  }
  if (when === 'closed') {
    acked.set('a', (await actor.fill(path)).next);
    await actor.must('close');
  }
  await actor.kill();
  sh('mount', '-o', 'remount,ro', dirname(path));
  const other = await fixture.actor();
  const opened = await other.do('open', { path });
  expectFault(opened, ['STORE_READ_ONLY', 'STORE_FAILED']);
  sh('mount', '-o', 'remount,rw', dirname(path));
  await other.must('open', { path });
  await other.kill();
  await assertAckedStored(fixture, path, acked);
}

/**
 * The process has a limit for the size of files.
 * @param {import('../support/store-attack.mjs').StoreFixture} fixture
 * @param {number} bytes
 */
async function fileSizeLimit(fixture, bytes) {
  const { path } = fixture;
  const actor = await fixture.actor({ as: ['prlimit', `--fsize=${bytes}`] });
  const opened = await actor.do('open', { path });
  const acked = new Map();
  if (opened.ok === undefined) expectFault(opened, ERROR_CODES);
  else {
    const claim = await actor.do('claim', { session: 'a' });
    if (claim.ok === undefined) expectFault(claim, ERROR_CODES);
    else {
      const refused = await appendUntilRefused(actor, claim.ok.fence, acked, 200, 20_000);
      expect(refused !== undefined, 'a Fault', 'none');
      expectFault(refused, ERROR_CODES);
    }
  }
  await actor.kill();
  await assertAckedStored(fixture, path, acked);
}

/**
 * The process has a limit for descriptors, and unauthenticated connections use some of them.
 * @param {import('../support/store-attack.mjs').StoreFixture} fixture @param {number} count @param {number} connections
 */
async function descriptorLimit(fixture, count, connections) {
  const { path } = fixture;
  const actor = await fixture.actor({ as: ['prlimit', `--nofile=${count}`] });
  if (actor.ended) throw new ExpectationError('skipped: a process cannot start with so few descriptors');
  const opened = await actor.do('open', { path });
  const acked = new Map();
  if (opened.ok === undefined) expectFault(opened, ERROR_CODES);
  else {
    const { fence } = await actor.must('claim', { session: 'a' });
    const sockets = Array.from({ length: connections }, () =>
      connect({ path: `${path}.sock` }).on('error', () => undefined),
    );
    fixture.atEnd(() => {
      for (const socket of sockets) socket.destroy();
    });
    await sleep(200);
    const refused = await appendUntilRefused(actor, fence, acked, 20, 2000);
    if (refused !== undefined) expectFault(refused, ERROR_CODES);
    for (const socket of sockets) socket.destroy();
    await sleep(100);
    const client = await fixture.actor();
    await client.fill(path, 'b', 1);
    await client.kill();
  }
  expect(!actor.ended, 'the process to keep running', { code: actor.code, crash: actor.crash, stderr: actor.stderr });
  await actor.kill();
  await assertAckedStored(fixture, path, acked);
}

/** The process runs out of descriptors while it opens the store, and opens it later with enough of them. */
async function noDescriptors(fixture, left, isFirst) {
  const actor = await fixture.actor({ as: ['prlimit', '--nofile=80'] });
  mkdirSync(dirname(fixture.path), { mode: 0o700 });
  if (!isFirst) await actor.must('reopen', { path: `${fixture.path}-before.db`, times: 1 });
  const { first, here } = await actor.must('openWithFewDescriptors', { path: fixture.path, left });
  expect(here && /^(opened|Fault)/.test(first), 'a Fault, and then an owner', { first, here });
}

/** Killed owners leave no useless files behind. */
async function leftoverFiles(fixture, rounds) {
  const { path } = fixture;
  for (let n = 0; n < rounds; n++) {
    const actor = await fixture.actor();
    await actor.fill(path, 'a', 1);
    await actor.kill();
  }
  const last = await fixture.actor();
  await last.must('open', { path });
  await last.must('close');
  const names = readdirSync(dirname(path)).sort();
  expect(names.join() === 'j.db,j.db.anchor,j.db.lock', 'three files', names);
  expect(statSync(`${path}.lock`).size === 0, 'an empty lock', statSync(`${path}.lock`).size);
}

export function cases() {
  const all = [];
  const add = (id, run, more = {}) => all.push({ id: `files.${id}`, run, ...more });
  for (const length of [
    60, 80, 90, 95, 99, 100, 101, 103, 104, 107, 108, 109, 120, 200, 300, 1000, 3000, 4050, 4090, 5000,
  ])
    add(`long.${length}`, (fixture) => longPath(fixture, length));
  for (const length of [80, 200])
    add(`long-and-replaced.${length}`, (fixture) => longPathReplaced(fixture, length), { waits: true });
  for (const [name, file] of Object.entries(unusualNames))
    add(`name.${name}`, (fixture) => assertUsable(fixture, join(fixture.folder, 'd', file)));
  for (const name of ['n'.repeat(245), 'n'.repeat(250), 'n'.repeat(255), 'n'.repeat(256)])
    add(`name.of-${name.length}`, (fixture) => assertUsable(fixture, join(fixture.folder, 'd', name), true));
  for (const kib of [4, 16, 40, 64, 100, 128, 160, 256, 512, 1024])
    add(`full.${kib}k`, (fixture) => fullDisk(fixture, kib));
  for (const count of [2, 3, 4, 5, 6, 7, 8, 9]) add(`inodes.${count}`, (fixture) => noInodes(fixture, count));
  for (const when of ['open', 'closed', 'fresh'])
    add(`read-only.${when}`, (fixture) => readOnly(fixture, when), { waits: true });
  for (const bytes of [1, 1000, 10_000, 33_000, 70_000, 150_000, 500_000])
    add(`file-size.${bytes}`, (fixture) => fileSizeLimit(fixture, bytes));
  for (const [count, connections] of [
    [24, 0],
    [26, 0],
    [28, 0],
    [30, 0],
    [32, 20],
    [40, 60],
    [60, 100],
    [90, 200],
  ])
    add(`descriptors.${count}.${connections}`, (fixture) => descriptorLimit(fixture, count, connections), {
      waits: true,
    });
  for (let left = 0; left <= 10; left++)
    add(`exhausted.${left}`, (fixture) => noDescriptors(fixture, left, false), { waits: true });
  for (const left of [3, 4]) add(`exhausted-first.${left}`, (fixture) => noDescriptors(fixture, left, true));
  add('leftovers', (fixture) => leftoverFiles(fixture, 8));
  return all;
}
