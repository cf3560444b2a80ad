/**
 * Opening the database as its owner: bring its schema up to date, check it against its anchor, record the damage, start a fresh anchor.
 * Nothing is written to a file whose structure is known to be broken, beyond what SQLite does to open and close it.
 */
import { realpathSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { Fault } from '../../base/errors.js';
import { AnchorFile, readAnchorFile } from './anchor-file.js';
import { hasOtherLivingClient } from './client-rows.js';
import { assertWalMode, closeConnection, type Durability, openConnection } from './connection.js';
import { type Driver, integerColumn, openDriver, readInteger, readText } from './driver.js';
import { assertSafeStoreFiles, ensureFile, makeDataDirectory } from './files.js';
import { isMarkedBroken, markBroken } from './full-check.js';
import { LocalStore } from './local-store.js';
import { recordIncidents } from './record-incidents.js';
import { migrate } from './schema.js';
import { toFault, toReadFault } from './sqlite-faults.js';
import { type CheckLevel, inspectStore, type StoreHealth } from './store-inspection.js';

export interface SqliteOptions {
  /** What an acknowledged write survives; "fsync" unless told. */
  readonly durability?: Durability;
  /** How much is checked at the opening; "full" up to 16 MiB, else "heads", unless told. */
  readonly check?: CheckLevel;
  /** Go on with sessions that lost entries, from the last entry that is left. */
  readonly accept?: 'loss';
  /** Another binding of SQLite. */
  readonly driver?: (path: string) => Driver;
  readonly now?: () => number;
  /** Receives a sentence for the operator when another process has not answered for five seconds, or a command keeps the store waiting. */
  readonly notify?: (message: string) => void;
}

const MAX_DEFAULT_FULL_CHECK_BYTES = 16 << 20;

const OPTION_VALUES: Readonly<Record<string, readonly string[] | 'function'>> = {
  durability: ['fsync', 'os'],
  check: ['heads', 'full'],
  accept: ['loss'],
  driver: 'function',
  now: 'function',
  notify: 'function',
};

export function assertOptions(options: SqliteOptions): void {
  for (const [key, value] of Object.entries(options)) {
    const allowed = OPTION_VALUES[key];
    if (value === undefined && allowed !== undefined) continue;
    if (allowed === 'function' ? typeof value === 'function' : allowed?.includes(String(value))) continue;
    const may =
      allowed === undefined
        ? `the options are ${Object.keys(OPTION_VALUES).join(', ')}`
        : `it may be ${String(allowed)}`;
    throw new Fault('STORE_FAILED', `The SQLite store has no option "${key}" of this value; ${may}.`, { option: key });
  }
}

/** SQLite's limit is 512, and the longest name beside the database has 13 more. */
const MAX_PATH_BYTES = 498;

/** Bytes of a file, without opening it. */
function fileSizeBytes(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

/** Opening an empty file, SQLite would delete the WAL beside it, and with it all that is left. */
function assertNotEmptied(path: string): void {
  if (fileSizeBytes(path) > 0) return;
  const was = readAnchorFile(`${path}.anchor`);
  if (fileSizeBytes(`${path}-wal`) === 0 && (was?.heads.size ?? 0) === 0) return;
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
export function resolveDatabasePath(path: string): string {
  try {
    assertPathLength(path);
    const directory = dirname(resolve(path));
    makeDataDirectory(directory);
    const database = join(realpathSync(directory), basename(path));
    assertSafeStoreFiles(database);
    return database;
  } catch (error) {
    throw toFault(error, 'Opening', path);
  }
}

function migrateAndInspect(driver: Driver, path: string, options: SqliteOptions, now: number): StoreHealth {
  try {
    assertWalMode(driver, path);
    migrate(driver, path, now);
    const size = fileSizeBytes(path) + fileSizeBytes(`${path}-wal`);
    const wasBroken = isMarkedBroken(driver);
    const usual = size <= MAX_DEFAULT_FULL_CHECK_BYTES && !hasOtherLivingClient(driver) ? 'full' : 'heads';
    const check = wasBroken ? 'full' : (options.check ?? usual);
    const findings = inspectStore(driver, path, readAnchorFile(`${path}.anchor`), {
      check,
      accept: options.accept === 'loss',
      now,
    });
    const isBroken = findings.writeFault !== undefined;
    if (isBroken !== wasBroken && check === 'full') markBroken(driver, isBroken);
    // From here on the WAL holds nothing that the fresh anchor could fail to miss.
    if (findings.writeFault === undefined) driver.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    return findings;
  } catch (error) {
    throw toReadFault(error, path);
  }
}

/** Counts this process as the next owner; a commit of any earlier one is refused from here on. */
function advanceEpoch(driver: Driver, now: number): number {
  const [row] = driver
    .prepare(`SELECT typeof(epoch) AS kind, ${integerColumn('epoch')} FROM ownership WHERE id = 1`)
    .all();
  const last = readText(row?.kind) === 'integer' ? readInteger(row?.epoch) : -1;
  // A count that was damaged goes on from the time, which no count of owners reaches.
  const epoch = last >= 0 && last < Number.MAX_SAFE_INTEGER - 1 ? last + 1 : now;
  driver.prepare('INSERT OR REPLACE INTO ownership (id, epoch) VALUES (1, ?)').run(epoch);
  return epoch;
}

function closeIgnoringErrors(driver: Driver): void {
  try {
    closeConnection(driver);
  } catch {
    // The reason for giving up is the error to tell.
  }
}

/** Opens the database for the process that owns it; it is made if it is absent. What it found is in `report`. */
export function openLocalStore(database: string, options: SqliteOptions): LocalStore {
  const { durability = 'fsync', driver: open = openDriver, now = Date.now } = options;
  if (options.accept !== 'loss') assertNotEmptied(database);
  assertSafeStoreFiles(database);
  ensureFile(database);
  const driver = openConnection(database, durability, open);
  try {
    const found = migrateAndInspect(driver, database, options, now());
    const epoch = found.writeFault === undefined ? advanceEpoch(driver, now()) : 0;
    // Before the fresh anchor, which knows nothing of what the last one could not vouch for.
    const accept = options.accept === 'loss';
    // guard: findings-put-on-record
    const findings = recordIncidents(driver, found, { path: database, acceptLoss: accept, now: now() });
    const writable = findings.writeFault === undefined;
    const anchor = new AnchorFile(`${database}.anchor`, findings.anchorState, writable ? 'replace' : 'keep');
    if (writable) driver.exec('DELETE FROM removals');
    return new LocalStore({ driver, path: database, anchor, health: findings, now, epoch });
  } catch (error) {
    closeIgnoringErrors(driver);
    throw toFault(error, 'Opening', database);
  }
}
