/** Writes the files of a new project. It never overwrites a file. */
import { lstatSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { UsageError } from '../settings.js';

/** A file of the new project. */
export interface ProjectFile {
  /** The path in the project, with forward slashes. */
  readonly path: string;
  readonly text: string;
}

/**
 * Writes all files and returns an empty list, or returns the paths that exist already and writes nothing. Throws a
 * UsageError if a file cannot be written.
 */
export async function writeProject(directory: string, files: readonly ProjectFile[]): Promise<readonly string[]> {
  const conflicts = files.map(({ path }) => path).filter((path) => isTaken(join(directory, path)));
  // guard: init-overwrites-nothing
  if (conflicts.length > 0) return conflicts;
  try {
    for (const { path, text } of files) {
      const file = join(directory, path);
      await mkdir(dirname(file), { recursive: true });
      // The flag refuses to overwrite a file that appeared in the meantime.
      await writeFile(file, text, { flag: 'wx' });
    }
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
