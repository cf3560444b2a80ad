/** Files as text: regular files of bounded size, in UTF-8; anything else is said kindly. */
import { constants, type FileHandle, open } from 'node:fs/promises';
import { reasonOf, Unreadable } from './unreadable.js';

/** Never hangs on a pipe that somebody put where a file should be. */
const FLAGS = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);

const A_DIRECTORY = 'it is a directory, not a file';

const told: { readonly [code: string]: string } = {
  ENOENT: 'it does not exist',
  EACCES: 'it may not be read (permission denied)',
  ELOOP: 'it is a link that leads in a circle',
  EISDIR: A_DIRECTORY,
};

async function bytesOf(handle: FileHandle, most: number): Promise<Buffer> {
  const { size } = await whole(handle);
  if (size > most) throw new Unreadable(`it has ${size} bytes; ${most} is the most`);
  const buffer = Buffer.alloc(size);
  let length = 0;
  while (length < size) {
    const { bytesRead } = await handle.read(buffer, length, size - length, length);
    if (bytesRead === 0) break;
    length += bytesRead;
  }
  return buffer.subarray(0, length);
}

async function whole(handle: FileHandle): Promise<{ size: number }> {
  const status = await handle.stat();
  if (status.isDirectory()) throw new Unreadable(A_DIRECTORY);
  if (!status.isFile()) throw new Unreadable('it is not a regular file');
  return status;
}

/** The text of a file; a byte order mark is left out. */
export async function readText(file: string, most: number): Promise<string> {
  let handle: FileHandle | undefined;
  try {
    handle = await open(file, FLAGS);
    const bytes = await bytesOf(handle, most);
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (thrown) {
    if (thrown instanceof Unreadable) throw thrown;
    throw new Unreadable(failure(thrown), undefined, codeOf(thrown) === 'ENOENT');
  } finally {
    await handle?.close();
  }
}

/** What the system said, in words. */
export function failure(thrown: unknown): string {
  const code = codeOf(thrown);
  if (code === 'ERR_ENCODING_INVALID_ENCODED_DATA') return 'it is not UTF-8 text';
  return (code !== undefined && Object.hasOwn(told, code) ? told[code] : undefined) ?? reasonOf(thrown);
}

function codeOf(thrown: unknown): string | undefined {
  const { code } = thrown as { readonly code?: unknown };
  return typeof code === 'string' ? code : undefined;
}
