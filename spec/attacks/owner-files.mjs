// Forged owner files. A file that does not describe a running owner blocks no process; a file that does never leads to
// a second owner.

import { spawn } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  ftruncateSync,
  linkSync,
  openSync,
  readFileSync,
  writeSync,
} from 'node:fs';
import { expect, expectFault, sleep } from '../support/store-attack.mjs';
import { validOwnerFile, writeOwnerFile } from './wire.mjs';

const SECRET = 'ab'.repeat(32);

/** Changes that make an owner file invalid. */
const invalidContents = {
  'no-pid': ({ pid: _, ...rest }) => rest,
  'no-start': ({ start: _, ...rest }) => rest,
  'no-socket': ({ socket: _, ...rest }) => rest,
  'no-secret': ({ secret: _, ...rest }) => rest,
  'no-directory': ({ directory: _, ...rest }) => rest,
  'pid-text': (content) => ({ ...content, pid: String(content.pid) }),
  'pid-list': (content) => ({ ...content, pid: [content.pid] }),
  'pid-null': (content) => ({ ...content, pid: null }),
  'pid-minus': (content) => ({ ...content, pid: -content.pid }),
  'pid-zero': (content) => ({ ...content, pid: 0 }),
  'pid-half': (content) => ({ ...content, pid: content.pid + 0.5 }),
  'pid-huge': (content) => ({ ...content, pid: 1e300 }),
  'start-number': (content) => ({ ...content, start: 5 }),
  'start-list': (content) => ({ ...content, start: [content.start] }),
  'start-empty': (content) => ({ ...content, start: '' }),
  'start-cut': (content) => ({ ...content, start: content.start.slice(0, -1) }),
  'start-other': (content) => ({ ...content, start: content.start.replace(/\d+$/, '1') }),
  'start-other-boot': (content) => ({
    ...content,
    start: content.start.replace(/^\S+/, '00000000-0000-0000-0000-000000000000'),
  }),
  'start-other-container': (content) => ({ ...content, start: content.start.replace(/\[\d+\]/, '[1]') }),
  'start-padded': (content) => ({ ...content, start: `${content.start} ` }),
  'secret-short': (content) => ({ ...content, secret: 'ab' }),
  'secret-empty': (content) => ({ ...content, secret: '' }),
  'secret-upper': (content) => ({ ...content, secret: 'AB'.repeat(32) }),
  'secret-list': (content) => ({ ...content, secret: [SECRET] }),
  'secret-newline': (content) => ({ ...content, secret: `${SECRET}\n` }),
  'socket-elsewhere': (content) => ({ ...content, socket: '/tmp/somewhere.sock' }),
  'socket-relative': (content) => ({ ...content, socket: '../x.sock' }),
  'socket-parent': (content) => ({ ...content, socket: `/tmp/rondo-0/../${'0'.repeat(32)}.sock` }),
  'socket-abstract': (content) => ({ ...content, socket: '\0abstract' }),
  'socket-list': (content) => ({ ...content, socket: ['beside'] }),
  'socket-empty': (content) => ({ ...content, socket: '' }),
  'directory-other': (content) => ({ ...content, directory: '1:2:3' }),
  'directory-list': (content) => ({ ...content, directory: [content.directory] }),
  'directory-padded': (content) => ({ ...content, directory: `${content.directory} ` }),
  empty: () => '',
  'no-json': () => 'pid 1',
  null: () => 'null',
  number: () => '1',
  'empty-list': () => '[]',
  'in-a-list': (content) => JSON.stringify([content]),
  'in-proto': (content) => `{"__proto__":${JSON.stringify(content)}}`,
  'with-bom': (content) => `\ufeff${JSON.stringify(content)}`,
  'with-rest': (content) => `${JSON.stringify(content)}x`,
  'half-of-it': (content) => JSON.stringify(content).slice(0, -9),
  'zero-bytes': () => '\0'.repeat(200),
  'too-large': (content) => JSON.stringify({ ...content, more: 'x'.repeat(9000) }),
  deep: () => '['.repeat(8000),
};

/** The changes that are also applied in place to the file of a running owner. */
const IN_PLACE = /^(no-pid|start-other|empty|no-json|directory-other|secret-short|pid-huge|start-other-container)$/;

