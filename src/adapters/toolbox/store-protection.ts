/**
 * Detects data directories and files of stores, which tools must not use. A directory is recognized by its path, by its
 * marker file and, if this process uses it, by device and inode. A database is also recognized by its first bytes and
 * its companion files (`.anchor`, `.owner`). A database that this process uses is checked with `stat` only, because
 * closing a descriptor of it would drop the locks of SQLite. See aliases.ts for hard links and mounts.
 */
import { type BigIntStats, closeSync, constants, fstatSync, lstatSync, openSync, readSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { LoopError } from '../../base/errors.js';
import {
  DATA_MARKER,
  databasePathOf,
  isInDataDirectory,
  isStoreFile,
  protectedDatabases,
  protectedDirectories,
  storeFilesOf,
} from '../../journal/store-files.js';
import { quotePath, toolError } from './tool-error.js';

/** The suffix that Linux appends to the path of a descriptor whose file was deleted. */
const DELETED_SUFFIX = / \(deleted\)$/;
/** The first bytes of every SQLite database. */
const SQLITE_HEADER = Buffer.from('SQLite format 3\0');

/** Returns true for the path of a store file, and for every path in a data directory. */
export function isStorePath(real: string): boolean {
  const path = real.replace(DELETED_SUFFIX, '');
  return isStoreFile(real) || isStoreFile(path) || isBelowDataDirectory(path) || hasStoreSidecar(path);
}

/** Returns true for a data directory of any name, and for every path in a data directory that is known by its path. */
export function isDataDirectory(directory: string): boolean {
  if (isInDataDirectory(directory)) return true;
  const status = statOrUndefined(directory);
  if (!status?.isDirectory()) return false;
  // guard: marked-directory-is-data
  return (
    hasDataMarker(directory, status) || protectedDirectories().some((own) => isSameInode(status, statOrUndefined(own)))
  );
}

/** Returns true for a file of a store that this process uses or has used, by inode. */
export function isStoreInode(stats: BigIntStats): boolean {
  if (stats.isDirectory()) return false;
  const files = protectedDatabases().flatMap(storeFilesOf);
  return files.some((path) => isSameInode(stats, statOrUndefined(path)));
}

/** Creates the error for a file of a store. `evidence` is a reason in parentheses, as `storeEvidenceOf` returns it. */
export function storeFileError(path: string, evidence: string): LoopError {
  return toolError(`${quotePath(path)} belongs to Rondo's store${evidence}, which tools may not open or change.`);
}

/**
 * Returns the reason, in parentheses, why a path counts as one of a store; an empty string if only this process knows
 * the path as one. The file that the reason names may be there by mistake.
 */
export function storeEvidenceOf(real: string): string {
  const path = real.replace(DELETED_SUFFIX, '');
  const name = path.split('/').find(isInDataDirectory);
  if (name !== undefined) return ` (known by the directory name ${name})`;
  if (isInDataDirectory(path)) return '';
  const file = markerAbove(path) ?? sidecarOf(path);
  return file === undefined ? '' : ` (marked by the file ${file}; if there is no store, ask the operator to remove it)`;
}

function isBelowDataDirectory(path: string): boolean {
  if (isDataDirectory(path)) return true;
  return dirname(path) !== path && isBelowDataDirectory(dirname(path));
}

/** Returns true for a database of any process, and for its accompanying files. */
function hasStoreSidecar(path: string): boolean {
  return sidecarOf(path) !== undefined;
}

/** Returns the `.anchor` or `.owner` file of the store that a file belongs to; undefined if it belongs to none. */
function sidecarOf(path: string): string | undefined {
  const candidates = [path, databasePathOf(path), path.replace(/\.owner\.[^/]*$/, '')];
  return candidates
    .filter((database) => database !== undefined && /* guard: anchor-needs-a-database */ isDatabase(database))
    .flatMap((database) => [`${database}.anchor`, `${database}.owner`])
    .find(isRegularFile);
}

/**
 * Returns true for an SQLite database, for an empty file, which may be a store in creation, and for a file that cannot
 * be read. A database of this process is never opened: closing it would drop the locks of SQLite.
 */
export function isDatabase(path: string): boolean {
  const status = lstatOrUndefined(path);
  if (!status?.isFile()) return false;
  return (
    status.size === 0n ||
    // guard: own-database-never-opened
    isStoreInode(status) ||
    // guard: database-of-other-thread-never-opened
    isOwnedByThisProcess(path) ||
    hasHeader(path, SQLITE_HEADER) !== false
  );
}

/**
 * Returns true if the owner file of a database names this process. This detects a database of another thread, which
 * `protectedDatabases` does not include.
 */
function isOwnedByThisProcess(database: string): boolean {
  return hasHeader(`${database}.owner`, Buffer.from(`{"pid":${process.pid},`)) === true;
}

/** Returns true if a file begins with these bytes; undefined if it cannot be read or has become a file of a store. */
function hasHeader(path: string, header: Buffer): boolean | undefined {
  let descriptor: number;
  try {
    descriptor = openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
  } catch {
    return undefined;
  }
  const status = fstatSync(descriptor, { bigint: true });
  // A store file replaced the file meanwhile. The descriptor is never closed: that would drop the locks of SQLite.
  if (isStoreInode(status)) return undefined;
  try {
    const start = Buffer.alloc(header.length);
    return status.isFile() && readSync(descriptor, start, 0, start.length, 0) === start.length && start.equals(header);
  } catch {
    return undefined;
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Returns true if a directory has a valid marker: a regular file that belongs to the owner of the directory. In a
 * directory that everyone can write, any other user could have created the file.
 */
export function hasDataMarker(directory: string, status: Pick<BigIntStats, 'uid'>): boolean {
  return markerIn(directory, status) !== undefined;
}

/** Returns the status of a valid marker in a directory; undefined if there is none. `uid` is the directory's owner. */
export function markerIn(directory: string, { uid }: Pick<BigIntStats, 'uid'>): BigIntStats | undefined {
  const marker = lstatOrUndefined(join(directory, DATA_MARKER));
  return marker?.uid === uid && /* guard: marker-is-a-regular-file */ marker.isFile() ? marker : undefined;
}

function markerAbove(path: string): string | undefined {
  const status = statOrUndefined(path);
  if (status?.isDirectory() && hasDataMarker(path, status)) return join(path, DATA_MARKER);
  return dirname(path) === path ? undefined : markerAbove(dirname(path));
}

/** Returns device and inode, which identify a file, in the format of `stat -c %d:%i`. */
export function inodeOf({ dev, ino }: BigIntStats): string {
  return `${dev}:${ino}`;
}

/** Returns device and inode of the file at a path, following links; undefined if they are not available. */
export function inodeAt(path: string): string | undefined {
  const status = statOrUndefined(path);
  return status && inodeOf(status);
}

function isRegularFile(path: string): boolean {
  return lstatOrUndefined(path)?.isFile() ?? false;
}

function isSameInode(one: BigIntStats, other: BigIntStats | undefined): boolean {
  return other !== undefined && one.dev === other.dev && one.ino === other.ino;
}

/** Follows links. Returns undefined if the status is not available. */
function statOrUndefined(path: string): BigIntStats | undefined {
  try {
    return statSync(path, { bigint: true, throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

/** Returns the status of a path without following links; undefined if it is not available. */
export function lstatOrUndefined(path: string): BigIntStats | undefined {
  try {
    return lstatSync(path, { bigint: true, throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}
