/** Who can keep the name of a database from its owner: another process of the same user, and nobody else. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, expect, onTestFinished } from 'vitest';
import { verifies } from '../../../../spec/verifies.js';
import { cleanUp, freshFile } from '../fixtures/stage.mjs';
import { holdName, nameOf } from './name.js';

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
  const held = await holdName(file);
  expect(held).toBeDefined();
  expect(await holdName(file)).toBeUndefined();
  held?.release();
  await heldElsewhere(nameOf(file));
  expect(await holdName(file)).toBeUndefined();
});

verifies('sqlite.owner', 'a name that another user took keeps nobody out', async (context) => {
  context.skip(!isLinux || process.getuid?.() !== 0, 'needs root, to become another user');
  const file = freshFile();
  await heldElsewhere(nameOf(file), 65534);
  expect(await holdName(file)).toBeDefined();
});
