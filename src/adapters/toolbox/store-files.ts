/**
 * Keeps tools away from data directories and the files of stores. A directory is known by its path, by the marker in it and,
 * as a second mount gives it another path, by device and inode; a file also by the files beside it and, as a hard link gives it
 * another path, by device and inode. All of this is found with `stat`, which opens nothing.
 */
import { type BigIntStats, lstatSync, readdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { LoopError } from '../../journal/errors.js';
import {
  DATA_MARKER,
  databaseOf,
  isInDataDirectory,
  isStoreFile,
  protectedDirectories,
  protectedPaths,
  storeFilesOf,
} from '../../journal/store-files.js';
import { named, refusal } from './refusal.js';

/** What Linux puts behind the path of a descriptor whose file has no name any more. */
const DELETED = / \(deleted\)$/;
/** Bounds the search of a data directory for the other name of a file. */
const MAX_LINK_CANDIDATES = 20_000;

/** True for a file with one of the paths of a store, or in a data directory. */
export function hasStorePath(real: string): boolean {
  const path = real.replace(DELETED, '');
  return isStoreFile(real) || isStoreFile(path) || isBelowDataDirectory(path) || isBesideStore(path);
}

/** True for a data directory, whatever it is called. */
export function isDataDirectory(directory: string): boolean {
  if (isInDataDirectory(directory)) return true;
  const found = statusOf(directory);
  if (!found?.isDirectory()) return false;
  return isMarked(directory, found) || protectedDirectories().some((own) => isSame(found, statusOf(own)));
}

/** True for a file of a store that this process uses, whatever path led to it. */
export function isStoreInode(stats: BigIntStats): boolean {
  if (stats.isDirectory()) return false;
  if (
    protectedPaths()
      .flatMap(storeFilesOf)
      .some((path) => isSame(stats, statusOf(path)))
  )
    return true;
  // A file with one name is where that name says.
  return stats.nlink > 1n && protectedDirectories().some((directory) => holdsInode(directory, stats));
}

/** The refusal of a path that leads to a file of a store. */
export function ofStore(path: string): LoopError {
  return refusal(`${named(path)} belongs to Rondo's store, which tools may not open or change.`);
}

function isBelowDataDirectory(path: string): boolean {
  if (isDataDirectory(path)) return true;
  return dirname(path) !== path && isBelowDataDirectory(dirname(path));
}

/** True for a database of any process, and for the files beside it under its name. */
function isBesideStore(path: string): boolean {
  const databases = [path, databaseOf(path), path.replace(/\.owner\.[^/]*$/, '')];
  return databases.some(
    (own) => own !== undefined && isFile(own) && (isFile(`${own}.anchor`) || isFile(`${own}.owner`)),
  );
}

/** A marker counts if the owner of the directory made it: in a directory that all can write to, anybody could have. */
function isMarked(directory: string, { uid }: BigIntStats): boolean {
  const marker = entryOf(join(directory, DATA_MARKER));
  return marker !== undefined && marker.uid === uid;
}

function holdsInode(directory: string, stats: BigIntStats): boolean {
  let entries: readonly string[];
  try {
    entries = readdirSync(directory, { recursive: true, encoding: 'utf8' });
  } catch {
    return false;
  }
  return entries.slice(0, MAX_LINK_CANDIDATES).some((name) => isSame(stats, entryOf(join(directory, name))));
}

function isFile(path: string): boolean {
  return entryOf(path)?.isFile() ?? false;
}

function isSame(one: BigIntStats, other: BigIntStats | undefined): boolean {
  return other !== undefined && one.dev === other.dev && one.ino === other.ino;
}

/** Links followed; undefined if nothing can be told. */
function statusOf(path: string): BigIntStats | undefined {
  try {
    return statSync(path, { bigint: true, throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

/** Links not followed; undefined if nothing can be told. */
function entryOf(path: string): BigIntStats | undefined {
  try {
    return lstatSync(path, { bigint: true, throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}
