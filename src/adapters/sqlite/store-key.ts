/**
 * The key of a store: a secret in a file outside of the database. The hashes of its records, session rows and snapshots
 * depend on it, so who can change the database, but not read the key, can remove records and not add or change any. A
 * store has a key from its beginning, or none at all: a key that came later would vouch for what it did not see.
 */
import { randomBytes } from 'node:crypto';
import { closeSync, constants, fstatSync, openSync, readFileSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { decodeBase64, encodeBase64 } from '../../base/base64.js';
import { Fault } from '../../base/errors.js';
import { RecordHasher } from '../../journal/record.js';
import { storeKeyFileOf } from '../../journal/store-files.js';
import { type Driver, readText, textColumn } from './driver.js';
import { isOwnedByThisUser, makeDataDirectory, writeNewFile } from './files.js';
import { IncidentTable } from './incidents.js';
import { toFault, toReadFault } from './sqlite-faults.js';

/** The SQL that creates the table. Its row says which key the store has. */
export const CREATE_PROTECTION =
  'CREATE TABLE protection (id INTEGER PRIMARY KEY CHECK (id = 1), key_id TEXT NOT NULL);';

const KEY_BYTES = 32;
const MAX_FILE_BYTES = 100;
const OTHERS = 0o077;

/**
 * Returns the hasher of an open database. A new store gets a key if `keyFile` is given or the default file exists.
 * Throws KEYS_UNUSABLE if the store has a key and the file is not it, and STORE_DAMAGED if a store that had a key has
 * none any more.
 */
export function openRecordHasher(driver: Driver, database: string, keyFile: string | undefined): RecordHasher {
  const file = keyFile ?? storeKeyFileOf(database);
  const keyId = readKeyId(driver);
  if (keyId === undefined) return isPresent(file) ? new RecordHasher(readKey(file)) : new RecordHasher();
  if (keyId !== '') return existingHasher(driver, database, file, keyId);
  const isNew = hasNoSessions(driver);
  if (!isPresent(file) && (keyFile === undefined || !isNew)) return new RecordHasher();
  // guard: removed-protection-refused
  if (!isNew) {
    const message = `${database} was written without its key, which is in ${file}. Restore it from a backup. If you removed the key of another store of this name on purpose, remove this file.`;
    throw new Fault('STORE_DAMAGED', message, { path: database });
  }
  const hasher = new RecordHasher(isPresent(file) ? readKey(file) : createKey(file));
  driver.prepare('INSERT OR REPLACE INTO protection (id, key_id) VALUES (1, ?)').run(keyIdOf(hasher));
  new IncidentTable(driver, hasher).chainRemovals();
  return hasher;
}

function existingHasher(driver: Driver, database: string, file: string, keyId: string): RecordHasher {
  const hasher = readHasher(database, file);
  const [unsigned, unchained] = earlierKeyIdsOf(hasher);
  const isEarlier = keyId === unsigned || keyId === unchained;
  // guard: key-of-another-store-refused
  if (!isEarlier && keyIdOf(hasher) !== keyId) throw otherKeyFault(database, file);
  if (isEarlier) takeOver(driver, hasher, keyId === unsigned);
  return hasher;
}

/**
 * Throws KEYS_UNUSABLE unless the key of an open store is in its file. `keyId` identifies the key; it is empty for a
 * store that has none.
 */
export function assertStoreKey(database: string, keyFile: string | undefined, keyId: string): void {
  if (keyId === '') return;
  const file = keyFile ?? storeKeyFileOf(database);
  // guard: keys-of-another-store-not-used
  if (keyIdOf(readHasher(database, file)) !== keyId) throw otherKeyFault(database, file);
}

function readHasher(database: string, file: string): RecordHasher {
  if (isPresent(file)) return new RecordHasher(readKey(file));
  const message = `${database} has a key, and ${file} is missing. Restore the directory ${dirname(file)} from where it was moved or from a backup, or open the store with the option keyFile.`;
  throw new Fault('KEYS_UNUSABLE', message, { path: file });
}

function otherKeyFault(database: string, file: string): Fault {
  const message = `${file} is not the key of ${database}. Restore the one that it was created with.`;
  return new Fault('KEYS_UNUSABLE', message, { path: file });
}

/**
 * Signs what an earlier version logged without a checksum, chains what one logged without a chain, and names the key as
 * this version does. A store that was
 * created by this version never had the name that leads here, so removals cannot be added in this way.
 */
function takeOver(driver: Driver, hasher: RecordHasher, isUnsigned: boolean): void {
  driver.exec('BEGIN IMMEDIATE');
  const removals = new IncidentTable(driver, hasher);
  if (isUnsigned) removals.signRemovals();
  removals.chainRemovals();
  driver.prepare('UPDATE protection SET key_id = ? WHERE id = 1').run(keyIdOf(hasher));
  driver.exec('COMMIT');
}

/** Returns a text that identifies the key of a hasher and does not disclose it; empty if it has none. */
export function keyIdOf(hasher: RecordHasher): string {
  return hasher.checksumOf('key', 'id 3', () => '');
}

/** Returns the same as versions did whose removals have no checksum, and as those did whose removals have no chain. */
function earlierKeyIdsOf(hasher: RecordHasher): readonly [string, string] {
  return [hasher.checksumOf('key', 'id', () => ''), hasher.checksumOf('key', 'id 2', () => '')];
}

/** Returns the id of the key of the store; empty if it has none, undefined if it cannot be read. */
function readKeyId(driver: Driver): string | undefined {
  try {
    return readText(driver.prepare(`SELECT ${textColumn('key_id')} FROM protection`).all()[0]?.key_id);
  } catch {
    return undefined;
  }
}

function hasNoSessions(driver: Driver): boolean {
  return ['sessions', 'records'].every((table) => driver.prepare(`SELECT 1 FROM ${table} LIMIT 1`).all().length === 0);
}

function createKey(file: string): string {
  const key = encodeBase64(randomBytes(KEY_BYTES));
  try {
    makeDataDirectory(dirname(file));
    writeNewFile(file, `${key}\n`, { flush: true });
  } catch (error) {
    throw toFault(error, 'Writing', file);
  }
  return key;
}

/** True if there is a key file. One that this user may not see is not missing. */
function isPresent(file: string): boolean {
  try {
    return statSync(file, { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    throw unreadableFault(error, file);
  }
}

/** Returns KEYS_UNUSABLE with a remedy if this user may not read the file, and otherwise the fault of a failed read. */
function unreadableFault(error: unknown, file: string): Fault {
  const { code } = error as NodeJS.ErrnoException;
  // guard: unreadable-key-is-not-missing
  if (code !== 'EACCES' && code !== 'EPERM') return toReadFault(error, file);
  const message = `${file} cannot be read by this user (${code}). Make it and its directory belong to the user of this process, with chmod 600 and 700.`;
  return new Fault('KEYS_UNUSABLE', message, { path: file }, error);
}

function openKeyFile(file: string): number {
  try {
    return openSync(file, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0));
  } catch (error) {
    throw unreadableFault(error, file);
  }
}

function readKey(file: string): string {
  const unusable = (problem: string): Fault => new Fault('KEYS_UNUSABLE', `${file} ${problem}.`, { path: file });
  const descriptor = openKeyFile(file);
  try {
    const status = fstatSync(descriptor);
    if (!status.isFile() || status.size > MAX_FILE_BYTES) throw unusable('is not the key of a store');
    // guard: readable-store-key-refused
    if ((status.mode & OTHERS) !== 0) throw unusable('can be read by others. Run chmod 600 on it');
    if (!isOwnedByThisUser(status))
      throw unusable(`belongs to another user (uid ${status.uid}). Use the store as that user, or change its owner`);
    const text = readFileSync(descriptor, 'utf8').replace(/\n$/, '');
    if (decodeBase64(text)?.length !== KEY_BYTES) throw unusable('is damaged. Restore it');
    return text;
  } catch (error) {
    throw unreadableFault(error, file);
  } finally {
    closeSync(descriptor);
  }
}
