/** Reads regular UTF-8 files of bounded size, and describes system errors in plain English. */
import { constants, type FileHandle, open } from 'node:fs/promises';
import { DocumentReadError, describeError } from './document-read-error.js';

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
