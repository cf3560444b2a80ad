/** Reads open files up to a limit. */
import { createHash } from 'node:crypto';
import type { OpenPath } from './roots.js';

/** The first bytes of a file. */
interface FileContents {
  readonly bytes: Buffer;
  /** True if the file is longer than the limit. */
  readonly isTruncated: boolean;
}

/** Reads up to `maxBytes` bytes of a file. It may grow while it is read, so its size is only a hint. */
export async function readContents({ handle, stats }: OpenPath, maxBytes: number): Promise<FileContents> {
  let buffer = Buffer.allocUnsafe(Math.min(stats.size, maxBytes) + 1);
  let length = 0;
  for (;;) {
    const { bytesRead } = await handle.read(buffer, length, buffer.length - length, length);
    length += bytesRead;
    if (bytesRead === 0 || length > maxBytes) break;
    if (length === buffer.length) buffer = Buffer.concat([buffer], Math.min(2 * buffer.length, maxBytes + 1));
  }
  return { bytes: buffer.subarray(0, Math.min(length, maxBytes)), isTruncated: length > maxBytes };
}

/** Returns the SHA-256 digest of a file's content, in hexadecimal. */
export function digestOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
