// Paths that are long or odd, file systems that are full or read-only, and limits of the process.

import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { dirname, join } from 'node:path';
import { Broken, expect, expectFault, sleep } from '../support/store-attack.mjs';
import { assertAll } from './records.mjs';

const sh = (command, ...args) => execFileSync(command, args, { stdio: 'ignore' });
const ANY = [
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

/** An owner and a client share a store at this path, and it is there afterwards; or it is refused with a Fault. */
async function usable(stage, path, mayRefuse = false) {
  const owner = await stage.actor();
  const opened = await owner.do('open', { path });
  if (opened.fault !== undefined && mayRefuse) {
    expectFault(opened, ANY);
    return expect(
      /too long|longer/i.test(opened.fault.message),
      'that the path is too long to be told',
      opened.fault.message.slice(-200),
    );
  }
  expect(opened.ok?.owner.here === true, 'an owner', opened);
  const { fence } = await owner.must('claim', { session: 'a' });
  await owner.must('append', { session: 'a', fence, first: 0 });
  const client = await stage.actor();
  expect((await client.fill(path, 'b', 1)).owner.here === false, 'a client', 'an owner');
  await owner.kill();
  await client.must('append', { session: 'b', fence: 1, first: 1 });
  await client.must('close');
  await client.kill();
  await assertAll(
    stage,
    path,
    new Map([
      ['a', 1],
      ['b', 2],
    ]),
  );
}

/** A path of exactly so many bytes, with the end of the socket's name. @param {string} folder @param {number} length */
function pathOf(folder, length) {
  let path = folder;
  while (length - Buffer.byteLength(path) > 220) path = join(path, 'x'.repeat(200));
  const left = length - Buffer.byteLength(path) - '/'.length - '/j.db.sock'.length;
  return left < 1 ? undefined : join(path, 'y'.repeat(left), 'j.db');
}

/** @param {import('../support/store-attack.mjs').Stage} stage @param {number} length */
async function long(stage, length) {
  const path = pathOf(stage.folder, length);
  if (path === undefined) throw new Broken('skipped: the temporary directory has a long path itself');
  await usable(stage, path, length > 500);
}

/** A store at a long path whose directory was removed and made anew, while its owner rests. */
async function longAndReplaced(stage, length) {
  const path = pathOf(stage.folder, length) ?? stage.path;
  const owner = await stage.actor();
  await owner.fill(path);
  rmSync(dirname(path), { recursive: true });
  const other = await stage.actor();
  await other.fill(path, 'b', 1);
}

const odd = {
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

/** A small file system of its own. @param {import('../support/store-attack.mjs').Stage} stage @param {string} options */
function small(stage, options) {
  const directory = dirname(stage.path);
  mkdirSync(directory, { mode: 0o700 });
  try {
    sh('mount', '-t', 'tmpfs', '-o', options, 'tmpfs', directory);
  } catch {
    throw new Broken('skipped: no file system can be mounted');
  }
  stage.atEnd(() => sh('umount', '-l', directory));
}

/** So many appends of some size, up to the first refusal. */
async function fillUp(actor, fence, acked, count, size) {
  for (let n = 0; n < count; n++) {
    const first = acked.get('a') ?? 0;
    const answer = await actor.do('append', { session: 'a', fence, first, value: 'x'.repeat(size) });
    if (answer.fault !== undefined) return answer;
    expect('ok' in answer, 'an answer', { answer, crash: actor.crash });
    acked.set('a', first + 1);
  }
  return undefined;
}

/** The disk is full after a while; then there is room again. @param {import('../support/store-attack.mjs').Stage} stage @param {number} kib */
async function full(stage, kib) {
  small(stage, `size=${kib}k`);
  const { path } = stage;
  const actor = await stage.actor();
  const opened = await actor.do('open', { path });
  if (opened.ok === undefined) expectFault(opened, ANY);
  const acked = new Map();
  const claim = opened.ok === undefined ? opened : await actor.do('claim', { session: 'a' });
  if (claim.ok === undefined) expectFault(claim, ANY);
  const refused = claim.ok === undefined ? claim : await fillUp(actor, claim.ok.fence, acked, 400, 20_000);
  expect(refused?.fault !== undefined, 'the disk to be full', refused);
  expectFault(refused, ANY);
  sh('mount', '-o', 'remount,size=64m', dirname(path));
  if (claim.ok !== undefined && refused.fault.code === 'STORE_FULL') {
    const more = await fillUp(actor, claim.ok.fence, acked, 3, 20_000);
    if (more !== undefined) expectFault(more, ANY);
  }
  await actor.kill();
  await assertAll(stage, path, acked);
}

/** There are no inodes left. */
async function inodes(stage, count) {
  small(stage, `size=16m,nr_inodes=${count}`);
  const { path } = stage;
  const actor = await stage.actor();
  const opened = await actor.do('open', { path });
  const acked = new Map();
  if (opened.ok === undefined) expectFault(opened, ANY);
  else {
    const { fence } = await actor.must('claim', { session: 'a' });
    const refused = await fillUp(actor, fence, acked, 30, 20_000);
    if (refused !== undefined) expectFault(refused, ANY);
  }
  sh('mount', '-o', 'remount,nr_inodes=1000', dirname(path));
  await actor.kill();
  await assertAll(stage, path, acked);
}

/** The file system becomes read-only. */
async function readOnly(stage, when) {
  small(stage, 'size=16m');
  const { path } = stage;
  const actor = await stage.actor();
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
      stage.atEnd(() => sh('umount', '-l', dirname(path)));
    }
    const answer = await actor.do('append', { session: 'a', fence, first: next });
    if (answer.fault === undefined) acked.set('a', next + 1);
    else expectFault(answer, ANY);
    const client = await stage.actor();
    const joined = await client.do('open', { path });
    if (joined.ok === undefined) expectFault(joined, ANY);
    await actor.kill();
    await client.kill();
    try {
      sh('mount', '-o', 'remount,rw', dirname(path));
    } catch {
      sh('mount', '-o', 'remount,bind,rw', dirname(path));
    }
    return assertAll(stage, path, acked);
  }
  if (when === 'closed') {
    acked.set('a', (await actor.fill(path)).next);
    await actor.must('close');
  }
  await actor.kill();
  sh('mount', '-o', 'remount,ro', dirname(path));
  const other = await stage.actor();
  const opened = await other.do('open', { path });
  expectFault(opened, ['STORE_READ_ONLY', 'STORE_FAILED']);
  sh('mount', '-o', 'remount,rw', dirname(path));
  await other.must('open', { path });
  await other.kill();
  await assertAll(stage, path, acked);
}

