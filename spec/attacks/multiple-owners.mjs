// Several potential owners of one file: other paths, links, copies, namespaces, threads and lost locks. Every
// acknowledged value is stored.

import { execFileSync } from 'node:child_process';
import { cpSync, linkSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { expect, expectFault, within } from '../support/store-attack.mjs';
import { assertAckedStored, twoWriters } from './owner-files.mjs';

const sh = (command, ...args) => execFileSync(command, args, { stdio: 'ignore' });

/** Other paths to the same file. */
const aliases = {
  'linked-parent': ({ folder }) => {
    symlinkSync(folder, `${folder}-link`);
    return join(`${folder}-link`, 'd', 'j.db');
  },
  'double-slash': ({ path }) => path.replace(/\/d\//, '//d//'),
  dots: ({ path }) => path.replace(/\/d\//, '/d/../d/./'),
  relative: ({ path }) => relative(process.cwd(), path),
  'proc-root': ({ path }) => `/proc/self/root${path}`,
  bind: (fixture) => {
    const { folder, path } = fixture;
    mkdirSync(join(folder, 'e'));
    sh('mount', '--bind', dirname(path), join(folder, 'e'));
    fixture.atEnd(() => sh('umount', join(folder, 'e')));
    return join(folder, 'e', 'j.db');
  },
};

/**
 * A second process that uses another path becomes a client of the owner.
 * @param {import('../support/store-attack.mjs').StoreFixture} fixture @param {(fixture: any) => string} alias
 * @param {boolean} dropsLocks
 */
async function openByAlias(fixture, alias, dropsLocks) {
  const first = await fixture.actor();
  const { fence, next } = await first.fill(fixture.path);
  const path = alias(fixture);
  fixture.atEnd(() => rmSync(`${fixture.folder}-link`, { force: true }));
  if (dropsLocks) await first.must('readStoreFiles', { path: fixture.path });
  const { owners } = await twoWriters(fixture, { first, fence, next, path });
  expect(owners.length === 1 && owners[0] === first.pid, 'the first process to stay the owner', owners);
}

/** A second name of the file has its own lock: both processes write, or the second is refused; no value is lost. */
async function openByLink(fixture, createLink) {
  const { folder, path } = fixture;
  const first = await fixture.actor();
  const { fence, next } = await first.fill(path);
  const other = createLink(fixture, join(folder, 'e', 'j.db'));
  const second = await fixture.actor();
  const opened = await second.do('open', { path: other });
  const acked = new Map([['a', next]]);
  const ackedByOther = new Map();
  if (opened.ok !== undefined) {
    const { fence: f, next: n } = await second.must('claim', { session: 'b' });
    for (let k = 0; k < 3; k++)
      if ('ok' in (await second.do('append', { session: 'b', fence: f, first: n + k })))
        ackedByOther.set('b', n + k + 1);
  } else expectFault(opened, ['STORE_OWNED', 'STORE_FAILED', 'STORE_DAMAGED', 'STORE_READ_ONLY']);
  for (let k = 0; k < 3; k++)
    if ('ok' in (await first.do('append', { session: 'a', fence, first: next + k }))) acked.set('a', next + k + 1);
  await second.do('close');
  await first.do('close');
  await first.kill();
  await second.kill();
  if (ackedByOther.size > 0) await assertAckedStored(fixture, other, ackedByOther);
  await assertAckedStored(fixture, path, acked);
}

/**
 * Several processes open the store at the same time: exactly one owns it.
 * @param {import('../support/store-attack.mjs').StoreFixture} fixture
 * @param {number} count
 * @param {string} before
 */
async function openConcurrently(fixture, count, before) {
  const { path } = fixture;
  if (before !== 'fresh') {
    const creator = await fixture.actor();
    await creator.fill(path, 'before', 2);
    if (before === 'closed') await creator.must('close');
    await creator.kill();
  }
  const actors = await Promise.all(Array.from({ length: count }, () => fixture.actor()));
  const opened = await Promise.all(actors.map((actor) => actor.must('open', { path })));
  const owners = opened.filter(({ owner }) => owner.here).length;
  expect(owners === 1, 'one owner', owners);
  const acked = new Map();
  await Promise.all(
    actors.map(async (actor, n) => {
      const session = `s${n}`;
      const { fence } = await actor.must('claim', { session });
      for (let first = 0; first < 5; first++) await actor.must('append', { session, fence, first });
      acked.set(session, 5);
    }),
  );
  await Promise.all(actors.map((actor) => actor.kill()));
  await assertAckedStored(fixture, path, acked);
}

/** Commands that start a process in other namespaces. */
const namespaces = {
  net: ['unshare', '-n'],
  mount: ['unshare', '-m'],
  pid: ['unshare', '--pid', '--fork', '--mount-proc', '--kill-child'],
  'pid-net': ['unshare', '--pid', '-n', '--fork', '--mount-proc', '--kill-child'],
  ipc: ['unshare', '-i', '-u'],
};

/**
 * A process in another namespace becomes a client of the owner.
 * @param {import('../support/store-attack.mjs').StoreFixture} fixture @param {readonly string[]} as @param {boolean} dropsLocks
 */
async function openInNamespace(fixture, as, dropsLocks) {
  const first = await fixture.actor();
  const { fence, next } = await first.fill(fixture.path);
  if (dropsLocks) await first.must('readStoreFiles', { path: fixture.path });
  const { opened, owners } = await twoWriters(fixture, { first, fence, next, as });
  expect(opened.ok?.owner.here === false, 'the second process to be a client', opened);
  expect(owners.length === 1, 'one owner', owners);
}

/** A process takes over from a killed owner in another namespace. */
async function takeOverFromNamespace(fixture, as) {
  const first = await fixture.actor({ as });
  const { next } = await first.fill(fixture.path);
  const second = await fixture.actor();
  await second.must('open', { path: fixture.path });
  await first.kill();
  const at = Date.now();
  const { fence } = await second.must('claim', { session: 'b' });
  expect(Date.now() - at < 2000, 'a takeover within 2 s', Date.now() - at);
  await second.must('append', { session: 'b', fence, first: 0 });
  await second.kill();
  await assertAckedStored(
    fixture,
    fixture.path,
    new Map([
      ['a', next],
      ['b', 1],
    ]),
  );
}

/** Files of the owner are removed while it is idle, and another process opens the store. */
async function withRemovedFiles(fixture, names, dropsLocks) {
  const first = await fixture.actor();
  const { fence, next } = await first.fill(fixture.path);
  if (dropsLocks) await first.must('readStoreFiles', { path: fixture.path });
  for (const name of names) rmSync(fixture.path + name);
  await twoWriters(fixture, { first, fence, next });
}

/** The ownership tables are changed while no process has the store open. */
async function withChangedEpoch(fixture, sql) {
  const { path } = fixture;
  const creator = await fixture.actor();
  const { next } = await creator.fill(path);
  await creator.must('close');
  await creator.kill();
  sh(process.execPath, '--input-type=module', '-e', sqlScript(path, sql));
  const actor = await fixture.actor();
  const opened = await actor.do('open', { path });
  if (opened.ok === undefined) return expectFault(opened, ['STORE_DAMAGED', 'STORE_FAILED']);
  const acked = new Map([['a', next]]);
  const claim = await actor.do('claim', { session: 'new' });
  if (claim.ok === undefined) return expectFault(claim, ['STORE_DAMAGED', 'STORE_FAILED', 'OWNERSHIP_LOST']);
  const answer = await actor.do('append', { session: 'new', fence: claim.ok.fence, first: 0 });
  expect(!('fault' in answer), 'an append after a claim that was acknowledged', answer.fault);
  acked.set('new', 1);
  await actor.kill();
  await assertAckedStored(fixture, path, acked);
}

/** Returns a script that executes SQL in the database and then runs `end`. */
const sqlScript = (path, sql, end = 'd.close(); process.exit(0);') =>
  `import { openDriver } from ${JSON.stringify(import.meta.resolve('rondo/sqlite'))}; const d = openDriver(${JSON.stringify(path)}); d.exec(${JSON.stringify(sql)}); ${end}`;

/** Another process raises the epoch after the owner lost its locks: the owner commits nothing under the old epoch. */
async function withRaisedEpoch(fixture, writes) {
  const { path } = fixture;
  const first = await fixture.actor();
  const { fence, next } = await first.fill(path);
  const writer = writes === 'client' ? await fixture.actor() : first;
  if (writes === 'client') await writer.must('open', { path });
  await first.must('readStoreFiles', { path });
  sh(
    process.execPath,
    '--input-type=module',
    '-e',
    sqlScript(path, 'UPDATE ownership SET epoch = epoch + 1', 'process.exit(0);'),
  );
  const others = writes === 'group' ? [1, 2, 3].map((n) => first.do('claim', { session: `g${n}` })) : [];
  const answer = await writer.do('append', { session: 'a', fence, first: next });
  const otherAnswers = await Promise.all(others);
  const acked = new Map([['a', 'ok' in answer ? next + 1 : next]]);
  for (const [n, otherAnswer] of otherAnswers.entries()) if ('ok' in otherAnswer) acked.set(`g${n + 1}`, 0);
  if (answer.fault !== undefined) expectFault(answer, ['OWNERSHIP_LOST', 'STORE_OWNED']);
  const again = await writer.do('append', { session: 'a', fence, first: acked.get('a') });
  expect('ok' in again, 'the next append to succeed', again);
  acked.set('a', acked.get('a') + 1);
  await first.kill();
  await writer.kill();
  await assertAckedStored(fixture, path, acked);
}

/** A worker thread owns the store. After it is terminated, only its process can take over. */
async function ownedByThread(fixture, end) {
  const { path } = fixture;
  mkdirSync(dirname(path), { mode: 0o700 });
  const actor = await fixture.actor();
  const { owner } = await actor.must('thread', { path, end });
  expect(owner.here === true, 'the thread to be the owner', owner);
  const other = await fixture.actor();
  if (end) {
    // The process of the thread still runs, so no other process takes over; this process itself can.
    const answer = await other.do('open', { path }, 22_000);
    expectFault(answer, ['STORE_OWNED']);
    expect(answer.fault.data.pid === actor.pid, `the pid ${actor.pid}`, answer.fault);
    await actor.must('open', { path });
  }
  const { fence } = await other.fill(path, 'b', 1);
  if (!end) await actor.must('open', { path });
  expect((await actor.must('values', { session: 'thread' })).length === 1, 'the value of the thread', 'none');
  await other.must('append', { session: 'b', fence, first: 1 });
}

/** One process opens the store several times and closes the stores in the given order. */
async function openSeveralTimes(fixture, order) {
  const { path } = fixture;
  const actor = await fixture.actor();
  const names = ['s0', 's1', 's2'];
  for (const store of names) await actor.must('open', { path, store });
  const acked = new Map();
  for (const n of order) {
    for (const store of names.filter((_, k) => order.indexOf(k) >= order.indexOf(n))) {
      const { fence, next } = await actor.must('claim', { session: store, store });
      await actor.must('append', { session: store, fence, first: next, store });
      acked.set(store, next + 1);
    }
    await actor.must('close', { store: `s${n}` });
  }
  await assertAckedStored(fixture, path, acked);
}

/** A child process that outlives the owner does not inherit its locks. */
async function survivingChild(fixture) {
  const first = await fixture.actor();
  const { next } = await first.fill(fixture.path);
  const child = await first.must('spawn', { ms: 30_000 });
  fixture.atEnd(() => process.kill(child, 'SIGKILL'));
  await first.kill();
  const second = await fixture.actor();
  await within(second.must('open', { path: fixture.path }), 2000, 'a takeover');
  expect((await second.must('values', { session: 'a' })).length === next, 'all values', 'fewer');
}

/** A process opens a file of the store as if it were a database of its own. */
async function openStoreFile(fixture, suffix, open) {
  const { path } = fixture;
  const first = await fixture.actor();
  const { fence, next } = await first.fill(path);
  if (!open) {
    await first.must('close');
    if (suffix === '.owner') writeFileSync(`${path}.owner`, '{}', { mode: 0o600 });
  }
  const second = await fixture.actor();
  const answer = await second.do('open', { path: path + suffix });
  if (answer.fault !== undefined)
    expectFault(answer, ['STORE_OWNED', 'STORE_FAILED', 'STORE_DAMAGED', 'STORE_READ_ONLY']);
  else await second.do('close');
  await second.kill();
  const acked = new Map([['a', next]]);
  if (open && 'ok' in (await first.do('append', { session: 'a', fence, first: next }))) acked.set('a', next + 1);
  await first.kill();
  await assertAckedStored(fixture, path, acked);
}

/** Ways to give a file a second name. */
const links = {
  'hard-link-elsewhere': ({ path }, other) => {
    mkdirSync(dirname(other), { mode: 0o700 });
    linkSync(path, other);
    return other;
  },
  'hard-link-beside': ({ path }) => {
    linkSync(path, `${path}2`);
    return `${path}2`;
  },
  'hard-link-with-wal': ({ path }, other) => {
    mkdirSync(dirname(other), { mode: 0o700 });
    for (const name of ['', '-wal', '-shm', '.anchor']) linkSync(path + name, other + name);
    return other;
  },
  'bind-file': (fixture, other) => {
    mkdirSync(dirname(other), { mode: 0o700 });
    writeFileSync(other, '');
    sh('mount', '--bind', fixture.path, other);
    fixture.atEnd(() => sh('umount', other));
    return other;
  },
  copy: ({ path }, other) => {
    mkdirSync(dirname(other), { mode: 0o700 });
    for (const name of ['', '-wal', '-shm', '.anchor', '.owner', '.lock'])
      cpSync(path + name, other + name, { preserveTimestamps: true });
    return other;
  },
};

/** SQL that changes the ownership tables. */
const epochs = {
  'row-deleted': 'DELETE FROM ownership',
  huge: 'UPDATE ownership SET epoch = 9223372036854775806',
  highest: 'UPDATE ownership SET epoch = 9223372036854775807',
  'two-to-53': 'UPDATE ownership SET epoch = 9007199254740991',
  minus: 'UPDATE ownership SET epoch = -5',
  text: "UPDATE ownership SET epoch = 'abc'",
  real: 'UPDATE ownership SET epoch = 1.5',
  blob: "UPDATE ownership SET epoch = x'00'",
  'clients-damaged': "INSERT INTO clients VALUES ('x', -5, ''), (x'ff', 'abc', x'ff')",
};

export function cases() {
  const all = [];
  const add = (id, run, more = {}) => all.push({ id: `ownership.${id}`, run, ...more });
  for (const [name, alias] of Object.entries(aliases))
    for (const dropsLocks of [false, true])
      add(`path.${name}${dropsLocks ? '.locks-dropped' : ''}`, (fixture) => openByAlias(fixture, alias, dropsLocks));
  for (const [name, createLink] of Object.entries(links))
    add(`link.${name}`, (fixture) => openByLink(fixture, createLink), { waits: true });
  for (const count of [2, 3, 5, 8])
    for (const before of ['fresh', 'closed', 'killed'])
      for (const round of [1])
        add(`race.${count}.${before}.${round}`, (fixture) => openConcurrently(fixture, count, before));
  for (const [name, as] of Object.entries(namespaces)) {
    for (const dropsLocks of [false, true])
      add(
        `namespace.${name}${dropsLocks ? '.locks-dropped' : ''}`,
        (fixture) => openInNamespace(fixture, as, dropsLocks),
        {
          waits: true,
        },
      );
    add(`namespace.${name}.killed`, (fixture) => takeOverFromNamespace(fixture, as));
  }
  const files = ['.owner', '.lock', '.sock'];
  for (let set = 1; set < 8; set++) {
    const names = files.filter((_, bit) => (set >> bit) & 1);
    for (const dropsLocks of [false, true])
      add(
        `bereft${names.join('')}${dropsLocks ? '.locks-dropped' : ''}`,
        (fixture) => withRemovedFiles(fixture, names, dropsLocks),
        {
          waits: true,
        },
      );
  }
  for (const [name, sql] of Object.entries(epochs))
    add(`epoch.${name}`, (fixture) => withChangedEpoch(fixture, sql), { waits: true });
  for (const writes of ['alone', 'group', 'client'])
    add(`epoch.raised.${writes}`, (fixture) => withRaisedEpoch(fixture, writes), { waits: true });
  add('thread.living', (fixture) => ownedByThread(fixture, false), { waits: true });
  add('thread.ended', (fixture) => ownedByThread(fixture, true), { waits: true });
  for (const order of [
    [0, 1, 2],
    [2, 1, 0],
    [1, 0, 2],
    [1, 2, 0],
    [0, 2, 1],
    [2, 0, 1],
  ])
    add(`several.closed-${order.join('')}`, (fixture) => openSeveralTimes(fixture, order));
  add('child-lives-on', survivingChild);
  for (const suffix of ['-wal', '-shm', '.lock', '.owner', '.anchor', '.sock']) {
    add(`mixed-up.${basename(suffix)}.open`, (fixture) => openStoreFile(fixture, suffix, true), { waits: true });
    if (/lock|owner|anchor/.test(suffix))
      add(`mixed-up.${suffix}.closed`, (fixture) => openStoreFile(fixture, suffix, false), { waits: true });
  }
  return all;
}
