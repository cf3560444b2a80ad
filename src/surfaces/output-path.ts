/**
 * Where an output of a verb is written. A path that the operator names can lead through a directory that is not trusted,
 * such as a clone, whose symbolic links must not redirect the write. So the links of the path are resolved here, one by
 * one, and the write itself follows none.
 */
import { accessSync, closeSync, constants, lstatSync, openSync, readlinkSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, parse, resolve, sep } from 'node:path';
import { isInside, systemHomeDirectory, type TrustPredicate } from './authority.js';
import { UsageError } from './settings.js';

/** The number of links that Linux follows in one path. */
const MAX_LINKS = 40;
/** Windows has no O_NOFOLLOW. */
const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW = 0 } = constants;
const NEW_FILE = O_CREAT | O_EXCL;
/** Links of the kernel, such as /dev/stdout, which lead to what is no path. No project contains them. */
const KERNEL_PATH = /^\/(?:dev\/(?:std(?:out|err)|null|tty|fd\/\d+)|proc\/(?:self|\d+)\/fd\/\d+)$/;

/**
 * Returns an absolute path without links, of which a last part may not exist. Throws a UsageError for a link that leaves a
 * directory which is not trusted.
 */
export function resolveOutputPath(path: string, trusts: TrustPredicate): string {
  const { root } = parse(path);
  const partsOf = (from: string): string[] =>
    from
      .slice(root.length)
      .split(sep)
      .filter((part) => part !== '');
  const parts = partsOf(path);
  let real = root;
  let linkCount = 0;
  for (let part = parts.shift(); part !== undefined; part = parts.shift()) {
    const next = join(real, part);
    if (lstatSync(next, { throwIfNoEntry: false })?.isSymbolicLink() !== true) {
      real = next;
      continue;
    }
    const target = resolve(real, readlinkSync(next));
    linkCount += 1;
    if (linkCount > MAX_LINKS) throw new UsageError(`${path} has too many symbolic links.`);
    // guard: untrusted-link-not-followed
    if (!mayFollow(real, target, trusts)) throw refusedLink(path, next, target);
    // The target may contain links too, so its resolution starts at the root.
    parts.unshift(...partsOf(target));
    real = root;
  }
  return real;
}

/**
 * True if a link of a directory to this target is followed: the operator trusts the directory, or it is one that no
 * project is: above the home directory, or the system's. A link inside of its own directory redirects nothing.
 */
function mayFollow(directory: string, target: string, trusts: TrustPredicate): boolean {
  const home = systemHomeDirectory();
  return (
    isInside(directory, target) ||
    (home !== undefined && isInside(directory, home)) ||
    isSystemDirectory(directory) ||
    trusts(directory)
  );
}

/** True if the directory belongs to root, and this user cannot change it. */
function isSystemDirectory(directory: string): boolean {
  if (process.platform === 'win32' || statSync(directory).uid !== 0) return false;
  try {
    accessSync(directory, constants.W_OK);
    return false;
  } catch {
    return true;
  }
}

function refusedLink(path: string, link: string, target: string): UsageError {
  const directory = dirname(link);
  return new UsageError(
    `Nothing was written to ${path}: ${link} is a symbolic link to ${target}, and ${directory} is not trusted. ` +
      `To write there, name that path; or, if you trust the directory, run: rondo trust ${directory}`,
  );
}

/**
 * Writes a new file, or to a device or a pipe that exists. Throws a UsageError if there is a file, which is never
 * replaced, or if the path leads through a link that is not followed.
 */
export function writeOutput(path: string, content: Uint8Array, trusts: TrustPredicate): void {
  const isKernelPath = KERNEL_PATH.test(path);
  const real = isKernelPath ? path : resolveOutputPath(path, trusts);
  const found = lstatSync(real, { throwIfNoEntry: false });
  const isStream = isKernelPath || (found !== undefined && !found.isFile());
  if (found !== undefined && !isStream) throw existingFileError(path);
  const descriptor = openSync(real, isKernelPath ? O_WRONLY : O_WRONLY | O_NOFOLLOW | (isStream ? 0 : NEW_FILE), 0o666);
  try {
    writeFileSync(descriptor, content);
  } finally {
    closeSync(descriptor);
  }
}

/** Returns the error for an output whose file exists. */
export function existingFileError(name: string): UsageError {
  return new UsageError(
    `${name} exists already; --out never overwrites a file. Nothing was written: name another file, or remove that one first.`,
  );
}

/**
 * Writes a file that does not exist. Throws a system error with the code EEXIST if there is anything at the path, and a
 * UsageError if the path leads through a link that is not followed.
 */
export function writeNewOutput(path: string, content: string, trusts: TrustPredicate): void {
  writeFileSync(join(resolveOutputPath(dirname(path), trusts), basename(path)), content, { flag: 'wx' });
}
