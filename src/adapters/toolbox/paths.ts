/** Paths as text. */
import { isAbsolute, relative, sep } from 'node:path';

/** Whether a path is a directory or lies in it, as text. */
export function contains(directory: string, path: string): boolean {
  const way = relative(directory, path);
  return isAbsolute(path) && way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}
