/** Files as text: regular files of bounded size, in UTF-8; anything else is said kindly. */
import { constants, type FileHandle, open } from 'node:fs/promises';
import { DocumentReadError, describeError } from './document-read-error.js';

/** Never hangs on a pipe that somebody put where a file should be. */
const OPEN_FLAGS = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);

const IS_DIRECTORY_REASON = 'it is a directory, not a file';

const reasonsByErrorCode: { readonly [code: string]: string } = {
  ENOENT: 'it does not exist',
  EACCES: 'it may not be read (permission denied)',
  ELOOP: 'it is a link that leads in a circle',
  EISDIR: IS_DIRECTORY_REASON,
};

async function readBytes(handle: FileHandle, most: number): Promise<Buffer> {
  const { size } = await statRegularFile(handle);
  if (size > most) throw new DocumentReadError(`it has ${size} bytes; ${most} is the most`);
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

/** The text of a file; a byte order mark is left out. */
export async function readText(file: string, most: number): Promise<string> {
  let handle: FileHandle | undefined;
  try {
    handle = await open(file, OPEN_FLAGS);
    const bytes = await readBytes(handle, most);
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (thrown) {
    if (thrown instanceof DocumentReadError) throw thrown;
    throw new DocumentReadError(describeSystemError(thrown), undefined, errorCodeOf(thrown) === 'ENOENT');
  } finally {
    await handle?.close();
  }
}

/** What the system said, in words. */
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
