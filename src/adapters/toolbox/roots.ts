/**
 * Confines the tools to their root directories. A path is checked lexically, after resolving links, and finally by the
 * location of the opened descriptor, before any byte is read or written. The last check is decisive: it detects every
 * file that was replaced in between (symlink races). Node has no openat, but on Linux /proc/self/fd/N/name is
 * equivalent. The same checks refuse files of a store. On Linux, a file of a store of this process is never opened: see
 * `openByPathDescriptor`.
 */
import { type BigIntStats, constants, fstatSync, lstatSync, type Stats } from 'node:fs';
import { type FileHandle, lstat, mkdir, open, readlink, realpath } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { LoopError } from '../../base/errors.js';
import { isStoreFile } from '../../journal/store-files.js';
import type { ApprovalTarget } from '../../protocol/approval.js';
import type { Confinement } from '../../protocol/body.js';
import { AliasDetector } from './aliases.js';
import { containsPath } from './paths.js';
import { resolveRoot } from './resolve-root.js';
import { isStoreInode, isStorePath, storeEvidenceOf, storeFileError } from './store-protection.js';
import { notApprovedError, quotePath, toolError, toPathError } from './tool-error.js';

const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK, O_NOCTTY, O_DIRECTORY } = constants;
/** Refuses a link at the end of a path or, on macOS (O_NOFOLLOW_ANY, which Node does not define), anywhere in it. */
export const NO_LINKS_FLAG = process.platform === 'darwin' ? 0x20000000 : O_NOFOLLOW;
/** O_NONBLOCK keeps `open` from blocking on a named pipe. */
const READ_FLAGS = O_RDONLY | O_NONBLOCK | O_NOCTTY;
/** O_PATH of Linux, which Node does not define: the descriptor identifies a file without opening its content. */
const O_PATH = 0o10000000;
const MAX_PATH_CHARS = 4096;
const ALIAS_EVIDENCE = ' (under another name, by a hard link or a mount)';

/** An open file or directory inside the roots. */
export interface OpenPath {
  readonly handle: FileHandle;
  readonly realPath: string;
  readonly stats: Stats;
}

/** The location of a file that may not exist: an open directory and a name in it. */
export interface FileLocation {
  readonly directory: OpenPath;
  readonly name: string;
  readonly realPath: string;
}

type PathKind = 'file' | 'directory' | 'either';

/**
 * Descriptors of store files opened by a lost race. They are never closed: closing one would drop the locks of SQLite.
 */
const retainedHandles: FileHandle[] = [];

/** Returns the real path of an open file. `path` is the path it was opened with. */
type LocateHandle = (handle: FileHandle, path: string) => Promise<string>;

/** On Linux, the kernel provides the path of a descriptor. */
const locateByDescriptor: LocateHandle = (handle) => readlink(`/proc/self/fd/${handle.fd}`);

/**
 * On other systems, the open file is compared with the one at the path. This alone is not sufficient, because a link
 * can be replaced twice in between; it is used only where no link of the path is followed.
 */
export const locateByComparison: LocateHandle = async (handle, path) => {
  const real = await realpath(path);
  const [current, opened] = await Promise.all([lstat(real, { bigint: true }), handle.stat({ bigint: true })]);
  if (current.dev === opened.dev && current.ino === opened.ino) return real;
  throw toolError('The file was replaced while it was opened; try again.');
};

/**
 * The root directories of the tools. Methods that take a requested path throw TOOL_FAILED if it is outside of the roots
 * or belongs to a store. The constructor throws CONFIG_INVALID for a directory that cannot be a root.
 */
export class Roots {
  /** The real paths of the roots. Relative paths start at the first. */
  readonly realPaths: readonly string[];
  private readonly givenPaths: readonly string[];
  private readonly isLinux: boolean;
  private readonly locateHandle: LocateHandle;
  private readonly aliases: AliasDetector;
  /** The directories that a grant permits; undefined without one. */
  private readonly grantedPaths: readonly string[] | undefined;

