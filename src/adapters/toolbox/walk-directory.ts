/**
 * What lies below a directory, in an order that is always the same: names by their code units, a directory before what
 * is in it. Links are named and never followed. Every directory is judged when it is opened, like any file. The files of a
 * store are left out.
 */
import { opendir } from 'node:fs/promises';
import { join } from 'node:path';
import { LoopError } from '../../base/errors.js';
import { isStoreFile, storeFileNames } from '../../journal/store-files.js';
import type { OpenPath, Roots } from './roots.js';
import { isDatabase, isDataDirectory } from './store-protection.js';

export interface WalkEntry {
  readonly kind: 'file' | 'directory' | 'link' | 'other';
  /** For people and models. */
  readonly path: string;
  readonly name: string;
  /** Open until the visit is over. */
  readonly parent: OpenPath;
}

export interface WalkOptions {
  /** How many levels below the top. */
  readonly depth: number;
  readonly hidden: boolean;
  readonly signal: AbortSignal | undefined;
  /** Whether to go on. */
  readonly visit: (found: WalkEntry) => Promise<boolean> | boolean;
  /** Told of what is left out, and why. */
  readonly skip: (path: string, reason: string) => void;
}

/** Names that one directory may have; more of them are not even sorted. */
const MAX_DIRECTORY_ENTRIES = 20_000;
/** Others' code, and more of it than anybody wants to see: looked into only when it is asked for by name. */
const SKIPPED_DIRECTORY = 'node_modules';

/** Visits all entries below an open directory; false if a visit said to stop. */
export async function walkDirectory(roots: Roots, top: OpenPath, how: WalkOptions): Promise<boolean> {
  for (const { name, kind } of await readEntries(roots, top, how)) {
    how.signal?.throwIfAborted();
    const path = roots.displayPath(join(top.realPath, name));
    if (!(await how.visit({ kind, path, name, parent: top }))) return false;
    if (kind !== 'directory' || how.depth <= 1) continue;
    if (name === SKIPPED_DIRECTORY) how.skip(path, 'is only looked into when it is named');
    else if (!(await walkSubdirectory(roots, top, name, path, how))) return false;
  }
  return true;
}

async function walkSubdirectory(
  roots: Roots,
  top: OpenPath,
  name: string,
  path: string,
  how: WalkOptions,
): Promise<boolean> {
  try {
    return await roots.openWithin(top, name, 'directory', (opened) =>
      walkDirectory(roots, opened, { ...how, depth: how.depth - 1 }),
    );
  } catch (error) {
    if (how.signal?.aborted || !(error instanceof LoopError)) throw error;
    how.skip(path, 'cannot be looked into');
    return true;
  }
}

async function readEntries(
  roots: Roots,
  directory: OpenPath,
  how: WalkOptions,
): Promise<readonly Pick<WalkEntry, 'name' | 'kind'>[]> {
  const entries: Pick<WalkEntry, 'name' | 'kind'>[] = [];
  const shown = roots.displayPath(directory.realPath);
  for await (const entry of await opendir(roots.directoryPath(directory))) {
    if (entry.name.startsWith('.') && !how.hidden) continue;
    if (isStoreFile(join(directory.realPath, entry.name))) continue;
    if (entry.isDirectory() && isDataDirectory(join(directory.realPath, entry.name))) continue;
    if (entries.length === MAX_DIRECTORY_ENTRIES) {
      how.skip(shown, `has more than ${MAX_DIRECTORY_ENTRIES} entries, and the others are left out`);
      break;
    }
    const other = entry.isSymbolicLink() ? 'link' : 'other';
    entries.push({ name: entry.name, kind: entry.isFile() ? 'file' : entry.isDirectory() ? 'directory' : other });
  }
  await roots.assertStillInside(directory, shown);
  const stores = storeFileNames(
    entries.map(({ name }) => name),
    (name) => isDatabase(join(directory.realPath, name)),
  );
  return entries.filter(({ name }) => !stores.has(name)).sort((a, b) => (a.name < b.name ? -1 : 1));
}
