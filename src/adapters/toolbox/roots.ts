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
import { OtherNames } from './other-names.js';
import { contains } from './paths.js';
import { realRoot } from './real-root.js';
import { named, notApproved, refusal, unusable } from './refusal.js';
import { evidenceOf, hasStorePath, isStoreInode, ofStore } from './store-files.js';

const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK, O_NOCTTY, O_DIRECTORY } = constants;
/** Without following a link: the last one of a path, or on macOS (O_NOFOLLOW_ANY, which Node does not name) any of them. */
export const NO_LINKS = process.platform === 'darwin' ? 0x20000000 : O_NOFOLLOW;
/** Without waiting for whoever writes into a pipe. */
const READ = O_RDONLY | O_NONBLOCK | O_NOCTTY;
/** Linux's O_PATH, which Node does not name: a descriptor that identifies a file without opening it. */
const O_PATH = 0o10000000;
const LONGEST = 4096;
const OTHER_NAME = ' (under another name, by a hard link or a mount)';

/** Something that was opened and lies inside. */
export interface Opened {
  readonly handle: FileHandle;
  /** Where it is, links followed. */
  readonly real: string;
  readonly stats: Stats;
}

/** A place for a file: a directory that is open, and a name in it. */
export interface Spot {
  readonly directory: Opened;
  readonly name: string;
  readonly real: string;
}

type Kind = 'file' | 'directory' | 'either';

/** Descriptors of store files that a lost race has opened. They are never closed, as closing one drops SQLite's locks. */
const retained: FileHandle[] = [];

/** How the place of a descriptor is told. */
export type Locate = (handle: FileHandle, path: string) => Promise<string>;

/** On Linux the kernel says it. */
const byDescriptor: Locate = (handle) => readlink(`/proc/self/fd/${handle.fd}`);

/**
 * Elsewhere what is open must be what the path leads to. This alone is not enough, as a link can be swapped twice in
 * between; it is only used where no link in the path is followed to begin with.
 */
export const byComparison: Locate = async (handle, path) => {
  const real = await realpath(path);
  const [there, here] = await Promise.all([lstat(real, { bigint: true }), handle.stat({ bigint: true })]);
  if (there.dev === here.dev && there.ino === here.ino) return real;
  throw refusal('The file was replaced while it was opened; try again.');
};

export class Roots {
  /** Links followed; the first is where relative paths start. */
  readonly all: readonly string[];
  private readonly given: readonly string[];
  private readonly linux: boolean;
  private readonly locate: Locate;
  private readonly otherNames: OtherNames;

  constructor(roots: readonly string[], locate: Locate = process.platform === 'linux' ? byDescriptor : byComparison) {
    this.given = roots.map((root) => resolve(root));
    this.all = this.given.map((root) => realRoot(root));
    this.locate = locate;
    this.otherNames = new OtherNames(this.all);
    this.linux = locate === byDescriptor;
  }

  /** A path for people and models: relative in the first root, absolute in the others. */
  shown(real: string): string {
    const first = this.all[0] as string;
    return contains(first, real) ? relative(first, real) || '.' : real;
  }

  /** Opens a file or a directory for reading. */
  async open<T>(path: string, kind: Kind, use: (opened: Opened) => Promise<T>): Promise<T> {
    return this.using(path, await this.settled(path), kind, use);
  }

  /** Opens what a directory holds under this name, links not followed. */
  async within<T>(directory: Opened, name: string, kind: Kind, use: (opened: Opened) => Promise<T>): Promise<T> {
    return this.using(this.shown(join(directory.real, name)), this.at(directory, name), kind, use);
  }

