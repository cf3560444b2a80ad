/**
 * Private keys in files: one key per file, readable by its owner only. A file that others can read is refused, because
 * its key may have been copied. The content is the seed of the key in base64.
 */
import { constants } from 'node:fs';
import { type FileHandle, open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { decodeBase64, encodeBase64 } from '../../base/base64.js';
import { type PrivateKey, privateKeyOf } from '../../base/ed25519.js';
import { Fault } from '../../base/errors.js';
import { accessProblem } from './own-file.js';
import { writeFault } from './write-fault.js';

const OWNER_ONLY = 0o600;
const OTHERS = 0o077;
const MAX_FILE_BYTES = 100;

/**
 * Writes a file as a whole: readers see the content before or after, and it survives a crash. Throws a Fault with the code
 * KEYS_UNUSABLE if the disk does not confirm that, and with STORE_FULL if it is full.
 */
export async function writeWholeFile(path: string, content: string, mode: number): Promise<void> {
  try {
    await replaceFile(path, content, mode);
  } catch (cause) {
    await rm(temporaryOf(path), { force: true }).catch(() => undefined);
    throw writeFault(path, `The key file ${path} cannot be written (${(cause as Error).message}).`, cause);
  }
}

async function replaceFile(path: string, content: string, mode: number): Promise<void> {
  const temporary = temporaryOf(path);
  await rm(temporary, { force: true });
  const file = await open(temporary, 'wx', mode);
  try {
    await file.writeFile(content);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(temporary, path);
  const directory = await open(dirname(path), 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

function temporaryOf(path: string): string {
  return `${path}.${process.pid}.tmp`;
}

/** Writes the seed of a private key. */
export async function writePrivateKey(path: string, seed: Uint8Array): Promise<void> {
  await writeWholeFile(path, `${encodeBase64(seed)}\n`, OWNER_ONLY);
}

/** Reads a private key. Throws a Fault with the code KEYS_UNUSABLE if it is missing, damaged or readable by others. */
export async function readPrivateKey(path: string): Promise<PrivateKey> {
  let file: FileHandle;
  try {
    file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  } catch (cause) {
    throw unusableFile(
      path,
      accessProblem(cause) ??
        'cannot be opened. Restore it, or revoke its key (with --all, if the log cannot be signed without it)',
      cause,
    );
  }
  try {
    const stats = await file.stat();
    if (!stats.isFile() || stats.size > MAX_FILE_BYTES) throw unusableFile(path, 'is not a file of one key');
    // guard: readable-key-refused
    if ((stats.mode & OTHERS) !== 0)
      throw unusableFile(
        path,
        'can be read by others. Run chmod 600 on it, or revoke its key (with --all, if the log cannot be signed without it)',
      );
    if (process.getuid !== undefined && stats.uid !== process.getuid())
      throw unusableFile(
        path,
        `belongs to another user (uid ${stats.uid}). Use the store as that user, or change its owner`,
      );
    const text = await file.readFile('utf8');
    const seed = text.endsWith('\n') ? decodeBase64(text.slice(0, -1)) : undefined;
    if (seed?.length !== 32)
      throw unusableFile(
        path,
        'is damaged. Restore it, or revoke its key (with --all, if the log cannot be signed without it)',
      );
    return privateKeyOf(seed);
  } finally {
    await file.close();
  }
}

function unusableFile(path: string, problem: string, cause?: unknown): Fault {
  return new Fault('KEYS_UNUSABLE', `The key file ${path} ${problem}.`, { path }, cause);
}
