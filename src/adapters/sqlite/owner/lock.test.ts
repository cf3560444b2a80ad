/** The lock and the name of a database: who has them, and who can keep them from an owner. */
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

/** A process that holds a name, as this user or another one. */
async function heldElsewhere(name: string, uid?: number): Promise<void> {
  const program = `require('node:net').createServer().listen({ path: '\\0${name}' }, () => console.log('held'))`;
  const child = spawn(process.execPath, ['-e', program], { uid, cwd: '/', stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child.stdout, 'data');
}

verifies('sqlite.owner', 'a name is held by one process of a user at a time', async (context) => {
  context.skip(!isLinux, 'needs Linux');
  const file = freshFile();
  const held = await tryToHoldName(file);
  expect(held).toBeDefined();
  expect(await tryToHoldName(file)).toBeUndefined();
  held?.release();
  await heldElsewhere(abstractNameOf(file));
  expect(await tryToHoldName(file)).toBeUndefined();
});

verifies('sqlite.owner', 'a name that another user took keeps nobody out', async (context) => {
  context.skip(!isLinux, 'needs Linux');
  const file = freshFile();
  // Only root can become another user; as anybody else the process has to be seen as one of ours.
  const isRoot = process.getuid?.() === 0;
  await heldElsewhere(abstractNameOf(file), isRoot ? 65534 : undefined);
  expect((await tryToHoldName(file)) !== undefined).toBe(isRoot);
});

verifies('sqlite.silence', 'the process that has the lock is known before it leaves a record', async (context) => {
  context.skip(!isLinux, 'needs Linux');
  const file = freshFile();
  expect(lockHolderOf(file)).toBeUndefined();
  const lock = await tryToLock(file);
  expect(lockHolderOf(file)).toEqual(thisProcess());
  lock?.release();
  expect(lockHolderOf(file)).toBeUndefined();
});
