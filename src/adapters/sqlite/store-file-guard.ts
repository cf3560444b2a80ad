/**
 * Notices before a commit that the files of the store were removed or replaced: what is then written could never be read, or would
 * be written beside a new owner. A directory that has not changed since the last look needs one system call.
 */
import { closeSync, constants, fstatSync, openSync, type Stats, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { Fault } from '../../base/errors.js';
import { identityAt } from './files.js';

/** The files that stay the same for as long as a process owns the store. */
const DATA_SUFFIXES = ['', '-wal', '-shm'];
const OWNERSHIP_SUFFIXES = ['.owner', '.lock'];
const SOCKET_SUFFIX = '.sock';
/** Times of files are coarse: a directory that changed so recently may have changed again within the same tick. */
const DIRECTORY_SETTLE_MS = 100;

/**
 * How long the directory is asked through its descriptor alone, which takes half the time. That shows whatever happens to the directory
 * itself; the path shows also that one above it was moved, and then the files have gone with it and are whole.
 */
const PATH_RECHECK_MS = 10;

const IGNORE_MISSING = { throwIfNoEntry: false } as const;

type DirectoryStatus = Pick<Stats, 'dev' | 'ino' | 'ctimeMs'>;

/** Undefined where a directory cannot be opened, or no more descriptors are to be had: its path serves as well, and is slower. */
function openDirectory(path: string): number | undefined {
  try {
    return openSync(path, constants.O_RDONLY | constants.O_DIRECTORY);
  } catch {
    return undefined;
  }
}

export class StoreFileGuard {
  readonly #path: string;
  readonly #directory: string;
  readonly #identities = new Map<string, string>();
  /** The directory as of a look that found everything in its place, and that it had settled. */
  #settledStatus: DirectoryStatus | undefined;
  #descriptor: number | undefined;
  /** When the path was followed last. */
  #pathCheckedAt = 0;

  /** Of a database that is open and whose owner is recorded. */
  constructor(path: string) {
    this.#path = path;
    this.#directory = dirname(path);
    for (const suffix of [...DATA_SUFFIXES, ...OWNERSHIP_SUFFIXES])
      this.#identities.set(suffix, identityAt(path + suffix));
    this.#descriptor = process.platform === 'win32' ? undefined : openDirectory(this.#directory);
  }

  /** The owner listens from now on, or no longer: as long as it does, its socket has to stay in its place too. */
  setListening(isOn: boolean): void {
    if (isOn) this.#identities.set(SOCKET_SUFFIX, identityAt(this.#path + SOCKET_SUFFIX));
    else this.#identities.delete(SOCKET_SUFFIX);
  }

  /** Throws STORE_MISSING if a file of the store is not the one that was opened, OWNERSHIP_LOST if it is the owner's own. */
  assertUnchanged(): void {
    // The system's own time, which files have too.
    const now = Date.now();
    if (this.#isUnchanged(now)) return;
    this.#settledStatus = undefined;
    const found = statSync(this.#directory, IGNORE_MISSING);
    for (const [suffix, file] of this.#identities) {
      const identity = identityAt(this.#path + suffix);
      if (identity !== file) throw this.#changedFileFault(suffix, identity === '' ? 'removed' : 'replaced');
    }
    if (found !== undefined && now - found.ctimeMs > DIRECTORY_SETTLE_MS) this.#settledStatus = found;
  }

  close(): void {
    if (this.#descriptor !== undefined) closeSync(this.#descriptor);
    this.#descriptor = undefined;
  }

  /** Nobody can set the time of a change back, as those do to the time of a modification who copy or restore a directory. */
  #isUnchanged(now: number): boolean {
    const last = this.#settledStatus;
    if (last === undefined) return false;
    const { dev, ino, ctimeMs }: Partial<DirectoryStatus> = this.#readDirectoryStatus(now) ?? {};
    return ctimeMs === last.ctimeMs && ino === last.ino && dev === last.dev;
  }

  #readDirectoryStatus(now: number): DirectoryStatus | undefined {
    const isRecent = Math.abs(now - this.#pathCheckedAt) < PATH_RECHECK_MS;
    if (this.#descriptor !== undefined && isRecent) return fstatSync(this.#descriptor);
    this.#pathCheckedAt = now;
    return statSync(this.#directory, IGNORE_MISSING);
  }

  #changedFileFault(suffix: string, how: 'removed' | 'replaced'): Fault {
    const path = this.#path + suffix;
    const what = `${path} was ${how} while the store was open. Nothing of this commit was written`;
    if (!DATA_SUFFIXES.includes(suffix)) {
      return new Fault('OWNERSHIP_LOST', `${what}: another process may own the store.`, { path: this.#path });
    }
    return new Fault('STORE_MISSING', `${what}; restore the directory, and open the store again.`, {
      path: this.#path,
    });
  }
}