/**
 * A process ignores an invalid owner file.
 * @param {import('../support/store-attack.mjs').StoreFixture} fixture
 * @param {(content: any) => unknown} change
 */
async function ignoresInvalidFile(fixture, change) {
  const { path } = fixture;
  writeOwnerFile(path, '');
  writeOwnerFile(path, change(validOwnerFile(path, process.pid, SECRET)));
  await assertBecomesOwner(fixture);
}

/**
 * A new process becomes the owner and removes its file when it closes.
 * @param {import('../support/store-attack.mjs').StoreFixture} fixture
 */
async function assertBecomesOwner(fixture) {
  const actor = await fixture.actor();
  const { owner } = await actor.fill(fixture.path);
  expect(owner.here === true, 'the process to be the owner', owner);
  await actor.must('close');
  expect(!existsSync(`${fixture.path}.owner`), 'no owner file after the store was closed', 'it exists');
}

/** A process ignores a valid owner file that another user could have written. */
async function ignoresForeignFile(fixture, change) {
  const { path } = fixture;
  writeOwnerFile(path, '');
  writeOwnerFile(path, validOwnerFile(path, process.pid, SECRET));
  change(`${path}.owner`);
  await assertBecomesOwner(fixture);
}

/**
 * Starts a process that does not own a store.
 * @param {import('../support/store-attack.mjs').StoreFixture} fixture
 * @param {string} script
 */
async function startOtherProcess(fixture, script) {
  const child = spawn('sh', ['-c', script], { stdio: ['ignore', 'pipe', 'ignore'] });
  fixture.atEnd(() => child.kill('SIGKILL'));
  const firstLine = await new Promise((resolve) => child.stdout.once('data', (line) => resolve(String(line))));
  return { child, pid: Number(firstLine) };
}

/** The owner file names a running process that does not listen: the Fault names its pid. */
async function reportsOtherProcess(fixture, how) {
  const { path } = fixture;
  const { pid } = await startOtherProcess(fixture, 'echo $$; exec sleep 60');
  if (how === 'stopped') process.kill(pid, 'SIGSTOP');
  await sleep(50);
  writeOwnerFile(path, '');
  writeOwnerFile(path, validOwnerFile(path, pid, SECRET));
  const actor = await fixture.actor();
  const answer = await actor.do('open', { path });
  expectFault(answer, ['STORE_OWNED']);
  expect(
    answer.fault.message.includes(String(pid)) && answer.fault.data?.pid === pid,
    `the pid ${pid} in the message and in the data`,
    answer.fault,
  );
  if (how === 'stopped')
    expect(/stopped|CONT/.test(answer.fault.message), 'a message that the process is stopped', answer.fault.message);
}

/** The owner file names a zombie, which counts as ended. */
async function ignoresZombie(fixture) {
  const { path } = fixture;
  const { pid } = await startOtherProcess(fixture, 'sh -c "echo \\$\\$; sleep 0.2" & exec sleep 60');
  writeOwnerFile(path, '');
  const content = validOwnerFile(path, pid, SECRET);
  await sleep(600);
  expect(/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'latin1')), 'a zombie', 'something else');
  writeOwnerFile(path, content);
  await assertBecomesOwner(fixture);
}

/** The file of a running owner is overwritten in place: acknowledged values of both processes stay stored. */
async function overwrittenInPlace(fixture, change, dropsLocks) {
  const { path } = fixture;
  const first = await fixture.actor();
  const { fence, next } = await first.fill(path);
  const changed = change(JSON.parse(readFileSync(`${path}.owner`, 'utf8')));
  const descriptor = openSync(`${path}.owner`, 'r+');
  ftruncateSync(descriptor);
  writeSync(descriptor, typeof changed === 'string' ? changed : JSON.stringify(changed));
  closeSync(descriptor);
  if (dropsLocks) await first.must('readStoreFiles', { path });
  await twoWriters(fixture, { first, fence, next });
}

