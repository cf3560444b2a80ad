/**
 * Opens the database as its owner: migrates the schema, checks the store against its anchor (a second file that records
 * where each session ends), logs damage and starts a new anchor. A file with a broken structure keeps its anchor and is
 * read-only: it gets a mark in its header, and otherwise only SQLite itself writes to it when it closes the file.
 */
import { realpathSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { Fault } from '../../base/errors.js';
import type { RecordHasher } from '../../journal/record.js';
import { AnchorFile, readAnchorFile } from './anchor-file.js';
import { hasOtherLivingClient } from './client-rows.js';
import { assertWalMode, closeConnection, type Durability, openConnection } from './connection.js';
import { type Driver, integerColumn, openDriver, readInteger, readText } from './driver.js';
import { restoreDueTurns } from './due-turn-table.js';
import { ensureFile, makeDataDirectory, secureStoreFiles } from './files.js';
import { isMarkedBroken, markBroken } from './full-check.js';
import { LocalStore } from './local-store.js';
import { recordIncidents } from './record-incidents.js';
import { migrate } from './schema.js';
import { toFault, toReadFault } from './sqlite-faults.js';
import { type CheckLevel, inspectStore, type StoreHealth } from './store-inspection.js';
import { openRecordHasher } from './store-key.js';

/** Options of `openSqlite`. */
export interface SqliteOptions {
  /**
   * What an acknowledged write survives.
   *
   * @default 'fsync'
   */
  readonly durability?: Durability;
  /**
   * What is checked when this process opens the database. A client of another owner checks nothing. A file that is
   * marked as broken always gets a full check.
   *
   * @default 'full' for a store of up to 16 MiB that no other process waits for, otherwise 'heads'; also 'heads' if the
   * last owner was killed and the last full check began less than 10 seconds ago
   */
  readonly check?: CheckLevel;
  /**
   * Accepts losses: sessions that lost their last entries continue after the remaining ones, missing sessions may start
   * again, and sessions that reappeared are kept. Altered entries are not accepted. Opening fails while another process
   * owns the store.
   */
  readonly accept?: 'loss';
  /**
   * The file with the key of the store: a secret; without it, no one can change what the store has recorded and stay
   * unnoticed. It is created with the store. Keep it where only trusted processes can read it. A store that was created
   * without a key has none.
   *
   * @default `keys/NAME.store-key` beside the database, if that file exists
   */
  readonly keyFile?: string;
  /**
   * Opens the connection to a database file.
   *
   * @default openDriver
   */
  readonly driver?: (path: string) => Driver;
  /**
   * Returns the wall-clock time in milliseconds since the epoch.
   *
   * @default Date.now
   */
  readonly now?: () => number;
  /**
   * Receives a message for the operator when another process is unresponsive or a sandboxed command delays the store.
   */
  readonly notify?: (message: string) => void;
}

/** Maximum size of the database and its WAL for which the full check is the default. */
const MAX_DEFAULT_FULL_CHECK_BYTES = 16 << 20;

/** The allowed values of each option. */
const OPTION_VALUES: Readonly<Record<string, readonly string[] | 'function' | 'string'>> = {
  durability: ['fsync', 'os'],
  check: ['heads', 'full'],
  accept: ['loss'],
  keyFile: 'string',
  driver: 'function',
  now: 'function',
  notify: 'function',
};

/** Throws if an option is unknown or has an invalid value. An option that is undefined counts as absent. */
export function assertOptions(options: SqliteOptions): void {
  for (const [key, value] of Object.entries(options)) {
    const allowed = OPTION_VALUES[key];
    if (value === undefined && allowed !== undefined) continue;
    if (typeof allowed === 'string' ? typeof value === allowed : allowed?.includes(String(value))) continue;
    const problem =
      allowed === undefined
        ? `has no option "${key}"; the options are ${Object.keys(OPTION_VALUES).join(', ')}`
        : `does not accept this value of the option "${key}"; allowed: ${String(allowed)}`;
    throw new Fault('STORE_FAILED', `The SQLite store ${problem}.`, { option: key });
  }
}

/**
 * Maximum length of the absolute path of a database. SQLite's limit is 512 bytes, and the longest suffix that SQLite
 * opens next to the database, `.lock-journal`, has 13.
 */
const MAX_PATH_BYTES = 498;

/** Returns the size of a file without opening it; 0 if it is absent. */
function fileSizeBytes(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

/**
 * Throws if the database is empty or absent, but its WAL has content or its anchor names sessions. On opening such a
 * database, SQLite would delete the WAL with the remaining data.
 */
function assertNotEmptied(path: string): void {
  if (fileSizeBytes(path) > 0) return;
  const anchorState = readAnchorFile(`${path}.anchor`);
  if (fileSizeBytes(`${path}-wal`) === 0 && (anchorState?.heads.size ?? 0) === 0) return;
  const message = `${path} is empty or missing, but its WAL or anchor still exists. Restore it from a backup, or open with accept: 'loss' to start a new store.`;
  throw new Fault('STORE_DAMAGED', message, { path });
}

/** Throws if a path is too long for SQLite. */
export function assertPathLength(path: string): void {
  const bytes = Buffer.byteLength(resolve(path));
  if (bytes <= MAX_PATH_BYTES) return;
  throw new Fault(
    'STORE_FAILED',
    `${path} is too long: it has ${bytes} bytes, and SQLite allows ${MAX_PATH_BYTES}. Choose a shorter path.`,
  );
}

/**
 * Returns the canonical path of a database, creates its directory, and makes its existing files private. Throws if the
 * path is too long, or if `secureStoreFiles` refuses a file.
 */
export function resolveDatabasePath(path: string): string {
  try {
    assertPathLength(path);
    const directory = dirname(resolve(path));
    makeDataDirectory(directory);
    const database = join(realpathSync(directory), basename(path));
    secureStoreFiles(database);
    return database;
  } catch (error) {
    throw toFault(error, 'Opening', path);
  }
}

/** Migrates and checks an open database, and empties its WAL unless the structure of the file is broken. */
function migrateAndInspect(
  driver: Driver,
  path: string,
  options: SqliteOptions,
  now: number,
): { readonly findings: StoreHealth; readonly hasher: RecordHasher } {
  try {
    assertWalMode(driver, path);
    migrate(driver, path, now);
    restoreDueTurns(driver);
    const hasher = openRecordHasher(driver, path, options.keyFile);
    const size = fileSizeBytes(path) + fileSizeBytes(`${path}-wal`);
    const wasBroken = isMarkedBroken(driver);
    const defaultCheck = size <= MAX_DEFAULT_FULL_CHECK_BYTES && !hasOtherLivingClient(driver) ? 'full' : 'heads';
    const check = wasBroken ? 'full' : (options.check ?? defaultCheck);
    const findings = inspectStore(driver, path, readAnchorFile(`${path}.anchor`), {
      check,
      accept: options.accept === 'loss',
      now,
      hasher,
    });
    const isBroken = findings.writeFault !== undefined;
    if (isBroken !== wasBroken && check === 'full') markBroken(driver, isBroken);
    // Moves the checked records to the database, so that a damaged WAL can no longer lose them.
    if (findings.writeFault === undefined) driver.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    return { findings, hasher };
  } catch (error) {
    throw toReadFault(error, path);
  }
}

/** Raises the epoch for this owner, so that commits of earlier owners are refused. Returns the new epoch. */
function advanceEpoch(driver: Driver, now: number): number {
  const [row] = driver
    .prepare(`SELECT typeof(epoch) AS kind, ${integerColumn('epoch')} FROM ownership WHERE id = 1`)
    .all();
  const last = readText(row?.kind) === 'integer' ? readInteger(row?.epoch) : -1;
  // A damaged epoch is replaced by the current time, which no count of owners reaches.
  const epoch = last >= 0 && last < Number.MAX_SAFE_INTEGER - 1 ? last + 1 : now;
  driver.prepare('INSERT OR REPLACE INTO ownership (id, epoch) VALUES (1, ?)').run(epoch);
  return epoch;
}

function closeIgnoringErrors(driver: Driver): void {
  try {
    closeConnection(driver);
  } catch {
    // The original error is thrown.
  }
}

/**
 * Opens the database for its owner and creates it if it is absent. Damaged sessions do not prevent opening; they are
 * listed in `report`.
 */
export function openLocalStore(database: string, options: SqliteOptions): LocalStore {
  const { durability = 'fsync', driver: open = openDriver, now = Date.now } = options;
  if (options.accept !== 'loss') assertNotEmptied(database);
  secureStoreFiles(database);
  ensureFile(database);
  const driver = openConnection(database, durability, open);
  try {
    const { findings, hasher } = migrateAndInspect(driver, database, options, now());
    const epoch = findings.writeFault === undefined ? advanceEpoch(driver, now()) : 0;
    // Logged before the new anchor is written, which no longer shows the flaws of the previous one.
    const acceptLoss = options.accept === 'loss';
    // guard: findings-put-on-record
    const health = recordIncidents(driver, findings, { path: database, acceptLoss, hasher, now: now() });
    const isWritable = health.writeFault === undefined;
    const anchor = new AnchorFile(`${database}.anchor`, health.anchorState, isWritable ? 'replace' : 'keep');
    if (isWritable) driver.exec('DELETE FROM removals');
    return new LocalStore({ driver, path: database, anchor, health, hasher, now, epoch });
  } catch (error) {
    closeIgnoringErrors(driver);
    throw toFault(error, 'Opening', database);
  }
}
