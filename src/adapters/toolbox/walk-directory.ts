/**
 * Walks the tree below a directory in a deterministic order: sorted by name (UTF-16 code units), a directory before its
 * content. Links are visited but never followed. Every directory is opened with a check that it is inside the roots.
 * Stores are omitted: their files and data directories.
 */
import { opendir } from 'node:fs/promises';
import { join } from 'node:path';
import { LoopError } from '../../base/errors.js';
import { isStoreFile, storeFileNames } from '../../journal/store-files.js';
import type { OpenPath, Roots } from './roots.js';
import { isDatabase, isDataDirectory } from './store-protection.js';

/** An entry of a directory. */
export interface WalkEntry {
  readonly kind: 'file' | 'directory' | 'link' | 'other';
  /** The path for display. */
  readonly path: string;
  readonly name: string;
  /** The directory that contains the entry. It is open during the visit. */
  readonly parent: OpenPath;
}

/** Options of {@link walkDirectory}. */
interface WalkOptions {
  /** The number of levels to visit. With 1, only the entries of the directory itself. */
  readonly depth: number;
  /** True to include names that begin with a dot. */
  readonly includeHidden: boolean;
  readonly signal: AbortSignal | undefined;
  /** Called for each entry. Returns false to stop the whole walk. */
  readonly visit: (entry: WalkEntry) => Promise<boolean> | boolean;
  /** Called with a reason if the content of a directory is not walked, or not completely. */
  readonly onSkip: (path: string, reason: string) => void;
}

/** The maximum number of entries that are read from one directory. */
const MAX_DIRECTORY_ENTRIES = 20_000;
/** Contains large amounts of third-party code, so it is walked only if the walk starts there. */
const SKIPPED_DIRECTORY = 'node_modules';

/** Visits the entries below an open directory. Returns false if a visit stopped the walk. */
export async function walkDirectory(roots: Roots, directory: OpenPath, options: WalkOptions): Promise<boolean> {
  for (const { name, kind } of await readEntries(roots, directory, options)) {
    options.signal?.throwIfAborted();
    const path = roots.displayPath(join(directory.realPath, name));
    if (!(await options.visit({ kind, path, name, parent: directory }))) return false;
    if (kind !== 'directory' || options.depth <= 1) continue;
    if (name === SKIPPED_DIRECTORY) options.onSkip(path, 'is only walked if it is the path itself');
    else if (!(await walkSubdirectory(roots, directory, name, path, options))) return false;
  }
  return true;
}

async function walkSubdirectory(
  roots: Roots,
  parent: OpenPath,
  name: string,
  path: string,
  options: WalkOptions,
): Promise<boolean> {
  try {
    return await roots.openWithin(parent, name, 'directory', (opened) =>
      walkDirectory(roots, opened, { ...options, depth: options.depth - 1 }),
    );
  } catch (error) {
    if (options.signal?.aborted || !(error instanceof LoopError)) throw error;
    options.onSkip(path, 'cannot be read');
    return true;
  }
}

async function readEntries(
  roots: Roots,
  directory: OpenPath,
  options: WalkOptions,
): Promise<readonly Pick<WalkEntry, 'name' | 'kind'>[]> {
  const entries: Pick<WalkEntry, 'name' | 'kind'>[] = [];
  const path = roots.displayPath(directory.realPath);
  for await (const entry of await opendir(roots.directoryPath(directory))) {
    if (entry.name.startsWith('.') && !options.includeHidden) continue;
    if (isStoreFile(join(directory.realPath, entry.name))) continue;
    if (entry.isDirectory() && isDataDirectory(join(directory.realPath, entry.name))) continue;
    if (entries.length === MAX_DIRECTORY_ENTRIES) {
      options.onSkip(path, `has more than ${MAX_DIRECTORY_ENTRIES} entries, and the others are omitted`);
      break;
    }
    const specialKind = entry.isSymbolicLink() ? 'link' : 'other';
    entries.push({ name: entry.name, kind: entry.isFile() ? 'file' : entry.isDirectory() ? 'directory' : specialKind });
  }
  await roots.assertStillInside(directory, path);
  const storeNames = storeFileNames(
    entries.map(({ name }) => name),
    (name) => isDatabase(join(directory.realPath, name)),
  );
  return entries.filter(({ name }) => !storeNames.has(name)).sort((a, b) => (a.name < b.name ? -1 : 1));
}
