/**
 * The stores in the roots, whatever process uses them: data directories, by name or marker, and databases beside other files,
 * by the files that lie beside them. The search is bounded; a root with more directories than that is refused, as a
 * store in it could be shown to a command.
 */
import type { Dirent } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { storeNames } from '../../journal/store-files.js';
import { refusal } from './refusal.js';
import { isDataDirectory } from './store-files.js';

export interface Stores {
  readonly data: readonly string[];
  /** Directories with a database and other files. */
  readonly shared: readonly string[];
}

const MAX_DIRECTORIES = 20_000;
/** How many directories are read at the same time. */
const PARALLEL = 32;
/** Other people's code: a store of this process in one of these is known without a search. */
const NOT_SEARCHED = ['node_modules', '.git'];

/** Searches the roots, nearest first. */
export async function storesIn(roots: readonly string[], most: number = MAX_DIRECTORIES): Promise<Stores> {
  const data: string[] = [];
  const shared: string[] = [];
  let queue: readonly string[] = roots;
  for (let searched = 0; queue.length > 0; ) {
    const level = queue.slice(0, PARALLEL);
    searched += level.length;
    if (searched > most) throw tooMany(roots, most);
    const read = await Promise.all(level.map(entriesOf));
    const below = read.flat().filter(({ entry }) => entry.isDirectory());
    const paths = below.map(({ path }) => path);
    const found = new Set(paths.filter(isDataDirectory));
    data.push(...found);
    shared.push(...level.filter((_, index) => storeNames((read[index] ?? []).map(({ entry }) => entry.name)).size > 0));
    const rest = paths.filter((path) => !found.has(path) && !NOT_SEARCHED.includes(basename(path)));
    queue = [...queue.slice(PARALLEL), ...rest];
  }
  return { data, shared };
}

async function entriesOf(directory: string): Promise<readonly { readonly path: string; readonly entry: Dirent }[]> {
  const entries = await readdir(directory, { withFileTypes: true }).catch(() => []);
  return entries.map((entry) => ({ path: join(directory, entry.name), entry }));
}

function tooMany(roots: readonly string[], most: number): Error {
  return refusal(
    `Nothing was run: ${roots.join(', ')} holds more than ${most} directories, too many to look for stores that must be hidden. ` +
      'Let the operator name smaller roots.',
  );
}
