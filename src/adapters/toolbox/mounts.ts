/**
 * The mounts that show the roots to a sandboxed command, to write, without data directories and the files of stores. A data
 * directory is covered with an empty read-only one. So is a directory that a store shares with other files, which are then
 * mounted back into it: a mount over a single file would be detached when the owner renames a new file to that name. The
 * command can create no file in such a directory itself.
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
  readonly at: string;
  readonly argv: readonly string[];
  /** The paths that are shown as they are. */
  readonly shows: readonly string[];
}

/** Bounds the mounts that one store needs, and those over other names of files. */
const MAX_ENTRIES = 1000;

/** How the roots are shown to a command. */
export interface SandboxMounts extends Pick<SandboxOptions, 'mounts' | 'sources'> {
  /** The directories that are hidden with all that is in them. */
  readonly hiddenDirectories: readonly string[];
  /** The directories in which the command sees nothing new and can create nothing, except in directories that they hold. */
  readonly coveredDirectories: readonly string[];
  /** What was found before the command. */
  readonly stores: FoundStores;
}

/** The directories in which stores are looked for. */
export function searchRootsOf(roots: readonly string[]): readonly string[] {
  return [...new Set([...roots, ...LOCAL_SYSTEM_DIRECTORIES])];
}

/** The arguments of bubblewrap that mount the roots, and what they must show. */
export async function mountsFor(roots: readonly string[]): Promise<SandboxMounts> {
  const { hidden, files, shared, isHidden, stores } = await findVisibleStores(roots);
  const covered = [...hidden, ...shared];
  // A mount point cannot be renamed, so a command cannot move a store to another path.
  const parents = new Set([...covered, ...files].flatMap((path) => parentsWithin(roots, path)));
  const covers = [
    // guard: data-directories-covered
    ...hidden.map((at) => ({ at, argv: ['--tmpfs', at, '--remount-ro', at], shows: [] })),
    ...files.map((at) => ({ at, argv: ['--ro-bind', '/dev/null', at], shows: [] })),
    ...(await Promise.all(shared.map((directory) => mountWithoutStore(directory, roots, isHidden)))),
  ];
  const shown = [
    ...roots,
    // guard: parents-of-data-pinned
    ...[...parents].filter((parent) => !covered.includes(parent)),
  ].map(bindMount);
  // A directory before what is in it: a mount hides what was mounted below it before.
  const mounts = [...shown, ...covers].sort((a, b) => a.at.length - b.at.length);
  const sources = new Set(mounts.flatMap(({ shows }) => shows.filter((path) => !covered.includes(path))));
  const argv = mounts.flatMap((mount) => mount.argv);
  return {
    mounts: argv,
    sources: mountSourcesOf([...sources]),
    hiddenDirectories: hidden,
    coveredDirectories: shared,
    stores,
  };
}

/**
 * What a command could see and must not: data directories, other names of files of a store, and directories that a store shares with
 * other files.
 */
async function findVisibleStores(roots: readonly string[]) {
  const seen = (directory: string): boolean =>
    [...roots, ...SYSTEM_DIRECTORIES].some((shown) => containsPath(shown, directory)) && existsSync(directory);
  const places = searchRootsOf(roots);
  const found = await findStores(places);
  const others = await findAliases(places, found);
  const used = protectedDatabases()
    .map((path) => dirname(path))
    .filter(seen);
  const data = [...protectedDirectories().filter(seen), ...used.filter(isInDataDirectory), ...found.dataDirectories];
  const mounted = others.flatMap(({ path, isDirectory }) => (isDirectory ? [path] : []));
  const outermost = [...new Set([...data, ...mounted].map(outermostDataDirectory))];
  const inData = (path: string): boolean => outermost.some((own) => containsPath(own, path));
  const shared = [...new Set([...used, ...found.sharedDirectories])].filter((directory) => !inData(directory));
  // What lies in a directory that is covered is not mounted back, so it needs no mount.
  const isShown = (path: string): boolean => !shared.includes(dirname(path));
  const hidden = outermost.filter(
    (directory) => !outermost.some((own) => own !== directory && containsPath(own, directory)) && isShown(directory),
  );
  const names = new Set(others.map(({ path }) => path));
  const files = [...names].filter((path) => !inData(path) && isShown(path));
  if (files.length > MAX_ENTRIES) throw tooManyLinksError(roots);
  const isHidden = (path: string): boolean => outermost.includes(path) || names.has(path);
  return { hidden, files, shared, isHidden, stores: found };
}

function tooManyLinksError(roots: readonly string[]): Error {
  return toolError(
    `Nothing was run: ${roots.join(', ')} holds more than ${MAX_ENTRIES} hard links of files of a store, too many to hide. ` +
      'Let the operator remove them.',
  );
}

function bindMount(at: string): Mount {
  return { at, argv: ['--bind', at, at], shows: [at] };
}

/** The outermost data directory on a path, as far as the path tells. */
function outermostDataDirectory(path: string): string {
  return isInDataDirectory(dirname(path)) ? outermostDataDirectory(dirname(path)) : path;
}

/** Covers a directory that holds a store and mounts back all that does not belong to the store and is not hidden. */
async function mountWithoutStore(
  directory: string,
  roots: readonly string[],
  isHidden: (path: string) => boolean,
): Promise<Mount> {
  const all = await readdir(directory, { withFileTypes: true });
  const stores = storeFileNames(
    all.map(({ name }) => name),
    (name) => isDatabase(join(directory, name)),
  );
  const entries = all.filter((entry) => {
    const path = join(directory, entry.name);
    if (stores.has(entry.name) || isStoreFile(path) || isHidden(path)) return false;
    return !(entry.isDirectory() && isDataDirectory(path));
  });
  if (entries.length > MAX_ENTRIES) {
    throw toolError(
      `Nothing was run: ${directory} holds a store and more than ${MAX_ENTRIES} other entries, too many to show without it. ` +
        'Let the operator keep the store in a directory of its own.',
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
  return { at: directory, argv: ['--tmpfs', directory, ...argv, '--remount-ro', directory], shows: paths };
}

function isLink(entry: Dirent): boolean {
  return entry.isSymbolicLink();
}
