/** Stores that a sandboxed command could see: how long they wait, for which commands, and what they announce. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, expect, onTestFinished } from 'vitest';
import { inodeAt } from '../../../spec/support/exposed-command.js';
import { cleanUp, expectFault, freshFile } from '../../../spec/support/sqlite-fixture.mjs';
import { verifies } from '../../../spec/verifies.js';
import { Announcement, type AnnouncementKind, listAnnouncements } from '../../base/announcement.js';
import { openDriver, openSqlite } from './index.js';
import { waitUntilUnexposed } from './sandbox-exposure.js';

afterAll(cleanUp);

const isLinux = process.platform === 'linux';
/** Only root can become another user. */
const isRootOnLinux = isLinux && process.getuid?.() === 0;

/** Announces a directory until the test ends. */
async function announce(kind: AnnouncementKind, directory: string, announcement = new Announcement()) {
  await announcement.add(kind, [inodeAt(directory)]);
  onTestFinished(() => announcement.release());
  return announcement;
}

verifies(
  'toolbox.data.new',
  'a store that waits too long for a command is refused with the pid of its process',
  async (context) => {
    context.skip(!isLinux, 'needs Linux');
    const file = join(dirname(freshFile()), 'new/directory/store.db');
    await announce('command', dirname(dirname(dirname(file))));
    const fault = await expectFault(waitUntilUnexposed(file, {}, 100));
    expect(fault).toMatchObject({ code: 'STORE_FAILED', data: { path: file, pid: process.pid } });
    expect(fault.message).toMatch(/Wait until that command has ended, or choose a directory outside of its roots\.$/);
    expect(existsSync(dirname(file))).toBe(false);
  },
);

verifies(
  'toolbox.data.new',
  'a store does not wait for a command in another directory, or for one that hides it',
  async (context) => {
    context.skip(!isLinux, 'needs Linux');
    const file = freshFile();
    await announce('command', dirname(freshFile()));
    const hiding = await announce('command', dirname(dirname(file)));
    await announce('hides', dirname(file), hiding);
    const covering = await announce('command', dirname(file));
    await announce('covers', dirname(file), covering);
    (await waitUntilUnexposed(file, {}, 0)).release();
    await announce('covers', dirname(dirname(file)), await announce('command', dirname(file)));
    expect(await expectFault(waitUntilUnexposed(file, {}, 0))).toMatchObject({ code: 'STORE_FAILED' });
  },
);

verifies('toolbox.data.new', 'a store is announced while it is created, and not once it exists', async (context) => {
  context.skip(!isLinux, 'needs Linux');
  const file = join(dirname(freshFile()), 'new/store.db');
  const announcedAtOpen: boolean[] = [];
  const driver = (path: string) => {
    const directories = listAnnouncements().flatMap(({ kind, directory }) => (kind === 'store' ? [directory] : []));
    const ancestors = [dirname(path), dirname(dirname(path))].map(inodeAt);
    announcedAtOpen.push(ancestors.every((directory) => directories.includes(directory)));
    return openDriver(path);
  };
  await (await openSqlite(file, { driver })).close();
  const duringCreation = announcedAtOpen.splice(0);
  expect(duringCreation.length).toBeGreaterThan(0);
  expect(duringCreation).not.toContain(false);
  expect(listAnnouncements().filter(({ pid }) => pid === process.pid)).toEqual([]);
  await (await openSqlite(file, { driver })).close();
  expect(announcedAtOpen).toEqual(duringCreation.map(() => false));
});

verifies('toolbox.data.new', 'an announcement of another user does not delay a store', async (context) => {
  context.skip(!isRootOnLinux, 'needs Linux and root');
  const file = freshFile();
  const name = `rondo-command-${process.pid}-${'0'.repeat(16)}-${inodeAt(dirname(file)).replace(':', '-')}`;
  const program = `require('node:net').createServer().listen({ path: '\\0${name}' }, () => console.log('held'))`;
  const options = { uid: 65534, cwd: '/', stdio: ['ignore', 'pipe', 'inherit'] as ['ignore', 'pipe', 'inherit'] };
  const child = spawn(process.execPath, ['-e', program], options);
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  expect(listAnnouncements().map(({ directory }) => directory)).toContain(inodeAt(dirname(file)));
  (await waitUntilUnexposed(file, {}, 0)).release();
});
