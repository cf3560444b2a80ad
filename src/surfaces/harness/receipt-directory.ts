/** The directory with the receipts of a harness: a bundle for each case, and the public keys of all of them. */
import { mkdir, readdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { LoopError } from '../../base/errors.js';
import type { ReceiptArchive } from '../../host/receipts/receipt-archive.js';
import type { TrustedKey } from '../../protocol/receipt.js';
import type { TrustPredicate } from '../authority.js';
import { resolveOutputPath } from '../output-path.js';
import { UsageError } from '../settings.js';

/** A directory that the receipts of cases are written to. */
export class ReceiptDirectory {
  private readonly path: string;
  private readonly keys: TrustedKey[] = [];

  private constructor(path: string) {
    this.path = path;
  }

  /**
   * Creates the directory. Throws a UsageError if it has files, because receipts of other runs would be among those of this
   * one, and if its path leads through a link that is not followed.
   */
  static async create(path: string, trusts: TrustPredicate): Promise<ReceiptDirectory> {
    const real = resolveOutputPath(path, trusts);
    const names = await mkdir(real, { recursive: true })
      .then(() => readdir(real))
      .catch((thrown: Error) => {
        throw new UsageError(`${path} cannot be used for receipts: ${thrown.message}.`);
      });
    // guard: receipt-directory-empty
    if (names.length > 0) throw new UsageError(`${path} is not empty; give a new directory for the receipts.`);
    return new ReceiptDirectory(real);
  }

  /** Writes the receipts of a case, if there are any, and adds its keys to the keys file. */
  async add(name: string, archive: ReceiptArchive, keys: readonly TrustedKey[]): Promise<void> {
    const bundle = await archive.export().catch((thrown: unknown) => {
      if (thrown instanceof LoopError && thrown.code === 'RECEIPT_NOT_FOUND') return undefined;
      throw thrown;
    });
    if (bundle === undefined) return;
    await writeFile(join(this.path, `${name}.receipts.json`), bundle, { flag: 'wx' });
    // The signer of the environment is that of all cases.
    this.keys.push(...keys.filter(({ kid }) => this.keys.every((known) => known.kid !== kid)));
    const next = join(this.path, 'keys.json.next');
    await writeFile(next, `${JSON.stringify({ keys: this.keys }, null, 2)}\n`, { flag: 'wx' });
    await rename(next, join(this.path, 'keys.json'));
  }
}
