/**
 * What the mounts of a sandbox must show. Bubblewrap is given paths and resolves them later: a command that runs already in another
 * sandbox could swap one for a symbolic link meanwhile, and the new sandbox would show what the link leads to. So the inode of
 * each source is looked up here, by a path without links, and compared inside the sandbox before the command is run.
 */
import { type BigIntStats, closeSync, constants, fstatSync, openSync, readlinkSync } from 'node:fs';
import { inodeOf } from './store-protection.js';
import { quotePath, toolError } from './tool-error.js';

/** A path in the sandbox, and the device and inode that must be there, as `stat -c %d:%i` prints them. */
export interface MountSource {
  readonly path: string;
  readonly inode: string;
}

/** Opens a path without access to its content; Node has no name for it. */
const O_PATH = 0o10000000;

/** What these paths lead to now. */
export function mountSourcesOf(paths: readonly string[]): readonly MountSource[] {
  return paths.map(mountSourceAt);
}

function mountSourceAt(path: string): MountSource {
  return withPathDescriptor(path, sourceMovedError, (_, status) => ({ path, inode: inodeOf(status) }));
}

/**
 * Uses what a path leads to without a link, whatever takes its place meanwhile; `at` is another path of it.
 * @param refused makes the error if a link is on the way, or nothing is there.
 */
export function withPathDescriptor<T>(
  path: string,
  refused: (path: string, cause?: unknown) => Error,
  use: (at: string, status: BigIntStats) => T,
): T {
  let descriptor: number;
  try {
    descriptor = openSync(path, O_PATH | constants.O_NOFOLLOW);
  } catch (error) {
    throw refused(path, error);
  }
  try {
    const at = `/proc/self/fd/${descriptor}`;
    const status = fstatSync(descriptor, { bigint: true });
    // The kernel tells where the inode is: not at this path, if a link was on the way.
    if (status.isSymbolicLink() || /* guard: source-is-where-its-path-says */ readlinkSync(at) !== path)
      throw refused(path);
    return use(at, status);
  } finally {
    closeSync(descriptor);
  }
}

function sourceMovedError(path: string, cause?: unknown): Error {
  return toolError(
    `Nothing was run: ${quotePath(path)} was moved or replaced while the sandbox was set up. Try again.`,
    {},
    cause,
  );
}
