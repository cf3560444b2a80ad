/**
 * Computes the mounts of a sandboxed command: the roots, writable, without data directories and files of stores. A data
 * directory is covered by an empty read-only directory. So is a directory that a store shares with other files, and
 * these files are mounted back into it: a mount over a single file would be detached as soon as the owner of the store
 * renames a new file to that name. A command cannot create files in such a shared directory itself.
 */
import { type Dirent, existsSync } from 'node:fs';
import { readdir, readlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import {
  isInDataDirectory,
  isStoreFile,
  protectedDatabases,
  protectedDirectories,
  storeFileNames,
} from '../../journal/store-files.js';
import { findAliases } from './aliases.js';
import { type FoundStores, findStores } from './find-stores.js';
import { mountSourcesOf } from './mount-sources.js';
import { containsPath, parentsWithin } from './paths.js';
import { LOCAL_SYSTEM_DIRECTORIES, type SandboxOptions, SYSTEM_DIRECTORIES } from './sandbox.js';
import { isDatabase, isDataDirectory } from './store-protection.js';
import { toolError } from './tool-error.js';

/** Arguments of bubblewrap that mount something at a path. */
interface Mount {
  readonly path: string;
  readonly argv: readonly string[];
  /** The paths that the mount makes visible unchanged. */
  readonly sources: readonly string[];
}

/** The maximum number of mounts for one shared directory, and for aliases of files. */
const MAX_ENTRIES = 1000;

/** The mounts of a sandbox, and the state of the roots they were computed from. */
export interface SandboxMounts extends Pick<SandboxOptions, 'mounts' | 'sources'> {
  /** Directories that are hidden completely by a mount of their own. */
  readonly hiddenDirectories: readonly string[];
  /** Directories in which the command sees no new entries and can create none, except in their subdirectories. */
  readonly coveredDirectories: readonly string[];
  /** The stores that were found before the command. */
  readonly stores: FoundStores;
}

/** Returns the directories in which stores are searched for: the roots and the local system directories. */
export function searchRootsOf(roots: readonly string[]): readonly string[] {
  return [...new Set([...roots, ...LOCAL_SYSTEM_DIRECTORIES])];
}

/**
 * Searches the roots for stores and computes the mounts that show the roots without them. Throws TOOL_FAILED if there
 * are too many directories to search, if too many mounts are needed, or if a mounted path was replaced meanwhile.
 */
export async function mountsFor(roots: readonly string[]): Promise<SandboxMounts> {
  const { hidden, files, shared, isHidden, stores } = await findVisibleStores(roots);
  const covered = [...hidden, ...shared];
  // A mount point cannot be renamed, so a command cannot move a parent of a store to another path.
  const parents = new Set([...covered, ...files].flatMap((path) => parentsWithin(roots, path)));
  const coveringMounts = [
    // guard: data-directories-covered
    ...hidden.map((path) => ({ path, argv: ['--tmpfs', path, '--remount-ro', path], sources: [] })),
    ...files.map((path) => ({ path, argv: ['--ro-bind', '/dev/null', path], sources: [] })),
    ...(await Promise.all(shared.map((directory) => mountWithoutStore(directory, roots, isHidden)))),
  ];
  const visibleMounts = [
    ...roots,
    // guard: parents-of-data-pinned
    ...[...parents].filter((parent) => !covered.includes(parent)),
  ].map(bindMount);
  // Parents first: a mount hides earlier mounts below it.
  const mounts = [...visibleMounts, ...coveringMounts].sort((a, b) => a.path.length - b.path.length);
  const sourcePaths = new Set(mounts.flatMap(({ sources }) => sources.filter((path) => !covered.includes(path))));
  return {
    mounts: mounts.flatMap((mount) => mount.argv),
    sources: mountSourcesOf([...sourcePaths]),
    hiddenDirectories: hidden,
    coveredDirectories: shared,
    stores,
  };
}

/**
 * Finds the paths that a command could see but must not: data directories (`hidden`), aliases of files of a store
 * (`files`), and directories that a store shares with other files (`shared`).
 */
async function findVisibleStores(roots: readonly string[]) {
  const isVisible = (directory: string): boolean =>
    [...roots, ...SYSTEM_DIRECTORIES].some((root) => containsPath(root, directory)) && existsSync(directory);
  const searchRoots = searchRootsOf(roots);
  const stores = await findStores(searchRoots);
  const aliases = await findAliases(searchRoots, stores);
  const ownDirectories = protectedDatabases()
    .map((path) => dirname(path))
    .filter(isVisible);
  const dataDirectories = [
    ...protectedDirectories().filter(isVisible),
    ...ownDirectories.filter(isInDataDirectory),
    ...stores.dataDirectories,
  ];
  const directoryAliases = aliases.flatMap(({ path, isDirectory }) => (isDirectory ? [path] : []));
  const outermost = [...new Set([...dataDirectories, ...directoryAliases].map(outermostDataDirectory))];
  const isInData = (path: string): boolean => outermost.some((directory) => containsPath(directory, path));
  const shared = [...new Set([...ownDirectories, ...stores.sharedDirectories])].filter(
    (directory) => !isInData(directory),
  );
  // Hidden entries of a covered directory are not mounted back, so they need no mount of their own.
  const needsMount = (path: string): boolean => !shared.includes(dirname(path));
  const hidden = outermost.filter(
    (directory) =>
      !outermost.some((other) => other !== directory && containsPath(other, directory)) && needsMount(directory),
  );
  const aliasPaths = new Set(aliases.map(({ path }) => path));
  const files = [...aliasPaths].filter((path) => !isInData(path) && needsMount(path));
  if (files.length > MAX_ENTRIES) throw tooManyLinksError(roots);
  const isHidden = (path: string): boolean => outermost.includes(path) || aliasPaths.has(path);
  return { hidden, files, shared, isHidden, stores };
}

function tooManyLinksError(roots: readonly string[]): Error {
  return toolError(
    `Nothing was run: ${roots.join(', ')} contains more than ${MAX_ENTRIES} hard links to files of a store, too many to hide. ` +
      'Ask the operator to remove them.',
  );
}

function bindMount(path: string): Mount {
  return { path, argv: ['--bind', path, path], sources: [path] };
}

/** Returns the outermost data directory that contains a path, by their paths only; the path itself if there is none. */
function outermostDataDirectory(path: string): string {
  return isInDataDirectory(dirname(path)) ? outermostDataDirectory(dirname(path)) : path;
}

/**
 * Returns the mount that covers a directory with a store and mounts back all entries that neither belong to the store
 * nor are hidden. Throws TOOL_FAILED if there are too many entries.
 */
async function mountWithoutStore(
  directory: string,
  roots: readonly string[],
  isHidden: (path: string) => boolean,
): Promise<Mount> {
  const allEntries = await readdir(directory, { withFileTypes: true });
  const storeNames = storeFileNames(
    allEntries.map(({ name }) => name),
    (name) => isDatabase(join(directory, name)),
  );
  const entries = allEntries.filter((entry) => {
    const path = join(directory, entry.name);
    if (storeNames.has(entry.name) || isStoreFile(path) || isHidden(path)) return false;
    return !(entry.isDirectory() && isDataDirectory(path));
  });
  if (entries.length > MAX_ENTRIES) {
    throw toolError(
      `Nothing was run: ${directory} contains a store and more than ${MAX_ENTRIES} other entries, too many to show without it. ` +
        'Ask the operator to move the store to a directory of its own.',
    );
  }
  const bind = roots.some((root) => containsPath(root, directory)) ? '--bind-try' : '--ro-bind-try';
  const [links, others] = [entries.filter(isLink), entries.filter((entry) => !isLink(entry))];
  const paths = others.map(({ name }) => join(directory, name));
  const symlinks = links.map(async ({ name }) => {
    const path = join(directory, name);
    return ['--symlink', await readlink(path), path];
  });
  const argv = [...paths.map((path) => [bind, path, path]), ...(await Promise.all(symlinks))].flat();
  return { path: directory, argv: ['--tmpfs', directory, ...argv, '--remount-ro', directory], sources: paths };
}

function isLink(entry: Dirent): boolean {
  return entry.isSymbolicLink();
}
