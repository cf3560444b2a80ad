/**
 * Notices before a commit that the files of the store were removed or replaced: what is then written could never be read, or would
 * be written beside a new owner. A directory that has not changed since the last look needs one system call.
 */
import { lstatSync, type Stats, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { Fault } from '../../journal/errors.js';

/** The files that stay the same for as long as a process owns the store. */
const DATA = ['', '-wal', '-shm'];
const OWNERSHIP = ['.owner', '.lock'];
/** Times of files are coarse: a directory that changed so recently may have changed again within the same tick. */
const SETTLED_MS = 100;

const identityOf = (status: Stats | undefined): string => (status === undefined ? '' : `${status.dev}:${status.ino}`);

function fileAt(path: string): string {
  return identityOf(lstatSync(path, { throwIfNoEntry: false }));
}

export class Presence {
  readonly #path: string;
  readonly #directory: string;
  readonly #files: ReadonlyMap<string, string>;
  /** When the directory was last changed, as of a look that found everything in its place. */
  #unchangedSince = Number.NaN;

  /** Of a database that is open and whose owner is recorded. */
  constructor(path: string) {
    this.#path = path;
    this.#directory = dirname(path);
    this.#files = new Map([...DATA, ...OWNERSHIP].map((suffix) => [suffix, fileAt(path + suffix)]));
  }

  /** Throws STORE_MISSING if a file of the store is not the one that was opened, OWNERSHIP_LOST if it is the owner's record or lock. */
  assert(): void {
    const changedAt = statSync(this.#directory, { throwIfNoEntry: false })?.mtimeMs ?? Number.NaN;
    if (changedAt === this.#unchangedSince) return;
    for (const [suffix, file] of this.#files) {
      const found = fileAt(this.#path + suffix);
      if (found !== file) throw this.#fault(suffix, found === '' ? 'removed' : 'replaced');
    }
    this.#unchangedSince = Date.now() - changedAt > SETTLED_MS ? changedAt : Number.NaN;
  }

  #fault(suffix: string, how: 'removed' | 'replaced'): Fault {
    const path = this.#path + suffix;
    const what = `${path} was ${how} while the store was open. Nothing of this commit was written`;
    if (OWNERSHIP.includes(suffix)) {
      return new Fault('OWNERSHIP_LOST', `${what}: another process may own the store.`, { path: this.#path });
    }
    return new Fault('STORE_MISSING', `${what}; restore the directory, and open the store again.`, {
      path: this.#path,
    });
  }
}
