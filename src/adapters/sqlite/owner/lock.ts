/**
 * The owner's lock: an exclusive SQLite lock on a dedicated file, which the system releases when the process ends. It
 * is a POSIX lock, so code in the same process that opens and closes the file drops it too; a free lock alone therefore
 * never makes a new owner. On Linux the owner also holds a name in the abstract socket namespace, which no file
 * operation can drop.
 */
import { randomUUID } from 'node:crypto';
import { readFileSync, rmSync, statSync } from 'node:fs';
import { Fault } from '../../../base/errors.js';
import { openDriver } from '../driver.js';
import { ensureFile } from '../files.js';
import { sqliteResultCode, toFault } from '../sqlite-faults.js';
import { tryToHoldName } from './abstract-name.js';
import { type ProcessId, processIdOf } from './process.js';

const SQLITE_BUSY = 5;

/** A lock that this process holds. */
export interface OwnerLock {
  release(): void;
}

/** Takes the lock of a database; undefined if another process, or another store in this process, holds it. */
export async function tryToLock(database: string): Promise<OwnerLock | undefined> {
  const file = tryToLockFile(`${database}.lock`);
  if (file === undefined) return undefined;
  const name = await tryToHoldName(database).catch((error) => {
    file.release();
    throw error;
  });
  if (name === undefined) {
    file.release();
    return undefined;
  }
  return {
    release: () => {
      name.release();
      file.release();
    },
  };
}

/**
 * Returns the process that holds the lock of a database; undefined if there is none or the platform has no /proc/locks.
 * Compares the inode number only, so the result is meant for messages.
 */
export function lockHolderOf(database: string): ProcessId | undefined {
  try {
    const { ino } = statSync(`${database}.lock`);
    const line = readFileSync('/proc/locks', 'latin1')
      .split('\n')
      .find((entry) => entry.includes(`:${ino} `));
    const pid = Number(line?.trim().split(/\s+/)[4]);
    return pid > 0 ? processIdOf(pid) : undefined;
  } catch {
    return undefined;
  }
}

/**
 * True if nobody gets a lock beside this database, not even on a new file that no other process knows. SQLite does not tell
 * that (ENOLCK) from a lock that is taken.
 */
export function areLocksRefused(database: string): boolean {
  const path = `${database}.lock.${randomUUID()}`;
  try {
    const lock = tryToLockFile(path);
    lock?.release();
    return lock === undefined;
  } catch {
    return false;
  } finally {
    rmSync(path, { force: true });
  }
}

/** Returns the Fault of a store whose file system refuses locks. */
export function refusedLocksFault(database: string): Fault {
  const message = `${database} cannot be locked, and has no other owner: the system refuses locks in its directory (ENOLCK). Choose a directory on a local disk, or raise the limit of locks.`;
  return new Fault('STORE_FAILED', message, { path: database });
}

/** Takes the exclusive SQLite lock of a file; undefined if it is taken. Throws if the file is not empty. */
function tryToLockFile(path: string): OwnerLock | undefined {
  ensureFile(path);
  // The lock file always stays empty, and SQLite ignores a journal next to an empty database.
  if (statSync(path).size > 0) throw foreignLockFileFault(path);
  const driver = openDriver(path);
  try {
    driver.exec('PRAGMA busy_timeout=0');
    driver.exec('PRAGMA journal_mode=MEMORY');
    driver.exec('BEGIN EXCLUSIVE');
  } catch (error) {
    driver.close();
    if (sqliteResultCode(error) === SQLITE_BUSY) return undefined;
    throw toFault(error, 'Locking', path);
  }
  return {
    release: () => {
      // A libsql connection may outlive its close, so the lock is released first.
      driver.exec('ROLLBACK');
      driver.close();
    },
  };
}

function foreignLockFileFault(path: string): Fault {
  const message = `${path} is not a lock file of a Rondo store. Remove it while no process uses the store.`;
  return new Fault('STORE_DAMAGED', message, { path });
}
