/** Whether a path stays inside of a directory, links followed, also one whose end does not exist yet. */
import { lstatSync, realpathSync } from 'node:fs';
import { dirname, isAbsolute, relative, resolve, sep } from 'node:path';

/** True for the directory itself and everything below it, by the text of both paths. */
export function isInside(directory: string, path: string): boolean {
  const way = relative(directory, path);
  return way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}

/** True if the path is inside of the directory as text, and as the links on the disk lead now. */
export function isInsideWithLinksResolved(directory: string, path: string): boolean {
  const [home, place] = [resolve(directory), resolve(path)];
  return isInside(home, place) && isInside(realPathOf(home), realPathOf(place));
}

/** The real path of what is there, and behind it what is not there yet. A link that leads nowhere leads out. */
function realPathOf(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink()) return resolve(sep);
    const above = dirname(path);
    return above === path ? path : resolve(realPathOf(above), relative(above, path));
  }
}
