/**
 * Opening a store: own the file, bring its schema up to date, check it against its anchor, start a fresh anchor.
 * Nothing is written to a file whose structure is known to be broken, beyond what SQLite does to open and close it.
 */
import { mkdirSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { Fault } from '../../journal/errors.js';
import { Anchor, readAnchor } from './anchor.js';
import { type Check, type Findings, inspect } from './check.js';
import { type Driver, openDriver } from './driver.js';
import { faultOf, readFault } from './failure.js';
import { assertWal, type Durability, disown, own } from './owner.js';
import { migrate } from './schema.js';
import { SqliteStore } from './store.js';

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
}

const small = 16 << 20;

const choices: Readonly<Record<string, readonly string[] | 'function'>> = {
  durability: ['fsync', 'os'],
  check: ['heads', 'full'],
  accept: ['loss'],
  driver: 'function',
  now: 'function',
};

function checkOptions(options: SqliteOptions): void {
  for (const [key, value] of Object.entries(options)) {
    const allowed = choices[key];
    if (value === undefined && allowed !== undefined) continue;
    if (allowed === 'function' ? typeof value === 'function' : allowed?.includes(String(value))) continue;
    const may =
      allowed === undefined ? `the options are ${Object.keys(choices).join(', ')}` : `it may be ${String(allowed)}`;
    throw new Fault('STORE_FAILED', `The SQLite store has no option "${key}" of this value; ${may}.`, { option: key });
  }
}

/** Bytes of a file without opening it: a descriptor of our own would drop SQLite's lock when it is closed. */
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

/** The file's one true path, so that its anchor is found whatever link it is opened by. */
function located(path: string, accept: boolean): string {
  try {
    const directory = dirname(resolve(path));
    mkdirSync(directory, { recursive: true });
    const direct = join(realpathSync(directory), basename(path));
    const file = statSync(direct, { throwIfNoEntry: false }) === undefined ? direct : realpathSync(direct);
    if (!accept) assertNotEmptied(file);
    return file;
  } catch (error) {
    throw faultOf(error, 'Opening', path);
  }
}

function examine(driver: Driver, path: string, options: SqliteOptions, now: number): Findings {
  try {
    assertWal(driver, path);
    migrate(driver, path, now);
    const size = sizeOf(path) + sizeOf(`${path}-wal`);
    const check = options.check ?? (size <= small ? 'full' : 'heads');
    const findings = inspect(driver, path, readAnchor(`${path}.anchor`), {
      check,
      accept: options.accept === 'loss',
      now,
    });
    // From here on the WAL holds nothing that the fresh anchor could fail to miss.
    if (findings.unwritable === undefined) driver.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    return findings;
  } catch (error) {
    throw readFault(error, path);
  }
}

function release(driver: Driver, path: string): void {
  try {
    disown(driver, path);
  } catch {
    // The reason for giving up is the error to tell.
  }
}

/** Opens the store in a file, which is made if it is absent; what it found is in `report`. */
export async function openSqlite(path: string, options: SqliteOptions = {}): Promise<SqliteStore> {
  checkOptions(options);
  const file = located(path, options.accept === 'loss');
  const { durability = 'fsync', driver: open = openDriver, now = Date.now } = options;
  const driver = await own(file, durability, open);
  try {
    const findings = examine(driver, file, options, now());
    const anchor = new Anchor(`${file}.anchor`, findings.fold);
    if (findings.unwritable === undefined) driver.exec('DELETE FROM removals');
    return new SqliteStore({ driver, path: file, anchor, findings, now });
  } catch (error) {
    release(driver, file);
    throw faultOf(error, 'Opening', file);
  }
}
