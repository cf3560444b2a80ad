/**
 * Finds aliases of protected files and directories, that is, of those of stores. An alias is a hard link or a bind
 * mount with the device and inode of a protected file. Aliases are searched for among the mount points and, if a
 * protected file has several hard links, among all files in the searched directories.
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

/** Devices and inodes of protected files and directories. */
interface ProtectedInodes {
  readonly all: ReadonlySet<string>;
  /** True if one of the files has several hard links. */
  readonly hasLinks: boolean;
}

interface PathAlias {
  readonly path: string;
  readonly isDirectory: boolean;
}

/** The maximum number of entries of data directories whose inodes are collected, breadth first. */
const MAX_ENTRIES = 20_000;
/** How long the file tools use the result of a search. */
const CACHE_MS = 1000;

/** Returns the aliases, in these directories, of files of the found stores and of the stores of this process. */
export async function findAliases(directories: readonly string[], stores: FoundStores): Promise<readonly PathAlias[]> {
  const { all, hasLinks } = await protectedInodesOf(stores);
  const aliases: PathAlias[] = [];
  for (const path of /* guard: mounted-names-searched */ mountPointsIn(directories)) {
    const status = lstatOrUndefined(path);
    if (status !== undefined && all.has(inodeOf(status))) aliases.push({ path, isDirectory: status.isDirectory() });
  }
  // guard: linked-names-hidden
  if (!hasLinks) return aliases;
  const isFile = (entry: Dirent): boolean => !entry.isDirectory() && !entry.isSymbolicLink();
  for await (const { path, status } of statEntries(stores.searchedDirectories, isFile)) {
    if (status.nlink > 1n && all.has(inodeOf(status))) aliases.push({ path, isDirectory: false });
  }
  return aliases;
}

/** Detects whether a file that was opened in the roots is an alias of a protected file. */
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

  /**
   * Returns true if the file, or a directory above it, is protected under another name. A file with a single hard link
   * that is not below a mount point has no alias, so it needs no search.
   */
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

  /** Returns the cached inodes. Concurrent callers share one search. */
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

/** Returns the inodes of the files and directories of the found stores and of the stores of this process. */
async function protectedInodesOf({ dataDirectories, sharedDirectories }: FoundStores): Promise<ProtectedInodes> {
  const all = new Set<string>();
  let hasLinks = false;
  const add = (status: BigIntStats | undefined): void => {
    if (status === undefined || status.isSymbolicLink()) return;
    all.add(inodeOf(status));
    hasLinks ||= status.nlink > 1n && !status.isDirectory();
  };
  const sharedStoreFiles = sharedDirectories.flatMap((directory) => {
    const names = readEntries(directory).map(({ name }) => name);
    const stores = storeFileNames(names, (name) => isDatabase(join(directory, name)));
    return [...stores].map((name) => join(directory, name));
  });
  const ownDirectories = protectedDatabases()
    .map((path) => dirname(path))
    .filter(isInDataDirectory);
  const directories = [
    ...new Set([
      ...protectedDirectories(),
      ...ownDirectories,
      /* guard: foreign-data-directories-searched */ ...dataDirectories,
    ]),
  ];
  for (const path of [...protectedDatabases().flatMap(storeFilesOf), ...sharedStoreFiles, ...directories])
    add(lstatOrUndefined(path));
  let remainingEntries = MAX_ENTRIES;
  for await (const { path, status } of statEntries(directories, () => true)) {
    if (--remainingEntries < 0) break;
    add(status);
    // `statEntries` reads the appended directories too.
    if (status.isDirectory()) directories.push(path);
  }
  return { all, hasLinks };
}

/** Yields the entries of directories without following links. Directories appended during iteration are read too. */
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

/** Returns the mount points below these directories; none if the system does not provide /proc/self/mountinfo. */
export function mountPointsIn(directories: readonly string[]): readonly string[] {
  let table: string;
  try {
    table = readFileSync('/proc/self/mountinfo', 'utf8');
  } catch {
    return [];
  }
  return parseMountPoints(table).filter((point) =>
    directories.some((directory) => point !== directory && containsPath(directory, point)),
  );
}

/** Parses the mount points of /proc/self/mountinfo, where spaces and backslashes are octal escapes. */
export function parseMountPoints(table: string): readonly string[] {
  const points = table.split('\n').flatMap((line) => line.split(' ')[4] ?? []);
  return points.map((point) =>
    point.replace(/\\([0-7]{3})/g, (_, code) => String.fromCharCode(Number.parseInt(code, 8))),
  );
}
