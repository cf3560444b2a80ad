/**
 * What lies below a directory, in an order that is always the same: names by their code units, a directory before what
 * is in it. Links are named and never followed. Every directory is judged when it is opened, like any file. The files of a
 * store are left out.
 */
import { opendir } from 'node:fs/promises';
import { join } from 'node:path';
import { LoopError } from '../../base/errors.js';
import { isStoreFile, storeNames } from '../../journal/store-files.js';
import type { Opened, Roots } from './roots.js';
import { isDatabase, isDataDirectory } from './store-files.js';

export interface Found {
  readonly kind: 'file' | 'directory' | 'link' | 'other';
  /** For people and models. */
  readonly path: string;
  readonly name: string;
  /** Open until the visit is over. */
  readonly parent: Opened;
}

export interface Walk {
  /** How many levels below the top. */
  readonly depth: number;
  readonly hidden: boolean;
  readonly signal: AbortSignal | undefined;
  /** Whether to go on. */
  readonly visit: (found: Found) => Promise<boolean> | boolean;
  /** Told of what is left out, and why. */
  readonly skip: (path: string, reason: string) => void;
}

/** Names that one directory may have; more of them are not even sorted. */
const NAMES = 20_000;
/** Others' code, and more of it than anybody wants to see: looked into only when it is asked for by name. */
const FOREIGN = 'node_modules';

/** Visits all entries below an open directory; false if a visit said to stop. */
export async function walk(roots: Roots, top: Opened, how: Walk): Promise<boolean> {
  for (const { name, kind } of await entriesOf(roots, top, how)) {
    how.signal?.throwIfAborted();
    const path = roots.shown(join(top.real, name));
    if (!(await how.visit({ kind, path, name, parent: top }))) return false;
    if (kind !== 'directory' || how.depth <= 1) continue;
    if (name === FOREIGN) how.skip(path, 'is only looked into when it is named');
    else if (!(await below(roots, top, name, path, how))) return false;
  }
  return true;
}

async function below(roots: Roots, top: Opened, name: string, path: string, how: Walk): Promise<boolean> {
  try {
    return await roots.within(top, name, 'directory', (opened) =>
      walk(roots, opened, { ...how, depth: how.depth - 1 }),
    );
  } catch (error) {
    if (how.signal?.aborted || !(error instanceof LoopError)) throw error;
    how.skip(path, 'cannot be looked into');
    return true;
  }
}

async function entriesOf(roots: Roots, directory: Opened, how: Walk): Promise<readonly Pick<Found, 'name' | 'kind'>[]> {
  const entries: Pick<Found, 'name' | 'kind'>[] = [];
  const shown = roots.shown(directory.real);
  for await (const entry of await opendir(roots.self(directory))) {
    if (entry.name.startsWith('.') && !how.hidden) continue;
    if (isStoreFile(join(directory.real, entry.name))) continue;
    if (entry.isDirectory() && isDataDirectory(join(directory.real, entry.name))) continue;
    if (entries.length === NAMES) {
      how.skip(shown, `has more than ${NAMES} entries, and the others are left out`);
      break;
    }
    const other = entry.isSymbolicLink() ? 'link' : 'other';
    entries.push({ name: entry.name, kind: entry.isFile() ? 'file' : entry.isDirectory() ? 'directory' : other });
  }
  await roots.still(directory, shown);
  const stores = storeNames(
    entries.map(({ name }) => name),
    (name) => isDatabase(join(directory.real, name)),
  );
  return entries.filter(({ name }) => !stores.has(name)).sort((a, b) => (a.name < b.name ? -1 : 1));
}
