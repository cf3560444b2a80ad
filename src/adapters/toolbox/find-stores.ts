/**
 * Finds the stores of all processes in directories. A data directory is recognized by its name, by its marker file or,
 * if this process uses it, by its inode. A database in any other directory is recognized by its companion file
 * (`.anchor` or `.owner`) and its content. The search does not follow links or enter data directories. It fails if
 * there are too many directories, because an unsearched one could expose a store to a command. Listings of directories
 * are cached until their ctime changes; whether a file is a database is checked each time.
 */
import { type BigIntStats, readdirSync } from 'node:fs';
import { basename } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import {
  DATA_MARKER,
  isInDataDirectory,
  namesWithAnchorOrOwner,
  protectedDirectories,
} from '../../journal/store-files.js';
import { hasDataMarker, inodeAt, inodeOf, isDatabase, lstatOrUndefined } from './store-protection.js';
import { toolError } from './tool-error.js';

/** The result of a search for stores. */
export interface FoundStores {
  /** Data directories, without the start directories of the search. */
  readonly dataDirectories: readonly string[];
  /** Directories that contain a database and may contain other files. */
  readonly sharedDirectories: readonly string[];
  /** All directories that were searched, without `dataDirectories`. */
  readonly searchedDirectories: readonly string[];
  /** Directories with a valid marker. A start directory of the search is included if it has one. */
  readonly markedDirectories: readonly string[];
  /** True if some directory could not be read. */
  readonly isPartial: boolean;
}

/** The relevant names in a directory. */
interface DirectoryListing {
  readonly ctimeNs: bigint;
  readonly isRead: boolean;
  readonly subdirectories: readonly string[];
  /** True if the directory contains an entry with the name of the marker, or cannot be read. */
  readonly hasMarker: boolean;
  /** Names with an `.anchor` or `.owner` companion. Whether such a file is a database depends on its content. */
  readonly databaseCandidates: readonly string[];
}

/** The maximum number of directories of one search, and of cached listings. */
const MAX_DIRECTORIES = 100_000;
/** The number of directories or files that are processed before the search yields to the event loop. */
export const ENTRIES_PER_SLICE = 256;
/**
 * The minimum age of the last change of a directory whose listing is cached. The resolution of ctime is limited, so a
 * directory that changed more recently could change again with the same ctime.
 */
const MIN_UNCHANGED_MS = 2000n;

const NO_NAMES: readonly string[] = [];

/** Cached listings by device and inode. */
const listingsByInode = new Map<string, DirectoryListing>();

/**
 * Searches these directories and all below them, breadth first. Throws TOOL_FAILED if there are more than
 * `maxDirectories`.
 */
export async function findStores(
  startDirectories: readonly string[],
  maxDirectories: number = MAX_DIRECTORIES,
  now: () => number = Date.now,
): Promise<FoundStores> {
  const ownInodes = new Set(protectedDirectories().map(inodeAt));
  const dataDirectories: string[] = [];
  const sharedDirectories: string[] = [];
  const searchedDirectories: string[] = [];
  const markedDirectories: string[] = [];
  let isPartial = false;
  const queue = [...startDirectories];
  // Subdirectories are appended during iteration.
  for (const [index, path] of queue.entries()) {
    if (index % ENTRIES_PER_SLICE === ENTRIES_PER_SLICE - 1) await setImmediate();
    const isStart = index < startDirectories.length;
    const status = lstatOrUndefined(path);
    if (!status?.isDirectory()) continue;
    const listing = cachedListing(path, status, now);
    isPartial ||= !listing.isRead;
    const isMarked = listing.hasMarker && hasDataMarker(path, status);
    if (isMarked) markedDirectories.push(path);
    if (!isStart && (isMarked || isInDataDirectory(basename(path)) || ownInodes.has(inodeOf(status)))) {
      dataDirectories.push(path);
      continue;
    }
    searchedDirectories.push(path);
    if (
      listing.databaseCandidates.some((name) =>
        /* guard: shared-directory-holds-a-database */ isDatabase(`${path}/${name}`),
      )
    )
      sharedDirectories.push(path);
    if (queue.length + listing.subdirectories.length > maxDirectories)
      throw tooManyDirectoriesError(startDirectories, maxDirectories);
    // guard: every-directory-searched
    for (const name of listing.subdirectories) queue.push(`${path}/${name}`);
  }
  return { dataDirectories, sharedDirectories, searchedDirectories, markedDirectories, isPartial };
}

function cachedListing(path: string, status: BigIntStats, now: () => number): DirectoryListing {
  const inode = inodeOf(status);
  const cached = listingsByInode.get(inode);
  if (cached?.ctimeNs === status.ctimeNs) return cached;
  const isSettled = BigInt(now()) - status.ctimeMs >= MIN_UNCHANGED_MS;
  const listing = readListing(path, status.ctimeNs);
  listingsByInode.delete(inode);
  // guard: recent-listing-not-cached
  if (isSettled && listing !== undefined) listingsByInode.set(inode, listing);
  const oldest = listingsByInode.size > MAX_DIRECTORIES ? listingsByInode.keys().next().value : undefined;
  if (oldest !== undefined) listingsByInode.delete(oldest);
  // In a directory that cannot be listed, the marker may still be accessible by its name.
  return (
    listing ?? {
      ctimeNs: status.ctimeNs,
      isRead: false,
      subdirectories: NO_NAMES,
      hasMarker: true,
      databaseCandidates: NO_NAMES,
    }
  );
}

function readListing(path: string, ctimeNs: bigint): DirectoryListing | undefined {
  try {
    const entries = readdirSync(path, { withFileTypes: true });
    const directories = entries.flatMap((entry) => (entry.isDirectory() ? [entry.name] : []));
    const names = entries.map(({ name }) => name);
    return {
      ctimeNs,
      isRead: true,
      subdirectories: directories.length === 0 ? NO_NAMES : directories,
      hasMarker: names.includes(DATA_MARKER),
      databaseCandidates: namesWithAnchorOrOwner(names),
    };
  } catch {
    return undefined;
  }
}

function tooManyDirectoriesError(startDirectories: readonly string[], maxDirectories: number): Error {
  return toolError(
    `Nothing was done: ${startDirectories.join(', ')} contains more than ${maxDirectories} directories, too many to search for stores that must be hidden. ` +
      'Ask the operator to configure smaller roots.',
  );
}
