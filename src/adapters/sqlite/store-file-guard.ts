/**
 * Detects before each commit that a file of the store was removed, replaced or shortened. A commit to such a file would
 * be unreadable, or would write at the same time as a new owner. If the directory has not changed since the last check,
 * a check costs three system calls.
 */
import { closeSync, constants, fstatSync, openSync, readSync, type Stats, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { Fault } from '../../base/errors.js';
import { identityAt } from './files.js';

/** Suffixes of the files with data. They stay the same files for as long as a process owns the store. */
const DATA_SUFFIXES = ['', '-wal', '-shm'];
const WAL_SUFFIX = '-wal';
/** Suffixes of the files that show who owns the store. */
const OWNERSHIP_SUFFIXES = ['.owner', '.lock'];
const SOCKET_SUFFIX = '.sock';
/**
 * A directory that changed more recently than this is checked again. File timestamps are coarse, so it may change again
 * without a new timestamp.
 */
const DIRECTORY_SETTLE_MS = 100;

/**
 * How long after a check through the path of the directory further checks use its descriptor, which takes half the
 * time. The descriptor shows every change to the directory itself. Only the path shows that a parent directory was
 * moved, in which case the files moved along intact.
 */
const PATH_RECHECK_MS = 10;

const IGNORE_MISSING = { throwIfNoEntry: false } as const;

type DirectoryStatus = Pick<Stats, 'dev' | 'ino' | 'ctimeMs'>;

/**
 * Opens a file or a directory; undefined if that fails, for example without free descriptors. The slower path is used instead.
 */
function openToRead(path: string, flags = 0): number | undefined {
  try {
    return openSync(path, constants.O_RDONLY | flags);
  } catch {
    return undefined;
  }
}

/** Returns the size of a file without opening it; 0 if it is absent. */
function sizeOf(path: string): number {
  return statSync(path, IGNORE_MISSING)?.size ?? 0;
}

const oneByte = Buffer.alloc(1);

/**
 * True if a file is longer than `index`. Unlike fstat, a read does not query the timestamps of the file; Linux writes
 * them to disk with the next change if they were queried, which makes a commit 15 % slower.
 */
function hasByte(descriptor: number, index: number): boolean {
  return readSync(descriptor, oneByte, 0, 1, index) === 1;
}

/** Checks that the files of an open store are still those that were there when the guard was created. */
export class StoreFileGuard {
  private readonly path: string;
  private readonly directory: string;
  /** The expected identity of each file, by suffix; empty for a file that must stay absent. */
  private readonly identities = new Map<string, string>();
  /** The status of the directory at the last check that found every file unchanged and the directory settled. */
  private settledStatus: DirectoryStatus | undefined;
  private descriptor: number | undefined;
  /** Of the WAL, which unlike the database has no locks that closing a descriptor would drop. */
  private walDescriptor: number | undefined;
  /** The sizes of the database and of its WAL after the last write of this process. */
  private databaseBytes = 0;
  private walBytes = 0;
  /** When the directory was last checked through its path. */
  private pathCheckedAt = 0;

  /** Requires that the database is open and its owner file is written. */
  constructor(path: string) {
    this.path = path;
    this.directory = dirname(path);
    for (const suffix of [...DATA_SUFFIXES, ...OWNERSHIP_SUFFIXES])
      this.identities.set(suffix, identityAt(path + suffix));
    if (process.platform !== 'win32') {
      this.descriptor = openToRead(this.directory, constants.O_DIRECTORY);
      this.walDescriptor = openToRead(path + WAL_SUFFIX);
    }
    this.noteCheckpoint();
  }

  /** Notes the size of the WAL, which only this process may reduce. Call it after each commit. */
  noteCommit(): void {
    if (this.walDescriptor === undefined || hasByte(this.walDescriptor, this.walBytes))
      this.walBytes = this.readWalBytes();
  }

  /** Notes the sizes of the WAL and of the database. Call it after each checkpoint. */
  noteCheckpoint(): void {
    this.walBytes = this.readWalBytes();
    this.databaseBytes = sizeOf(this.path);
  }

  /** Includes the socket file in the checks while the owner listens. */
  setListening(isListening: boolean): void {
    if (isListening) this.identities.set(SOCKET_SUFFIX, identityAt(this.path + SOCKET_SUFFIX));
    else this.identities.delete(SOCKET_SUFFIX);
  }

  /**
   * Throws STORE_MISSING if a data file was removed, replaced or shortened, and OWNERSHIP_LOST if the owner file, the lock file or
   * the socket was. Does not look at the files if their directory is known to be unchanged.
   */
  assertUnchanged(): void {
    // The system clock, because it is also the clock of file timestamps.
    const now = Date.now();
    if (!this.isUnchanged(now)) this.assertSameFiles(now);
    const isDatabaseShort = sizeOf(this.path) < this.databaseBytes;
    // guard: shortened-file-refused
    if (isDatabaseShort || this.isWalShort())
      throw this.changedFileFault(isDatabaseShort ? '' : WAL_SUFFIX, 'shortened');
  }

  private assertSameFiles(now: number): void {
    this.settledStatus = undefined;
    const status = statSync(this.directory, IGNORE_MISSING);
    for (const [suffix, expected] of this.identities) {
      const identity = identityAt(this.path + suffix);
      if (identity !== expected) throw this.changedFileFault(suffix, identity === '' ? 'removed' : 'replaced');
    }
    if (status !== undefined && now - status.ctimeMs > DIRECTORY_SETTLE_MS) this.settledStatus = status;
  }

  /** Closes the descriptors. */
  close(): void {
    for (const descriptor of [this.descriptor, this.walDescriptor]) if (descriptor !== undefined) closeSync(descriptor);
    this.descriptor = undefined;
    this.walDescriptor = undefined;
  }

  /**
   * True if the directory is the same and has not changed since `settledStatus`. Compares ctime, which unlike mtime
   * cannot be set back by a program that copies or restores the directory.
   */
  private isUnchanged(now: number): boolean {
    const last = this.settledStatus;
    if (last === undefined) return false;
    const { dev, ino, ctimeMs }: Partial<DirectoryStatus> = this.readDirectoryStatus(now) ?? {};
    return ctimeMs === last.ctimeMs && ino === last.ino && dev === last.dev;
  }

  private readDirectoryStatus(now: number): DirectoryStatus | undefined {
    const isRecent = Math.abs(now - this.pathCheckedAt) < PATH_RECHECK_MS;
    if (this.descriptor !== undefined && isRecent) return fstatSync(this.descriptor);
    this.pathCheckedAt = now;
    return statSync(this.directory, IGNORE_MISSING);
  }

  private isWalShort(): boolean {
    if (this.walDescriptor === undefined) return this.readWalBytes() < this.walBytes;
    return this.walBytes > 0 && !hasByte(this.walDescriptor, this.walBytes - 1);
  }

  private readWalBytes(): number {
    return this.walDescriptor === undefined ? sizeOf(this.path + WAL_SUFFIX) : fstatSync(this.walDescriptor).size;
  }

  private changedFileFault(suffix: string, change: 'removed' | 'replaced' | 'shortened'): Fault {
    const path = this.path + suffix;
    const message = `${path} was ${change} while the store was open. Nothing of this commit was written`;
    if (!DATA_SUFFIXES.includes(suffix)) {
      return new Fault('OWNERSHIP_LOST', `${message}: another process may own the store.`, { path: this.path });
    }
    return new Fault('STORE_MISSING', `${message}; restore the directory, and open the store again.`, {
      path: this.path,
    });
  }
}
