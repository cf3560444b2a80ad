/**
 * The owner's single connection to the database file. The connection enters WAL mode with normal locking, so that a
 * shared-memory file exists, and only then switches to exclusive locking. Transactions then take no file locks, and yet
 * a process that lost ownership sees the new owner's commits and its epoch.
 */
import { closeSync } from 'node:fs';
import { Fault } from '../../base/errors.js';
import { type Driver, readText } from './driver.js';
import { fillSharedMemory, reserveSharedMemory } from './shared-memory-file.js';
import { sqliteResultCode, toFault } from './sqlite-faults.js';

const SQLITE_BUSY = 5;

/**
 * What an acknowledged write survives. "fsync": a power failure. "os": the end of the process; a power failure may lose
 * the most recent writes.
 */
export type Durability = 'fsync' | 'os';

/** Returns the statements that set up a connection. The empty transaction opens the WAL and its shared-memory file. */
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

/**
 * Switches to exclusive locking. Returns to normal locking if another connection, such as an abandoned one, has locks.
 */
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

/** Closes the connections to a file that this process abandoned earlier, then opens the file for its owner. */
export function openConnection(path: string, durability: Durability, open: (path: string) => Driver): Driver {
  try {
    closeAbandonedConnections(path);
    reserveSharedMemory(path);
    const driver = open(path);
    try {
      for (const sql of setupStatements(durability)) driver.exec(sql);
      keepExclusiveLocks(driver);
      return withDescriptor(driver, fillSharedMemory(path));
    } catch (error) {
      tryToReleaseLocks(driver);
      driver.close();
      throw error;
    }
  } catch (error) {
    throw toFault(error, 'Opening', path);
  }
}

/** Returns a connection that closes a descriptor after itself. */
function withDescriptor(driver: Driver, descriptor: number | undefined): Driver {
  if (descriptor === undefined) return driver;
  const close = (): void => {
    try {
      driver.close();
    } finally {
      closeSync(descriptor);
    }
  };
  return { exec: (sql) => driver.exec(sql), prepare: (sql) => driver.prepare(sql), close };
}

/**
 * Releases the file locks. Closing is not enough, because a libsql connection stays open until its statements are
 * garbage-collected. SQLite drops the exclusive locks at the first read after the change of the mode.
 */
function releaseLocks(driver: Driver): void {
  driver.exec('PRAGMA locking_mode=NORMAL');
  driver.prepare('SELECT count(*) AS n FROM sqlite_master').all();
}

/**
 * Rolls back an open transaction and releases the locks. Ignores failures, because another process may own the file.
 */
function tryToReleaseLocks(driver: Driver): void {
  for (const step of [() => driver.exec('ROLLBACK'), () => releaseLocks(driver)]) {
    try {
      step();
    } catch {
      // No transaction was open, the new owner has locked the file, or the disk fails.
    }
  }
}

/** Releases the exclusive locks, checkpoints and removes the WAL, and closes the connection, even if a step throws. */
export function closeConnection(driver: Driver): void {
  try {
    releaseLocks(driver);
    // If the disk is full, this fails and the WAL stays open. The next statement would fail too, and close the WAL; what
    // follows would open it again, and make a new shared-memory file, with holes (shared-memory-file.ts).
    // guard: full-wal-stays-open
    driver.exec('PRAGMA wal_checkpoint(PASSIVE)');
    driver.exec('PRAGMA journal_mode=DELETE');
    driver.prepare('SELECT count(*) AS n FROM sqlite_master').all();
  } catch (error) {
    tryToReleaseLocks(driver);
    throw error;
  } finally {
    driver.close();
  }
}

/**
 * Connections to databases that another process may own, by path. Closing one could remove the WAL that the owner uses.
 */
const abandonedConnections = new Map<string, Driver[]>();

/**
 * Releases the locks of a connection without writing. The connection is closed when this process opens the file again.
 */
export function abandonConnection(driver: Driver, path: string): void {
  abandonedConnections.set(path, [...(abandonedConnections.get(path) ?? []), driver]);
  tryToReleaseLocks(driver);
}

/** Closes what this process abandoned. Errors are ignored: the files were removed, replaced or shortened meanwhile. */
function closeAbandonedConnections(path: string): void {
  const abandoned = abandonedConnections.get(path) ?? [];
  abandonedConnections.delete(path);
  for (const driver of abandoned) {
    try {
      closeConnection(driver);
    } catch {
      // It is closed all the same.
    }
  }
}

/** Throws if SQLite could not enter WAL mode, for example on a network file system. */
export function assertWalMode(driver: Driver, path: string): void {
  const [row] = driver.prepare('PRAGMA journal_mode').all();
  const mode = readText(row?.journal_mode);
  if (mode === 'wal') return;
  throw new Fault(
    'STORE_FAILED',
    `${path} cannot use a write-ahead log on this file system (journal mode "${mode}"). Choose a local directory.`,
    {
      path,
    },
  );
}
