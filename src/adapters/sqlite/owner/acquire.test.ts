/** Who becomes the owner, and what one leaves behind that no longer is. */
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

/** Connects to an address; the code of the error, if it cannot. */
function connected(path: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ path });
    onTestFinished(() => void socket.destroy());
    socket.once('connect', () => resolve(undefined));
    socket.once('error', ({ code }: NodeJS.ErrnoException) => resolve(code));
  });
}

verifies(
  'sqlite.owner',
  'a process that listens and takes no connection is not taken for gone, however many wait for it',
  async (context) => {
    // Elsewhere a full backlog refuses like a socket at which nobody listens.
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
    for (let n = 0; n < 10 && code === undefined; n++) code = await connected(path);
    expect(code).toBe('EAGAIN');
    expect(await tryToAcquireOwnership(file)).toContain('something listens');
  },
);

/** A process that loses a store in a directory from which it can remove nothing, and what it says at its end. */
function surrendered(mode: string): { code: string; record: string } {
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

verifies('sqlite.owner', 'the record of an owner that lost its store and cannot remove the record is emptied', () => {
  expect(surrendered('600')).toEqual({ code: 'OWNERSHIP_LOST', record: '' });
});

verifies('sqlite.owner', 'a process that lost its store and can neither remove nor empty its record goes on', () => {
  const { code, record } = surrendered('400');
  expect(code).toBe('OWNERSHIP_LOST');
  expect(record).not.toBe('');
});
