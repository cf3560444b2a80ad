/**
 * Ownership of the file: one process, one connection, held by SQLite's own exclusive lock, which the system drops
 * when the process ends. The note beside the file tells others who the owner is; the lock alone decides.
 * Never open the database through `fs` in the owning process: closing any descriptor of it would drop the lock.
 */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { Fault } from '../../journal/errors.js';
import { type Driver, text } from './driver.js';
import { faultOf, resultCode } from './failure.js';

/**
 * "fsync": an acknowledged write survives the loss of power. "os": it survives the end of the process, and is lost
 * with the last moments before a loss of power.
 */
export type Durability = 'fsync' | 'os';

/** How long an owner that is just going may take, in milliseconds. */
const patience = 200;

const busy = 5;

function noteOf(path: string): string {
  return `${path}.owner`;
}

function ownerOf(path: string): number | undefined {
  try {
    const { pid } = JSON.parse(readFileSync(noteOf(path), 'utf8')) as { pid?: unknown };
    return typeof pid === 'number' ? pid : undefined;
  } catch {
    return undefined;
  }
}

function owned(path: string, cause: unknown): Fault {
  const pid = ownerOf(path);
  const other = pid === undefined ? 'another process' : `process ${pid}`;
  const who = pid === process.pid ? `this process (${pid})` : other;
  const message = `${path} is owned by ${who}. Ask that process, or stop it first.`;
  return new Fault('STORE_OWNED', message, { path, pid: pid ?? null }, cause);
}

/** Opens and locks the file, or throws what SQLite says. Exclusive before WAL: then there is no shared-memory file. */
function take(path: string, durability: Durability, open: (path: string) => Driver): Driver {
  const driver = open(path);
  try {
    driver.exec('PRAGMA busy_timeout=0');
    driver.exec('PRAGMA trusted_schema=OFF');
    driver.exec('PRAGMA cell_size_check=ON');
    driver.exec('PRAGMA mmap_size=0');
    driver.exec('PRAGMA secure_delete=ON');
    driver.exec('PRAGMA locking_mode=EXCLUSIVE');
    driver.exec('PRAGMA journal_mode=WAL');
    driver.exec(`PRAGMA synchronous=${durability === 'fsync' ? 'FULL' : 'NORMAL'}`);
    driver.exec('PRAGMA wal_autocheckpoint=0');
    driver.exec('BEGIN IMMEDIATE');
    driver.exec('COMMIT');
  } catch (error) {
    driver.close();
    throw error;
  }
  return driver;
}

/** Tells others who the owner is; without room for that the lock decides all the same. */
function leaveNote(path: string): void {
  try {
    writeFileSync(noteOf(path), JSON.stringify({ pid: process.pid }));
  } catch {
    rmSync(noteOf(path), { force: true });
  }
}

/** Becomes the owner, or is refused well within a second. */
export async function own(path: string, durability: Durability, open: (path: string) => Driver): Promise<Driver> {
  const until = performance.now() + patience;
  for (;;) {
    try {
      const driver = take(path, durability, open);
      leaveNote(path);
      return driver;
    } catch (error) {
      if (resultCode(error) !== busy) throw faultOf(error, 'Opening', path);
      if (performance.now() > until) throw owned(path, error);
    }
    // Two processes that start at once could refuse each other for ever; their pids tell them apart.
    await setTimeout(5 + (process.pid % 20));
  }
}

/** Checkpoints, gives the lock back and closes. */
export function disown(driver: Driver, path: string): void {
  try {
    rmSync(noteOf(path), { force: true });
    // A libsql connection lives on until its statements are collected, so the lock must be given back by hand;
    // a connection that was exclusive before it was WAL can do that only by leaving WAL.
    driver.exec('PRAGMA journal_mode=DELETE');
    driver.exec('PRAGMA locking_mode=NORMAL');
    driver.prepare('SELECT count(*) AS n FROM sqlite_master').all();
  } finally {
    driver.close();
  }
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
