/**
 * Opening the database as its owner: bring its schema up to date, check it against its anchor, record the damage, start a fresh anchor.
 * Nothing is written to a file whose structure is known to be broken, beyond what SQLite does to open and close it.
 */
import { realpathSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { Fault } from '../../base/errors.js';
import { Anchor, readAnchor } from './anchor.js';
import { type Check, type Findings, inspect } from './check.js';
import { assertWal, connectTo, type Durability, disconnect } from './connection.js';
import { recordFindings } from './damage-record.js';
import { type Driver, openDriver, text, whole, wholeOf } from './driver.js';
import { faultOf, readFault } from './failure.js';
import { assertFiles, ensureFile, makeDataDirectory } from './files.js';
import { LocalStore } from './local-store.js';
import { isAwaited } from './peer-rows.js';
import { migrate } from './schema.js';
import { isMarkedBroken, markBroken } from './walk.js';

export interface SqliteOptions {
  /** What an acknowledged write survives; "fsync" unless told. */
  readonly durability?: Durability;
  /** How much is checked at the opening; "full" up to 16 MiB, else "heads", unless told. */
  readonly check?: Check;
  /** Go on with sessions that lost entries, from the last entry that is left. */
  readonly accept?: 'loss';
  /** Another binding of SQLite. */
  readonly driver?: (path: string) => Driver;
  readonly now?: () => number;
  /** Receives a sentence for the operator when another process has not answered for five seconds, or a command keeps the store waiting. */
  readonly notify?: (message: string) => void;
}

const small = 16 << 20;

const choices: Readonly<Record<string, readonly string[] | 'function'>> = {
  durability: ['fsync', 'os'],
  check: ['heads', 'full'],
  accept: ['loss'],
  driver: 'function',
  now: 'function',
  notify: 'function',
};

export function checkOptions(options: SqliteOptions): void {
  for (const [key, value] of Object.entries(options)) {
    const allowed = choices[key];
    if (value === undefined && allowed !== undefined) continue;
    if (allowed === 'function' ? typeof value === 'function' : allowed?.includes(String(value))) continue;
    const may =
      allowed === undefined ? `the options are ${Object.keys(choices).join(', ')}` : `it may be ${String(allowed)}`;
    throw new Fault('STORE_FAILED', `The SQLite store has no option "${key}" of this value; ${may}.`, { option: key });
  }
}

/** SQLite's limit is 512, and the longest name beside the database has 13 more. */
const MAX_PATH_BYTES = 498;

/** Bytes of a file, without opening it. */
function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

/** Opening an empty file, SQLite would delete the WAL beside it, and with it all that is left. */
function assertNotEmptied(path: string): void {
  if (sizeOf(path) > 0) return;
  const was = readAnchor(`${path}.anchor`);
  if (sizeOf(`${path}-wal`) === 0 && (was?.heads.size ?? 0) === 0) return;
  const message = `${path} is empty or missing, but what was beside it is still there. Restore it from a backup, or open with accept: 'loss' to start anew.`;
  throw new Fault('STORE_DAMAGED', message, { path });
}

export function assertPathLength(path: string): void {
  const bytes = Buffer.byteLength(resolve(path));
  if (bytes <= MAX_PATH_BYTES) return;
  throw new Fault(
    'STORE_FAILED',
    `${path} is too long: it has ${bytes} bytes, and SQLite takes ${MAX_PATH_BYTES} here.`,
  );
}

/** The database's one true path, in a directory that is there; nothing that the store uses is a symbolic link. */
export function locate(path: string): string {
  try {
    assertPathLength(path);
    const directory = dirname(resolve(path));
    makeDataDirectory(directory);
    const database = join(realpathSync(directory), basename(path));
    assertFiles(database);
    return database;
  } catch (error) {
    throw faultOf(error, 'Opening', path);
  }
}

function examine(driver: Driver, path: string, options: SqliteOptions, now: number): Findings {
  try {
    assertWal(driver, path);
    migrate(driver, path, now);
    const size = sizeOf(path) + sizeOf(`${path}-wal`);
    const wasBroken = isMarkedBroken(driver);
    const usual = size <= small && !isAwaited(driver) ? 'full' : 'heads';
    const check = wasBroken ? 'full' : (options.check ?? usual);
    const findings = inspect(driver, path, readAnchor(`${path}.anchor`), {
      check,
      accept: options.accept === 'loss',
      now,
    });
    const isBroken = findings.unwritable !== undefined;
    if (isBroken !== wasBroken && check === 'full') markBroken(driver, isBroken);
    // From here on the WAL holds nothing that the fresh anchor could fail to miss.
    if (findings.unwritable === undefined) driver.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    return findings;
  } catch (error) {
    throw readFault(error, path);
  }
}

/** Counts this process as the next owner; a commit of any earlier one is refused from here on. */
function nextEpoch(driver: Driver, now: number): number {
  const [row] = driver.prepare(`SELECT typeof(epoch) AS kind, ${wholeOf('epoch')} FROM ownership WHERE id = 1`).all();
  const last = text(row?.kind) === 'integer' ? whole(row?.epoch) : -1;
  // A count that was damaged goes on from the time, which no count of owners reaches.
  const epoch = last >= 0 && last < Number.MAX_SAFE_INTEGER - 1 ? last + 1 : now;
  driver.prepare('INSERT OR REPLACE INTO ownership (id, epoch) VALUES (1, ?)').run(epoch);
  return epoch;
}

function release(driver: Driver): void {
  try {
    disconnect(driver);
  } catch {
    // The reason for giving up is the error to tell.
  }
}

/** Opens the database for the process that owns it; it is made if it is absent. What it found is in `report`. */
export function openLocal(database: string, options: SqliteOptions): LocalStore {
  const { durability = 'fsync', driver: open = openDriver, now = Date.now } = options;
  if (options.accept !== 'loss') assertNotEmptied(database);
  assertFiles(database);
  ensureFile(database);
  const driver = connectTo(database, durability, open);
  try {
    const found = examine(driver, database, options, now());
    const epoch = found.unwritable === undefined ? nextEpoch(driver, now()) : 0;
    // Before the fresh anchor, which knows nothing of what the last one could not vouch for.
    const accept = options.accept === 'loss';
    // guard: findings-put-on-record
    const findings = recordFindings(driver, found, { path: database, accept, now: now() });
    const writable = findings.unwritable === undefined;
    const anchor = new Anchor(`${database}.anchor`, findings.fold, writable ? 'replace' : 'keep');
    if (writable) driver.exec('DELETE FROM removals');
    return new LocalStore({ driver, path: database, anchor, findings, now, epoch });
  } catch (error) {
    release(driver);
    throw faultOf(error, 'Opening', database);
  }
}