  /**
   * The place for a file that may not be there yet; directories that lead to it are made. The place of an approved file
   * is compared as it was opened: a link that appeared since leads nowhere else.
   */
  async spot<T>(path: string, approved: ApprovalTarget | undefined, use: (spot: Spot) => Promise<T>): Promise<T> {
    const { real, missing } = await this.nearest(path);
    const [directory, names] = missing.length === 0 ? [dirname(real), [basename(real)]] : [real, missing];
    if (!this.holds(directory)) throw refusal(`${named(path)} is a directory, not a file.`);
    return this.using(path, directory, 'directory', (opened) => {
      // guard: written-path-approved
      assertApproved(path, approved, join(opened.real, ...names));
      return this.descend(path, opened, names, use);
    });
  }

  /** What a change of this file acts on: the real path of a file that may not be there yet. */
  async target(path: string): Promise<ApprovalTarget> {
    const { real, missing } = await this.nearest(path);
    const file = join(real, ...missing);
    return {
      kind: 'file',
      path: file,
      ...(missing.length > 0 && { isNew: true }),
      ...(!this.isOwnPath(path, file) && { isLinked: true }),
    };
  }

  /**
   * True if a path, as it is written, leads to this real path: without a link below its root, and without `..` or other parts that
   * a pattern for the path would not see through.
   */
  isOwnPath(path: string, real: string): boolean {
    const asked = this.asked(path);
    const isPlain = path === '.' || join(path, '.') === path;
    return (
      isPlain &&
      [...this.given, ...this.all].some(
        (root, index) =>
          contains(root, asked) && join(this.all[index % this.all.length] as string, relative(root, asked)) === real,
      )
    );
  }

  /** The real path of the part that is there, and the names of the part that is not. */
  async nearest(path: string): Promise<{ readonly real: string; readonly missing: readonly string[] }> {
    const missing: string[] = [];
    for (let at = this.asked(path); ; at = dirname(at)) {
      const real = await realpath(at).catch((error) => {
        if (error.code !== 'ENOENT' || this.given.includes(at) || this.all.includes(at)) throw unusable(path, error);
        return undefined;
      });
      if (real === undefined) {
        missing.unshift(basename(at));
        continue;
      }
      this.admit(path, join(real, ...missing));
      return { real, missing };
    }
  }

  /** A name in an open directory: on Linux that directory and no other, whatever its path leads to by now. */
  at(directory: Opened, name: string): string {
    return join(this.linux ? `/proc/self/fd/${directory.handle.fd}` : directory.real, name);
  }

  /** The open directory itself, as a path. */
  self(directory: Opened): string {
    return this.linux ? `/proc/self/fd/${directory.handle.fd}` : directory.real;
  }

  /** Refuses what has left the roots since it was opened. */
  async still({ handle, real }: Opened, path: string): Promise<void> {
    this.admit(path, await this.locate(handle, real));
  }

  private async descend<T>(
    path: string,
    directory: Opened,
    names: readonly string[],
    use: (spot: Spot) => Promise<T>,
  ): Promise<T> {
    const [name = '', ...rest] = names;
    this.admit(path, join(directory.real, name));
    if (rest.length === 0) return use({ directory, name, real: join(directory.real, name) });
    const next = this.at(directory, name);
    await mkdir(next).catch((error) => {
      if (error.code !== 'EEXIST') throw unusable(path, error);
    });
    return this.using(path, next, 'directory', (opened) => this.descend(path, opened, rest, use));
  }

