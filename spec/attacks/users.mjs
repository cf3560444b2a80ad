// Other users of the machine, and files with permissions for other users.

import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, chownSync, lstatSync, mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ExpectationError, expect, expectFault, root } from '../support/store-attack.mjs';
import { assertAckedStored } from './owner-files.mjs';

const NOBODY = 65_534;
const AS_NOBODY = ['setpriv', '--reuid', String(NOBODY), '--regid', String(NOBODY), '--clear-groups'];
const REFUSED = ['STORE_READ_ONLY', 'STORE_FAILED', 'STORE_OWNED'];

/**
 * Gives another user access to the directory of the case.
 * @param {import('../support/store-attack.mjs').StoreFixture} fixture
 */
function shareFolder(fixture) {
  if (process.getuid?.() !== 0) throw new ExpectationError('skipped: only root can act as another user');
  chmodSync(root, 0o711);
  chmodSync(fixture.folder, 0o755);
}

/**
 * Creates the data directory as a directory of the other user.
 * @param {import('../support/store-attack.mjs').StoreFixture} fixture
 */
function createForeignDirectory(fixture) {
  shareFolder(fixture);
  mkdirSync(dirname(fixture.path), { mode: 0o700 });
  chownSync(dirname(fixture.path), NOBODY, NOBODY);
}

/** Returns the files of the store whose mode is not 0600, with their modes. @param {string} path */
function wrongModes(path) {
  const modes = readdirSync(dirname(path)).map((name) => [name, lstatSync(join(dirname(path), name)).mode & 0o777]);
  return modes.filter(([, mode]) => mode !== 0o600).map(([name, mode]) => `${name} ${mode.toString(8)}`);
}

/**
 * All files are private under any umask.
 * @param {import('../support/store-attack.mjs').StoreFixture} fixture
 * @param {string} umask
 */
async function withUmask(fixture, umask) {
  const { path } = fixture;
  const actor = await fixture.actor({ as: ['sh', '-c', `umask ${umask}; exec "$0" "$@"`] });
  await actor.fill(path);
  expect(
    (statSync(dirname(path)).mode & 0o777) === 0o700,
    'a directory of mode 0700',
    statSync(dirname(path)).mode.toString(8),
  );
  expect(wrongModes(path).length === 0, 'files of mode 0600', wrongModes(path));
  const client = await fixture.actor({ as: ['sh', '-c', `umask ${umask}; exec "$0" "$@"`] });
  await client.fill(path, 'b');
  await actor.kill();
  await client.must('append', { session: 'b', fence: 1, first: 3 });
  expect(wrongModes(path).length === 0, 'files of mode 0600 after a takeover', wrongModes(path));
  await client.must('close');
  expect(wrongModes(path).length === 0, 'files of mode 0600 after closing', wrongModes(path));
}

/** Files that are accessible to other users are made private. */
async function tightensModes(fixture, mode, how) {
  const { path } = fixture;
  const creator = await fixture.actor();
  await creator.fill(path);
  if (how === 'closed') await creator.must('close');
  await creator.kill();
  for (const name of readdirSync(dirname(path)))
    if (!name.endsWith('.sock')) chmodSync(join(dirname(path), name), mode);
  const actor = await fixture.actor();
  await actor.fill(path, 'b');
  expect(wrongModes(path).length === 0, 'files of mode 0600', wrongModes(path));
}

/** Another user cannot open the store. */
async function otherUserOpens(fixture, state) {
  shareFolder(fixture);
  const { path } = fixture;
  const owner = await fixture.actor();
  const { next } = await owner.fill(path);
  chmodSync(dirname(path), 0o755);
  if (state === 'closed') await owner.must('close');
  const other = await fixture.actor({ as: AS_NOBODY });
  expectFault(await other.do('open', { path }), REFUSED);
  await owner.kill();
  await assertAckedStored(fixture, path, new Map([['a', next]]));
}

/** Another user cannot connect to the socket, even in an accessible directory. */
async function otherUserConnects(fixture) {
  shareFolder(fixture);
  const { path } = fixture;
  const owner = await fixture.actor();
  await owner.fill(path);
  chmodSync(dirname(path), 0o777);
  const script = `require('net').connect({ path: '${path}.sock' }).on('connect', () => console.log('connected')).on('error', (e) => console.log(e.code))`;
  const [command = '', ...args] = [
    ...AS_NOBODY,
    process.execPath,
    '-e',
    `${script}; setTimeout(() => process.exit(), 1000)`,
  ];
  const code = spawnSync(command, args, { encoding: 'utf8' }).stdout.trim();
  expect(code === 'EACCES', 'EACCES', code);
}

