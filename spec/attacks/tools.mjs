// Tools in the process that owns a store, and sandboxed commands: no path gives them access to a file of the store, and
// the owner keeps its locks.

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { linkSync, mkdirSync, readFileSync, renameSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { ExpectationError, expect, show } from '../support/store-attack.mjs';
import { assertAckedStored } from './owner-files.mjs';

const FILES = ['', '-wal', '-shm', '.anchor', '.lock', '.owner'];
const MARK = 'marked-value-of-the-journal';

/** Paths to a file of the store that start in the root of the tools. Each function returns the path for the tool. */
const paths = {
  direct: (_, file) => file,
  dots: ({ folder }, file) => join(folder, 'w') + file.slice(join(folder, 'w').length).replace(/^/, '/./x/..'),
  'double-slash': (_, file) => file.replace(/\/(?=[^/]*$)/, '//'),
  symlink: ({ folder }, file) => {
    symlinkSync(file, join(folder, 'w', 'soft'));
    return join(folder, 'w', 'soft');
  },
  'symlink-twice': ({ folder }, file) => {
    symlinkSync(file, join(folder, 'w', 'soft1'));
    symlinkSync('soft1', join(folder, 'w', 'soft2'));
    return join(folder, 'w', 'soft2');
  },
  'linked-directory': ({ folder }, file) => {
    symlinkSync(dirname(file), join(folder, 'w', 'softdir'));
    return join(folder, 'w', 'softdir', basename(file));
  },
  'hard-link': ({ folder }, file) => {
    linkSync(file, join(folder, 'w', 'hard'));
    return join(folder, 'w', 'hard');
  },
  'bind-mount': (fixture, file) => {
    const target = join(fixture.folder, 'w', 'bound');
    writeFileSync(target, '');
    execFileSync('mount', ['--bind', file, target]);
    fixture.atEnd(() => execFileSync('umount', ['-l', target]));
    return target;
  },
  proc: (_, file) => `/proc/self/root${file}`,
  'renamed-away': ({ folder }, file) => {
    linkSync(file, `${file}~`);
    renameSync(`${file}~`, join(folder, 'w', 'moved'));
    return join(folder, 'w', 'moved');
  },
};

/**
 * Starts an owner whose store is inside the root of its tools.
 * @param {import('../support/store-attack.mjs').StoreFixture} fixture
 * @param {string} directory
 */
async function startOwner(fixture, directory) {
  const root = join(fixture.folder, 'w');
  mkdirSync(join(root, 'x'), { recursive: true });
  writeFileSync(join(root, 'harmless.txt'), 'harmless\n');
  fixture.path = join(root, directory, 'journal.db');
  const owner = await fixture.actor();
  const { fence } = await owner.fill(fixture.path, 'a', 0);
  await owner.must('append', { session: 'a', fence, first: 0, value: MARK });
  const { secret } = JSON.parse(execFileSync('cat', [`${fixture.path}.owner`], { encoding: 'utf8' }));
  return { root, owner, fence, secret };
}

/** True if the process holds a lock on the file. @param {string} path @param {number} pid */
function isLocked(path, pid) {
  const { ino } = statSync(path);
  return readFileSync('/proc/locks', 'utf8')
    .split('\n')
    .some((line) => line.includes(` ${pid} `) && line.includes(`:${ino} `));
}

/** Returns the digest of a file, read in another process to keep the locks. */
const digestOf = (path) =>
  createHash('sha256')
    .update(execFileSync('cat', [path]))
    .digest('hex');

/** Each tool refuses the path, reveals nothing of the file and changes nothing. */
async function toolsRefuse(fixture, directory, suffix, pathTo) {
  const { root, owner, fence, secret } = await startOwner(fixture, directory);
  const file = fixture.path + suffix;
  const path = pathTo(fixture, file);
  const before = [digestOf(file), isLocked(fixture.path, owner.pid), isLocked(`${fixture.path}.lock`, owner.pid)];
  const tries = [
    ['view_file', { path }],
    ['search_files', { path, query: 'e', hidden: true }],
    ['edit_file', { path, old: 'a', new: 'b' }],
    ['write_file', { path, content: 'overwritten' }],
    ['list_files', { path }],
  ];
  for (const [name, input] of tries) {
    const answer = await owner.do('tool', { root, name, input });
    expect(answer.fault !== undefined, `${name} to be refused`, answer);
    expect(!show(answer).includes(secret) && !show(answer).includes(MARK), 'no content of the file', answer);
  }
  const after = [digestOf(file), isLocked(fixture.path, owner.pid), isLocked(`${fixture.path}.lock`, owner.pid)];
  expect(JSON.stringify(after) === JSON.stringify(before), 'the file and the locks as before', { before, after });
  await owner.must('append', { session: 'a', fence, first: 1 });
  await owner.kill();
  await assertAckedStored(fixture, fixture.path, new Map([['a', 2]]));
}

/** Tools that traverse the root reveal nothing of the store. */
async function traverse(fixture, directory, name, input) {
  const { root, owner, secret } = await startOwner(fixture, directory);
  const answer = await owner.do('tool', { root, name, input: { path: root, ...input } });
  const text = JSON.stringify(answer);
  expect(
    !text.includes(secret) && !text.includes(MARK) && !/journal\.db-wal/.test(text),
    'no content of the store',
    text.slice(0, 300),
  );
  expect(
    isLocked(fixture.path, owner.pid) && isLocked(`${fixture.path}.lock`, owner.pid),
    'the locks to be held',
    'they are not held',
  );
}

/** Commands for the sandbox. S stands for the path of the store, D for its directory, P for the pid of the owner. */
const commands = {
  cat: 'cat S* 2>/dev/null; cat D/* 2>/dev/null; cat D/.* 2>/dev/null',
  grep: 'grep -ra . / --include="journal.db*" -s | head -c 2000',
  'cat-proc':
    'for p in /proc/[0-9]*; do timeout 1 cat $p/root/S.owner $p/cwd/S.owner 2>/dev/null; ls -l $p/fd; done | head -c 5000',
  'copy-out': 'cp -r D out 2>/dev/null; cat out/* 2>/dev/null',
  link: 'ln S.owner hard 2>/dev/null; cat hard; ln -s S.owner soft; cat soft',
  remove: 'rm -rf S* D',
  truncate: 'for f in S S-wal S-shm S.lock S.owner; do : > $f; done',
  'move-directory': 'mv D elsewhere; ls',
  'replace-record': 'echo "{}" > S.owner; echo "{}" > x && mv x S.owner',
  'connect-socket': `python3 -c "import socket; s=socket.socket(socket.AF_UNIX); s.connect('S.sock'); print(s.recv(100))"; node -e "require('net').connect('S.sock').on('data', (d) => console.log(String(d))).on('error', () => {}); setTimeout(() => process.exit(), 500)"`,
  'hold-name': `node -e "require('net').createServer().on('error', () => {}).listen({ path: '\\0rondo-0-x' }); setTimeout(() => process.exit(), 300)"`,
  unmount: 'unshare -rm sh -c "umount D; cat S.owner"; umount D 2>/dev/null; cat S.owner',
  kill: 'kill -STOP P; kill -9 P',
};

/** A sandboxed command reveals nothing of the store and does not affect its owner. */
async function runSandboxed(fixture, directory, command) {
  const { root, owner, fence, secret } = await startOwner(fixture, directory);
  const substitute = (text) =>
    text
      .replace(/\bS(?=\b|[*.-])/g, fixture.path)
      .replace(/\bD\b/g, dirname(fixture.path))
      .replace(/\bP\b/g, String(owner.pid));
  const answer = await owner.do('tool', { root, name: 'run_command', input: { command: substitute(command) } }, 30_000);
  const text = JSON.stringify(answer);
  if (/bubblewrap|sandbox/i.test(answer.fault?.message ?? ''))
    throw new ExpectationError('skipped: the sandbox is not available');
  expect(
    !text.includes(secret) && !text.includes(MARK) && !/"rondo\\*":1/.test(text),
    'no content of the store',
    text.slice(0, 300),
  );
  await owner.must('append', { session: 'a', fence, first: 1 });
  expect(isLocked(fixture.path, owner.pid), 'the locks to be held', 'they are not held');
  const client = await fixture.actor();
  expect((await client.must('open', { path: fixture.path })).owner.pid === owner.pid, 'the same owner', 'another');
  await owner.kill();
  await client.kill();
  await assertAckedStored(fixture, fixture.path, new Map([['a', 2]]));
}

export function cases() {
  const all = [];
  const add = (id, run) => all.push({ id: `files.tool.${id}`, run });
  for (const directory of ['.rondo', 'data']) {
    for (const [name, pathTo] of Object.entries(paths)) {
      if (directory === '.rondo' && /dots|slash|twice|renamed|proc/.test(name)) continue;
      for (const suffix of name === 'direct' || name === 'hard-link' ? FILES : ['', '.owner']) {
        add(`${directory}.${name}.journal.db${suffix}`, (fixture) => toolsRefuse(fixture, directory, suffix, pathTo));
      }
    }
    add(`${directory}.sweep.list`, (fixture) => traverse(fixture, directory, 'list_files', { hidden: true, depth: 5 }));
    add(`${directory}.sweep.search`, (fixture) =>
      traverse(fixture, directory, 'search_files', { query: MARK, hidden: true }),
    );
    for (const [name, command] of Object.entries(commands))
      add(`${directory}.command.${name}`, (fixture) => runSandboxed(fixture, directory, command));
  }
  return all;
}
