/** Writes the files of a new project. It never overwrites a file. */
import { lstatSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { TrustPredicate } from '../authority.js';
import { resolveOutputPath, writeNewOutput } from '../output-path.js';
import { UsageError } from '../settings.js';

/** A file of the new project. */
export interface ProjectFile {
  /** The path in the project, with forward slashes. */
  readonly path: string;
  readonly text: string;
}

/**
 * Writes all files and returns an empty list, or returns the paths that exist already and writes nothing. Throws a
 * UsageError if a file cannot be written, and before anything is written if a path leads through a link that is not
 * followed.
 */
export async function writeProject(
  directory: string,
  files: readonly ProjectFile[],
  trusts: TrustPredicate,
): Promise<readonly string[]> {
  const conflicts = files.map(({ path }) => path).filter((path) => isTaken(join(directory, path)));
  // guard: init-overwrites-nothing
  if (conflicts.length > 0) return conflicts;
  const folders = files.map(({ path }) => resolveOutputPath(dirname(join(directory, path)), trusts));
  try {
    for (const folder of folders) await mkdir(folder, { recursive: true });
    // A file that appeared in the meantime is not overwritten.
    for (const { path, text } of files) writeNewOutput(join(directory, path), text, trusts);
    return [];
  } catch (thrown) {
    throw new UsageError(
      `The project cannot be written: ${thrown instanceof Error ? thrown.message : String(thrown)}.`,
    );
  }
}

/** True if there is anything at a path, even a link to a file that does not exist. */
function isTaken(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}
