/** Protects the data directory of a project from tools, in this process and, by a marker in the directory, in every other one. */
import { realpathSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { basename, dirname, isAbsolute, join, relative, sep } from 'node:path';
import { DATA_MARKER, protectDirectory } from '../journal/store-files.js';

const MARKER_TEXT = 'This directory belongs to Rondo. Its tools neither read nor change what is in it.\n';

/** Keeps the tools of this process out of the directory, whether it exists yet or not. */
export function protectDataDirectory(directory: string): void {
  protectDirectory(resolveExistingPrefix(directory));
}

/**
 * Marks the directory, so that the tools of other processes know it, also after it was renamed. One that holds the project
 * itself is not marked: the marker would outlive the setting that made it a data directory.
 */
export async function markDataDirectory(directory: string, project: string): Promise<void> {
  const way = relative(resolveExistingPrefix(directory), resolveExistingPrefix(project));
  const isAbove = way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way);
  if (isAbove) return;
  // It is there already, or cannot be made: then the tools of this process still know the directory.
  await writeFile(join(directory, DATA_MARKER), MARKER_TEXT, { flag: 'wx', mode: 0o600 }).catch(() => undefined);
}

/** The path with links followed, as far as it exists. */
function resolveExistingPrefix(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return dirname(path) === path ? path : join(resolveExistingPrefix(dirname(path)), basename(path));
  }
}
