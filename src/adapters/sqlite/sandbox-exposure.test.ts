/** Stores that a sandboxed command would see: how long they wait, for whom, and what they announce. */
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
async function announced(kind: AnnouncementKind, directory: string, announcement = new Announcement()) {
  await announcement.add(kind, [inodeAt(directory)]);
  onTestFinished(() => announcement.release());
  return announcement;
}

verifies(
  'toolbox.data.new',
  'a store that waits too long is refused with the process that it waits for',
  async (context) => {
    context.skip(!isLinux, 'needs Linux');
    const file = join(dirname(freshFile()), 'new/directory/store.db');
    await announced('command', dirname(dirname(dirname(file))));
    const fault = await expectFault(waitUntilUnexposed(file, {}, 100));
    expect(fault).toMatchObject({ code: 'STORE_FAILED', data: { path: file, pid: process.pid } });
    expect(fault.message).toMatch(/Wait until that command has ended, or choose a directory outside of its roots\.$/);
    expect(existsSync(dirname(file))).toBe(false);
  },
);

verifies('toolbox.data.new', 'a store waits for no command elsewhere, and for none that hides it', async (context) => {
  context.skip(!isLinux, 'needs Linux');
  const file = freshFile();
  await announced('command', dirname(freshFile()));
  const hiding = await announced('command', dirname(dirname(file)));
  await announced('hides', dirname(file), hiding);
  const covering = await announced('command', dirname(file));
  await announced('covers', dirname(file), covering);
  (await waitUntilUnexposed(file, {}, 0)).release();
  await announced('covers', dirname(dirname(file)), await announced('command', dirname(file)));
  expect(await expectFault(waitUntilUnexposed(file, {}, 0))).toMatchObject({ code: 'STORE_FAILED' });
});

verifies('toolbox.data.new', 'a store is announced while it is created, and not when it is there', async (context) => {
  context.skip(!isLinux, 'needs Linux');
  const file = join(dirname(freshFile()), 'new/store.db');
  const seen: boolean[] = [];
  const driver = (path: string) => {
    const directories = listAnnouncements().flatMap(({ kind, directory }) => (kind === 'store' ? [directory] : []));
    const above = [dirname(path), dirname(dirname(path))].map(inodeAt);
    seen.push(above.every((directory) => directories.includes(directory)));
    return openDriver(path);
  };
  await (await openSqlite(file, { driver })).close();
  const before = seen.splice(0);
  expect(before.length).toBeGreaterThan(0);
  expect(before).not.toContain(false);
  expect(listAnnouncements().filter(({ pid }) => pid === process.pid)).toEqual([]);
  await (await openSqlite(file, { driver })).close();
  expect(seen).toEqual(before.map(() => false));
});

verifies('toolbox.data.new', 'what another user announces keeps no store waiting', async (context) => {
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
