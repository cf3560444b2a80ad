/** The lock and the abstract name of a database: who holds them, and who cannot keep them from an owner. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, expect, onTestFinished } from 'vitest';
import { cleanUp, freshFile } from '../../../../spec/support/sqlite-fixture.mjs';
import { verifies } from '../../../../spec/verifies.js';
import { abstractNameOf, tryToHoldName } from './abstract-name.js';
import { lockHolderOf, tryToLock } from './lock.js';
import { thisProcess } from './process.js';

afterAll(cleanUp);

const isLinux = process.platform === 'linux';

/** Starts a process that holds a name, as this user or as another one. */
async function holdInOtherProcess(name: string, uid?: number): Promise<void> {
  const program = `require('node:net').createServer().listen({ path: '\\0${name}' }, () => console.log('held'))`;
  const child = spawn(process.execPath, ['-e', program], { uid, cwd: '/', stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child.stdout, 'data');
}

verifies('sqlite.owner', 'an abstract name is held by one process of a user at a time', async (context) => {
  context.skip(!isLinux, 'needs Linux');
  const file = freshFile();
  const held = await tryToHoldName(file);
  expect(held).toBeDefined();
  expect(await tryToHoldName(file)).toBeUndefined();
  held?.release();
  await holdInOtherProcess(abstractNameOf(file));
  expect(await tryToHoldName(file)).toBeUndefined();
});

verifies('sqlite.owner', 'an abstract name that another user holds does not block an owner', async (context) => {
  context.skip(!isLinux, 'needs Linux');
  const file = freshFile();
  // Only root can start a process as another user. Otherwise the process must count as one of this user.
  const isRoot = process.getuid?.() === 0;
  await holdInOtherProcess(abstractNameOf(file), isRoot ? 65534 : undefined);
  expect((await tryToHoldName(file)) !== undefined).toBe(isRoot);
});

verifies(
  'sqlite.silence',
  'the process that holds the lock is identified before it writes an owner file',
  async (context) => {
    context.skip(!isLinux, 'needs Linux');
    const file = freshFile();
    expect(lockHolderOf(file)).toBeUndefined();
    const lock = await tryToLock(file);
    expect(lockHolderOf(file)).toEqual(thisProcess());
    lock?.release();
    expect(lockHolderOf(file)).toBeUndefined();
  },
);
