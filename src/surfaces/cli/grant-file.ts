/** Reads the grant file of the operator. Relative roots in it start at the directory of the file. */
import { readFile, realpath, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import type { Grant } from '../../protocol/grant.js';
import { UsageError } from '../settings.js';

const MAX_GRANT_BYTES = 1024 * 1024;

/** Returns an object with the grant of a file; an empty one without a file. Throws a UsageError if it is not JSON. */
export async function readGrant(file: string | undefined): Promise<{ readonly grant?: Grant }> {
  if (file === undefined) return {};
  const document = await parseFile(file);
  if (typeof document !== 'object' || document === null || !('roots' in document)) return { grant: document as Grant };
  const { roots } = document;
  if (!Array.isArray(roots)) return { grant: document as Grant };
  const directory = dirname(resolve(file));
  const absolute = await Promise.all(
    roots.map((root: unknown) => (typeof root === 'string' ? realRoot(resolve(directory, root)) : root)),
  );
  return { grant: { ...document, roots: absolute } as unknown as Grant };
}

async function parseFile(file: string): Promise<unknown> {
  try {
    const { size } = await stat(file);
    if (size > MAX_GRANT_BYTES) throw new Error(`it has more than ${MAX_GRANT_BYTES} bytes`);
    return JSON.parse(await readFile(file, 'utf8'));
  } catch (thrown) {
    const reason = thrown instanceof Error ? thrown.message : String(thrown);
    throw new UsageError(`--grant ${file} cannot be used: ${reason}.`);
  }
}

/** Returns the path without links; unchanged if it does not exist, in which case nothing is inside of it. */
function realRoot(path: string): Promise<string> {
  return realpath(path).catch(() => path);
}
