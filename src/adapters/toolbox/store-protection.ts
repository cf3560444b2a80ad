/**
 * Keeps tools away from data directories and the files of stores. A directory is known by its path, by the marker in it and, if
 * this process uses it, by device and inode; a file also by the files beside it. All of this is found with `stat`,
 * which opens nothing, but for the first bytes of a file that has a record beside it and that this process does not use. See
 * other-names.ts for hard links and mounts.
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

/** What Linux puts behind the path of a descriptor whose file has no name any more. */
const DELETED_SUFFIX = / \(deleted\)$/;
/** How every SQLite database begins. */
const SQLITE_HEADER = Buffer.from('SQLite format 3\0');

/** True for a file with one of the paths of a store, or in a data directory. */
export function isStorePath(real: string): boolean {
  const path = real.replace(DELETED_SUFFIX, '');
  return isStoreFile(real) || isStoreFile(path) || isBelowDataDirectory(path) || hasStoreSidecar(path);
}

/** True for a data directory, whatever it is called. */
export function isDataDirectory(directory: string): boolean {
  if (isInDataDirectory(directory)) return true;
  const found = statOrUndefined(directory);
  if (!found?.isDirectory()) return false;
  // guard: marked-directory-is-data
  return (
    hasDataMarker(directory, found) || protectedDirectories().some((own) => isSameInode(found, statOrUndefined(own)))
  );
}

/** True for a file of a store that this process uses, whatever path led to it. */
export function isStoreInode(stats: BigIntStats): boolean {
  if (stats.isDirectory()) return false;
  const files = protectedDatabases().flatMap(storeFilesOf);
  return files.some((path) => isSameInode(stats, statOrUndefined(path)));
}

/** The refusal of a path that leads to a file of a store; `why` says how that is known, in parentheses. */
export function storeFileError(path: string, why: string): LoopError {
  return toolError(`${quotePath(path)} belongs to Rondo's store${why}, which tools may not open or change.`);
}

/** What makes a path one of a store, for people and in parentheses: a name or a file, which may be there by mistake. */
export function storeEvidenceOf(real: string): string {
  const path = real.replace(DELETED_SUFFIX, '');
  const name = path.split('/').find(isInDataDirectory);
  if (name !== undefined) return ` (known by the directory name ${name})`;
  if (isInDataDirectory(path)) return '';
  const file = markerAbove(path) ?? sidecarOf(path);
  return file === undefined ? '' : ` (marked by the file ${file}; if no store is there, let the operator remove it)`;
}

function isBelowDataDirectory(path: string): boolean {
  if (isDataDirectory(path)) return true;
  return dirname(path) !== path && isBelowDataDirectory(dirname(path));
}

/** True for a database of any process, and for the files beside it under its name. */
function hasStoreSidecar(path: string): boolean {
  return sidecarOf(path) !== undefined;
}

/** The anchor or the owner's record of the store that a file belongs to. */
function sidecarOf(path: string): string | undefined {
  const databases = [path, databasePathOf(path), path.replace(/\.owner\.[^/]*$/, '')];
  return databases
    .filter((own) => own !== undefined && /* guard: anchor-needs-a-database */ isDatabase(own))
    .flatMap((own) => [`${own}.anchor`, `${own}.owner`])
    .find(isRegularFile);
}

/**
 * True for an SQLite database, and for an empty file, which a store can be that is being made. A file of this process is never
 * opened, as closing it would drop the locks of SQLite. What cannot be read counts as a database.
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

/** True for a database of another thread of this process, which is not among the protected paths of this one. */
function isOwnedByThisProcess(database: string): boolean {
  return hasHeader(`${database}.owner`, Buffer.from(`{"pid":${process.pid},`)) === true;
}

/** Whether a file begins with these bytes; undefined if that cannot be told. */
function hasHeader(path: string, header: Buffer): boolean | undefined {
  let descriptor: number;
  try {
    descriptor = openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
  } catch {
    return undefined;
  }
  const status = fstatSync(descriptor, { bigint: true });
  // It was swapped in meanwhile; its descriptor is never closed, as that would drop the locks of SQLite.
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
 * A marker counts if it is a regular file that the owner of the directory made: in a directory that all can write to, anybody could
 * have made it.
 */
export function hasDataMarker(directory: string, status: Pick<BigIntStats, 'uid'>): boolean {
  return markerIn(directory, status) !== undefined;
}

/** The status of the marker in a directory, if it counts. */
export function markerIn(directory: string, { uid }: Pick<BigIntStats, 'uid'>): BigIntStats | undefined {
  const marker = lstatOrUndefined(join(directory, DATA_MARKER));
  return marker?.uid === uid && /* guard: marker-is-a-regular-file */ marker.isFile() ? marker : undefined;
}

function markerAbove(path: string): string | undefined {
  const status = statOrUndefined(path);
  if (status?.isDirectory() && hasDataMarker(path, status)) return join(path, DATA_MARKER);
  return dirname(path) === path ? undefined : markerAbove(dirname(path));
}

/** Device and inode, which identify a file, as `stat -c %d:%i` prints them. */
export function inodeOf({ dev, ino }: BigIntStats): string {
  return `${dev}:${ino}`;
}

/** The same for a path, links followed. */
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

/** Links followed; undefined if nothing can be told. */
function statOrUndefined(path: string): BigIntStats | undefined {
  try {
    return statSync(path, { bigint: true, throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

/** Links not followed; undefined if nothing can be told. */
export function lstatOrUndefined(path: string): BigIntStats | undefined {
  try {
    return lstatSync(path, { bigint: true, throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}
