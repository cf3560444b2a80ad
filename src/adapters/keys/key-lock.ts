/**
 * A lock among the processes that change a directory of keys. It is a file that names its owner. The lock of a process
 * that has ended is taken over.
 */
import { randomUUID } from 'node:crypto';
import { type FileHandle, open, readFile, rename, rm, stat } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { Fault } from '../../base/errors.js';
import { writeFault } from './write-fault.js';

const RETRY_MS = 10;
const MAX_WAIT_MS = 10_000;
/** A lock without an owner is that of a process that crashed while it wrote it. */
const EMPTY_LOCK_MS = 2000;

/** Runs `work` while no other process holds the lock. */
export async function withKeyLock<T>(path: string, work: () => Promise<T>): Promise<T> {
  await acquire(path);
  try {
    return await work();
  } finally {
    await rm(path, { force: true });
  }
}

async function acquire(path: string): Promise<void> {
  for (let waitedMs = 0; waitedMs < MAX_WAIT_MS; waitedMs += RETRY_MS) {
    if (await create(path)) return;
    const isAbandoned = await hasEndedOwner(path);
    if (isAbandoned) await takeAway(path);
    else await sleep(RETRY_MS);
  }
  throw new Fault(
    'KEYS_UNUSABLE',
    `Another process has been changing the keys for too long. If none is, remove ${path}.`,
  );
}

async function create(path: string): Promise<boolean> {
  try {
    const file = await open(path, 'wx', 0o600);
    await writeOwner(file, path);
    return true;
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw writeFault(path, `The keys cannot be changed: ${path} cannot be written.`, thrown);
  }
}

/** Writes this process into a lock that it has created. A lock without an owner would delay the next process. */
async function writeOwner(file: FileHandle, path: string): Promise<void> {
  try {
    await file.writeFile(`${process.pid}`);
  } catch (thrown) {
    await rm(path, { force: true });
    throw thrown;
  } finally {
    await file.close();
  }
}

/** Removes an abandoned lock. Renaming it first ensures that of several processes only one removes it. */
async function takeAway(path: string): Promise<void> {
  const removed = `${path}.${randomUUID()}`;
  await rename(path, removed).catch(() => {});
  await rm(removed, { force: true });
}

async function hasEndedOwner(path: string): Promise<boolean> {
  try {
    const owner = Number(await readFile(path, 'utf8'));
    if (owner > 0) return !isRunning(owner);
    return Date.now() - (await stat(path)).mtimeMs > EMPTY_LOCK_MS;
  } catch {
    return false;
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (thrown) {
    return (thrown as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}