/** Two processes try to write: every acknowledged value is stored. */
export async function twoWriters(fixture, { first, fence, next, path = fixture.path, as }) {
  const second = await fixture.actor(as === undefined ? {} : { as });
  const acked = new Map([['a', next]]);
  const opened = await second.do('open', { path });
  const write = async (actor, session, claim) => {
    for (let n = 0; n < 2; n++) {
      const answer = await actor.do('append', { session, fence: claim.fence, first: claim.next + n }, 22_000);
      if (answer.fault !== undefined)
        return expectFault(answer, [
          'STORE_OWNED',
          'STORE_MISSING',
          'OWNERSHIP_LOST',
          'STORE_CLOSED',
          'STORE_FAILED',
          'STALE_WRITER',
        ]);
      acked.set(session, claim.next + n + 1);
    }
  };
  if (opened.ok !== undefined) {
    const claim = await second.do('claim', { session: 'b' }, 22_000);
    if (claim.ok !== undefined) await write(second, 'b', claim.ok);
  } else expectFault(opened, ['STORE_OWNED', 'STORE_FAILED', 'STORE_DAMAGED', 'STORE_MISSING', 'STORE_READ_ONLY']);
  await write(first, 'a', { fence, next });
  const owners = [];
  for (const actor of [first, second]) {
    const { ok } = await actor.do('owner');
    if (ok?.here === true) owners.push(actor.pid);
  }
  await first.kill();
  await second.kill();
  await assertAckedStored(fixture, fixture.path, acked);
  return { opened, owners, acked };
}

/**
 * Asserts that the store reports no damage and holds at least the acknowledged number of values of each session.
 * @param {import('../support/store-attack.mjs').StoreFixture} fixture @param {string} path @param {Map<string, number>} acked
 */
export async function assertAckedStored(fixture, path, acked) {
  const reader = await fixture.actor();
  const { damage } = await reader.must('open', { path });
  expect(damage.length === 0, 'a store without damage', damage);
  for (const [session, count] of acked) {
    const found = await reader.must('values', { session });
    expect(found.length >= count, `${count} acknowledged values of ${session}`, found);
  }
  await reader.kill();
}

export function cases() {
  const all = [];
  const add = (id, run, more = {}) => all.push({ id: `ownership.${id}`, run, ...more });
  for (const [name, change] of Object.entries(invalidContents)) {
    add(`record.${name}`, (fixture) => ignoresInvalidFile(fixture, change), { waits: true });
    for (const dropsLocks of [false, true]) {
      if (!IN_PLACE.test(name)) continue;
      add(
        `record-in-place.${name}${dropsLocks ? '.locks-dropped' : ''}`,
        (fixture) => overwrittenInPlace(fixture, change, dropsLocks),
        {
          waits: true,
        },
      );
    }
  }
  for (const mode of [0o644, 0o640, 0o666, 0o700, 0o400, 0o000, 0o1600, 0o4600]) {
    const isPrivate = (mode & 0o777) === 0o600;
    if (!isPrivate)
      add(`record.mode-${mode.toString(8)}`, (fixture) => ignoresForeignFile(fixture, (file) => chmodSync(file, mode)));
  }
  add('record.of-another-user', (fixture) => ignoresForeignFile(fixture, (file) => chownSync(file, 65_534, 65_534)));
  add('record.copied-to-another-directory', async (fixture) => {
    const { path } = fixture;
    const other = `${fixture.folder}/e/j.db`;
    const owner = await fixture.actor();
    await owner.fill(other);
    writeOwnerFile(path, readFileSync(`${other}.owner`, 'utf8'));
    await assertBecomesOwner(fixture);
    await owner.must('list');
  });
  add('record.hard-linked-from-another-store', async (fixture) => {
    const { path } = fixture;
    const other = `${fixture.folder}/e/j.db`;
    const owner = await fixture.actor();
    await owner.fill(other);
    writeOwnerFile(`${fixture.folder}/d/x`, '');
    linkSync(`${other}.owner`, `${path}.owner`);
    const before = readFileSync(`${other}.owner`, 'utf8');
    const actor = await fixture.actor();
    await actor.must('open', { path });
    expect(
      readFileSync(`${other}.owner`, 'utf8') === before,
      'the owner file of the other store to stay unchanged',
      'it changed',
    );
    await actor.must('close');
  });
  for (const how of ['running', 'stopped'])
    add(`record.living-bystander-${how}`, (fixture) => reportsOtherProcess(fixture, how), { waits: true });
  add('record.zombie', ignoresZombie);
  return all;
}
