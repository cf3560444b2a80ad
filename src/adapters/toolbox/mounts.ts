/**
 * The mounts that show the roots to a sandboxed command, to write, with the files of stores hidden. A mount over a single
 * file does not hide it for long: when the store's owner renames a new file to that name, the kernel detaches the mount.
 * So the whole directory is covered with an empty read-only one, which also hides what the store creates later, and what
 * does not belong to the store is mounted back into it. The command can create no file in that directory itself.
 */
import { existsSync } from 'node:fs';
import { readdir, readlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { isInDataDirectory, isStoreFile, protectedPaths } from '../../journal/store-files.js';
import { refusal } from './refusal.js';
import { contains } from './roots.js';
import { PROGRAMS } from './sandbox.js';

/** Arguments of bubblewrap that mount something at a path. */
interface Mount {
  readonly at: string;
  readonly argv: readonly string[];
}

/** Bounds the search for data directories of stores that this process does not use. */
const MAX_SEARCHED_DIRECTORIES = 2000;
const NOT_SEARCHED = ['node_modules', '.git'];
/** Bounds the mounts that one store needs. */
const MAX_ENTRIES = 1000;

/** The arguments of bubblewrap that mount the roots. */
export async function mountsOf(roots: readonly string[]): Promise<readonly string[]> {
  const used = [...new Set(protectedPaths().map((path) => dirname(path)))].filter(
    (directory) => [...roots, ...PROGRAMS].some((shown) => contains(shown, directory)) && existsSync(directory),
  );
  const shared = used.filter((directory) => !isInDataDirectory(directory));
  const own = [...used.filter(isInDataDirectory).map(dataDirectoryOf), ...(await dataDirectoriesIn(roots))];
  // A data directory in a directory that is covered is not mounted back, so it needs no mount.
  const hidden = [...new Set(own)].filter((directory) => !shared.includes(dirname(directory)));
  const mounts = [
    ...[...roots, ...used.flatMap((directory) => parentsOf(directory, roots))].map(bound),
    ...hidden.map((at) => ({ at, argv: ['--tmpfs', at, '--remount-ro', at] })),
    ...(await Promise.all(shared.map((directory) => without(directory, roots)))),
  ];
  // A directory before what is in it: a mount hides what was mounted below it before.
  return mounts.sort((a, b) => a.at.length - b.at.length).flatMap(({ argv }) => argv);
}

function bound(at: string): Mount {
  return { at, argv: ['--bind', at, at] };
}

/** The outermost data directory on a path. */
function dataDirectoryOf(path: string): string {
  return isInDataDirectory(dirname(path)) ? dataDirectoryOf(dirname(path)) : path;
}

/**
 * The directories between a root and the directory of a store. A mount point cannot be renamed, so a command cannot move the
 * store to a path that is not protected.
 */
function parentsOf(directory: string, roots: readonly string[]): readonly string[] {
  const above = dirname(directory);
  const inside = roots.some((root) => contains(root, above)) && !roots.includes(above);
  return inside ? [...parentsOf(above, roots), above] : [];
}

/** Covers a directory that holds a store and mounts back all that does not belong to the store. */
async function without(directory: string, roots: readonly string[]): Promise<Mount> {
  const entries = (await readdir(directory, { withFileTypes: true })).filter(
    ({ name }) => !isStoreFile(join(directory, name)),
  );
  if (entries.length > MAX_ENTRIES) {
    throw refusal(
      `Nothing was run: ${directory} holds a store and more than ${MAX_ENTRIES} other entries, too many to show without it. ` +
        'Let the operator keep the store in a directory of its own.',
    );
  }
  const bind = roots.some((root) => contains(root, directory)) ? '--bind-try' : '--ro-bind-try';
  const shown = await Promise.all(
    entries.map(async (entry) => {
      const path = join(directory, entry.name);
      return entry.isSymbolicLink() ? ['--symlink', await readlink(path), path] : [bind, path, path];
    }),
  );
  return { at: directory, argv: ['--tmpfs', directory, ...shown.flat(), '--remount-ro', directory] };
}

/** The data directories in the roots, nearest first, as far as a bounded search finds them. */
async function dataDirectoriesIn(roots: readonly string[]): Promise<readonly string[]> {
  const found: string[] = [];
  const queue = [...roots];
  for (let searched = 0; searched < queue.length && searched < MAX_SEARCHED_DIRECTORIES; searched++) {
    const directory = queue[searched] as string;
    const entries = await readdir(directory, { withFileTypes: true }).catch(() => []);
    const below = entries.filter((entry) => entry.isDirectory()).map(({ name }) => join(directory, name));
    found.push(...below.filter(isInDataDirectory));
    queue.push(...below.filter((path) => !isInDataDirectory(path) && !NOT_SEARCHED.includes(basename(path))));
  }
  return found;
}
