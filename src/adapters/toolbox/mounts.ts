/**
 * The mounts that show the roots to a sandboxed command, to write, without data directories and the files of stores. A data
 * directory is covered with an empty read-only one. So is a directory that a store shares with other files, which are then
 * mounted back into it: a mount over a single file would be detached when the owner renames a new file to that name. The
 * command can create no file in such a directory itself.
 */
import { existsSync } from 'node:fs';
import { readdir, readlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import {
  isInDataDirectory,
  isStoreFile,
  protectedDirectories,
  protectedPaths,
  storeNames,
} from '../../journal/store-files.js';
import { refusal } from './refusal.js';
import { contains } from './roots.js';
import { PROGRAMS } from './sandbox.js';
import { isDataDirectory } from './store-files.js';
import { storesIn } from './stores-in.js';

/** Arguments of bubblewrap that mount something at a path. */
interface Mount {
  readonly at: string;
  readonly argv: readonly string[];
}

/** Bounds the mounts that one store needs. */
const MAX_ENTRIES = 1000;

/** The arguments of bubblewrap that mount the roots. */
export async function mountsOf(roots: readonly string[]): Promise<readonly string[]> {
  const { hidden, shared } = await storesSeenIn(roots);
  const protectedOnes = [...hidden, ...shared];
  const parents = new Set(protectedOnes.flatMap((directory) => parentsOf(directory, roots)));
  const mounts = [
    ...[...roots, ...[...parents].filter((parent) => !protectedOnes.includes(parent))].map(bound),
    ...hidden.map((at) => ({ at, argv: ['--tmpfs', at, '--remount-ro', at] })),
    ...(await Promise.all(shared.map((directory) => without(directory, roots)))),
  ];
  // A directory before what is in it: a mount hides what was mounted below it before.
  return mounts.sort((a, b) => a.at.length - b.at.length).flatMap(({ argv }) => argv);
}

/** The data directories that a command could see, and the directories that a store shares with other files. */
async function storesSeenIn(roots: readonly string[]) {
  const seen = (directory: string): boolean =>
    [...roots, ...PROGRAMS].some((shown) => contains(shown, directory)) && existsSync(directory);
  const found = await storesIn(roots);
  const used = protectedPaths()
    .map((path) => dirname(path))
    .filter(seen);
  const data = [...protectedDirectories().filter(seen), ...used.filter(isInDataDirectory), ...found.data];
  const outermost = [...new Set(data.map(dataDirectoryOf))];
  const inData = (directory: string): boolean => outermost.some((own) => contains(own, directory));
  const shared = [...new Set([...used, ...found.shared])].filter((directory) => !inData(directory));
  const hidden = outermost.filter(
    (directory) =>
      !outermost.some((own) => own !== directory && contains(own, directory)) &&
      // A data directory in a directory that is covered is not mounted back, so it needs no mount.
      !shared.includes(dirname(directory)),
  );
  return { hidden, shared };
}

function bound(at: string): Mount {
  return { at, argv: ['--bind', at, at] };
}

/** The outermost data directory on a path, as far as the path tells. */
function dataDirectoryOf(path: string): string {
  return isInDataDirectory(dirname(path)) ? dataDirectoryOf(dirname(path)) : path;
}

/**
 * The directories between a root and the directory of a store. A mount point cannot be renamed, so a command cannot move the
 * store to another path.
 */
function parentsOf(directory: string, roots: readonly string[]): readonly string[] {
  const above = dirname(directory);
  const inside = roots.some((root) => contains(root, above)) && !roots.includes(above);
  return inside ? [...parentsOf(above, roots), above] : [];
}

/** Covers a directory that holds a store and mounts back all that does not belong to the store. */
async function without(directory: string, roots: readonly string[]): Promise<Mount> {
  const all = await readdir(directory, { withFileTypes: true });
  const stores = storeNames(all.map(({ name }) => name));
  const entries = all.filter((entry) => {
    const path = join(directory, entry.name);
    return !stores.has(entry.name) && !isStoreFile(path) && !(entry.isDirectory() && isDataDirectory(path));
  });
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
