// Other users of the machine, and files whose modes are too wide.

import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, chownSync, lstatSync, mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Broken, expect, expectFault, root } from '../support/store-attack.mjs';
import { assertAll } from './records.mjs';

const NOBODY = 65_534;
const AS_NOBODY = ['setpriv', '--reuid', String(NOBODY), '--regid', String(NOBODY), '--clear-groups'];
const REFUSED = ['STORE_READ_ONLY', 'STORE_FAILED', 'STORE_OWNED'];

/** Lets another user reach the directory of the case. @param {import('../support/store-attack.mjs').Stage} stage */
function opened(stage) {
  if (process.getuid?.() !== 0) throw new Broken('skipped: only root can act as another user');
  chmodSync(root, 0o711);
  chmodSync(stage.folder, 0o755);
}

/** A directory that the other user may write. @param {import('../support/store-attack.mjs').Stage} stage */
function givenAway(stage) {
  opened(stage);
  mkdirSync(dirname(stage.path), { mode: 0o700 });
  chownSync(dirname(stage.path), NOBODY, NOBODY);
}

/** Files of the store, with those modes that are not as promised. @param {string} path */
function wide(path) {
  const all = readdirSync(dirname(path)).map((name) => [name, lstatSync(join(dirname(path), name)).mode & 0o777]);
  return all.filter(([, mode]) => mode !== 0o600).map(([name, mode]) => `${name} ${mode.toString(8)}`);
}

/** @param {import('../support/store-attack.mjs').Stage} stage @param {string} umask */
async function umasked(stage, umask) {
  const { path } = stage;
  const actor = await stage.actor({ as: ['sh', '-c', `umask ${umask}; exec "$0" "$@"`] });
  await actor.fill(path);
  expect(
    (statSync(dirname(path)).mode & 0o777) === 0o700,
    'a directory of mode 0700',
    statSync(dirname(path)).mode.toString(8),
  );
  expect(wide(path).length === 0, 'files of mode 0600', wide(path));
  const client = await stage.actor({ as: ['sh', '-c', `umask ${umask}; exec "$0" "$@"`] });
  await client.fill(path, 'b');
  await actor.kill();
  await client.must('append', { session: 'b', fence: 1, first: 3 });
  expect(wide(path).length === 0, 'files of mode 0600 after a takeover', wide(path));
  await client.must('close');
  expect(wide(path).length === 0, 'files of mode 0600 after the closing', wide(path));
}

/** Files that were too wide are made private. */
async function narrowed(stage, mode, how) {
  const { path } = stage;
  const maker = await stage.actor();
  await maker.fill(path);
  if (how === 'closed') await maker.must('close');
  await maker.kill();
  for (const name of readdirSync(dirname(path)))
    if (!name.endsWith('.sock')) chmodSync(join(dirname(path), name), mode);
  const actor = await stage.actor();
  await actor.fill(path, 'b');
  expect(wide(path).length === 0, 'files of mode 0600', wide(path));
}

/** Another user in front of a store that is not his. */
async function stranger(stage, state) {
  opened(stage);
  const { path } = stage;
  const owner = await stage.actor();
  const { next } = await owner.fill(path);
  chmodSync(dirname(path), 0o755);
  if (state === 'closed') await owner.must('close');
  const other = await stage.actor({ as: AS_NOBODY });
  expectFault(await other.do('open', { path }), REFUSED);
  await owner.kill();
  await assertAll(stage, path, new Map([['a', next]]));
}

/** Another user at the socket, in a directory that is open. */
async function atSocket(stage) {
  opened(stage);
  const { path } = stage;
  const owner = await stage.actor();
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

/** Root looks at the store of a user, who then goes on. */
async function rootLooks(stage, state) {
  givenAway(stage);
  const { path } = stage;
  const user = await stage.actor({ as: AS_NOBODY });
  const { fence, next } = await user.fill(path);
  if (state === 'closed') await user.must('close');
  if (state === 'killed') await user.kill();
  const rooted = await stage.actor();
  const answer = await rooted.do('open', { path });
  expect(answer.fault?.code === 'STORE_READ_ONLY', 'root to be refused like any other user', answer);
  expect(answer.fault.message.includes('65534'), 'the user of the store to be named', answer.fault);
  if (state === 'open') await user.must('append', { session: 'a', fence, first: next });
  await rooted.kill();
  await user.kill();
  const again = await stage.actor({ as: AS_NOBODY });
  const opening = await again.do('open', { path });
  expect(opening.ok !== undefined, 'the user to open the store again', opening);
  expect((await again.must('values', { session: 'a' })).length >= next, 'all values', 'fewer');
}

/** Another user holds the name in the abstract namespace that an owner would take. */
async function squatted(stage) {
  opened(stage);
  const { path } = stage;
  mkdirSync(dirname(path), { mode: 0o700 });
  const { dev, ino, birthtimeMs } = statSync(dirname(path));
  const digest = createHash('sha256').update(`${dev}:${ino}:${birthtimeMs} j.db`).digest('base64url');
  const script = `require('net').createServer(() => {}).listen({ path: '\\0rondo-0-${digest}' }, () => console.log('x'))`;
  const [command = '', ...args] = [...AS_NOBODY, process.execPath, '-e', script];
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'ignore'] });
  stage.atEnd(() => child.kill('SIGKILL'));
  await new Promise((resolve) => child.stdout.once('data', resolve));
  const actor = await stage.actor();
  await actor.fill(path);
}

/** The directory for sockets of long paths is not one that only this user can enter. */
async function runtime(stage, make) {
  const { folder } = stage;
  const runtimeFolder = join(folder, 'run');
  mkdirSync(runtimeFolder, { mode: 0o700 });
  mkdirSync(join(folder, 'out'));
  make(join(runtimeFolder, 'rondo'), join(folder, 'out'));
  const path = join(folder, 'x'.repeat(70), 'y'.repeat(40), 'j.db');
  const env = { XDG_RUNTIME_DIR: runtimeFolder };
  const owner = await stage.actor({ env });
  const { owner: who } = await owner.fill(path);
  expect(who.here, 'an owner', who);
  const client = await stage.actor({ env });
  expect((await client.fill(path, 'b')).owner.here === false, 'a client', 'an owner');
  expect(
    readdirSync(join(folder, 'out')).length === 0,
    'nothing in the directory of another',
    readdirSync(join(folder, 'out')),
  );
}

const runtimes = {
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
    add(`umask.${umask}`, (stage) => umasked(stage, umask));
  for (const mode of [0o644, 0o664, 0o666, 0o777, 0o640, 0o604])
    for (const how of ['closed', 'killed'])
      add(`narrowed.${mode.toString(8)}.${how}`, (stage) => narrowed(stage, mode, how));
  for (const state of ['open', 'closed'])
    add(`user.stranger.${state}`, (stage) => stranger(stage, state), { waits: true });
  add('user.at-socket', atSocket);
  for (const state of ['open', 'closed', 'killed'])
    add(`user.root-looks.${state}`, (stage) => rootLooks(stage, state), { waits: true });
  add('user.squatted-name', squatted, { waits: true });
  for (const [name, make] of Object.entries(runtimes))
    add(`runtime.${name}`, (stage) => runtime(stage, make), { waits: true });
  return all;
}
