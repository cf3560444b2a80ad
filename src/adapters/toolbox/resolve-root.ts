/**
 * Resolves the real path of a root. The path of a root must not contain a symbolic link that a command could have
 * created: in the root of another tool, a command can replace a directory by a link to any target. Links are followed
 * only in directories that this process cannot write, and directly below `/`, which cannot be a root.
 */
import { accessSync, constants, lstatSync, readlinkSync, realpathSync, statSync } from 'node:fs';
import { dirname, join, resolve, sep } from 'node:path';
import { LoopError } from '../../base/errors.js';
import { isStorePath, storeEvidenceOf } from './store-protection.js';

/** The number of links that Linux follows in one path. */
const MAX_LINKS = 40;

/** Returns the real path of a root, which must be an absolute path. Throws CONFIG_INVALID if it cannot be a root. */
export function resolveRoot(root: string, isWritable: (directory: string) => boolean = canWrite): string {
  const real = resolveDirectory(root, isWritable);
  if (isStorePath(real)) {
    const evidence = storeEvidenceOf(real);
    throw configError(`The root ${root} is in the data directory of a store${evidence}; choose another one.`);
  }
  if (real !== dirname(real)) return real;
  throw configError(`The root ${root} is the whole file system; choose a directory in it.`);
}

function resolveDirectory(root: string, isWritable: (directory: string) => boolean): string {
  try {
    const real = followSafeLinks(root, isWritable);
    if (!statSync(real).isDirectory()) throw configError(`The root ${root} is not a directory.`);
    // A part of the path could have been replaced since it was checked.
    if (realpathSync(real) !== real)
      throw configError(`The root ${root} was replaced while it was checked; try again.`);
    return real;
  } catch (error) {
    if (error instanceof LoopError) throw error;
    const { code } = error as NodeJS.ErrnoException;
    throw configError(`The root ${root} cannot be used (${code}); create it first.`, error);
  }
}

/** Resolves the links of a path. Throws if one is in a writable directory other than `/`, or if there are too many. */
function followSafeLinks(root: string, isWritable: (directory: string) => boolean): string {
  let linkCount = 0;
  let real: string = sep;
  const parts = root.split(sep).filter((part) => part !== '');
  for (let part = parts.shift(); part !== undefined; part = parts.shift()) {
    const path = join(real, part);
    if (!lstatSync(path).isSymbolicLink()) {
      real = path;
      continue;
    }
    linkCount += 1;
    if (linkCount > MAX_LINKS) throw Object.assign(new Error('Too many links.'), { code: 'ELOOP' });
    // guard: link-in-writable-directory-refused
    if (real !== sep && isWritable(real)) throw replaceableLinkError(root, path);
    // The target of the link may contain links itself, so its resolution starts at the top.
    parts.unshift(
      ...resolve(real, readlinkSync(path))
        .split(sep)
        .filter((name) => name !== ''),
    );
    real = sep;
  }
  return real;
}

function canWrite(directory: string): boolean {
  try {
    accessSync(directory, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

function replaceableLinkError(root: string, link: string): LoopError {
  return configError(
    `The root ${root} is reached through the symbolic link ${link}, which a command with write access to ${dirname(link)} could replace. ` +
      `Use the directory itself: ${realpathSync(root)}.`,
  );
}

function configError(message: string, cause?: unknown): LoopError {
  return new LoopError('CONFIG_INVALID', message, undefined, cause);
}
