/**
 * Protects the data directory of a project from tools: in this process by its path, in other processes by a marker
 * file.
 */
import { realpathSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { basename, dirname, isAbsolute, join, relative, sep } from 'node:path';
import { DATA_MARKER, protectDirectory } from '../journal/store-files.js';

const MARKER_TEXT = 'This directory belongs to Rondo. Its tools neither read nor change what is in it.\n';

/** Denies the tools of this process access to the directory, even if it does not exist yet. */
export function protectDataDirectory(directory: string): void {
  protectDirectory(resolveExistingPrefix(directory));
}

/**
 * Writes the marker file, by which tools of other processes recognise the directory even after a rename. A directory
 * that contains the project is not marked: the marker would outlive the setting that made it a data directory.
 */
export async function markDataDirectory(directory: string, project: string): Promise<void> {
  const path = relative(resolveExistingPrefix(directory), resolveExistingPrefix(project));
  const containsProject = path !== '..' && !path.startsWith(`..${sep}`) && !isAbsolute(path);
  if (containsProject) return;
  // The marker may exist, or the directory may be read-only. Tools of this process are denied access by path in any
  // case.
  await writeFile(join(directory, DATA_MARKER), MARKER_TEXT, { flag: 'wx', mode: 0o600 }).catch(() => undefined);
}

/** Returns the path with symbolic links resolved in the part that exists. */
function resolveExistingPrefix(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return dirname(path) === path ? path : join(resolveExistingPrefix(dirname(path)), basename(path));
  }
}
