// Files and directories that are removed, replaced, moved or truncated while the store is open. A process that opens
// the same path finds every value that was acknowledged afterwards; every other write throws a Fault.

import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { expect, expectFault, sleep } from '../support/store-attack.mjs';

const ERROR_CODES = [
  'STORE_MISSING',
  'OWNERSHIP_LOST',
  'SYNC_FAILED',
  'STORE_DAMAGED',
  'STORE_FAILED',
  'STORE_OWNED',
  'STORE_CLOSED',
  'STORE_READ_ONLY',
  'STORE_FULL',
];

/** @param {string} command @param {readonly string[]} args */
const sh = (command, ...args) => execFileSync(command, args, { stdio: 'ignore' });

/** Changes of one file. */
const fileChanges = {
  removed: (file) => rmSync(file),
  'removed-mtime-kept': (file) => keepDirectoryTime(file, () => rmSync(file)),
  renamed: (file) => renameSync(file, `${file}.away`),
  replaced: (file) => {
    copyFileSync(file, `${file}.copy`);
    chmodSync(`${file}.copy`, 0o600);
    renameSync(`${file}.copy`, file);
  },
  'replaced-mtime-kept': (file) => keepDirectoryTime(file, () => fileChanges.replaced(file)),
  'emptied-anew': (file) => {
    rmSync(file);
    writeFileSync(file, '', { mode: 0o600 });
  },
  'linked-away': (file) => {
    renameSync(file, `${file}.away`);
    execFileSync('ln', ['-s', `${file}.away`, file]);
  },
};

/**
 * Applies a change and restores the modification time of the directory.
 * @param {string} file
 * @param {() => void} change
 */
function keepDirectoryTime(file, change) {
  const { mtimeMs } = statSync(dirname(file));
  change();
  setModifiedTime(dirname(file), mtimeMs);
}

/** Sets the modification time of a directory. */
function setModifiedTime(directory, mtimeMs) {
  // Nanosecond precision: the store compares milliseconds with fractions.
  sh('touch', '-m', '-d', `@${(mtimeMs / 1000).toFixed(9)}`, directory);
  if (statSync(directory).mtimeMs !== mtimeMs) utimesSync(directory, mtimeMs / 1000, mtimeMs / 1000);
}

/** Changes of the whole directory. */
const directoryChanges = {
  removed: (directory) => rmSync(directory, { recursive: true }),
  moved: (directory) => renameSync(directory, `${directory}.away`),
  'moved-and-made': (directory) => {
    renameSync(directory, `${directory}.away`);
    mkdirSync(directory, { mode: 0o700 });
  },
  'copied-and-swapped': (directory) => {
    sh('cp', '-r', directory, `${directory}.copy`);
    renameSync(directory, `${directory}.away`);
    renameSync(`${directory}.copy`, directory);
  },
  'archived-and-swapped': (directory) => {
    sh('cp', '-a', directory, `${directory}.copy`);
    renameSync(directory, `${directory}.away`);
    renameSync(`${directory}.copy`, directory);
  },
  'restored-from-tar': (directory) => {
    sh('tar', '--format=posix', '--exclude=*.sock', '-C', dirname(directory), '-cf', `${directory}.tar`, 'd');
    sh('tar', '-C', dirname(directory), '-xpf', `${directory}.tar`);
  },
  'removed-and-restored': (directory) => {
    sh('cp', '-a', directory, `${directory}.copy`);
    rmSync(directory, { recursive: true });
    sh('cp', '-a', `${directory}.copy`, directory);
  },
  'parent-moved': (directory) => renameSync(dirname(directory), `${dirname(directory)}.away`),
  'replaced-by-a-file': (directory) => {
    renameSync(directory, `${directory}.away`);
    writeFileSync(directory, 'x');
  },
  'linked-elsewhere': (directory) => {
    sh('cp', '-a', directory, `${directory}.copy`);
    renameSync(directory, `${directory}.away`);
    sh('ln', '-s', `${directory}.copy`, directory);
  },
};

/** The writes after a change: one by the owner, several at once by the owner, or one by a client. */
const WRITES = ['alone', 'group', 'client'];

/**
 * Values that are acknowledged after a change can be read at the path; other writes are refused with a Fault.
 * @param {import('../support/store-attack.mjs').StoreFixture} fixture @param {(fixture: any) => unknown} change
 * @param {string} writes @param {number} settleMs
 */
async function writesAfterChange(fixture, change, writes, settleMs) {
  const { path } = fixture;
  const owner = await fixture.actor();
  const { fence, next } = await owner.fill(path);
  const writer = writes === 'client' ? await fixture.actor() : owner;
  if (writes === 'client') await writer.must('open', { path });
  if (settleMs > 0) {
    // Two delays with an append in between, so that the owner caches the state of the unchanged directory.
    await sleep(settleMs);
    await owner.must('append', { session: 'a', fence, first: next });
    await sleep(settleMs);
  }
  const first = settleMs > 0 ? next + 1 : next;
  await change(fixture);
  const others = writes === 'group' ? [1, 2, 3].map((n) => writer.do('claim', { session: `other-${n}` })) : [];
  const answers = [await writer.do('append', { session: 'a', fence, first }, 22_000), ...(await Promise.all(others))];
  const secondAnswer =
    answers[0].fault === undefined
      ? await writer.do('append', { session: 'a', fence, first: first + 1 }, 22_000)
      : undefined;
  for (const answer of answers) if (answer.fault !== undefined) expectFault(answer, [...ERROR_CODES, 'STALE_WRITER']);
  const acked = [answers[0], secondAnswer].filter((answer) => answer !== undefined && 'ok' in answer).length;
  await owner.kill();
  if (writer !== owner) await writer.kill();
  if (acked > 0) await assertReadable(fixture, first + acked);
}

