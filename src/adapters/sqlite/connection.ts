/**
 * The one connection to the database file. WAL is entered with normal locking, so that there is a shared-memory file, and only
 * then made exclusive: transactions cost no locks, and yet a process that lost ownership sees the new owner's commits, and with
 * them the new epoch.
 */
import { Fault } from '../../base/errors.js';
import { type Driver, text } from './driver.js';
import { faultOf, resultCode } from './failure.js';

const SQLITE_BUSY = 5;

/**
 * "fsync": an acknowledged write survives the loss of power. "os": it survives the end of the process, and is lost
 * with the last moments before a loss of power.
 */
export type Durability = 'fsync' | 'os';

const setup = (durability: Durability): readonly string[] => [
  'PRAGMA busy_timeout=0',
  'PRAGMA trusted_schema=OFF',
  'PRAGMA cell_size_check=ON',
  'PRAGMA mmap_size=0',
  'PRAGMA secure_delete=ON',
  'PRAGMA journal_mode=WAL',
  `PRAGMA synchronous=${durability === 'fsync' ? 'FULL' : 'NORMAL'}`,
  'PRAGMA wal_autocheckpoint=0',
  'BEGIN IMMEDIATE',
  'COMMIT',
];

/** Keeps the locks from now on. Where an older connection of this process still has some, transactions take them one by one. */
function keepLocks(driver: Driver): void {
  driver.exec('PRAGMA locking_mode=EXCLUSIVE');
  try {
    driver.exec('BEGIN IMMEDIATE');
    driver.exec('COMMIT');
  } catch (error) {
    if (resultCode(error) !== SQLITE_BUSY) throw error;
    driver.exec('PRAGMA locking_mode=NORMAL');
  }
}

/** Opens the file for its owner. */
export function connectTo(path: string, durability: Durability, open: (path: string) => Driver): Driver {
  try {
    for (const left of abandoned.get(path) ?? []) disconnect(left);
    abandoned.delete(path);
    const driver = open(path);
    try {
      for (const sql of setup(durability)) driver.exec(sql);
      keepLocks(driver);
    } catch (error) {
      tryToUnlock(driver);
      driver.close();
      throw error;
    }
    return driver;
  } catch (error) {
    throw faultOf(error, 'Opening', path);
  }
}

/** Gives the locks back. A libsql connection lives on until its statements are collected, so it must be done by hand. */
function unlock(driver: Driver): void {
  driver.exec('PRAGMA locking_mode=NORMAL');
  driver.prepare('SELECT count(*) AS n FROM sqlite_master').all();
}

/** The same for a connection that is given up: whatever fails, somebody else has the file now. */
function tryToUnlock(driver: Driver): void {
  for (const attempt of [() => driver.exec('ROLLBACK'), () => unlock(driver)]) {
    try {
      attempt();
    } catch {
      // No transaction was open; the new owner has the file for itself; or the disk fails.
    }
  }
}

/** Checkpoints, gives the locks back and closes. */
export function disconnect(driver: Driver): void {
  try {
    unlock(driver);
    driver.exec('PRAGMA journal_mode=DELETE');
    driver.prepare('SELECT count(*) AS n FROM sqlite_master').all();
  } catch (error) {
    tryToUnlock(driver);
    throw error;
  } finally {
    driver.close();
  }
}

/** Connections to databases that belong to another process now: closing one could remove the WAL under its owner. */
const abandoned = new Map<string, Driver[]>();

/** Gives up a connection without another write: it only hands back its locks. It is closed when this process owns the file again. */
export function abandon(driver: Driver, path: string): void {
  abandoned.set(path, [...(abandoned.get(path) ?? []), driver]);
  tryToUnlock(driver);
}

/** Refuses a file system on which SQLite could not keep a WAL. */
export function assertWal(driver: Driver, path: string): void {
  const [row] = driver.prepare('PRAGMA journal_mode').all();
  const mode = text(row?.journal_mode);
  if (mode === 'wal') return;
  throw new Fault('STORE_FAILED', `${path} cannot be kept with a write-ahead log here (journal mode "${mode}").`, {
    path,
  });
}
