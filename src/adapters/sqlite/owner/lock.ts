/**
 * The lock of the owner: an exclusive SQLite lock on a file of its own, which the system drops when the process ends. It is a
 * POSIX lock, so code in the same process that opens and closes the file drops it as well; that is why a free lock alone never
 * makes a new owner.
 */
import { openDriver } from '../driver.js';
import { faultOf, resultCode } from '../failure.js';
import { ensureFile } from '../files.js';

const SQLITE_BUSY = 5;

export interface OwnerLock {
  release(): void;
}

/** Takes the lock of a database; undefined if another process, or another store in this one, has it. */
export function takeLock(database: string): OwnerLock | undefined {
  const path = `${database}.lock`;
  ensureFile(path);
  const driver = openDriver(path);
  try {
    driver.exec('PRAGMA busy_timeout=0');
    driver.exec('BEGIN EXCLUSIVE');
  } catch (error) {
    driver.close();
    if (resultCode(error) === SQLITE_BUSY) return undefined;
    throw faultOf(error, 'Locking', path);
  }
  return {
    release: () => {
      // A libsql connection may outlive its close, so the lock is given back first.
      driver.exec('ROLLBACK');
      driver.close();
    },
  };
}
