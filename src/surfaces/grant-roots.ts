/** Resolves the roots of a grant document of the operator. */
import { realpath } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { Grant } from '../protocol/grant.js';
import type { JsonObject } from '../protocol/json.js';

/** Returns a grant document whose relative roots start at the directory. It is not checked here. */
export async function withAbsoluteRoots(document: JsonObject, directory: string): Promise<Grant> {
  const { roots } = document;
  if (!Array.isArray(roots)) return document as unknown as Grant;
  const absolute = await Promise.all(
    roots.map((root: unknown) => (typeof root === 'string' ? realRoot(resolve(directory, root)) : root)),
  );
  return { ...document, roots: absolute } as unknown as Grant;
}

/** Returns the path without links; unchanged if it does not exist, in which case nothing is inside of it. */
function realRoot(path: string): Promise<string> {
  return realpath(path).catch(() => path);
}
