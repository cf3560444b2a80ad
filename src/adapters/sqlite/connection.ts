/**
 * The one connection to the database file. WAL is entered with normal locking, so that there is a shared-memory file, and only
 * then made exclusive: transactions cost no locks, and yet a process that lost ownership sees the new owner's commits, and with
 * them the new epoch.
 */
import { Fault } from '../../base/errors.js';
import { type Driver, readText } from './driver.js';
import { sqliteResultCode, toFault } from './sqlite-faults.js';

const SQLITE_BUSY = 5;

/**
 * "fsync": an acknowledged write survives the loss of power. "os": it survives the end of the process, and is lost
 * with the last moments before a loss of power.
 */
export type Durability = 'fsync' | 'os';

const setupStatements = (durability: Durability): readonly string[] => [
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
function keepExclusiveLocks(driver: Driver): void {
  driver.exec('PRAGMA locking_mode=EXCLUSIVE');
  try {
    driver.exec('BEGIN IMMEDIATE');
    driver.exec('COMMIT');
  } catch (error) {
    if (sqliteResultCode(error) !== SQLITE_BUSY) throw error;
    driver.exec('PRAGMA locking_mode=NORMAL');
  }
}

/** Opens the file for its owner. */
export function openConnection(path: string, durability: Durability, open: (path: string) => Driver): Driver {
  try {
    for (const left of abandonedConnections.get(path) ?? []) closeConnection(left);
    abandonedConnections.delete(path);
    const driver = open(path);
    try {
      for (const sql of setupStatements(durability)) driver.exec(sql);
      keepExclusiveLocks(driver);
    } catch (error) {
      tryToReleaseLocks(driver);
      driver.close();
      throw error;
    }
    return driver;
  } catch (error) {
    throw toFault(error, 'Opening', path);
  }
}

/** Gives the locks back. A libsql connection lives on until its statements are collected, so it must be done by hand. */
function releaseLocks(driver: Driver): void {
  driver.exec('PRAGMA locking_mode=NORMAL');
  driver.prepare('SELECT count(*) AS n FROM sqlite_master').all();
}

/** The same for a connection that is given up: whatever fails, somebody else has the file now. */
function tryToReleaseLocks(driver: Driver): void {
  for (const attempt of [() => driver.exec('ROLLBACK'), () => releaseLocks(driver)]) {
    try {
      attempt();
    } catch {
      // No transaction was open; the new owner has the file for itself; or the disk fails.
    }
  }
}

/** Checkpoints, gives the locks back and closes. */
export function closeConnection(driver: Driver): void {
  try {
    releaseLocks(driver);
    driver.exec('PRAGMA journal_mode=DELETE');
    driver.prepare('SELECT count(*) AS n FROM sqlite_master').all();
  } catch (error) {
    tryToReleaseLocks(driver);
    throw error;
  } finally {
    driver.close();
  }
}

/** Connections to databases that belong to another process now: closing one could remove the WAL under its owner. */
const abandonedConnections = new Map<string, Driver[]>();

/** Gives up a connection without another write: it only hands back its locks. It is closed when this process owns the file again. */
export function abandonConnection(driver: Driver, path: string): void {
  abandonedConnections.set(path, [...(abandonedConnections.get(path) ?? []), driver]);
  tryToReleaseLocks(driver);
}

/** Refuses a file system on which SQLite could not keep a WAL. */
export function assertWalMode(driver: Driver, path: string): void {
  const [row] = driver.prepare('PRAGMA journal_mode').all();
  const mode = readText(row?.journal_mode);
  if (mode === 'wal') return;
  throw new Fault('STORE_FAILED', `${path} cannot be kept with a write-ahead log here (journal mode "${mode}").`, {
    path,
  });
}
