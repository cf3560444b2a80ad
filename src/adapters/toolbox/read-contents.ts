/** The bytes of an open file, up to a limit. */
import { createHash } from 'node:crypto';
import type { OpenPath } from './roots.js';

export interface FileContents {
  readonly bytes: Buffer;
  /** Whether the file goes on. */
  readonly isTruncated: boolean;
}

/** Reads from the start. A file may grow while it is read, so its size is only a hint. */
export async function readContents({ handle, stats }: OpenPath, most: number): Promise<FileContents> {
  let buffer = Buffer.allocUnsafe(Math.min(stats.size, most) + 1);
  let used = 0;
  for (;;) {
    const { bytesRead } = await handle.read(buffer, used, buffer.length - used, used);
    used += bytesRead;
    if (bytesRead === 0 || used > most) break;
    if (used === buffer.length) buffer = Buffer.concat([buffer], Math.min(2 * buffer.length, most + 1));
  }
  return { bytes: buffer.subarray(0, Math.min(used, most)), isTruncated: used > most };
}

/** What tells one content from another. */
export function digestOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
