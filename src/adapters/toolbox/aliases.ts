/**
 * Other names of what is protected: hard links of its files, and bind mounts of its files and directories. They are found by
 * device and inode, among the mount points and, if a protected file has more than one name, among all files that were searched.
 */
import { type BigIntStats, type Dirent, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import {
  isInDataDirectory,
  protectedDatabases,
  protectedDirectories,
  storeFileNames,
  storeFilesOf,
} from '../../journal/store-files.js';
import { ENTRIES_PER_SLICE, type FoundStores, findStores } from './find-stores.js';
import { containsPath, parentsWithin } from './paths.js';
import { inodeOf, isDatabase, lstatOrUndefined } from './store-protection.js';

/** What is protected, by device and inode. */
interface ProtectedInodes {
  readonly all: ReadonlySet<string>;
  /** True if a file has more than one name. */
  readonly hasLinks: boolean;
}

interface PathAlias {
  readonly path: string;
  readonly isDirectory: boolean;
}

/** Bounds how much of a data directory is compared, nearest first. */
const MAX_ENTRIES = 20_000;
/** How long a search holds for the tools for files. */
const CACHE_MS = 1000;

/** Other names, in the places that were searched, of what these stores and those of this process hold. */
export async function findAliases(places: readonly string[], stores: FoundStores): Promise<readonly PathAlias[]> {
  const { all, hasLinks } = await protectedInodesOf(stores);
  const found: PathAlias[] = [];
  for (const path of /* guard: mounted-names-searched */ mountPointsIn(places)) {
    const status = lstatOrUndefined(path);
    if (status !== undefined && all.has(inodeOf(status))) found.push({ path, isDirectory: status.isDirectory() });
  }
  // guard: linked-names-hidden
  if (!hasLinks) return found;
  const isFile = (entry: Dirent): boolean => !entry.isDirectory() && !entry.isSymbolicLink();
  for await (const { path, status } of statEntries(stores.searchedDirectories, isFile)) {
    if (status.nlink > 1n && all.has(inodeOf(status))) found.push({ path, isDirectory: false });
  }
  return found;
}

/** Tells whether what was opened in the roots is protected under another name. */
export class AliasDetector {
  private readonly roots: readonly string[];
  private readonly now: () => number;
  private mountPoints: readonly string[] = [];
  private mountPointsExpireAt = Number.NEGATIVE_INFINITY;
  private inodes: Promise<ProtectedInodes> | undefined;
  private inodesExpireAt = Number.NEGATIVE_INFINITY;

  /** @param now a monotonic clock, in milliseconds. */
  constructor(roots: readonly string[], now: () => number = () => performance.now()) {
    this.roots = roots;
    this.now = now;
  }

  /** A file with one name that is below no mount point is where its path says, and costs no search. */
  async isAlias(real: string, status: BigIntStats): Promise<boolean> {
    // guard: hard-links-searched
    const isLinked = status.nlink > 1n && !status.isDirectory();
    if (!isLinked && !this.isBelowMountPoint(real)) return false;
    const { all } = await this.protectedInodes();
    return all.has(inodeOf(status)) || parentsWithin(this.roots, real).some((path) => hasInodeOf(all, path));
  }

  private isBelowMountPoint(real: string): boolean {
    if (this.now() >= this.mountPointsExpireAt) {
      this.mountPoints = mountPointsIn(this.roots);
      this.mountPointsExpireAt = this.now() + CACHE_MS;
    }
    return this.mountPoints.some((point) => containsPath(point, real));
  }

  /** Callers share a search that is under way. */
  private protectedInodes(): Promise<ProtectedInodes> {
    if (this.inodes !== undefined && this.now() < this.inodesExpireAt) return this.inodes;
    this.inodesExpireAt = Number.POSITIVE_INFINITY;
    this.inodes = findStores(this.roots)
      .then(protectedInodesOf)
      .finally(() => {
        this.inodesExpireAt = this.now() + CACHE_MS;
      });
    return this.inodes;
  }
}

async function protectedInodesOf({ dataDirectories, sharedDirectories }: FoundStores): Promise<ProtectedInodes> {
  const all = new Set<string>();
  let hasLinks = false;
  const add = (status: BigIntStats | undefined): void => {
    if (status === undefined || status.isSymbolicLink()) return;
    all.add(inodeOf(status));
    hasLinks ||= status.nlink > 1n && !status.isDirectory();
  };
  const beside = sharedDirectories.flatMap((directory) => {
    const names = readEntries(directory).map(({ name }) => name);
    const stores = storeFileNames(names, (name) => isDatabase(join(directory, name)));
    return [...stores].map((name) => join(directory, name));
  });
  const used = protectedDatabases()
    .map((path) => dirname(path))
    .filter(isInDataDirectory);
  const directories = [
    ...new Set([...protectedDirectories(), ...used, /* guard: foreign-data-directories-searched */ ...dataDirectories]),
  ];
  for (const path of [...protectedDatabases().flatMap(storeFilesOf), ...beside, ...directories])
    add(lstatOrUndefined(path));
  let left = MAX_ENTRIES;
  for await (const { path, status } of statEntries(directories, () => true)) {
    if (--left < 0) break;
    add(status);
    // They are read afterwards.
    if (status.isDirectory()) directories.push(path);
  }
  return { all, hasLinks };
}

/** The entries of directories, links not followed. Directories that are added meanwhile are read too. */
async function* statEntries(directories: readonly string[], isWanted: (entry: Dirent) => boolean) {
  let count = 0;
  for (const directory of directories) {
    for (const entry of readEntries(directory)) {
      if (!isWanted(entry)) continue;
      if (++count % ENTRIES_PER_SLICE === 0) await setImmediate();
      const path = join(directory, entry.name);
      const status = lstatOrUndefined(path);
      if (status !== undefined) yield { path, status };
    }
  }
}

function readEntries(directory: string): readonly Dirent[] {
  try {
    return readdirSync(directory, { withFileTypes: true });
  } catch {
    return [];
  }
}

function hasInodeOf(inodes: ReadonlySet<string>, path: string): boolean {
  const status = lstatOrUndefined(path);
  return status !== undefined && inodes.has(inodeOf(status));
}

/** The mount points in these places; none where the system has no list of them. */
export function mountPointsIn(places: readonly string[]): readonly string[] {
  let table: string;
  try {
    table = readFileSync('/proc/self/mountinfo', 'utf8');
  } catch {
    return [];
  }
  return parseMountPoints(table).filter((point) =>
    places.some((place) => point !== place && containsPath(place, point)),
  );
}

/** The mount points that a table like /proc/self/mountinfo names; spaces and backslashes are octal numbers in it. */
export function parseMountPoints(table: string): readonly string[] {
  const points = table.split('\n').flatMap((line) => line.split(' ')[4] ?? []);
  return points.map((point) =>
    point.replace(/\\([0-7]{3})/g, (_, code) => String.fromCharCode(Number.parseInt(code, 8))),
  );
}