  constructor(
    roots: readonly string[],
    locate: LocateHandle = process.platform === 'linux' ? locateByDescriptor : locateByComparison,
  ) {
    this.givenPaths = roots.map((root) => resolve(root));
    this.realPaths = this.givenPaths.map((root) => resolveRoot(root));
    this.locateHandle = locate;
    this.aliases = new AliasDetector(this.realPaths);
    this.isLinux = locate === locateByDescriptor;
  }

  /**
   * Returns these roots, limited to the directories that a grant permits. Relative paths start at the same directory, so
   * that a path means the same with and without a grant.
   */
  confinedTo(confinement: Confinement | undefined): Roots {
    const granted = confinement?.roots;
    if (granted === undefined) return this;
    return Object.assign(Object.create(this) as Roots, { grantedPaths: granted });
  }

  /** Returns roots that consist of what both these and a grant permit, for a sandbox, which shows them completely. */
  narrowedTo(confinement: Confinement | undefined): Roots {
    const granted = confinement?.roots;
    if (granted === undefined) return this;
    const narrowed = this.realPaths.flatMap((root) =>
      granted.flatMap((other) => (containsPath(other, root) ? [root] : containsPath(root, other) ? [other] : [])),
    );
    if (narrowed.length > 0) return new Roots([...new Set(narrowed)]);
    throw new LoopError('TOOL_NOT_ADMITTED', 'The grant permits none of the roots of this tool.');
  }

  /** Returns a real path for display: relative in the first root, absolute elsewhere. */
  displayPath(real: string): string {
    const first = this.realPaths[0] as string;
    return containsPath(first, real) ? relative(first, real) || '.' : real;
  }

  /** Opens a file or a directory for reading, and closes it when `use` has ended. */
  async open<T>(path: string, kind: PathKind, use: (opened: OpenPath) => Promise<T>): Promise<T> {
    return this.withOpened(path, await this.resolveRealPath(path), kind, use);
  }

  /** Opens an entry of an open directory for reading, without following links, and closes it when `use` has ended. */
  async openWithin<T>(
    directory: OpenPath,
    name: string,
    kind: PathKind,
    use: (opened: OpenPath) => Promise<T>,
  ): Promise<T> {
    return this.withOpened(
      this.displayPath(join(directory.realPath, name)),
      this.pathWithin(directory, name),
      kind,
      use,
    );
  }

  /**
   * Opens the location of a file that may not exist, and creates missing directories. Before that, an approved path is
   * compared with the real path of the open directory, so that a link created since the approval is detected. Throws
   * TOOL_NOT_ADMITTED if they differ.
   */
  async openLocation<T>(
    path: string,
    approved: ApprovalTarget | undefined,
    use: (location: FileLocation) => Promise<T>,
  ): Promise<T> {
    const { real, missing } = await this.nearestExisting(path);
    const [directory, names] = missing.length === 0 ? [dirname(real), [basename(real)]] : [real, missing];
    if (!this.containsRealPath(directory)) throw toolError(`${quotePath(path)} is a directory, not a file.`);
    return this.withOpened(path, directory, 'directory', (opened) => {
      // guard: written-path-approved
      assertPathApproved(path, approved, join(opened.realPath, ...names));
      return this.descendCreating(path, opened, names, use);
    });
  }

  /** Returns the approval target of a change: the real path of a file that may not exist. */
  async approvalTargetOf(path: string): Promise<ApprovalTarget> {
    const { real, missing } = await this.nearestExisting(path);
    const file = join(real, ...missing);
    return {
      kind: 'file',
      path: file,
      ...(missing.length > 0 && { isNew: true }),
      ...(!this.isDirectPath(path, file) && { isIndirect: true }),
    };
  }

  /**
   * Returns true if a path is normalized and contains no link below its root. Only then can a pattern for the path, as
   * in a grant, be trusted to describe the real path. `real` is the real path of `path`.
   */
  isDirectPath(path: string, real: string): boolean {
    const requested = this.resolveRequestedPath(path);
    const isNormalized = path === '.' || join(path, '.') === path;
    return (
      isNormalized &&
      [...this.givenPaths, ...this.realPaths].some(
        (root, index) =>
          containsPath(root, requested) &&
          join(this.realPaths[index % this.realPaths.length] as string, relative(root, requested)) === real,
      )
    );
  }

