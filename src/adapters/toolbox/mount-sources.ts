/**
 * Protects the mounts of a sandbox from symlink races. Bubblewrap resolves the paths of mounts after they were checked,
 * so a command in another sandbox could replace a directory by a symbolic link, and the new sandbox would show its
 * target. Therefore the inode of each source is determined here, by a path without links, and compared inside the
 * sandbox before the command runs.
 */
import { type BigIntStats, closeSync, constants, fstatSync, openSync, readlinkSync } from 'node:fs';
import { inodeOf } from './store-protection.js';
import { quotePath, toolError } from './tool-error.js';

/** A path in the sandbox, and its expected device and inode in the format of `stat -c %d:%i`. */
export interface MountSource {
  readonly path: string;
  readonly inode: string;
}

/** Opens a path without access to its content. Node has no constant for it. */
const O_PATH = 0o10000000;

/** Returns the current inodes of these paths. Throws TOOL_FAILED if one contains a symbolic link or does not exist. */
export function mountSourcesOf(paths: readonly string[]): readonly MountSource[] {
  return paths.map(mountSourceAt);
}

function mountSourceAt(path: string): MountSource {
  return withPathDescriptor(path, sourceMovedError, (_, status) => ({ path, inode: inodeOf(status) }));
}

/**
 * Opens a path that contains no symbolic link and passes a path of the descriptor to `use`. The descriptor path refers
 * to the opened file even if another file replaces it meanwhile.
 * @param createError creates the error that is thrown if the path contains a link or cannot be opened.
 */
export function withPathDescriptor<T>(
  path: string,
  createError: (path: string, cause?: unknown) => Error,
  use: (descriptorPath: string, status: BigIntStats) => T,
): T {
  let descriptor: number;
  try {
    descriptor = openSync(path, O_PATH | constants.O_NOFOLLOW);
  } catch (error) {
    throw createError(path, error);
  }
  try {
    const descriptorPath = `/proc/self/fd/${descriptor}`;
    const status = fstatSync(descriptor, { bigint: true });
    // The kernel reports the real path of the inode, which differs if the path contained a link.
    if (status.isSymbolicLink() || /* guard: source-is-where-its-path-says */ readlinkSync(descriptorPath) !== path)
      throw createError(path);
    return use(descriptorPath, status);
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
