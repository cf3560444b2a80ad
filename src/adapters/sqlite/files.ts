/**
 * The store's files. Only the user of the store can read them, whatever the umask. Neither a file nor its data
 * directory may be a symbolic link: a symlink in a cloned project must not redirect the store's reads or writes to
 * another file.
 */
import {
  chmodSync,
  closeSync,
  constants,
  fchmodSync,
  lstatSync,
  mkdirSync,
  openSync,
  readSync,
  rmSync,
  type Stats,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname } from 'node:path';
import { Fault } from '../../base/errors.js';
import { databasePathOf, storeFilesOf } from '../../journal/store-files.js';

const { O_CREAT, O_EXCL, O_RDONLY, O_WRONLY, O_APPEND } = constants;
/** No flag on Windows, which has no O_NOFOLLOW, and where `git clone` creates no symlinks by default. */
const O_NOFOLLOW = constants.O_NOFOLLOW ?? 0;

const FILE_MODE = 0o600;
const DIRECTORY_MODE = 0o700;

/** Returns the status of a path without following symlinks, or undefined if the path does not exist. */
function lstatOf(path: string): Stats | undefined {
  return lstatSync(path, { throwIfNoEntry: false });
}

/** True if the file belongs to the user of this process. Always true on platforms without file owners. */
export function isOwnedByThisUser({ uid }: Pick<Stats, 'uid'>): boolean {
  return process.getuid === undefined || uid === process.getuid();
}

/** Returns a string that identifies this file; a copy or a replacement has another one. Empty if there is no file. */
function identityOf(status: Stats | undefined): string {
  return status === undefined ? '' : `${status.dev}:${status.ino}:${status.birthtimeMs}`;
}

/**
 * Returns a string that identifies the file at a path; a copy or a replacement has another one. Symlinks are not
 * followed. Empty if there is no file.
 */
export function identityAt(path: string): string {
  return identityOf(lstatOf(path));
}

/**
 * Returns the identity of the directory of a database. Unlike `identityAt`, follows symlinks and throws if it is
 * absent.
 */
export function directoryIdentityOf(database: string): string {
  return identityOf(statSync(dirname(database)));
}

/**
 * Creates the data directory and missing parents with mode 0700, or makes an existing `.rondo` of this user private.
 * Throws if the directory is a symbolic link.
 */
export function makeDataDirectory(directory: string): void {
  assertNotSymlink(directory);
  const status = lstatOf(directory);
  if (status !== undefined) {
    // `.rondo`, the default data directory, belongs to the store alone. Any other directory may hold files of the user.
    if (basename(directory) === '.rondo' && (status.mode & 0o077) !== 0 && isOwnedByThisUser(status))
      chmodSync(directory, DIRECTORY_MODE);
    return;
  }
  makeDirectories(directory);
}

function assertNotSymlink(directory: string): void {
  if (!lstatOf(directory)?.isSymbolicLink()) return;
  throw unusableFileFault(directory, 'it is a symbolic link; use the path of the directory that it points to');
}

/**
 * Creates a directory and its parents, unless they exist. It does not use Node's recursive mkdir, which never returns
 * on a file system that refuses new directories.
 */
