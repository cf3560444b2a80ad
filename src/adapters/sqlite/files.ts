/**
 * The store's files: readable by their user alone, whatever the umask, and never reached through a symbolic link. A link
 * in a cloned project must not make the store write to, or believe, a file elsewhere.
 */
import { chmodSync, closeSync, constants, lstatSync, mkdirSync, openSync, type Stats, writeFileSync } from 'node:fs';
import { Fault } from '../../journal/errors.js';
import { storeFilesOf } from '../../journal/store-files.js';

const { O_CREAT, O_EXCL, O_WRONLY, O_APPEND } = constants;
/** Windows has no such flag, and no links that a clone could bring. */
const O_NOFOLLOW = constants.O_NOFOLLOW ?? 0;

const FILE_MODE = 0o600;
const DIRECTORY_MODE = 0o700;

/** The status of what is at a path itself, links not followed; undefined if there is nothing. */
function statusOf(path: string): Stats | undefined {
  return lstatSync(path, { throwIfNoEntry: false });
}

/** True if the file belongs to the user of this process; always true where files have no such owner. */
export function isOurs({ uid }: Pick<Stats, 'uid'>): boolean {
  return process.getuid === undefined || uid === process.getuid();
}

/** Creates the data directory with mode 0700 if it is absent; refuses one that is a symbolic link. */
export function makeDataDirectory(directory: string): void {
  const found = statusOf(directory);
  if (found?.isSymbolicLink()) {
    throw refused(directory, 'it is a symbolic link; name the directory that it leads to');
  }
  if (found !== undefined) return;
  mkdirSync(directory, { recursive: true, mode: DIRECTORY_MODE });
  if (statusOf(directory)?.isDirectory()) chmodSync(directory, DIRECTORY_MODE);
}

/** Refuses a database of which a file is a link or no file at all, and takes other users' rights to the files away. */
export function assertFiles(database: string): void {
  for (const path of storeFilesOf(database)) {
    const found = statusOf(path);
    if (found === undefined || found.isSocket()) continue;
    if (!found.isFile()) throw refused(path, 'it is not a regular file; remove it if it is not yours');
    if ((found.mode & 0o077) !== 0 && isOurs(found)) chmodSync(path, FILE_MODE);
  }
}

/** Creates an empty file of mode 0600 unless one is there. */
export function ensureFile(path: string): void {
  if (statusOf(path) !== undefined) return;
  try {
    closeSync(createFile(path));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

/** Creates a file of mode 0600 that must not be there yet; the descriptor to write it. */
export function createFile(path: string): number {
  return openSync(path, O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY, FILE_MODE);
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
export function openToAppend(path: string): number {
  return openSync(path, O_WRONLY | O_APPEND | O_NOFOLLOW);
}

function refused(path: string, why: string): Fault {
  return new Fault('STORE_FAILED', `${path} cannot be used by the store: ${why}.`, { path });
}