/** Root cannot open the store of another user, who can continue to use it. */
async function rootOpens(fixture, state) {
  createForeignDirectory(fixture);
  const { path } = fixture;
  const user = await fixture.actor({ as: AS_NOBODY });
  const { fence, next } = await user.fill(path);
  if (state === 'closed') await user.must('close');
  if (state === 'killed') await user.kill();
  const rootActor = await fixture.actor();
  const answer = await rootActor.do('open', { path });
  expect(answer.fault?.code === 'STORE_READ_ONLY', 'root to be refused like any other user', answer);
  expect(answer.fault.message.includes('65534'), 'the uid of the store in the message', answer.fault);
  if (state === 'open') await user.must('append', { session: 'a', fence, first: next });
  await rootActor.kill();
  await user.kill();
  const reader = await fixture.actor({ as: AS_NOBODY });
  const reopened = await reader.do('open', { path });
  expect(reopened.ok !== undefined, 'the user to open the store again', reopened);
  expect((await reader.must('values', { session: 'a' })).length >= next, 'all values', 'fewer');
}

/** Another user occupies the abstract socket name of an owner: the store still opens. */
async function occupiedName(fixture) {
  shareFolder(fixture);
  const { path } = fixture;
  mkdirSync(dirname(path), { mode: 0o700 });
  const { dev, ino, birthtimeMs } = statSync(dirname(path));
  const digest = createHash('sha256').update(`${dev}:${ino}:${birthtimeMs} j.db`).digest('base64url');
  const script = `require('net').createServer(() => {}).listen({ path: '\\0rondo-0-${digest}' }, () => console.log('x'))`;
  const [command = '', ...args] = [...AS_NOBODY, process.execPath, '-e', script];
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'ignore'] });
  fixture.atEnd(() => child.kill('SIGKILL'));
  await new Promise((resolve) => child.stdout.once('data', resolve));
  const actor = await fixture.actor();
  await actor.fill(path);
}

/** A store at a long path works with any runtime directory, and no file is created at the target of a link. */
async function runtimeDirectory(fixture, create) {
  const { folder } = fixture;
  const runtimeFolder = join(folder, 'run');
  mkdirSync(runtimeFolder, { mode: 0o700 });
  mkdirSync(join(folder, 'out'));
  create(join(runtimeFolder, 'rondo'), join(folder, 'out'));
  const path = join(folder, 'x'.repeat(70), 'y'.repeat(40), 'j.db');
  const env = { XDG_RUNTIME_DIR: runtimeFolder };
  const owner = await fixture.actor({ env });
  const { owner: ownership } = await owner.fill(path);
  expect(ownership.here, 'an owner', ownership);
  const client = await fixture.actor({ env });
  expect((await client.fill(path, 'b')).owner.here === false, 'a client', 'an owner');
  expect(
    readdirSync(join(folder, 'out')).length === 0,
    'no file in the other directory',
    readdirSync(join(folder, 'out')),
  );
}

/** Creates the directory for sockets. */
const runtimeDirectories = {
  absent: () => {},
  private: (path) => mkdirSync(path, { mode: 0o700 }),
  wide: (path) => {
    mkdirSync(path);
    chmodSync(path, 0o755);
  },
  'of-another-user': (path) => {
    mkdirSync(path, { mode: 0o700 });
    chownSync(path, NOBODY, NOBODY);
  },
  link: (path, out) => symlinkSync(out, path),
  'dangling-link': (path) => symlinkSync('/nowhere', path),
  file: (path) => writeFileSync(path, ''),
};

export function cases() {
  const all = [];
  const add = (id, run, more = {}) => all.push({ id: `files.${id}`, run, ...more });
  for (const umask of ['000', '002', '022', '027', '077', '0177', '0277', '0400', '0777'])
    add(`umask.${umask}`, (fixture) => withUmask(fixture, umask));
  for (const mode of [0o644, 0o664, 0o666, 0o777, 0o640, 0o604])
    for (const how of ['closed', 'killed'])
      add(`narrowed.${mode.toString(8)}.${how}`, (fixture) => tightensModes(fixture, mode, how));
  for (const state of ['open', 'closed'])
    add(`user.stranger.${state}`, (fixture) => otherUserOpens(fixture, state), { waits: true });
  add('user.at-socket', otherUserConnects);
  for (const state of ['open', 'closed', 'killed'])
    add(`user.root-looks.${state}`, (fixture) => rootOpens(fixture, state), { waits: true });
  add('user.squatted-name', occupiedName, { waits: true });
  for (const [name, create] of Object.entries(runtimeDirectories))
    add(`runtime.${name}`, (fixture) => runtimeDirectory(fixture, create), { waits: true });
  return all;
}
