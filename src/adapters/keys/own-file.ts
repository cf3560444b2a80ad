/**
 * Files of a directory of keys that others may read, and only their owner may change. The list of public keys decides
 * whom a verifier trusts, so a file or a directory that others can change is refused.
 */
import { constants } from 'node:fs';
import { lstat, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { Fault } from '../../base/errors.js';

const WRITABLE_BY_OTHERS = 0o022;

/** Reads a file; undefined if it does not exist. Throws a Fault with the code KEYS_UNUSABLE if it must not be used. */
export async function readOwnFile(path: string, maxBytes: number): Promise<Buffer | undefined> {
  try {
    await assertOwnDirectory(dirname(path));
    const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
    try {
      const { size, mode } = await file.stat();
      if (size > maxBytes) throw unusable(`${path} is larger than ${maxBytes} bytes`);
      // guard: writable-key-list-refused
      if ((mode & WRITABLE_BY_OTHERS) !== 0) throw unusable(`${path} can be changed by others. Run chmod 644 on it`);
      return await file.readFile();
    } finally {
      await file.close();
    }
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw thrown instanceof Fault ? thrown : unusable(`${path} ${accessProblem(thrown) ?? 'cannot be read'}`, thrown);
  }
}

/** Says what to do if this user may not read a file; undefined for another error. */
export function accessProblem(thrown: unknown): string | undefined {
  const { code } = thrown as NodeJS.ErrnoException;
  if (code !== 'EACCES' && code !== 'EPERM') return undefined;
  return `cannot be read by this user (${code}). Make it and its directory belong to the user of this process, with chmod 600 and 700`;
}

async function assertOwnDirectory(directory: string): Promise<void> {
  const stats = await lstat(directory);
  // guard: linked-key-directory-refused
  if (!stats.isDirectory()) throw unusable(`${directory} is not a directory, or a link to one`);
  if ((stats.mode & WRITABLE_BY_OTHERS) !== 0)
    throw unusable(`${directory} can be changed by others. Run chmod 700 on it`);
}

function unusable(reason: string, cause?: unknown): Fault {
  return new Fault('KEYS_UNUSABLE', `The keys cannot be used: ${reason}.`, undefined, cause);
}
