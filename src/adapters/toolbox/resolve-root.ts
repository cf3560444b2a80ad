/**
 * The real directory of a root. A root must not be reached through a symbolic link that a command could have made: in the root of
 * another tool, a command can replace a directory with a link to anything. So links on the way are followed only where this
 * process may write nothing, or right below `/`, which no root can be.
 */
import { accessSync, constants, lstatSync, readlinkSync, realpathSync, statSync } from 'node:fs';
import { dirname, join, resolve, sep } from 'node:path';
import { LoopError } from '../../base/errors.js';
import { isStorePath, storeEvidenceOf } from './store-protection.js';

/** As many links as the system follows in one path. */
const MAX_LINKS = 40;

/** The real path of a root, given as an absolute path; CONFIG_INVALID says why it cannot be one. */
export function resolveRoot(root: string, isWritable: (directory: string) => boolean = canWrite): string {
  const real = resolveDirectory(root, isWritable);
  if (isStorePath(real)) {
    const evidence = storeEvidenceOf(real);
    throw configError(`The root ${root} lies in the data directory of a store${evidence}; name another one.`);
  }
  if (real !== dirname(real)) return real;
  throw configError(`The root ${root} is the whole file system; name a directory in it.`);
}

function resolveDirectory(root: string, isWritable: (directory: string) => boolean): string {
  try {
    const real = followSafeLinks(root, isWritable);
    if (!statSync(real).isDirectory()) throw configError(`The root ${root} is not a directory.`);
    // It could have been replaced since its parts were looked at.
    if (realpathSync(real) !== real)
      throw configError(`The root ${root} was replaced while it was looked at; try again.`);
    return real;
  } catch (error) {
    if (error instanceof LoopError) throw error;
    const { code } = error as NodeJS.ErrnoException;
    throw configError(`The root ${root} cannot be used (${code}); make it first.`, error);
  }
}

/** The path without links, all of which may be followed. */
function followSafeLinks(root: string, isWritable: (directory: string) => boolean): string {
  let links = 0;
  let real: string = sep;
  const parts = root.split(sep).filter((part) => part !== '');
  for (let part = parts.shift(); part !== undefined; part = parts.shift()) {
    const path = join(real, part);
    if (!lstatSync(path).isSymbolicLink()) {
      real = path;
      continue;
    }
    links += 1;
    if (links > MAX_LINKS) throw Object.assign(new Error('Too many links.'), { code: 'ELOOP' });
    // guard: link-in-writable-directory-refused
    if (real !== sep && isWritable(real)) throw replaceableLinkError(root, path);
    // What the link leads to begins at the top again: it may have links itself.
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
      `Name the directory itself: ${realpathSync(root)}.`,
  );
}

function configError(message: string, cause?: unknown): LoopError {
  return new LoopError('CONFIG_INVALID', message, undefined, cause);
}