/** @param {import('../support/store-attack.mjs').Stage} stage @param {number} bytes */
async function fileSize(stage, bytes) {
  const { path } = stage;
  const actor = await stage.actor({ as: ['prlimit', `--fsize=${bytes}`] });
  const opened = await actor.do('open', { path });
  const acked = new Map();
  if (opened.ok === undefined) expectFault(opened, ANY);
  else {
    const claim = await actor.do('claim', { session: 'a' });
    if (claim.ok === undefined) expectFault(claim, ANY);
    else {
      const refused = await fillUp(actor, claim.ok.fence, acked, 200, 20_000);
      expect(refused !== undefined, 'a refusal', 'none');
      expectFault(refused, ANY);
    }
  }
  await actor.kill();
  await assertAll(stage, path, acked);
}

/** Few descriptors, and strangers that take them. @param {import('../support/store-attack.mjs').Stage} stage @param {number} count @param {number} strangers */
async function descriptors(stage, count, strangers) {
  const { path } = stage;
  const actor = await stage.actor({ as: ['prlimit', `--nofile=${count}`] });
  if (actor.ended) throw new Broken('skipped: no process starts with so few descriptors');
  const opened = await actor.do('open', { path });
  const acked = new Map();
  if (opened.ok === undefined) expectFault(opened, ANY);
  else {
    const { fence } = await actor.must('claim', { session: 'a' });
    const sockets = Array.from({ length: strangers }, () =>
      connect({ path: `${path}.sock` }).on('error', () => undefined),
    );
    stage.atEnd(() => {
      for (const socket of sockets) socket.destroy();
    });
    await sleep(200);
    const refused = await fillUp(actor, fence, acked, 20, 2000);
    if (refused !== undefined) expectFault(refused, ANY);
    for (const socket of sockets) socket.destroy();
    await sleep(100);
    const client = await stage.actor();
    await client.fill(path, 'b', 1);
    await client.kill();
  }
  expect(!actor.ended, 'the process to live', { code: actor.code, crash: actor.crash, stderr: actor.stderr });
  await actor.kill();
  await assertAll(stage, path, acked);
}

/** The process runs out of descriptors while it opens the store; later it has enough. */
async function exhausted(stage, left, isFirst) {
  const actor = await stage.actor({ as: ['prlimit', '--nofile=80'] });
  mkdirSync(dirname(stage.path), { mode: 0o700 });
  if (!isFirst) await actor.must('cycle', { path: `${stage.path}-before.db`, times: 1 });
  const { first, here } = await actor.must('exhausted', { path: stage.path, left });
  expect(here && /^(opened|Fault)/.test(first), 'a Fault, and then an owner', { first, here });
}

/** Nothing is left behind that has no use. */
async function leftovers(stage, rounds) {
  const { path } = stage;
  for (let n = 0; n < rounds; n++) {
    const actor = await stage.actor();
    await actor.fill(path, 'a', 1);
    await actor.kill();
  }
  const last = await stage.actor();
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
    add(`long.${length}`, (stage) => long(stage, length));
  for (const length of [80, 200])
    add(`long-and-replaced.${length}`, (stage) => longAndReplaced(stage, length), { waits: true });
  for (const [name, file] of Object.entries(odd))
    add(`name.${name}`, (stage) => usable(stage, join(stage.folder, 'd', file)));
  for (const name of ['n'.repeat(245), 'n'.repeat(250), 'n'.repeat(255), 'n'.repeat(256)])
    add(`name.of-${name.length}`, (stage) => usable(stage, join(stage.folder, 'd', name), true));
  for (const kib of [4, 16, 40, 64, 100, 128, 160, 256, 512, 1024]) add(`full.${kib}k`, (stage) => full(stage, kib));
  for (const count of [2, 3, 4, 5, 6, 7, 8, 9]) add(`inodes.${count}`, (stage) => inodes(stage, count));
  for (const when of ['open', 'closed', 'fresh'])
    add(`read-only.${when}`, (stage) => readOnly(stage, when), { waits: true });
  for (const bytes of [1, 1000, 10_000, 33_000, 70_000, 150_000, 500_000])
    add(`file-size.${bytes}`, (stage) => fileSize(stage, bytes));
  for (const [count, strangers] of [
    [24, 0],
    [26, 0],
    [28, 0],
    [30, 0],
    [32, 20],
    [40, 60],
    [60, 100],
    [90, 200],
  ])
    add(`descriptors.${count}.${strangers}`, (stage) => descriptors(stage, count, strangers), { waits: true });
  for (let left = 0; left <= 10; left++)
    add(`exhausted.${left}`, (stage) => exhausted(stage, left, false), { waits: true });
  for (const left of [3, 4]) add(`exhausted-first.${left}`, (stage) => exhausted(stage, left, true));
  add('leftovers', (stage) => leftovers(stage, 8));
  return all;
}