  /** Returns the real path of the existing part of a path, and the names of the missing part. */
  async nearestExisting(path: string): Promise<{ readonly real: string; readonly missing: readonly string[] }> {
    const missing: string[] = [];
    for (let current = this.resolveRequestedPath(path); ; current = dirname(current)) {
      const real = await realpath(current).catch((error) => {
        if (error.code !== 'ENOENT' || this.givenPaths.includes(current) || this.realPaths.includes(current))
          throw toPathError(path, error);
        return undefined;
      });
      if (real === undefined) {
        missing.unshift(basename(current));
        continue;
      }
      this.assertAllowed(path, join(real, ...missing));
      return { real, missing };
    }
  }

  /**
   * Returns the path of a name in an open directory. On Linux, it stays valid if the directory is moved or replaced.
   */
  pathWithin(directory: OpenPath, name: string): string {
    return join(this.isLinux ? `/proc/self/fd/${directory.handle.fd}` : directory.realPath, name);
  }

  /** Returns a path of the open directory itself. */
  directoryPath(directory: OpenPath): string {
    return this.isLinux ? `/proc/self/fd/${directory.handle.fd}` : directory.realPath;
  }

  /** Throws if an open file has been moved out of the roots, or to a path of a store, since it was opened. */
  async assertStillInside({ handle, realPath }: OpenPath, path: string): Promise<void> {
    this.assertAllowed(path, await this.locateHandle(handle, realPath));
  }

  private async descendCreating<T>(
    path: string,
    directory: OpenPath,
    names: readonly string[],
    use: (location: FileLocation) => Promise<T>,
  ): Promise<T> {
    const [name = '', ...rest] = names;
    this.assertAllowed(path, join(directory.realPath, name));
    if (rest.length === 0) return use({ directory, name, realPath: join(directory.realPath, name) });
    const next = this.pathWithin(directory, name);
    await mkdir(next).catch((error) => {
      if (error.code !== 'EEXIST') throw toPathError(path, error);
    });
    return this.withOpened(path, next, 'directory', (opened) => this.descendCreating(path, opened, rest, use));
  }

  /** Opens `file`, checks it, passes it to `use`, and closes it. `path` is the requested path, for messages. */
  private async withOpened<T>(
    path: string,
    file: string,
    kind: PathKind,
    use: (opened: OpenPath) => Promise<T>,
  ): Promise<T> {
    const opened = await (this.isLinux
      ? this.openByPathDescriptor(path, file, kind)
      : this.openThenCheck(path, file, kind));
    try {
      return await use(opened);
    } finally {
      await opened.handle.close();
    }
  }

  /**
   * Checks an O_PATH descriptor and then opens the file that it identifies. Closing an O_PATH descriptor drops no POSIX
   * locks, so a file of a store can be detected and refused even if it replaced another file in between.
   */
  private async openByPathDescriptor(path: string, file: string, kind: PathKind): Promise<OpenPath> {
    const pathHandle = await open(file, O_PATH | NO_LINKS_FLAG).catch((error) => {
      throw toPathError(path, error);
    });
    try {
      const real = await this.locateOrRefuse(pathHandle, path, file);
      this.assertAllowed(path, real);
      if (await this.isProtected(real, fstatSync(pathHandle.fd, { bigint: true })))
        throw storeFileError(path, ALIAS_EVIDENCE);
      const stats = await pathHandle.stat();
      assertKind(path, stats, kind);
      const handle = await open(`/proc/self/fd/${pathHandle.fd}`, READ_FLAGS).catch((error) => {
        throw toPathError(path, error);
      });
      return { handle, realPath: real, stats };
    } finally {
      await pathHandle.close();
    }
  }

