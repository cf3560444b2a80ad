// Forged owner files: a file that does not describe a living owner blocks no process, and one that does never makes a second owner.

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
import { plantRecord, recordFor } from './wire.mjs';

const SECRET = 'ab'.repeat(32);

/** Changes to a record after which it is not to be believed. */
const unbelievable = {
  'no-pid': ({ pid: _, ...rest }) => rest,
  'no-start': ({ start: _, ...rest }) => rest,
  'no-socket': ({ socket: _, ...rest }) => rest,
  'no-secret': ({ secret: _, ...rest }) => rest,
  'no-directory': ({ directory: _, ...rest }) => rest,
  'pid-text': (record) => ({ ...record, pid: String(record.pid) }),
  'pid-list': (record) => ({ ...record, pid: [record.pid] }),
  'pid-null': (record) => ({ ...record, pid: null }),
  'pid-minus': (record) => ({ ...record, pid: -record.pid }),
  'pid-zero': (record) => ({ ...record, pid: 0 }),
  'pid-half': (record) => ({ ...record, pid: record.pid + 0.5 }),
  'pid-huge': (record) => ({ ...record, pid: 1e300 }),
  'start-number': (record) => ({ ...record, start: 5 }),
  'start-list': (record) => ({ ...record, start: [record.start] }),
  'start-empty': (record) => ({ ...record, start: '' }),
  'start-cut': (record) => ({ ...record, start: record.start.slice(0, -1) }),
  'start-other': (record) => ({ ...record, start: record.start.replace(/\d+$/, '1') }),
  'start-other-boot': (record) => ({
    ...record,
    start: record.start.replace(/^\S+/, '00000000-0000-0000-0000-000000000000'),
  }),
  'start-other-container': (record) => ({ ...record, start: record.start.replace(/\[\d+\]/, '[1]') }),
  'start-padded': (record) => ({ ...record, start: `${record.start} ` }),
  'secret-short': (record) => ({ ...record, secret: 'ab' }),
  'secret-empty': (record) => ({ ...record, secret: '' }),
  'secret-upper': (record) => ({ ...record, secret: 'AB'.repeat(32) }),
  'secret-list': (record) => ({ ...record, secret: [SECRET] }),
  'secret-newline': (record) => ({ ...record, secret: `${SECRET}\n` }),
  'socket-elsewhere': (record) => ({ ...record, socket: '/tmp/somewhere.sock' }),
  'socket-relative': (record) => ({ ...record, socket: '../x.sock' }),
  'socket-parent': (record) => ({ ...record, socket: `/tmp/rondo-0/../${'0'.repeat(32)}.sock` }),
  'socket-abstract': (record) => ({ ...record, socket: '\0abstract' }),
  'socket-list': (record) => ({ ...record, socket: ['beside'] }),
  'socket-empty': (record) => ({ ...record, socket: '' }),
  'directory-other': (record) => ({ ...record, directory: '1:2:3' }),
  'directory-list': (record) => ({ ...record, directory: [record.directory] }),
  'directory-padded': (record) => ({ ...record, directory: `${record.directory} ` }),
  empty: () => '',
  'no-json': () => 'pid 1',
  null: () => 'null',
  number: () => '1',
  'empty-list': () => '[]',
  'in-a-list': (record) => JSON.stringify([record]),
  'in-proto': (record) => `{"__proto__":${JSON.stringify(record)}}`,
  'with-bom': (record) => `\ufeff${JSON.stringify(record)}`,
  'with-rest': (record) => `${JSON.stringify(record)}x`,
  'half-of-it': (record) => JSON.stringify(record).slice(0, -9),
  'zero-bytes': () => '\0'.repeat(200),
  'too-large': (record) => JSON.stringify({ ...record, more: 'x'.repeat(9000) }),
  deep: () => '['.repeat(8000),
};

/** Changes that are also made to the record of a living owner, in its place. */
const IN_PLACE = /^(no-pid|start-other|empty|no-json|directory-other|secret-short|pid-huge|start-other-container)$/;

/** @param {import('../support/store-attack.mjs').Stage} stage @param {(record: any) => unknown} change */
async function ignored(stage, change) {
  const { path } = stage;
  plantRecord(path, '');
  plantRecord(path, change(recordFor(path, process.pid, SECRET)));
  await assertOwned(stage);
}

/** @param {import('../support/store-attack.mjs').Stage} stage */
async function assertOwned(stage) {
  const actor = await stage.actor();
  const { owner } = await actor.fill(stage.path);
  expect(owner.here === true, 'the process to be the owner', owner);
  await actor.must('close');
  expect(!existsSync(`${stage.path}.owner`), 'no record after the store was closed', 'there is one');
}

/** A right record of a file that others could have written. */
async function ofOthers(stage, change) {
  const { path } = stage;
  plantRecord(path, '');
  plantRecord(path, recordFor(path, process.pid, SECRET));
  change(`${path}.owner`);
  await assertOwned(stage);
}

/** A process that is no owner at all. @param {import('../support/store-attack.mjs').Stage} stage @param {string} script */
async function bystander(stage, script) {
  const child = spawn('sh', ['-c', script], { stdio: ['ignore', 'pipe', 'ignore'] });
  stage.atEnd(() => child.kill('SIGKILL'));
  const said = await new Promise((resolve) => child.stdout.once('data', (line) => resolve(String(line))));
  return { child, pid: Number(said) };
}

