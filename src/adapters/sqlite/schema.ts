/**
 * The schema as numbered, forward-only migrations. Each migration runs in one transaction that also records its
 * checksum, so a killed upgrade is either complete or absent. A file from a newer version, or with a different
 * migration history, is refused. Never edit a released migration: add a new one.
 */
import { Fault } from '../../base/errors.js';
import { digestOfText } from '../../journal/record.js';
import { type Driver, integerColumn, readInteger, readText, textColumn } from './driver.js';
import { CREATE_DUE_TURNS, MARK_INCOMPLETE } from './due-turn-table.js';
import { CREATE_PROTECTION } from './store-key.js';

/** One step of the schema. */
interface Migration {
  readonly name: string;
  readonly sql: string;
}

/**
 * The migrations, in order.
 * - `sid` is the number of a session. A number is never reused, unlike a name.
 * - `records.id` is sid * 2^26 + the first entry: one clustered b-tree in the order in which sessions are read.
 * - Only the last record defines where a session ends, so an append touches one page.
 * - `blobs` keeps its rowid: for bodies of a few kilobytes, inserts take half as long as into a clustered table.
 * - `removals` distinguishes a session that was removed just before the process ended from a lost one.
 * - `incidents` logs damage; an incident is open while `closed_as` is empty. `tombstones` logs removed sessions. Rows
 * of both are never deleted.
 * - `ownership.epoch` counts owners: a commit of an earlier owner is refused. `clients` lists the processes that hold
 * leases.
 * - `due_turns` is an index that can be rebuilt (due-turn-table.ts). An earlier version must not write to a file with
 * it, because its turns would be missing there.
 * - `unsealed turns` has that index rebuilt: earlier versions removed a turn from it before its receipt was stored.
 * - `protection` names the key of the store (store-key.ts). Without the key nothing can be read or written.
 * - `tombstones.checksum` depends on that key. An earlier version must not write to a file with it: the hashes of its
 * records would not cover their time and their commit.
 * - `protection.removals` is the number of rows of `tombstones` and the end of the chain of their checksums.
 */
export const migrations: readonly Migration[] = [
  {
    name: 'journal',
    sql: `
CREATE TABLE sessions (
  sid INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, fence INTEGER NOT NULL,
  commit_no INTEGER NOT NULL, checksum TEXT NOT NULL);
CREATE TABLE records (
  id INTEGER PRIMARY KEY, count INTEGER NOT NULL, fence INTEGER NOT NULL, at INTEGER NOT NULL,
  commit_no INTEGER NOT NULL, prev TEXT NOT NULL, hash TEXT NOT NULL, body TEXT NOT NULL);
CREATE TABLE blobs (sid INTEGER NOT NULL, digest TEXT NOT NULL, body TEXT NOT NULL, UNIQUE (sid, digest));
CREATE TABLE snapshots (
  sid INTEGER PRIMARY KEY, next INTEGER NOT NULL, tail TEXT NOT NULL, state TEXT NOT NULL, checksum TEXT NOT NULL);
CREATE TABLE removals (sid INTEGER PRIMARY KEY, commit_no INTEGER NOT NULL);`,
  },
  {
    name: 'ownership',
    sql: `
CREATE TABLE ownership (id INTEGER PRIMARY KEY CHECK (id = 1), epoch INTEGER NOT NULL);
INSERT INTO ownership (id, epoch) VALUES (1, 0);
CREATE TABLE clients (id TEXT PRIMARY KEY, pid INTEGER NOT NULL, start TEXT NOT NULL);`,
  },
  {
    name: 'incidents',
    sql: `
CREATE TABLE incidents (
  id INTEGER PRIMARY KEY, damage TEXT NOT NULL, sids TEXT NOT NULL, found_at INTEGER NOT NULL,
  closed_as TEXT NOT NULL, closed_at INTEGER NOT NULL, closed_by TEXT NOT NULL, reason TEXT NOT NULL);
CREATE TABLE tombstones (
  id INTEGER PRIMARY KEY, session TEXT NOT NULL, entries INTEGER NOT NULL, head TEXT NOT NULL,
  removed_at INTEGER NOT NULL, removed_by TEXT NOT NULL, reason TEXT NOT NULL);
CREATE INDEX tombstones_session ON tombstones (session);`,
  },
  { name: 'due turns', sql: CREATE_DUE_TURNS },
  { name: 'protection', sql: CREATE_PROTECTION },
  { name: 'unsealed turns', sql: MARK_INCOMPLETE },
  { name: 'signed removals', sql: "ALTER TABLE tombstones ADD COLUMN checksum TEXT NOT NULL DEFAULT '';" },
  { name: 'chained removals', sql: "ALTER TABLE protection ADD COLUMN removals TEXT NOT NULL DEFAULT '';" },
];

