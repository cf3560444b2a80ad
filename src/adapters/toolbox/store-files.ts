/**
 * Keeps tools away from the files of a store. A file is known by its real path and, as a hard link or a second mount gives
 * it another path, by device and inode. The files of the store are looked at with `stat`, which opens nothing.
 */
import { type BigIntStats, statSync } from 'node:fs';
import type { LoopError } from '../../journal/errors.js';
import { isStoreFile, protectedPaths, storeFilesOf } from '../../journal/store-files.js';
import { named, refusal } from './refusal.js';

/** What Linux puts behind the path of a descriptor whose file has no name any more. */
const DELETED = / \(deleted\)$/;

/** True for a file with one of the paths of a store. */
export function hasStorePath(real: string): boolean {
  return isStoreFile(real) || isStoreFile(real.replace(DELETED, ''));
}

/** True for a file of a store that this process uses, whatever path led to it. */
export function isStoreInode(stats: BigIntStats): boolean {
  if (stats.isDirectory()) return false;
  return protectedPaths()
    .flatMap(storeFilesOf)
    .some((path) => {
      const own = statSync(path, { bigint: true, throwIfNoEntry: false });
      return own !== undefined && own.dev === stats.dev && own.ino === stats.ino;
    });
}

/** The refusal of a path that leads to a file of a store. */
export function ofStore(path: string): LoopError {
  return refusal(`${named(path)} belongs to Rondo's store, which tools may not open or change.`);
}
