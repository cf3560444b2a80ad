/**
 * How many entries the ledger of each grant had, in files beside the keys. Who can change the store, but not the keys,
 * cannot make a ledger shorter than its file says, and so cannot get back what was spent. A file is small and not synced:
 * after a power failure it may be older, or empty, and then shows less.
 */
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { sha256 } from '../../base/sha256.js';
import { readOwnFile } from './own-file.js';

const MAX_FILE_BYTES = 64;

/** The lengths of the ledgers of one store. */
export class LedgerLengths {
  private readonly directory: string;

  /** `directory` is in the directory of the keys. */
  constructor(directory: string) {
    this.directory = directory;
  }

  /** Returns the length that is kept of the ledger of a grant; 0 if none is. Throws a Fault with KEYS_UNUSABLE. */
  async read(grantId: string): Promise<number> {
    const length = Number((await readOwnFile(this.fileOf(grantId), MAX_FILE_BYTES))?.toString());
    return Number.isSafeInteger(length) ? length : 0;
  }

  /** Keeps the length of the ledger of a grant, unless a greater one is kept. */
  async write(grantId: string, length: number): Promise<void> {
    // guard: kept-length-not-lowered
    if ((await this.read(grantId)) >= length) return;
    const file = this.fileOf(grantId);
    const temporary = `${file}.${process.pid}.tmp`;
    await mkdir(this.directory, { recursive: true, mode: 0o700 });
    await writeFile(temporary, `${length}\n`, { mode: 0o600 });
    await rename(temporary, file);
  }

  private fileOf(grantId: string): string {
    return join(this.directory, sha256(grantId).toString('hex').slice(0, 32));
  }
}