  /** Opens, judges, and only then hands it out. */
  private async using<T>(path: string, file: string, kind: Kind, use: (opened: Opened) => Promise<T>): Promise<T> {
    const opened = await (this.linux ? this.openJudged(path, file, kind) : this.openAndJudge(path, file, kind));
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
  private async openJudged(path: string, file: string, kind: Kind): Promise<Opened> {
    const identified = await open(file, O_PATH | NO_LINKS).catch((error) => {
      throw unusable(path, error);
    });
    try {
      const real = await this.located(identified, path, file);
      this.admit(path, real);
      if (await this.isProtected(real, fstatSync(identified.fd, { bigint: true }))) throw ofStore(path, OTHER_NAME);
      const stats = await identified.stat();
      assertKind(path, stats, kind);
      const handle = await open(`/proc/self/fd/${identified.fd}`, READ).catch((error) => {
        throw unusable(path, error);
      });
      return { handle, real, stats };
    } finally {
      await identified.close();
    }
  }

  /** Where there is no O_PATH: judges the name, opens it, and judges the descriptor. */
  private async openAndJudge(path: string, file: string, kind: Kind): Promise<Opened> {
    const there = lstatSync(file, { bigint: true, throwIfNoEntry: false });
    if (there !== undefined && (await this.isProtected(file, there))) throw ofStore(path, OTHER_NAME);
    const flags = READ | NO_LINKS | (kind === 'directory' ? O_DIRECTORY : 0);
    const handle = await open(file, flags).catch((error) => {
      throw unusable(path, error);
    });
    if (await this.isProtected(file, fstatSync(handle.fd, { bigint: true }))) {
      retained.push(handle);
      throw ofStore(path, OTHER_NAME);
    }
    try {
      const real = await this.located(handle, path, file);
      this.admit(path, real);
      const stats = await handle.stat();
      assertKind(path, stats, kind);
      return { handle, real, stats };
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  /** True for what belongs to a store, whatever its path says. */
  private async isProtected(real: string, status: BigIntStats): Promise<boolean> {
    return isStoreInode(status) || this.otherNames.include(real, status);
  }

  private async located(handle: FileHandle, path: string, file: string): Promise<string> {
    return this.locate(handle, file).catch((error) => {
      throw error instanceof LoopError ? error : refusal(`Where ${named(path)} is cannot be told; is /proc there?`);
    });
  }

  /** Refuses a real path that is outside of the roots or belongs to a store. */
  private admit(path: string, real: string): void {
    if (!this.holds(real)) throw outside(path, this.all);
    if (hasStorePath(real)) throw ofStore(path, evidenceOf(real));
  }

  /** The real path, which is inside at least now. */
  private async settled(path: string): Promise<string> {
    const real = await realpath(this.asked(path)).catch((error) => {
      throw unusable(path, error);
    });
    this.admit(path, real);
    return real;
  }

  /** The path as text, dots resolved: what is outside already is not looked for on the disk. */
  private asked(path: string): string {
    if (path.includes('\0')) throw refusal(`${named(path)} has a NUL character in it, which no path has.`);
    if (path.length > LONGEST) throw refusal(`The path is longer than ${LONGEST} characters.`);
    const target = resolve(this.all[0] as string, path);
    if (![...this.given, ...this.all].some((root) => contains(root, target))) throw outside(path, this.all);
    if (isStoreFile(target)) throw ofStore(path, evidenceOf(target));
    return target;
  }

  private holds(real: string): boolean {
    return this.all.some((root) => contains(root, real));
  }
}

/** Refuses a real path that is not the approved one. */
export function assertApproved(path: string, approved: ApprovalTarget | undefined, real: string): void {
  if (approved === undefined || approved.path === real) return;
  throw notApproved(`${named(path)} leads elsewhere than when it was approved`);
}

function outside(path: string, roots: readonly string[]): LoopError {
  return refusal(`${named(path)} is outside of the directories that may be used: ${roots.join(', ')}.`);
}

function assertKind(path: string, stats: Stats, kind: Kind): void {
  if (stats.isSymbolicLink()) throw unusable(path, { code: 'ELOOP' });
  if (kind === 'directory' && !stats.isDirectory()) throw unusable(path, { code: 'ENOTDIR' });
  if (!stats.isFile() && (kind === 'file' || !stats.isDirectory())) throw notAFile(path, stats);
}

function notAFile(path: string, stats: Stats): LoopError {
  if (stats.isDirectory()) return refusal(`${named(path)} is a directory; look into it with list_files.`);
  return refusal(`${named(path)} is not a regular file (a pipe, a socket or a device), and is not touched.`);
}
