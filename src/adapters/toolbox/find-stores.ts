/**
 * The stores in directories, whatever process uses them: data directories, by name or marker, and databases beside other files,
 * by the files that lie beside them. Everything is searched, and the number of directories is bounded: with more of them the
 * search fails, as a store among them could be shown to a command. A directory is read again only if its ctime has changed; what is in
 * a file is looked at each time.
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

export interface FoundStores {
  readonly dataDirectories: readonly string[];
  /** Directories with a database and other files. */
  readonly sharedDirectories: readonly string[];
  /** The directories that were searched: all but data directories. */
  readonly searchedDirectories: readonly string[];
  /** The directories with a marker that counts, also those that were searched because they were named. */
  readonly markedDirectories: readonly string[];
  /** True if a directory could not be read. */
  readonly isPartial: boolean;
}

/** What the names in a directory tell. */
interface DirectoryListing {
  readonly ctimeNs: bigint;
  readonly isRead: boolean;
  readonly subdirectories: readonly string[];
  readonly hasMarker: boolean;
  /** Of files that are databases if their content says so. */
  readonly databaseCandidates: readonly string[];
}

const MAX_DIRECTORIES = 100_000;
/** How many directories or files are looked at before other work gets its turn. */
export const ENTRIES_PER_SLICE = 256;
/** A directory that changed more recently could change again without another ctime. */
const MIN_UNCHANGED_MS = 2000n;

const NO_NAMES: readonly string[] = [];

/** Listings by device and inode. */
const listingsByInode = new Map<string, DirectoryListing>();

/** Searches these directories, nearest first. */
export async function findStores(
  places: readonly string[],
  most: number = MAX_DIRECTORIES,
  now: () => number = Date.now,
): Promise<FoundStores> {
  const own = new Set(protectedDirectories().map(inodeAt));
  const dataDirectories: string[] = [];
  const sharedDirectories: string[] = [];
  const searchedDirectories: string[] = [];
  const markedDirectories: string[] = [];
  let isPartial = false;
  const queue = [...places];
  // The queue grows while it is read.
  for (const [index, path] of queue.entries()) {
    if (index % ENTRIES_PER_SLICE === ENTRIES_PER_SLICE - 1) await setImmediate();
    const isPlace = index < places.length;
    const status = lstatOrUndefined(path);
    if (!status?.isDirectory()) continue;
    const listing = cachedListing(path, status, now);
    isPartial ||= !listing.isRead;
    const isMarkedHere = listing.hasMarker && hasDataMarker(path, status);
    if (isMarkedHere) markedDirectories.push(path);
    if (!isPlace && (isMarkedHere || isInDataDirectory(basename(path)) || own.has(inodeOf(status)))) {
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
    if (queue.length + listing.subdirectories.length > most) throw tooManyDirectoriesError(places, most);
    // guard: every-directory-searched
    for (const name of listing.subdirectories) queue.push(`${path}/${name}`);
  }
  return { dataDirectories, sharedDirectories, searchedDirectories, markedDirectories, isPartial };
}

function cachedListing(path: string, status: BigIntStats, now: () => number): DirectoryListing {
  const inode = inodeOf(status);
  const known = listingsByInode.get(inode);
  if (known?.ctimeNs === status.ctimeNs) return known;
  const isSettled = BigInt(now()) - status.ctimeMs >= MIN_UNCHANGED_MS;
  const listing = readListing(path, status.ctimeNs);
  listingsByInode.delete(inode);
  // guard: recent-listing-not-cached
  if (isSettled && listing !== undefined) listingsByInode.set(inode, listing);
  const oldest = listingsByInode.size > MAX_DIRECTORIES ? listingsByInode.keys().next().value : undefined;
  if (oldest !== undefined) listingsByInode.delete(oldest);
  // In a directory that cannot be read the marker may still be found by its name.
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

function tooManyDirectoriesError(places: readonly string[], most: number): Error {
  return toolError(
    `Nothing was done: ${places.join(', ')} holds more than ${most} directories, too many to look for stores that must be hidden. ` +
      'Let the operator name smaller roots.',
  );
}
