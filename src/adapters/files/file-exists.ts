/** The condition `file_exists` of plans: looks for files of the project. */
import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { isInsideWithLinksResolved } from './inside.js';

/** Returns a function that tells whether a file exists in a directory. A path that leaves the directory does not exist. */
export function fileExistsIn(directory: string): (path: string) => Promise<boolean> {
  return async (path) => {
    const file = resolve(directory, path);
    // guard: file-exists-confined
    if (!isInsideWithLinksResolved(directory, file)) return false;
    return stat(file).then(
      () => true,
      () => false,
    );
  };
}
