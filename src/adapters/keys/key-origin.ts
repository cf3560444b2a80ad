/**
 * Whether the keys of a directory were created there, by this user. A mark beside the keys lists them, and depends on the
 * number of the directory in its file system and on a secret of the user that lies outside of every project. A directory
 * that was unpacked, cloned or copied has no valid mark, keys that were unpacked over others are not in it, and nobody
 * else can make one.
 */
import { createHmac, randomBytes } from 'node:crypto';
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { encodeBase64 } from '../../base/base64.js';
import type { TrustedKey } from '../../protocol/receipt.js';
import { writeWholeFile } from './private-key-file.js';

const SECRET_BYTES = 32;
const OWNER_ONLY = 0o600;

/** The mark of one directory of keys. */
export class KeyOrigin {
  private readonly directory: string;
  private readonly secretFile: string;

  constructor(directory: string, secretFile: string) {
    this.directory = directory;
    this.secretFile = secretFile;
  }

  /** True if the directory has a valid mark, and these keys are in it. */
  async isMarked(keys: readonly TrustedKey[]): Promise<boolean> {
    const [mark, secret] = await Promise.all([this.markPath, this.secretFile].map((path) => readText(path)));
    if (mark === undefined || secret === undefined) return false;
    const marked = mark.split('\n').slice(1);
    // guard: mark-belongs-to-its-directory
    if (mark !== (await this.markOf(secret, marked))) return false;
    const known = new Set(marked);
    // guard: mark-lists-its-keys
    return keys.every(({ publicKey }) => known.has(publicKey));
  }

  /** Marks the directory, which must exist, with its keys. Without a place for the secret it has no mark. */
  async mark(keys: readonly TrustedKey[]): Promise<void> {
    const created = encodeBase64(randomBytes(SECRET_BYTES));
    await mkdir(dirname(this.secretFile), { recursive: true, mode: 0o700 })
      // Another process may have created it.
      .then(() => writeFile(this.secretFile, created, { flag: 'wx', mode: OWNER_ONLY, flush: true }))
      .catch(() => undefined);
    const secret = await readText(this.secretFile);
    if (secret === undefined) return;
    const publicKeys = keys.map(({ publicKey }) => publicKey);
    await writeWholeFile(this.markPath, await this.markOf(secret, publicKeys), OWNER_ONLY);
  }

  private get markPath(): string {
    return join(this.directory, 'origin');
  }

  private async markOf(secret: string, publicKeys: readonly string[]): Promise<string> {
    const { ino } = await stat(this.directory, { bigint: true });
    const content = ['rondo.key-origin.v2', ino, ...publicKeys].join('\n');
    return [encodeBase64(createHmac('sha256', secret).update(content).digest()), ...publicKeys].join('\n');
  }
}

async function readText(path: string): Promise<string | undefined> {
  const text = await readFile(path, 'utf8').catch(() => '');
  return text === '' ? undefined : text;
}
