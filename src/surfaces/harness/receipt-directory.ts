/** The directory with the receipts of a harness: a bundle for each case, and the public keys of all of them. */
import { mkdir, readdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { LoopError } from '../../base/errors.js';
import type { ReceiptArchive } from '../../host/receipts/receipt-archive.js';
import type { TrustedKey } from '../../protocol/receipt.js';
import { UsageError } from '../settings.js';

/** A directory that the receipts of cases are written to. */
export class ReceiptDirectory {
  private readonly path: string;
  private readonly keys: TrustedKey[] = [];

  private constructor(path: string) {
    this.path = path;
  }

  /** Creates the directory. Throws a UsageError if it has files: receipts of other runs would be among those of this one. */
  static async create(path: string): Promise<ReceiptDirectory> {
    const names = await mkdir(path, { recursive: true })
      .then(() => readdir(path))
      .catch((thrown: Error) => {
        throw new UsageError(`${path} cannot be used for receipts: ${thrown.message}.`);
      });
    // guard: receipt-directory-empty
    if (names.length > 0) throw new UsageError(`${path} is not empty; give a new directory for the receipts.`);
    return new ReceiptDirectory(path);
  }

  /** Writes the receipts of a case, if there are any, and adds its keys to the keys file. */
  async add(name: string, archive: ReceiptArchive, keys: readonly TrustedKey[]): Promise<void> {
    const bundle = await archive.export().catch((thrown: unknown) => {
      if (thrown instanceof LoopError && thrown.code === 'RECEIPT_NOT_FOUND') return undefined;
      throw thrown;
    });
    if (bundle === undefined) return;
    await writeFile(join(this.path, `${name}.receipts.json`), bundle, { flag: 'wx' });
    this.keys.push(...keys);
    const next = join(this.path, 'keys.json.next');
    await writeFile(next, `${JSON.stringify({ keys: this.keys }, null, 2)}\n`);
    await rename(next, join(this.path, 'keys.json'));
  }
}