/** A record of a living process that does not listen: told with its pid, in time. */
async function blocked(stage, how) {
  const { path } = stage;
  const { pid } = await bystander(stage, 'echo $$; exec sleep 60');
  if (how === 'stopped') process.kill(pid, 'SIGSTOP');
  await sleep(50);
  plantRecord(path, '');
  plantRecord(path, recordFor(path, pid, SECRET));
  const actor = await stage.actor();
  const answer = await actor.do('open', { path });
  expectFault(answer, ['STORE_OWNED']);
  expect(
    answer.fault.message.includes(String(pid)) && answer.fault.data?.pid === pid,
    `the pid ${pid} to be told`,
    answer.fault,
  );
  if (how === 'stopped')
    expect(/stopped|CONT/.test(answer.fault.message), 'that it is stopped to be told', answer.fault.message);
}

/** A zombie has ended. */
async function zombie(stage) {
  const { path } = stage;
  const { pid } = await bystander(stage, 'sh -c "echo \\$\\$; sleep 0.2" & exec sleep 60');
  plantRecord(path, '');
  const record = recordFor(path, pid, SECRET);
  await sleep(600);
  expect(/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'latin1')), 'a zombie', 'something else');
  plantRecord(path, record);
  await assertOwned(stage);
}

/** The record of a living owner is written over in its place: there is still one owner that can write. */
async function inPlace(stage, change, drops) {
  const { path } = stage;
  const first = await stage.actor();
  const { fence, next } = await first.fill(path);
  const record = JSON.parse(readFileSync(`${path}.owner`, 'utf8'));
  const changed = change(record);
  const descriptor = openSync(`${path}.owner`, 'r+');
  ftruncateSync(descriptor);
  writeSync(descriptor, typeof changed === 'string' ? changed : JSON.stringify(changed));
  closeSync(descriptor);
  if (drops) await first.must('read', { path });
  await twoWriters(stage, { first, fence, next });
}

/** A second process tries to write, and so does the first: all that either was told is there. */
export async function twoWriters(stage, { first, fence, next, path = stage.path, as }) {
  const second = await stage.actor(as === undefined ? {} : { as });
  const acked = new Map([['a', next]]);
  const opened = await second.do('open', { path });
  const wrote = async (actor, session, writing) => {
    for (let n = 0; n < 2; n++) {
      const answer = await actor.do('append', { session, fence: writing.fence, first: writing.next + n }, 22_000);
      if (answer.fault !== undefined)
        return expectFault(answer, [
          'STORE_OWNED',
          'STORE_MISSING',
          'OWNERSHIP_LOST',
          'STORE_CLOSED',
          'STORE_FAILED',
          'STALE_WRITER',
        ]);
      acked.set(session, writing.next + n + 1);
    }
  };
  if (opened.ok !== undefined) {
    const claim = await second.do('claim', { session: 'b' }, 22_000);
    if (claim.ok !== undefined) await wrote(second, 'b', claim.ok);
  } else expectFault(opened, ['STORE_OWNED', 'STORE_FAILED', 'STORE_DAMAGED', 'STORE_MISSING', 'STORE_READ_ONLY']);
  await wrote(first, 'a', { fence, next });
  const owners = [];
  for (const one of [first, second]) {
    const { ok } = await one.do('owner');
    if (ok?.here === true) owners.push(one.pid);
  }
  await first.kill();
  await second.kill();
  await assertAll(stage, stage.path, acked);
  return { opened, owners, acked };
}

/** @param {import('../support/store-attack.mjs').Stage} stage @param {string} path @param {Map<string, number>} acked */
export async function assertAll(stage, path, acked) {
  const reader = await stage.actor();
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
  for (const [name, change] of Object.entries(unbelievable)) {
    add(`record.${name}`, (stage) => ignored(stage, change), { waits: true });
    for (const drops of [false, true]) {
      if (!IN_PLACE.test(name)) continue;
      add(`record-in-place.${name}${drops ? '.locks-dropped' : ''}`, (stage) => inPlace(stage, change, drops), {
        waits: true,
      });
    }
  }
  for (const mode of [0o644, 0o640, 0o666, 0o700, 0o400, 0o000, 0o1600, 0o4600]) {
    const believed = (mode & 0o777) === 0o600;
    if (!believed) add(`record.mode-${mode.toString(8)}`, (stage) => ofOthers(stage, (file) => chmodSync(file, mode)));
  }
  add('record.of-another-user', (stage) => ofOthers(stage, (file) => chownSync(file, 65_534, 65_534)));
  add('record.copied-to-another-directory', async (stage) => {
    const { path } = stage;
    const other = `${stage.folder}/e/j.db`;
    const owner = await stage.actor();
    await owner.fill(other);
    plantRecord(path, readFileSync(`${other}.owner`, 'utf8'));
    await assertOwned(stage);
    await owner.must('list');
  });
  add('record.hard-linked-from-another-store', async (stage) => {
    const { path } = stage;
    const other = `${stage.folder}/e/j.db`;
    const owner = await stage.actor();
    await owner.fill(other);
    plantRecord(`${stage.folder}/d/x`, '');
    linkSync(`${other}.owner`, `${path}.owner`);
    const before = readFileSync(`${other}.owner`, 'utf8');
    const actor = await stage.actor();
    await actor.must('open', { path });
    expect(readFileSync(`${other}.owner`, 'utf8') === before, 'the record of the other store to stay', 'it changed');
    await actor.must('close');
  });
  for (const how of ['running', 'stopped'])
    add(`record.living-bystander-${how}`, (stage) => blocked(stage, how), { waits: true });
  add('record.zombie', zombie);
  return all;
}