function makeDirectories(directory: string): void {
  if (statSync(directory, { throwIfNoEntry: false }) !== undefined) return;
  if (dirname(directory) !== directory) makeDirectories(dirname(directory));
  try {
    mkdirSync(directory, { mode: DIRECTORY_MODE });
    chmodSync(directory, DIRECTORY_MODE);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

/**
 * Checks the existing files of a store and makes them private. Throws if one of them or the directory is a symlink, if
 * one is not a regular file or belongs to another user, if a rollback journal names a super-journal, or if the database
 * is itself a file of another store. Of the owner file, only its type is checked; sockets are not checked.
 */
export function secureStoreFiles(database: string): void {
  assertNotSymlink(dirname(database));
  const mainDatabase = databasePathOf(database);
  if (mainDatabase !== undefined && lstatOf(mainDatabase) !== undefined)
    throw unusableFileFault(database, `it belongs to ${mainDatabase}`);
  for (const path of storeFilesOf(database)) {
    const status = lstatOf(path);
    // The owner file, which names the process that owns the store, keeps its mode: its readers accept only mode 0600,
    // and a change here would hide another mode from them.
    if (status === undefined || status.isSocket() || (path.endsWith('.owner') && status.isFile())) continue;
    assertOwnRegularFile(path, status);
    if (path.endsWith('-journal')) assertNoSuperJournal(path, status.size);
    if ((status.mode & 0o077) !== 0) chmodSync(path, FILE_MODE);
  }
}

function assertOwnRegularFile(path: string, status: Stats): void {
  // guard: store-file-is-regular
  if (!status.isFile()) throw unusableFileFault(path, 'it is not a regular file; remove it if it is not yours');
  // Root is refused too: files that root creates here would lock out the user of the store.
  if (isOwnedByThisUser(status)) return;
  throw unusableFileFault(
    path,
    `it belongs to another user (uid ${status.uid}); use the store as that user, or change its owner`,
    'STORE_READ_ONLY',
  );
}

/**
 * The last bytes of a rollback journal that names a super-journal. SQLite uses super-journals for transactions over
 * several databases.
 */
const SUPER_JOURNAL_MAGIC = Buffer.from('d9d505f920a163d7', 'hex');

/**
 * Throws if a rollback journal names a super-journal. SQLite deletes the named file after a rollback, so a forged
 * journal could delete any file of the user. The store itself never writes such a journal.
 */
function assertNoSuperJournal(path: string, size: number): void {
  const end = Buffer.alloc(Math.min(size, SUPER_JOURNAL_MAGIC.length));
  const descriptor = openSync(path, O_RDONLY | O_NOFOLLOW);
  try {
    readSync(descriptor, end, 0, end.length, size - end.length);
  } finally {
    closeSync(descriptor);
  }
  if (end.equals(SUPER_JOURNAL_MAGIC))
    throw unusableFileFault(
      path,
      'it is a rollback journal that names another file, which SQLite would delete; remove it',
    );
}

/**
 * Creates an empty file with mode 0600 if the path does not exist. Throws if it exists and is not a regular file of
 * this user. A file that is created between the check and the creation is not checked.
 */
export function ensureFile(path: string): void {
  const status = lstatOf(path);
  if (status !== undefined) return void assertOwnRegularFile(path, status);
  try {
    closeSync(createFile(path));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

/** Creates a file with mode 0600 whatever the umask, and returns its descriptor. Throws if the path exists. */
function createFile(path: string): number {
  const descriptor = openSync(path, O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY, FILE_MODE);
  // guard: store-file-mode-set
  fchmodSync(descriptor, FILE_MODE);
  return descriptor;
}

/**
 * Creates a file with this content and mode 0600; `flush` syncs it to disk. Throws if the path exists. A file that cannot be
 * written as a whole is removed.
 */
export function writeNewFile(path: string, content: string, options: { readonly flush?: boolean } = {}): void {
  const descriptor = createFile(path);
  try {
    writeFileSync(descriptor, content, options);
  } catch (error) {
    rmSync(path, { force: true });
    throw error;
  } finally {
    closeSync(descriptor);
  }
}

/** Opens an existing file for appending and returns its descriptor. Throws if it is a symbolic link. */
export function openForAppend(path: string): number {
  return openSync(path, O_WRONLY | O_APPEND | O_NOFOLLOW);
}

function unusableFileFault(
  path: string,
  reason: string,
  code: 'STORE_FAILED' | 'STORE_READ_ONLY' = 'STORE_FAILED',
): Fault {
  return new Fault(code, `${path} cannot be used by the store: ${reason}.`, { path });
}
