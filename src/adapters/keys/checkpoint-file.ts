/**
 * The newest checkpoint of the log of a store, in a file beside the keys. Who can change the store, but not the keys,
 * cannot make the log shorter than this file says. The file is replaced as a whole, and never by an older checkpoint.
 */
import { dirname, join } from 'node:path';
import { Fault } from '../../base/errors.js';
import { withKeyLock } from './key-lock.js';
import { readOwnFile } from './own-file.js';
import { PinnedDirectory } from './pinned-directory.js';
import { writeWholeFile } from './private-key-file.js';

const MAX_NOTE_BYTES = 64 * 1024 * 1024;

/** The checkpoint of one store. */
export class CheckpointFile {
  private readonly path: string;
  private readonly keys: PinnedDirectory;

  /** `path` is the file in the directory of the keys. */
  constructor(path: string, keys: PinnedDirectory = new PinnedDirectory(dirname(path))) {
    this.path = path;
    this.keys = keys;
  }

  /** Returns the newest checkpoint; undefined if none was made. Throws a Fault with the code KEYS_UNUSABLE. */
  async read(): Promise<string | undefined> {
    await this.keys.check();
    return (await readOwnFile(this.path, MAX_NOTE_BYTES))?.toString();
  }

  /** Keeps a checkpoint, unless one of a longer log is kept. */
  async write(note: string): Promise<void> {
    await this.keys.create();
    await withKeyLock(join(this.keys.path, 'keys.lock'), async () => {
      const kept = await this.read();
      // guard: witness-not-replaced-by-older
      if (kept !== undefined && sizeOf(kept) > sizeOf(note)) return;
      await writeWholeFile(this.path, note, 0o644);
    });
  }
}

/** Returns the number of receipts of a log: the second line of its checkpoint. */
function sizeOf(note: string): number {
  const size = Number(note.split('\n', 2)[1]);
  if (!Number.isSafeInteger(size)) throw new Fault('KEYS_UNUSABLE', 'The kept checkpoint of the log is damaged.');
  return size;
}