const CREATE_MIGRATIONS_TABLE = `CREATE TABLE migrations (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, at INTEGER NOT NULL);`;

/** Returns the names of the triggers of a file. No version creates one; a trigger can change what is written. */
export function readTriggerNames(driver: Driver): readonly string[] {
  const rows = driver.prepare(`SELECT ${textColumn('name')} FROM sqlite_master WHERE type = 'trigger'`).all();
  return rows.map((row) => readText(row.name));
}

function readTableNames(driver: Driver): ReadonlySet<string> {
  const rows = driver.prepare(`SELECT ${textColumn('name')} FROM sqlite_master WHERE type = 'table'`).all();
  return new Set(rows.map((row) => readText(row.name)));
}

/** Returns the number of migrations in the file. Throws if this version must not write to the file. */
function countAppliedMigrations(driver: Driver, path: string, known: readonly Migration[]): number {
  const rows = driver
    .prepare(
      `SELECT ${integerColumn('id')}, ${textColumn('name')}, ${textColumn('checksum')} FROM migrations ORDER BY migrations.id`,
    )
    .all();
  const newest = rows.length === 0 ? 0 : Math.max(...rows.map((row) => readInteger(row.id)));
  if (newest > known.length) {
    const message = `${path} was written by a newer version (migration ${newest}; this version supports ${known.length}). Use that version: a store cannot be downgraded.`;
    throw new Fault('ENTRY_TOO_NEW', message, { path, newest, known: known.length });
  }
  for (const [index, row] of rows.entries()) {
    const migration = known[index];
    if (readInteger(row.id) === index + 1 && migration && readText(row.checksum) === digestOfText(migration.sql))
      continue;
    const message = `${path} does not match this version: migration ${index + 1} ("${readText(row.name)}") has a different checksum. Restore it from a backup.`;
    throw new Fault('STORE_DAMAGED', message, { path, migration: index + 1 });
  }
  if (rows.length > 0) return rows.length;
  throw new Fault('STORE_DAMAGED', `${path} has an empty table of migrations. Restore it from a backup.`, { path });
}

function applyMigration(driver: Driver, id: number, migration: Migration, at: number): void {
  driver.exec('BEGIN IMMEDIATE');
  try {
    if (id === 1) driver.exec(CREATE_MIGRATIONS_TABLE);
    driver.exec(migration.sql);
    const insert = driver.prepare('INSERT INTO migrations (id, name, checksum, at) VALUES (?, ?, ?, ?)');
    insert.run(id, migration.name, digestOfText(migration.sql), at);
    driver.exec('COMMIT');
  } catch (error) {
    try {
      driver.exec('ROLLBACK');
    } catch {
      // SQLite has already rolled back. The original error is thrown.
    }
    throw error;
  }
}

/**
 * Applies the missing migrations and records `at`, in milliseconds since the epoch, as their time. Throws if the file
 * is not a store, is from a newer version, or has a different migration history.
 */
export function migrate(driver: Driver, path: string, at: number, known: readonly Migration[] = migrations): void {
  const tables = readTableNames(driver);
  if (tables.size > 0 && !tables.has('migrations')) {
    const message = `${path} is a SQLite database, but not a Rondo store. Choose another path.`;
    throw new Fault('STORE_DAMAGED', message, { path });
  }
  const applied = tables.size === 0 ? 0 : countAppliedMigrations(driver, path, known);
  for (const [index, migration] of known.entries()) {
    if (index >= applied) applyMigration(driver, index + 1, migration, at);
  }
}