  /** For systems without O_PATH: checks the file at the path, opens it, and checks the descriptor. */
  private async openThenCheck(path: string, file: string, kind: PathKind): Promise<OpenPath> {
    const status = lstatSync(file, { bigint: true, throwIfNoEntry: false });
    if (status !== undefined && (await this.isProtected(file, status))) throw storeFileError(path, ALIAS_EVIDENCE);
    const flags = READ_FLAGS | NO_LINKS_FLAG | (kind === 'directory' ? O_DIRECTORY : 0);
    const handle = await open(file, flags).catch((error) => {
      throw toPathError(path, error);
    });
    if (await this.isProtected(file, fstatSync(handle.fd, { bigint: true }))) {
      retainedHandles.push(handle);
      throw storeFileError(path, ALIAS_EVIDENCE);
    }
    try {
      const real = await this.locateOrRefuse(handle, path, file);
      this.assertAllowed(path, real);
      const stats = await handle.stat();
      assertKind(path, stats, kind);
      return { handle, realPath: real, stats };
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  /** Returns true for a file of a store under any name, by inode. */
  private async isProtected(real: string, status: BigIntStats): Promise<boolean> {
    return isStoreInode(status) || this.aliases.isAlias(real, status);
  }

  private async locateOrRefuse(handle: FileHandle, path: string, file: string): Promise<string> {
    return this.locateHandle(handle, file).catch((error) => {
      throw error instanceof LoopError
        ? error
        : toolError(`The location of ${quotePath(path)} cannot be determined; is /proc mounted?`);
    });
  }

  /** Throws if a real path is outside of the roots or belongs to a store. */
  private assertAllowed(path: string, real: string): void {
    if (!this.containsRealPath(real)) throw outsideRootsError(path, this.grantedPaths ?? this.realPaths);
    if (isStorePath(real)) throw storeFileError(path, storeEvidenceOf(real));
  }

  /** Returns the real path of an existing file, which is inside the roots at this moment. */
  private async resolveRealPath(path: string): Promise<string> {
    const real = await realpath(this.resolveRequestedPath(path)).catch((error) => {
      throw toPathError(path, error);
    });
    this.assertAllowed(path, real);
    return real;
  }

  /** Resolves a path lexically. A path outside of the roots is refused before the file system is accessed. */
  private resolveRequestedPath(path: string): string {
    if (path.includes('\0')) throw toolError(`${quotePath(path)} contains a NUL character, which no path can contain.`);
    if (path.length > MAX_PATH_CHARS) throw toolError(`The path is longer than ${MAX_PATH_CHARS} characters.`);
    const target = resolve(this.realPaths[0] as string, path);
    if (![...this.givenPaths, ...this.realPaths].some((root) => containsPath(root, target)))
      throw outsideRootsError(path, this.realPaths);
    if (isStoreFile(target)) throw storeFileError(path, storeEvidenceOf(target));
    return target;
  }

  private containsRealPath(real: string): boolean {
    const isGranted = this.grantedPaths?.some((root) => containsPath(root, real)) ?? true;
    // guard: opened-path-inside-grant
    return isGranted && this.realPaths.some((root) => containsPath(root, real));
  }
}

/** Throws TOOL_NOT_ADMITTED if the real path is not the approved one. */
export function assertPathApproved(path: string, approved: ApprovalTarget | undefined, real: string): void {
  if (approved === undefined || approved.path === real) return;
  throw notApprovedError(`${quotePath(path)} leads elsewhere than when it was approved`);
}

function outsideRootsError(path: string, roots: readonly string[]): LoopError {
  if (roots.length === 0) return toolError(`${quotePath(path)} cannot be used: no directory may be used.`);
  return toolError(`${quotePath(path)} is outside of the directories that may be used: ${roots.join(', ')}.`);
}

function assertKind(path: string, stats: Stats, kind: PathKind): void {
  if (stats.isSymbolicLink()) throw toPathError(path, { code: 'ELOOP' });
  if (kind === 'directory' && !stats.isDirectory()) throw toPathError(path, { code: 'ENOTDIR' });
  if (!stats.isFile() && (kind === 'file' || !stats.isDirectory())) throw notAFileError(path, stats);
}

function notAFileError(path: string, stats: Stats): LoopError {
  if (stats.isDirectory()) return toolError(`${quotePath(path)} is a directory; use list_files.`);
  return toolError(`${quotePath(path)} is not a regular file (a pipe, a socket or a device), so it is not opened.`);
}