/**
 * Asserts that the store at the path holds all acknowledged values.
 * @param {import('../support/store-attack.mjs').StoreFixture} fixture
 * @param {number} count
 */
async function assertReadable(fixture, count) {
  const { path } = fixture;
  // The store refuses a link in place of the anchor, and the message asks for its removal.
  if (existsSync(`${path}.anchor.away`)) renameSync(`${path}.anchor.away`, `${path}.anchor`);
  const reader = await fixture.actor();
  const opened = existsSync(path)
    ? await reader.do('open', { path })
    : { fault: { message: 'the file does not exist' } };
  const found = opened.ok === undefined ? opened.fault?.message : (await reader.do('values', { session: 'a' })).ok;
  expect(Array.isArray(found) && found.length === count, `${count} acknowledged values at the path`, {
    found,
    damage: opened.ok?.damage,
  });
}

/** A file is truncated in place: the next opening reports the loss. */
async function truncated(fixture, name, size) {
  const { path } = fixture;
  const owner = await fixture.actor();
  const { fence, next } = await owner.fill(path);
  truncateSync(path + name, size);
  let acked = 0;
  for (let n = 0; n < 3; n++) {
    const answer = await owner.do('append', { session: 'a', fence, first: next + n });
    if (answer.fault !== undefined || answer.gone !== undefined) break;
    acked += 1;
  }
  await owner.kill();
  owner.code = undefined;
  owner.crash = undefined;
  const reader = await fixture.actor();
  const opened = await reader.do('open', { path });
  if (opened.ok === undefined) return expectFault(opened, ERROR_CODES);
  const found = await reader.do('values', { session: 'a' });
  const isComplete = (found.ok ?? []).length >= next + acked;
  expect(
    isComplete || opened.ok.damage.length > 0 || found.fault !== undefined,
    'all values, or a report of the damage',
    {
      acked,
      found,
      damage: opened.ok.damage,
    },
  );
}

/** A file system is mounted over the directory. */
async function mountedOver(fixture, how) {
  const directory = dirname(fixture.path);
  await writesAfterChange(
    fixture,
    () => {
      if (how === 'tmpfs') sh('mount', '-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', directory);
      else {
        sh('cp', '-a', directory, `${directory}.copy`);
        sh('mount', '--bind', `${directory}.copy`, directory);
      }
      fixture.atEnd(() => sh('umount', directory));
    },
    'alone',
    150,
  );
}

/** Another process can use the store after a file was removed, while the first owner still runs. */
async function usableAfterRemoval(fixture, name) {
  const { path } = fixture;
  const owner = await fixture.actor();
  const { fence, next } = await owner.fill(path);
  rmSync(path + name);
  await owner.do('append', { session: 'a', fence, first: next });
  const other = await fixture.actor();
  const opened = await other.must('open', { path });
  expect(opened.damage.length === 0, 'no damage', opened.damage);
  const found = await other.must('values', { session: 'a' });
  expect(found.length >= next, `at least ${next} values`, found);
}

export function cases() {
  const all = [];
  const add = (id, run, more = {}) => all.push({ id: `files.${id}`, run, ...more });
  for (const name of ['', '-wal', '-shm', '.anchor', '.owner', '.lock', '.sock']) {
    for (const [how, change] of Object.entries(fileChanges)) {
      if (name === '.sock' && /replaced|linked|emptied/.test(how)) continue;
      for (const writes of how.endsWith('mtime-kept') ? WRITES : ['alone', 'client']) {
        const settleMs = how.endsWith('mtime-kept') ? 150 : 0;
        add(
          `gone.j.db${name}.${how}.${writes}`,
          (fixture) => writesAfterChange(fixture, () => change(fixture.path + name), writes, settleMs),
          {
            waits: true,
          },
        );
      }
    }
  }
  for (const [how, change] of Object.entries(directoryChanges)) {
    for (const writes of WRITES) {
      for (const settleMs of [0, 150]) {
        const run = (fixture) => {
          if (how === 'parent-moved')
            fixture.atEnd(() => rmSync(`${fixture.folder}.away`, { recursive: true, force: true }));
          return writesAfterChange(fixture, () => change(dirname(fixture.path)), writes, settleMs);
        };
        add(`gone.directory.${how}.${writes}.${settleMs > 0 ? 'settled' : 'at-once'}`, run, { waits: true });
      }
    }
  }
  for (const name of ['', '-wal', '-shm', '.anchor', '.lock', '.owner'])
    for (const size of [0, 100, 5000]) add(`cut.j.db${name}.${size}`, (fixture) => truncated(fixture, name, size));
  for (const how of ['tmpfs', 'bind']) add(`gone.mounted.${how}`, (fixture) => mountedOver(fixture, how));
  for (const name of ['.owner', '.lock', '.sock', '.anchor'])
    add(`goes-on.j.db${name}`, (fixture) => usableAfterRemoval(fixture, name), { waits: true });
  return all;
}
