/** Paths as text. */
import { dirname, isAbsolute, relative, sep } from 'node:path';

/** Whether a path is a directory or lies in it, as text. */
export function containsPath(directory: string, path: string): boolean {
  const way = relative(directory, path);
  return isAbsolute(path) && way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}

/** The directories between a root and a path, the innermost first. */
export function parentsWithin(roots: readonly string[], path: string): readonly string[] {
  const parent = dirname(path);
  const isInside = !roots.includes(parent) && roots.some((root) => containsPath(root, parent));
  return isInside ? [parent, ...parentsWithin(roots, parent)] : [];
}
