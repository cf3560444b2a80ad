/**
 * The directories that the tools may touch. A path is checked three times: as text, as the real path on the disk, and,
 * which is what counts, as the place of what was opened, before a byte is read or written. What is swapped in between
 * is found out: the descriptor is judged, not the name. Node has no openat, but /proc/self/fd/N/name is as good. Files of
 * a store are refused in the same three checks, and are not opened to tell: see `openJudged`.
 */
import { type BigIntStats, constants, fstatSync, lstatSync, type Stats } from 'node:fs';
import { type FileHandle, lstat, mkdir, open, readlink, realpath } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { LoopError } from '../../base/errors.js';
import { isStoreFile } from '../../journal/store-files.js';
import type { ApprovalTarget } from '../../protocol/approval.js';
import { AliasDetector } from './aliases.js';
import { containsPath } from './paths.js';
import { resolveRoot } from './resolve-root.js';
import { isStoreInode, isStorePath, storeEvidenceOf, storeFileError } from './store-protection.js';
import { notApprovedError, quotePath, toolError, toPathError } from './tool-error.js';

const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK, O_NOCTTY, O_DIRECTORY } = constants;
/** Without following a link: the last one of a path, or on macOS (O_NOFOLLOW_ANY, which Node does not name) any of them. */
export const NO_LINKS_FLAG = process.platform === 'darwin' ? 0x20000000 : O_NOFOLLOW;
/** Opens a FIFO without waiting for a writer. */
const READ_FLAGS = O_RDONLY | O_NONBLOCK | O_NOCTTY;
/** Linux's O_PATH, which Node does not name: a descriptor that identifies a file without opening it. */
const O_PATH = 0o10000000;
const MAX_PATH_CHARS = 4096;
const ALIAS_EVIDENCE = ' (under another name, by a hard link or a mount)';

/** Something that was opened and lies inside. */
export interface OpenPath {
  readonly handle: FileHandle;
  /** Where it is, links followed. */
  readonly realPath: string;
  readonly stats: Stats;
}

/** A place for a file: a directory that is open, and a name in it. */
export interface FileLocation {
  readonly directory: OpenPath;
  readonly name: string;
  readonly realPath: string;
}

type PathKind = 'file' | 'directory' | 'either';

/** Descriptors of store files that a lost race has opened. They are never closed, as closing one drops SQLite's locks. */
const retainedHandles: FileHandle[] = [];

/** How the place of a descriptor is told. */
export type LocateHandle = (handle: FileHandle, path: string) => Promise<string>;

/** On Linux the kernel says it. */
const locateByDescriptor: LocateHandle = (handle) => readlink(`/proc/self/fd/${handle.fd}`);

/**
 * Elsewhere what is open must be what the path leads to. This alone is not enough, as a link can be swapped twice in
 * between; it is only used where no link in the path is followed to begin with.
 */
export const locateByComparison: LocateHandle = async (handle, path) => {
  const real = await realpath(path);
  const [there, here] = await Promise.all([lstat(real, { bigint: true }), handle.stat({ bigint: true })]);
  if (there.dev === here.dev && there.ino === here.ino) return real;
  throw toolError('The file was replaced while it was opened; try again.');
};

export class Roots {
  /** Links followed; the first is where relative paths start. */
  readonly realPaths: readonly string[];
  private readonly givenPaths: readonly string[];
  private readonly isLinux: boolean;
  private readonly locateHandle: LocateHandle;
  private readonly aliases: AliasDetector;

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

  /** A path for people and models: relative in the first root, absolute in the others. */
  displayPath(real: string): string {
    const first = this.realPaths[0] as string;
    return containsPath(first, real) ? relative(first, real) || '.' : real;
  }

  /** Opens a file or a directory for reading. */
  async open<T>(path: string, kind: PathKind, use: (opened: OpenPath) => Promise<T>): Promise<T> {
    return this.withOpened(path, await this.resolveRealPath(path), kind, use);
  }

