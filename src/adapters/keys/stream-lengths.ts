/**
 * How many entries the log of receipts and the ledgers of grants had, in files beside the keys. Who can change the store,
 * but not the keys, cannot make one shorter than its file says, and so cannot hide receipts or get back what was spent. A
 * file is small and not synced: after a power failure it may be older, and then shows less, or empty, which is reported
 * like a file that was removed.
 */
import { mkdir, readdir, rename, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { sha256 } from '../../base/sha256.js';
import { readOwnFile } from './own-file.js';
import { PinnedDirectory } from './pinned-directory.js';
import { writeFault } from './write-fault.js';

const MAX_FILE_BYTES = 64;
const FILE_NAME = /^[0-9a-f]{32}$/;
const CONTENT = /^(0|[1-9][0-9]{0,14})\n$/;

/** The lengths of the shared streams of one store. */
export class StreamLengths {
  private readonly directory: string;
  private readonly keys: PinnedDirectory;
  /** The last write: writes of one process do not overlap. */
  private writing: Promise<void> = Promise.resolve();

  /** `directory` is in the directory of the keys. */
  constructor(directory: string, keys: PinnedDirectory = new PinnedDirectory(dirname(directory))) {
    this.directory = directory;
    this.keys = keys;
  }

  /** Returns the length that is kept of a stream; 0 if none is. Throws a Fault with KEYS_UNUSABLE. */
  async read(stream: string): Promise<number> {
    await this.keys.check();
    return (await readLength(this.fileOf(stream))) ?? 0;
  }

  /** True if a length is kept of a stream. Throws a Fault with KEYS_UNUSABLE. */
  async has(stream: string): Promise<boolean> {
    return (await readLength(this.fileOf(stream))) !== undefined;
  }

  /** True if no file was emptied or written over with something else. Throws a Fault with KEYS_UNUSABLE. */
  async areIntact(): Promise<boolean> {
    const names = await readdir(this.directory).catch((): readonly string[] => []);
    let areLengths = true;
    for (const name of names)
      if (FILE_NAME.test(name)) areLengths &&= (await readLength(join(this.directory, name))) !== undefined;
    // guard: emptied-length-noticed
    return areLengths;
  }

  /** Keeps the length of a stream, unless a greater one is kept. */
  write(stream: string, length: number): Promise<void> {
    const write = (): Promise<void> => this.replace(stream, length);
    const written = this.writing.then(write, write);
    this.writing = written;
    // The caller gets the error too.
    written.catch(() => undefined);
    return written;
  }

  private async replace(stream: string, length: number): Promise<void> {
    // guard: kept-length-not-lowered
    if ((await this.read(stream)) >= length && (await this.has(stream))) return;
    const file = this.fileOf(stream);
    const temporary = `${file}.${process.pid}.tmp`;
    await this.keys.create();
    try {
      await mkdir(this.directory, { mode: 0o700 }).catch((thrown: NodeJS.ErrnoException) => {
        if (thrown.code !== 'EEXIST') throw thrown;
      });
      await writeFile(temporary, `${length}\n`, { mode: 0o600 });
      await rename(temporary, file);
    } catch (cause) {
      throw writeFault(file, `The length of a stream cannot be kept in ${file}.`, cause);
    }
  }

  private fileOf(stream: string): string {
    return join(this.directory, sha256(stream).toString('hex').slice(0, 32));
  }
}

/** Returns the length in a file; undefined if there is no file, or no length in it. */
async function readLength(file: string): Promise<number | undefined> {
  const [, length] = CONTENT.exec((await readOwnFile(file, MAX_FILE_BYTES))?.toString() ?? '') ?? [];
  return length === undefined ? undefined : Number(length);
}
