/** Tests whether a path is inside a directory, lexically and with symbolic links resolved. The path need not exist. */
import { lstatSync, realpathSync } from 'node:fs';
import { dirname, isAbsolute, relative, resolve, sep } from 'node:path';

/** Returns true for the directory itself and every path below it. Compares the paths only; resolves no links. */
export function isInside(directory: string, path: string): boolean {
  const relativePath = relative(directory, path);
  return relativePath !== '..' && !relativePath.startsWith(`..${sep}`) && !isAbsolute(relativePath);
}

/** Returns true if the path is inside the directory both lexically and after resolving symbolic links. */
export function isInsideWithLinksResolved(directory: string, path: string): boolean {
  const [absoluteDirectory, absolutePath] = [resolve(directory), resolve(path)];
  return isInside(absoluteDirectory, absolutePath) && isInside(realPathOf(absoluteDirectory), realPathOf(absolutePath));
}

/**
 * Resolves the links of the existing part of a path and appends the rest. The target of a link that cannot be resolved,
 * such as a dangling one, could be created anywhere. Such a link counts as the file system root, which is outside of
 * every other directory.
 */
function realPathOf(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink()) return resolve(sep);
    const parent = dirname(path);
    return parent === path ? path : resolve(realPathOf(parent), relative(parent, path));
  }
}
