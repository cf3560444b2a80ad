/**
 * The stores in directories, whatever process uses them: data directories, by name or marker, and databases beside other files,
 * by the files that lie beside them. Everything is searched, and the number of directories is bounded: with more of them the
 * search fails, as a store among them could be shown to a command. A directory is read again only if its ctime has changed; what is in
 * a file is looked at each time.
 */
import { type BigIntStats, readdirSync } from 'node:fs';
import { basename } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { DATA_MARKER, isInDataDirectory, protectedDirectories, recordedNames } from '../../journal/store-files.js';
import { refusal } from './refusal.js';
import { entryOf, inodeAt, inodeOf, isDatabase, isMarked } from './store-files.js';

export interface Stores {
  readonly data: readonly string[];
  /** Directories with a database and other files. */
  readonly shared: readonly string[];
  /** The directories that were searched: all but data directories. */
  readonly searched: readonly string[];
  /** The directories with a marker that counts, also those that were searched because they were named. */
  readonly marked: readonly string[];
  /** True if a directory could not be read. */
  readonly isPartial: boolean;
}

/** What the names in a directory tell. */
interface Listing {
  readonly ctimeNs: bigint;
  readonly isRead: boolean;
  readonly directories: readonly string[];
  readonly hasMarker: boolean;
  /** Of files that are databases if their content says so. */
  readonly recorded: readonly string[];
}

const MAX_DIRECTORIES = 100_000;
/** How many directories or files are looked at before other work gets its turn. */
export const SLICE = 256;
/** A directory that changed more recently could change again without another ctime. */
const SETTLED_MS = 2000n;

const NONE: readonly string[] = [];

/** Listings by device and inode. */
const listings = new Map<string, Listing>();

/** Searches these directories, nearest first. */
export async function storesIn(
  places: readonly string[],
  most: number = MAX_DIRECTORIES,
  now: () => number = Date.now,
): Promise<Stores> {
  const own = new Set(protectedDirectories().map(inodeAt));
  const stores = { data: [] as string[], shared: [] as string[], searched: [] as string[], marked: [] as string[] };
  let isPartial = false;
  const queue = [...places];
  // The queue grows while it is read.
  for (const [index, path] of queue.entries()) {
    if (index % SLICE === SLICE - 1) await setImmediate();
    const isPlace = index < places.length;
    const status = entryOf(path);
    if (!status?.isDirectory()) continue;
    const listing = listingOf(path, status, now);
    isPartial ||= !listing.isRead;
    const isMarkedHere = listing.hasMarker && isMarked(path, status);
    if (isMarkedHere) stores.marked.push(path);
    if (!isPlace && (isMarkedHere || isInDataDirectory(basename(path)) || own.has(inodeOf(status)))) {
      stores.data.push(path);
      continue;
    }
    stores.searched.push(path);
    if (listing.recorded.some((name) => /* guard: shared-directory-holds-a-database */ isDatabase(`${path}/${name}`)))
      stores.shared.push(path);
    if (queue.length + listing.directories.length > most) throw tooMany(places, most);
    // guard: every-directory-searched
    for (const name of listing.directories) queue.push(`${path}/${name}`);
  }
  return { ...stores, isPartial };
}

function listingOf(path: string, status: BigIntStats, now: () => number): Listing {
  const inode = inodeOf(status);
  const known = listings.get(inode);
  if (known?.ctimeNs === status.ctimeNs) return known;
  const isSettled = BigInt(now()) - status.ctimeMs >= SETTLED_MS;
  const listing = read(path, status.ctimeNs);
  listings.delete(inode);
  // guard: recent-listing-not-cached
  if (isSettled && listing !== undefined) listings.set(inode, listing);
  const oldest = listings.size > MAX_DIRECTORIES ? listings.keys().next().value : undefined;
  if (oldest !== undefined) listings.delete(oldest);
  // In a directory that cannot be read the marker may still be found by its name.
  return listing ?? { ctimeNs: status.ctimeNs, isRead: false, directories: NONE, hasMarker: true, recorded: NONE };
}

function read(path: string, ctimeNs: bigint): Listing | undefined {
  try {
    const entries = readdirSync(path, { withFileTypes: true });
    const directories = entries.flatMap((entry) => (entry.isDirectory() ? [entry.name] : []));
    const names = entries.map(({ name }) => name);
    return {
      ctimeNs,
      isRead: true,
      directories: directories.length === 0 ? NONE : directories,
      hasMarker: names.includes(DATA_MARKER),
      recorded: recordedNames(names),
    };
  } catch {
    return undefined;
  }
}

function tooMany(places: readonly string[], most: number): Error {
  return refusal(
    `Nothing was done: ${places.join(', ')} holds more than ${most} directories, too many to look for stores that must be hidden. ` +
      'Let the operator name smaller roots.',
  );
}
