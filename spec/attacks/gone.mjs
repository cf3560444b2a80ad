// Files and directories that are removed, replaced, moved or cut while the store is open: what is acknowledged afterwards must be
// found by a process that opens the same path, and what is not must be told.

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

const GONE = [
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

/** What is done to one file. */
const toFile = {
  removed: (file) => rmSync(file),
  'removed-mtime-kept': (file) => keepingTime(file, () => rmSync(file)),
  renamed: (file) => renameSync(file, `${file}.away`),
  replaced: (file) => {
    copyFileSync(file, `${file}.copy`);
    chmodSync(`${file}.copy`, 0o600);
    renameSync(`${file}.copy`, file);
  },
  'replaced-mtime-kept': (file) => keepingTime(file, () => toFile.replaced(file)),
  'emptied-anew': (file) => {
    rmSync(file);
    writeFileSync(file, '', { mode: 0o600 });
  },
  'linked-away': (file) => {
    renameSync(file, `${file}.away`);
    execFileSync('ln', ['-s', `${file}.away`, file]);
  },
};

/** As tools that restore a backup do. @param {string} file @param {() => void} change */
function keepingTime(file, change) {
  const { atimeMs, mtimeMs } = statSync(dirname(file));
  change();
  setTimes(dirname(file), atimeMs, mtimeMs);
}

function setTimes(directory, _atimeMs, mtimeMs) {
  // As exact as the system stores it: what is compared are milliseconds with fractions.
  sh('touch', '-m', '-d', `@${(mtimeMs / 1000).toFixed(9)}`, directory);
  if (statSync(directory).mtimeMs !== mtimeMs) utimesSync(directory, mtimeMs / 1000, mtimeMs / 1000);
}

/** What is done to the whole directory. */
const toDirectory = {
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

/** Who writes afterwards, and how: alone, many at once, or through the socket. */
const WAYS = ['alone', 'group', 'client'];

/** @param {import('../support/store-attack.mjs').Stage} stage @param {(stage: any) => unknown} change @param {string} way @param {number} settle */
async function lost(stage, change, way, settle) {
  const { path } = stage;
  const owner = await stage.actor();
  const { fence, next } = await owner.fill(path);
  const writer = way === 'client' ? await stage.actor() : owner;
  if (way === 'client') await writer.must('open', { path });
  if (settle > 0) {
    // Twice, so that what the owner remembers of the directory is settled.
    await sleep(settle);
    await owner.must('append', { session: 'a', fence, first: next });
    await sleep(settle);
  }
  const first = settle > 0 ? next + 1 : next;
  await change(stage);
  const others = way === 'group' ? [1, 2, 3].map((n) => writer.do('claim', { session: `other-${n}` })) : [];
  const answers = [await writer.do('append', { session: 'a', fence, first }, 22_000), ...(await Promise.all(others))];
  const again =
    answers[0].fault === undefined
      ? await writer.do('append', { session: 'a', fence, first: first + 1 }, 22_000)
      : undefined;
  for (const answer of answers) if (answer.fault !== undefined) expectFault(answer, [...GONE, 'STALE_WRITER']);
  const acked = [answers[0], again].filter((answer) => answer !== undefined && 'ok' in answer).length;
  await owner.kill();
  if (writer !== owner) await writer.kill();
  if (acked > 0) await assertFound(stage, first + acked);
}

/** All that was acknowledged is at the path. @param {import('../support/store-attack.mjs').Stage} stage @param {number} count */
async function assertFound(stage, count) {
  const { path } = stage;
  // A link in place of the anchor is refused; the person is told to remove it.
  if (existsSync(`${path}.anchor.away`)) renameSync(`${path}.anchor.away`, `${path}.anchor`);
  const reader = await stage.actor();
  const opened = existsSync(path) ? await reader.do('open', { path }) : { fault: { message: 'there is no file' } };
  const found = opened.ok === undefined ? opened.fault?.message : (await reader.do('values', { session: 'a' })).ok;
  expect(Array.isArray(found) && found.length === count, `${count} acknowledged values at the path`, {
    found,
    damage: opened.ok?.damage,
  });
}

/** Cut in place, which no name tells: the loss must be told when the store is opened again. */
async function cut(stage, name, size) {
  const { path } = stage;
  const owner = await stage.actor();
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
  const reader = await stage.actor();
  const opened = await reader.do('open', { path });
  if (opened.ok === undefined) return expectFault(opened, GONE);
  const found = await reader.do('values', { session: 'a' });
  const whole = (found.ok ?? []).length >= next + acked;
  expect(whole || opened.ok.damage.length > 0 || found.fault !== undefined, 'all values, or a report of the damage', {
    acked,
    found,
    damage: opened.ok.damage,
  });
}

/** A file system that is mounted over the directory. */
async function mounted(stage, how) {
  const directory = dirname(stage.path);
  await lost(
    stage,
    () => {
      if (how === 'tmpfs') sh('mount', '-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', directory);
      else {
        sh('cp', '-a', directory, `${directory}.copy`);
        sh('mount', '--bind', `${directory}.copy`, directory);
      }
      stage.atEnd(() => sh('umount', directory));
    },
    'alone',
    150,
  );
}

/** The next process can use the store after its owner was told that a file is gone, and while that process lives. */
async function goesOn(stage, name) {
  const { path } = stage;
  const owner = await stage.actor();
  const { fence, next } = await owner.fill(path);
  rmSync(path + name);
  await owner.do('append', { session: 'a', fence, first: next });
  const other = await stage.actor();
  const opened = await other.must('open', { path });
  expect(opened.damage.length === 0, 'no damage', opened.damage);
  const found = await other.must('values', { session: 'a' });
  expect(found.length >= next, `at least ${next} values`, found);
}

export function cases() {
  const all = [];
  const add = (id, run, more = {}) => all.push({ id: `files.${id}`, run, ...more });
  for (const name of ['', '-wal', '-shm', '.anchor', '.owner', '.lock', '.sock']) {
    for (const [how, change] of Object.entries(toFile)) {
      if (name === '.sock' && /replaced|linked|emptied/.test(how)) continue;
      for (const way of how.endsWith('mtime-kept') ? WAYS : ['alone', 'client']) {
        const settle = how.endsWith('mtime-kept') ? 150 : 0;
        add(`gone.j.db${name}.${how}.${way}`, (stage) => lost(stage, () => change(stage.path + name), way, settle), {
          waits: true,
        });
      }
    }
  }
  for (const [how, change] of Object.entries(toDirectory)) {
    for (const way of WAYS) {
      for (const settle of [0, 150]) {
        const run = (stage) => {
          if (how === 'parent-moved')
            stage.atEnd(() => rmSync(`${stage.folder}.away`, { recursive: true, force: true }));
          return lost(stage, () => change(dirname(stage.path)), way, settle);
        };
        add(`gone.directory.${how}.${way}.${settle > 0 ? 'settled' : 'at-once'}`, run, { waits: true });
      }
    }
  }
  for (const name of ['', '-wal', '-shm', '.anchor', '.lock', '.owner'])
    for (const size of [0, 100, 5000]) add(`cut.j.db${name}.${size}`, (stage) => cut(stage, name, size));
  for (const how of ['tmpfs', 'bind']) add(`gone.mounted.${how}`, (stage) => mounted(stage, how));
  for (const name of ['.owner', '.lock', '.sock', '.anchor'])
    add(`goes-on.j.db${name}`, (stage) => goesOn(stage, name), { waits: true });
  return all;
}
