/** Who becomes the owner, and what a former owner leaves behind. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync } from 'node:fs';
import { connect } from 'node:net';
import { dirname } from 'node:path';
import { afterAll, expect, onTestFinished } from 'vitest';
import { builtStoreUrl, cleanUp, freshFile, ownerScriptPath, root } from '../../../../spec/support/sqlite-fixture.mjs';
import { verifies } from '../../../../spec/verifies.js';
import { tryToAcquireOwnership } from './acquire.js';
import { socketAddressFor } from './socket-address.js';

afterAll(cleanUp);

const NOBODY = 65534;
const isLinux = process.platform === 'linux';
const isRoot = process.getuid?.() === 0;

/** Connects to an address; resolves with the error code if that fails. */
function tryToConnect(path: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ path });
    onTestFinished(() => void socket.destroy());
    socket.once('connect', () => resolve(undefined));
    socket.once('error', ({ code }: NodeJS.ErrnoException) => resolve(code));
  });
}

verifies(
  'sqlite.owner',
  'a process that listens but accepts no connection counts as alive, even with a full backlog',
  async (context) => {
    // On other platforms a full backlog refuses connections like a socket without a listener.
    context.skip(!isLinux, 'needs Linux');
    const file = freshFile();
    const path = socketAddressFor(file);
    const program = `require('node:net').createServer().listen({ path: ${JSON.stringify(path)}, backlog: 1 }, () => {
      require('node:fs').writeSync(1, 'listening');
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
    })`;
    const child = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] });
    onTestFinished(() => void child.kill('SIGKILL'));
    await once(child.stdout, 'data');
    let code: string | undefined;
    for (let n = 0; n < 10 && code === undefined; n++) code = await tryToConnect(path);
    expect(code).toBe('EAGAIN');
    expect(await tryToAcquireOwnership(file)).toContain('something listens');
  },
);

/**
 * Runs a process that loses its store in a read-only directory. Returns the error code and the remaining owner file.
 */
function loseStore(mode: string): { code: string; record: string } {
  const file = freshFile();
  chmodSync(root, 0o755);
  if (isRoot) chownSync(dirname(file), NOBODY, NOBODY);
  const user = isRoot ? String(NOBODY) : '';
  const { stdout, stderr } = spawnSync(
    process.execPath,
    [ownerScriptPath, builtStoreUrl, file, 'surrender', user, mode],
    {
      encoding: 'utf8',
    },
  );
  chmodSync(dirname(file), 0o700);
  expect(stderr).toBe('');
  return JSON.parse(stdout);
}

verifies('sqlite.owner', 'a former owner that cannot remove its owner file empties it', () => {
  expect(loseStore('600')).toEqual({ code: 'OWNERSHIP_LOST', record: '' });
});

verifies('sqlite.owner', 'a former owner that can neither remove nor empty its owner file continues to run', () => {
  const { code, record } = loseStore('400');
  expect(code).toBe('OWNERSHIP_LOST');
  expect(record).not.toBe('');
});
