/**
 * Notices before a commit that the files of the store were removed or replaced: what is then written could never be read, or would
 * be written beside a new owner. A directory that has not changed since the last look needs one system call.
 */
import { type Stats, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { Fault } from '../../journal/errors.js';
import { identityAt } from './files.js';

/** The files that stay the same for as long as a process owns the store. */
const DATA = ['', '-wal', '-shm'];
const OWNERSHIP = ['.owner', '.lock'];
const SOCKET = '.sock';
/** Times of files are coarse: a directory that changed so recently may have changed again within the same tick. */
const SETTLED_MS = 100;

const QUIET = { throwIfNoEntry: false } as const;

export class Presence {
  readonly #path: string;
  readonly #directory: string;
  readonly #files = new Map<string, string>();
  /** The directory as of a look that found everything in its place, and that it had settled. */
  #settled: Pick<Stats, 'dev' | 'ino' | 'ctimeMs'> | undefined;

  /** Of a database that is open and whose owner is recorded. */
  constructor(path: string) {
    this.#path = path;
    this.#directory = dirname(path);
    for (const suffix of [...DATA, ...OWNERSHIP]) this.#files.set(suffix, identityAt(path + suffix));
  }

  /** The owner listens from now on, or no longer: as long as it does, its socket has to stay in its place too. */
  listening(isOn: boolean): void {
    if (isOn) this.#files.set(SOCKET, identityAt(this.#path + SOCKET));
    else this.#files.delete(SOCKET);
  }

  /** Throws STORE_MISSING if a file of the store is not the one that was opened, OWNERSHIP_LOST if it is the owner's own. */
  assert(): void {
    const found = statSync(this.#directory, QUIET);
    const last = this.#settled;
    // Nobody can set the time of a change back, as those do to the time of a modification who copy or restore a directory.
    if (found?.ctimeMs === last?.ctimeMs && found?.ino === last?.ino && found?.dev === last?.dev && last !== undefined)
      return;
    this.#settled = undefined;
    for (const [suffix, file] of this.#files) {
      const identity = identityAt(this.#path + suffix);
      if (identity !== file) throw this.#fault(suffix, identity === '' ? 'removed' : 'replaced');
    }
    if (found !== undefined && Date.now() - found.ctimeMs > SETTLED_MS) this.#settled = found;
  }

  #fault(suffix: string, how: 'removed' | 'replaced'): Fault {
    const path = this.#path + suffix;
    const what = `${path} was ${how} while the store was open. Nothing of this commit was written`;
    if (!DATA.includes(suffix)) {
      return new Fault('OWNERSHIP_LOST', `${what}: another process may own the store.`, { path: this.#path });
    }
    return new Fault('STORE_MISSING', `${what}; restore the directory, and open the store again.`, {
      path: this.#path,
    });
  }
}
