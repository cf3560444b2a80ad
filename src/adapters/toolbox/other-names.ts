/**
 * Other names of what is protected: hard links of its files, and bind mounts of its files and directories. They are found by
 * device and inode, among the mount points and, if a protected file has more than one name, among all files that were searched.
 */
import { type BigIntStats, type Dirent, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import {
  isInDataDirectory,
  protectedDirectories,
  protectedPaths,
  storeFilesOf,
  storeNames,
} from '../../journal/store-files.js';
import { contains, parentsIn } from './paths.js';
import { entryOf, inodeOf, isDatabase } from './store-files.js';
import { SLICE, type Stores, storesIn } from './stores-in.js';

/** What is protected, by device and inode. */
interface Inodes {
  readonly all: ReadonlySet<string>;
  /** True if a file has more than one name. */
  readonly hasLinks: boolean;
}

interface OtherName {
  readonly path: string;
  readonly isDirectory: boolean;
}

/** Bounds how much of a data directory is compared, nearest first. */
const MAX_ENTRIES = 20_000;
/** How long a search holds for the tools for files. */
const FRESH_MS = 1000;

/** Other names, in the places that were searched, of what these stores and those of this process hold. */
export async function otherNamesIn(places: readonly string[], stores: Stores): Promise<readonly OtherName[]> {
  const { all, hasLinks } = await inodesOf(stores);
  const found: OtherName[] = [];
  for (const path of /* guard: mounted-names-searched */ mountPointsIn(places)) {
    const status = entryOf(path);
    if (status !== undefined && all.has(inodeOf(status))) found.push({ path, isDirectory: status.isDirectory() });
  }
  // guard: linked-names-hidden
  if (!hasLinks) return found;
  const isFile = (entry: Dirent): boolean => !entry.isDirectory() && !entry.isSymbolicLink();
  for await (const { path, status } of statusesIn(stores.searched, isFile)) {
    if (status.nlink > 1n && all.has(inodeOf(status))) found.push({ path, isDirectory: false });
  }
  return found;
}

/** Tells whether what was opened in the roots is protected under another name. */
export class OtherNames {
  private readonly roots: readonly string[];
  private readonly now: () => number;
  private points: readonly string[] = [];
  private pointsExpireAt = Number.NEGATIVE_INFINITY;
  private inodes: Promise<Inodes> | undefined;
  private inodesExpireAt = Number.NEGATIVE_INFINITY;

  /** @param now a monotonic clock, in milliseconds. */
  constructor(roots: readonly string[], now: () => number = () => performance.now()) {
    this.roots = roots;
    this.now = now;
  }

  /** A file with one name that is below no mount point is where its path says, and costs no search. */
  async include(real: string, status: BigIntStats): Promise<boolean> {
    // guard: hard-links-searched
    const isLinked = status.nlink > 1n && !status.isDirectory();
    if (!isLinked && !this.isMounted(real)) return false;
    const { all } = await this.protectedInodes();
    return all.has(inodeOf(status)) || parentsIn(this.roots, real).some((path) => isAmong(all, path));
  }

  private isMounted(real: string): boolean {
    if (this.now() >= this.pointsExpireAt) {
      this.points = mountPointsIn(this.roots);
      this.pointsExpireAt = this.now() + FRESH_MS;
    }
    return this.points.some((point) => contains(point, real));
  }

  /** Callers share a search that is under way. */
  private protectedInodes(): Promise<Inodes> {
    if (this.inodes !== undefined && this.now() < this.inodesExpireAt) return this.inodes;
    this.inodesExpireAt = Number.POSITIVE_INFINITY;
    this.inodes = storesIn(this.roots)
      .then(inodesOf)
      .finally(() => {
        this.inodesExpireAt = this.now() + FRESH_MS;
      });
    return this.inodes;
  }
}

async function inodesOf({ data, shared }: Stores): Promise<Inodes> {
  const all = new Set<string>();
  let hasLinks = false;
  const add = (status: BigIntStats | undefined): void => {
    if (status === undefined || status.isSymbolicLink()) return;
    all.add(inodeOf(status));
    hasLinks ||= status.nlink > 1n && !status.isDirectory();
  };
  const beside = shared.flatMap((directory) => {
    const names = entriesIn(directory).map(({ name }) => name);
    const stores = storeNames(names, (name) => isDatabase(join(directory, name)));
    return [...stores].map((name) => join(directory, name));
  });
  const used = protectedPaths()
    .map((path) => dirname(path))
    .filter(isInDataDirectory);
  const directories = [
    ...new Set([...protectedDirectories(), ...used, /* guard: foreign-data-directories-searched */ ...data]),
  ];
  for (const path of [...protectedPaths().flatMap(storeFilesOf), ...beside, ...directories]) add(entryOf(path));
  let left = MAX_ENTRIES;
  for await (const { path, status } of statusesIn(directories, () => true)) {
    if (--left < 0) break;
    add(status);
    // They are read afterwards.
    if (status.isDirectory()) directories.push(path);
  }
  return { all, hasLinks };
}

/** The entries of directories, links not followed. Directories that are added meanwhile are read too. */
async function* statusesIn(directories: readonly string[], isWanted: (entry: Dirent) => boolean) {
  let count = 0;
  for (const directory of directories) {
    for (const entry of entriesIn(directory)) {
      if (!isWanted(entry)) continue;
      if (++count % SLICE === 0) await setImmediate();
      const path = join(directory, entry.name);
      const status = entryOf(path);
      if (status !== undefined) yield { path, status };
    }
  }
}

function entriesIn(directory: string): readonly Dirent[] {
  try {
    return readdirSync(directory, { withFileTypes: true });
  } catch {
    return [];
  }
}

function isAmong(inodes: ReadonlySet<string>, path: string): boolean {
  const status = entryOf(path);
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
  return mountPointsOf(table).filter((point) => places.some((place) => point !== place && contains(place, point)));
}

/** The mount points that a table like /proc/self/mountinfo names; spaces and backslashes are octal numbers in it. */
export function mountPointsOf(table: string): readonly string[] {
  const points = table.split('\n').flatMap((line) => line.split(' ')[4] ?? []);
  return points.map((point) =>
    point.replace(/\\([0-7]{3})/g, (_, code) => String.fromCharCode(Number.parseInt(code, 8))),
  );
}
