/**
 * The lock of the owner: an exclusive SQLite lock on a file of its own, which the system drops when the process ends. It is a
 * POSIX lock, so code in the same process that opens and closes the file drops it as well; that is why a free lock alone never
 * makes a new owner. On Linux a name in the abstract socket namespace is held beside it, which no file operation can drop.
 */
import { readFileSync, statSync } from 'node:fs';
import { Fault } from '../../../base/errors.js';
import { openDriver } from '../driver.js';
import { ensureFile } from '../files.js';
import { sqliteResultCode, toFault } from '../sqlite-faults.js';
import { tryToHoldName } from './abstract-name.js';
import { type ProcessId, processIdOf } from './process.js';

const SQLITE_BUSY = 5;

export interface OwnerLock {
  release(): void;
}

/** Takes the lock of a database; undefined if another process, or another store in this one, has it. */
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

/** The process that has the lock of a database, where the system tells. */
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

function tryToLockFile(path: string): OwnerLock | undefined {
  ensureFile(path);
  // Nothing is ever written to it, and SQLite reads nothing beside an empty file.
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
      // A libsql connection may outlive its close, so the lock is given back first.
      driver.exec('ROLLBACK');
      driver.close();
    },
  };
}

function foreignLockFileFault(path: string): Fault {
  const message = `${path} is not a lock of ours. Remove it while no process uses the store.`;
  return new Fault('STORE_DAMAGED', message, { path });
}
