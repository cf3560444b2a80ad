/**
 * The store's files: readable by their user alone, whatever the umask, and never reached through a symbolic link. A link
 * in a cloned project must not make the store write to, or believe, a file elsewhere.
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
  type Stats,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname } from 'node:path';
import { Fault } from '../../base/errors.js';
import { databasePathOf, storeFilesOf } from '../../journal/store-files.js';

const { O_CREAT, O_EXCL, O_RDONLY, O_WRONLY, O_APPEND } = constants;
/** Windows has no such flag, and no links that a clone could bring. */
const O_NOFOLLOW = constants.O_NOFOLLOW ?? 0;

const FILE_MODE = 0o600;
const DIRECTORY_MODE = 0o700;

/** The status of what is at a path itself, links not followed; undefined if there is nothing. */
function lstatOf(path: string): Stats | undefined {
  return lstatSync(path, { throwIfNoEntry: false });
}

/** True if the file belongs to the user of this process; always true where files have no such owner. */
export function isOwnedByThisUser({ uid }: Pick<Stats, 'uid'>): boolean {
  return process.getuid === undefined || uid === process.getuid();
}

/** What tells a file or directory from a copy of it, and from one that takes its place later; empty if there is none. */
export function identityOf(status: Stats | undefined): string {
  return status === undefined ? '' : `${status.dev}:${status.ino}:${status.birthtimeMs}`;
}

/** The identity of what is at a path itself, links not followed. */
export function identityAt(path: string): string {
  return identityOf(lstatOf(path));
}

/** The identity of the directory of a database. */
export function directoryIdentityOf(database: string): string {
  return identityOf(statSync(dirname(database)));
}

/** Creates the data directory with mode 0700 if it is absent; refuses one that is a symbolic link. */
export function makeDataDirectory(directory: string): void {
  assertNotSymlink(directory);
  const found = lstatOf(directory);
  if (found !== undefined) {
    // The default data directory is the store's own; another one may hold anything else.
    if (basename(directory) === '.rondo' && (found.mode & 0o077) !== 0 && isOwnedByThisUser(found))
      chmodSync(directory, DIRECTORY_MODE);
    return;
  }
  makeDirectories(directory);
}

function assertNotSymlink(directory: string): void {
  if (!lstatOf(directory)?.isSymbolicLink()) return;
  throw unusableFileFault(directory, 'it is a symbolic link; name the directory that it leads to');
}

/** Makes a directory and those above it. Node's own recursion does not end where a file system refuses new directories. */
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

/** Refuses a database of which a file is a link, no file at all or another user's, and takes others' rights to the files away. */
export function assertSafeStoreFiles(database: string): void {
  assertNotSymlink(dirname(database));
  const other = databasePathOf(database);
  if (other !== undefined && lstatOf(other) !== undefined) throw unusableFileFault(database, `it belongs to ${other}`);
  for (const path of storeFilesOf(database)) {
    const found = lstatOf(path);
    // A record of the owner that others could have written is not made private: it is not believed.
    if (found === undefined || found.isSocket() || (path.endsWith('.owner') && found.isFile())) continue;
    assertOwnRegularFile(path, found);
    if (path.endsWith('-journal')) assertNoSuperJournal(path, found.size);
    if ((found.mode & 0o077) !== 0) chmodSync(path, FILE_MODE);
  }
}

function assertOwnRegularFile(path: string, found: Stats): void {
  // guard: store-file-is-regular
  if (!found.isFile()) throw unusableFileFault(path, 'it is not a regular file; remove it if it is not yours');
  // Also for root: the files that it made would keep their user out.
  if (isOwnedByThisUser(found)) return;
  throw unusableFileFault(
    path,
    `it belongs to another user (uid ${found.uid}); use the store as that user, or change its owner`,
    'STORE_READ_ONLY',
  );
}

/** The end of a rollback journal that belongs to a transaction over several databases. */
const SUPER_JOURNAL_MAGIC = Buffer.from('d9d505f920a163d7', 'hex');

/** Refuses a rollback journal that names another file: SQLite deletes that file when it has rolled back. The store writes no such journal. */
function assertNoSuperJournal(path: string, size: number): void {
  const end = Buffer.alloc(Math.min(size, SUPER_JOURNAL_MAGIC.length));
  const descriptor = openSync(path, O_RDONLY | O_NOFOLLOW);
  try {
    readSync(descriptor, end, 0, end.length, size - end.length);
  } finally {
    closeSync(descriptor);
  }
  if (end.equals(SUPER_JOURNAL_MAGIC))
    throw unusableFileFault(path, 'it names a file that SQLite would delete; remove it');
}

/** Creates an empty file of mode 0600 unless one is there. */
export function ensureFile(path: string): void {
  const found = lstatOf(path);
  if (found !== undefined) return void assertOwnRegularFile(path, found);
  try {
    closeSync(createFile(path));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

/** Creates a file of mode 0600, whatever the umask, that must not be there yet; the descriptor to write it. */
export function createFile(path: string): number {
  const descriptor = openSync(path, O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY, FILE_MODE);
  // guard: store-file-mode-set
  fchmodSync(descriptor, FILE_MODE);
  return descriptor;
}

/** Creates a file with this content, synced to the disk if asked. */
export function writeNewFile(path: string, content: string, options: { readonly flush?: boolean } = {}): void {
  const descriptor = createFile(path);
  try {
    writeFileSync(descriptor, content, options);
  } finally {
    closeSync(descriptor);
  }
}

/** Opens a file that is there to append to it. */
export function openForAppend(path: string): number {
  return openSync(path, O_WRONLY | O_APPEND | O_NOFOLLOW);
}

function unusableFileFault(
  path: string,
  why: string,
  code: 'STORE_FAILED' | 'STORE_READ_ONLY' = 'STORE_FAILED',
): Fault {
  return new Fault(code, `${path} cannot be used by the store: ${why}.`, { path });
}
