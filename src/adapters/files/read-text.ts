/** Reads regular UTF-8 files of bounded size, and describes system errors in plain English. */
import { constants, type FileHandle, open, readlink, realpath, stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { isStoreFile } from '../../journal/store-files.js';
import { DocumentReadError, describeError } from './document-read-error.js';
import { isInside } from './inside.js';

/** O_NONBLOCK keeps `open` from blocking on a named pipe. */
const OPEN_FLAGS = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);

const IS_DIRECTORY_REASON = 'it is a directory, not a file';

const reasonsByErrorCode: { readonly [code: string]: string } = {
  ENOENT: 'it does not exist',
  EACCES: 'it cannot be read (permission denied)',
  ELOOP: 'it is a symbolic link loop',
  EISDIR: IS_DIRECTORY_REASON,
};

async function readBytes(handle: FileHandle, maxBytes: number): Promise<Buffer> {
  const { size } = await statRegularFile(handle);
  if (size > maxBytes) throw new DocumentReadError(`it has ${size} bytes; the limit is ${maxBytes}`);
  const buffer = Buffer.alloc(size);
  let length = 0;
  while (length < size) {
    const { bytesRead } = await handle.read(buffer, length, size - length, length);
    if (bytesRead === 0) break;
    length += bytesRead;
  }
  return buffer.subarray(0, length);
}

async function statRegularFile(handle: FileHandle): Promise<{ size: number }> {
  const status = await handle.stat();
  if (status.isDirectory()) throw new DocumentReadError(IS_DIRECTORY_REASON);
  if (!status.isFile()) throw new DocumentReadError('it is not a regular file');
  return status;
}

/**
 * Reads a file as text, without its byte order mark. Throws DocumentReadError if it cannot be read, is not a regular
 * file, has more than `maxBytes` bytes, or is not UTF-8 text.
 */
export async function readText(file: string, maxBytes: number): Promise<string> {
  let handle: FileHandle | undefined;
  try {
    handle = await open(file, OPEN_FLAGS);
    const bytes = await readBytes(handle, maxBytes);
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (thrown) {
    if (thrown instanceof DocumentReadError) throw thrown;
    throw new DocumentReadError(describeSystemError(thrown), undefined, errorCodeOf(thrown) === 'ENOENT');
  } finally {
    await handle?.close();
  }
}

/** A text that was read from inside a directory. */
export interface ConfinedText {
  /** The text, with its byte order mark if it has one: its UTF-8 form is exactly what was read. */
  readonly text: string;
  /** The device and the inode of the file. */
  readonly identity: string;
}

/**
 * Reads a regular UTF-8 file inside a directory. Links are followed, but the file that was opened must be inside: its
 * location is checked, not its name, so a link that is replaced in between is noticed. Files of stores are never opened.
 * Throws DocumentReadError like `readText`. `openFile` opens a file; tests replace it.
 */
export async function readTextWithin(
  directory: string,
  path: string,
  maxBytes: number,
  openFile: typeof open = open,
): Promise<ConfinedText> {
  let handle: FileHandle | undefined;
  try {
    const root = await realpath(directory);
    const real = await realpath(resolve(root, path));
    assertReadable(root, real);
    handle = await openFile(real, OPEN_FLAGS);
    // guard: opened-context-file-located
    assertReadable(root, await locate(handle, real));
    const { dev, ino } = await handle.stat({ bigint: true });
    const bytes = await readBytes(handle, maxBytes);
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    return { text, identity: `${dev}:${ino}` };
  } catch (thrown) {
    if (thrown instanceof DocumentReadError) throw thrown;
    throw new DocumentReadError(describeSystemError(thrown), undefined, errorCodeOf(thrown) === 'ENOENT');
  } finally {
    await handle?.close();
  }
}

/** Throws DocumentReadError if a real path is outside of the directory, or belongs to a store. */
function assertReadable(root: string, real: string): void {
  // guard: context-file-inside-directory
  if (!isInside(root, real)) throw new DocumentReadError('it is a link that leaves its directory');
  if (isStoreFile(real)) throw new DocumentReadError('it belongs to a store');
}

/** Returns the real path of an open file. Without /proc, the file at the path is compared with the open one. */
async function locate(handle: FileHandle, path: string): Promise<string> {
  if (process.platform === 'linux') return readlink(`/proc/self/fd/${handle.fd}`);
  const real = await realpath(path);
  const [current, opened] = await Promise.all([stat(real, { bigint: true }), handle.stat({ bigint: true })]);
  if (current.dev === opened.dev && current.ino === opened.ino) return real;
  throw new DocumentReadError('it was replaced while it was opened; try again');
}

/** Returns a plain-English description of a system error, or the message of an error with an unknown code. */
export function describeSystemError(thrown: unknown): string {
  const code = errorCodeOf(thrown);
  if (code === 'ERR_ENCODING_INVALID_ENCODED_DATA') return 'it is not UTF-8 text';
  return (
    (code !== undefined && Object.hasOwn(reasonsByErrorCode, code) ? reasonsByErrorCode[code] : undefined) ??
    describeError(thrown)
  );
}

function errorCodeOf(thrown: unknown): string | undefined {
  const { code } = thrown as { readonly code?: unknown };
  return typeof code === 'string' ? code : undefined;
}
