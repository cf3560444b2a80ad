/** Compares paths lexically. */
import { dirname, isAbsolute, relative, sep } from 'node:path';

/** Returns true if an absolute path is the directory or below it. */
export function containsPath(directory: string, path: string): boolean {
  const relativePath = relative(directory, path);
  if (!isAbsolute(path) || relativePath === '..') return false;
  return !relativePath.startsWith(`..${sep}`) && !isAbsolute(relativePath);
}

/** Returns the directories between a path and the root that contains it, without both, innermost first. */
export function parentsWithin(roots: readonly string[], path: string): readonly string[] {
  const parent = dirname(path);
  const isInside = !roots.includes(parent) && roots.some((root) => containsPath(root, parent));
  return isInside ? [parent, ...parentsWithin(roots, parent)] : [];
}