  /** Opens what a directory holds under this name, links not followed. */
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
   * The place for a file that may not be there yet; directories that lead to it are made. The place of an approved file
   * is compared as it was opened: a link that appeared since leads nowhere else.
   */
  async openLocation<T>(
    path: string,
    approved: ApprovalTarget | undefined,
    use: (spot: FileLocation) => Promise<T>,
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

  /** What a change of this file acts on: the real path of a file that may not be there yet. */
  async approvalTargetOf(path: string): Promise<ApprovalTarget> {
    const { real, missing } = await this.nearestExisting(path);
    const file = join(real, ...missing);
    return {
      kind: 'file',
      path: file,
      ...(missing.length > 0 && { isNew: true }),
      ...(!this.isDirectPath(path, file) && { isLinked: true }),
    };
  }

  /**
   * True if a path, as it is written, leads to this real path: without a link below its root, and without `..` or other parts that
   * a pattern for the path would not see through.
   */
  isDirectPath(path: string, real: string): boolean {
    const asked = this.resolveRequestedPath(path);
    const isPlain = path === '.' || join(path, '.') === path;
    return (
      isPlain &&
      [...this.givenPaths, ...this.realPaths].some(
        (root, index) =>
          containsPath(root, asked) &&
          join(this.realPaths[index % this.realPaths.length] as string, relative(root, asked)) === real,
      )
    );
  }

  /** The real path of the part that is there, and the names of the part that is not. */
  async nearestExisting(path: string): Promise<{ readonly real: string; readonly missing: readonly string[] }> {
    const missing: string[] = [];
    for (let at = this.resolveRequestedPath(path); ; at = dirname(at)) {
      const real = await realpath(at).catch((error) => {
        if (error.code !== 'ENOENT' || this.givenPaths.includes(at) || this.realPaths.includes(at))
          throw toPathError(path, error);
        return undefined;
      });
      if (real === undefined) {
        missing.unshift(basename(at));
        continue;
      }
      this.assertAllowed(path, join(real, ...missing));
      return { real, missing };
    }
  }

  /** A name in an open directory: on Linux that directory and no other, whatever its path leads to by now. */
  pathWithin(directory: OpenPath, name: string): string {
    return join(this.isLinux ? `/proc/self/fd/${directory.handle.fd}` : directory.realPath, name);
  }

  /** The open directory itself, as a path. */
  directoryPath(directory: OpenPath): string {
    return this.isLinux ? `/proc/self/fd/${directory.handle.fd}` : directory.realPath;
  }

  /** Refuses what has left the roots since it was opened. */
  async assertStillInside({ handle, realPath }: OpenPath, path: string): Promise<void> {
    this.assertAllowed(path, await this.locateHandle(handle, realPath));
  }

  private async descendCreating<T>(
    path: string,
    directory: OpenPath,
    names: readonly string[],
    use: (spot: FileLocation) => Promise<T>,
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

  /** Opens, judges, and only then hands it out. */
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
   * Judges a descriptor made with O_PATH, then opens the very file that it identifies. Closing an O_PATH descriptor drops
   * no POSIX locks, so a file of a store can be told and refused whatever is swapped in between.
   */
  private async openByPathDescriptor(path: string, file: string, kind: PathKind): Promise<OpenPath> {
    const identified = await open(file, O_PATH | NO_LINKS_FLAG).catch((error) => {
      throw toPathError(path, error);
    });
    try {
      const real = await this.locateOrRefuse(identified, path, file);
      this.assertAllowed(path, real);
      if (await this.isProtected(real, fstatSync(identified.fd, { bigint: true })))
        throw storeFileError(path, ALIAS_EVIDENCE);
      const stats = await identified.stat();
      assertKind(path, stats, kind);
      const handle = await open(`/proc/self/fd/${identified.fd}`, READ_FLAGS).catch((error) => {
        throw toPathError(path, error);
      });
      return { handle, realPath: real, stats };
    } finally {
      await identified.close();
    }
  }

  /** Where there is no O_PATH: judges the name, opens it, and judges the descriptor. */
  private async openThenCheck(path: string, file: string, kind: PathKind): Promise<OpenPath> {
    const there = lstatSync(file, { bigint: true, throwIfNoEntry: false });
    if (there !== undefined && (await this.isProtected(file, there))) throw storeFileError(path, ALIAS_EVIDENCE);
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

  /** True for what belongs to a store, whatever its path says. */
  private async isProtected(real: string, status: BigIntStats): Promise<boolean> {
    return isStoreInode(status) || this.aliases.isAlias(real, status);
  }

  private async locateOrRefuse(handle: FileHandle, path: string, file: string): Promise<string> {
    return this.locateHandle(handle, file).catch((error) => {
      throw error instanceof LoopError
        ? error
        : toolError(`Where ${quotePath(path)} is cannot be told; is /proc there?`);
    });
  }

  /** Refuses a real path that is outside of the roots or belongs to a store. */
  private assertAllowed(path: string, real: string): void {
    if (!this.containsRealPath(real)) throw outsideRootsError(path, this.realPaths);
    if (isStorePath(real)) throw storeFileError(path, storeEvidenceOf(real));
  }

  /** The real path, which is inside at least now. */
  private async resolveRealPath(path: string): Promise<string> {
    const real = await realpath(this.resolveRequestedPath(path)).catch((error) => {
      throw toPathError(path, error);
    });
    this.assertAllowed(path, real);
    return real;
  }

  /** The path as text, dots resolved: what is outside already is not looked for on the disk. */
  private resolveRequestedPath(path: string): string {
    if (path.includes('\0')) throw toolError(`${quotePath(path)} has a NUL character in it, which no path has.`);
    if (path.length > MAX_PATH_CHARS) throw toolError(`The path is longer than ${MAX_PATH_CHARS} characters.`);
    const target = resolve(this.realPaths[0] as string, path);
    if (![...this.givenPaths, ...this.realPaths].some((root) => containsPath(root, target)))
      throw outsideRootsError(path, this.realPaths);
    if (isStoreFile(target)) throw storeFileError(path, storeEvidenceOf(target));
    return target;
  }

  private containsRealPath(real: string): boolean {
    return this.realPaths.some((root) => containsPath(root, real));
  }
}

/** Refuses a real path that is not the approved one. */
export function assertPathApproved(path: string, approved: ApprovalTarget | undefined, real: string): void {
  if (approved === undefined || approved.path === real) return;
  throw notApprovedError(`${quotePath(path)} leads elsewhere than when it was approved`);
}

function outsideRootsError(path: string, roots: readonly string[]): LoopError {
  return toolError(`${quotePath(path)} is outside of the directories that may be used: ${roots.join(', ')}.`);
}

function assertKind(path: string, stats: Stats, kind: PathKind): void {
  if (stats.isSymbolicLink()) throw toPathError(path, { code: 'ELOOP' });
  if (kind === 'directory' && !stats.isDirectory()) throw toPathError(path, { code: 'ENOTDIR' });
  if (!stats.isFile() && (kind === 'file' || !stats.isDirectory())) throw notAFileError(path, stats);
}

function notAFileError(path: string, stats: Stats): LoopError {
  if (stats.isDirectory()) return toolError(`${quotePath(path)} is a directory; look into it with list_files.`);
  return toolError(`${quotePath(path)} is not a regular file (a pipe, a socket or a device), and is not touched.`);
}
