/**
 * Imports a module from exactly the approved bytes. If Node read the file by its path after the digest was checked,
 * another process could replace it in between, and the top level of the module would run before that is detected.
 * Instead, a loader hook reads the file once, checks the digest, and returns the checked bytes as the source. Other
 * registered loaders, such as compilers, do not transform an approved module.
 */
import { register } from 'node:module';
import { pathToFileURL } from 'node:url';

const DIGEST_PARAM = 'rondo-sha256';
const SOURCE_CHANGED_CODE = 'ERR_RONDO_SOURCE_CHANGED';

/**
 * The source of the loader hook. It runs in Node's loader thread, so it is self-contained. It passes URLs without a
 * digest on to the next loader.
 */
// guard: imported-source-verified
const loaderHookSource = `
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
export async function load(url, context, next) {
  const sha256 = url.startsWith('file:') ? new URL(url).searchParams.get('${DIGEST_PARAM}') : null;
  if (sha256 === null) return next(url, context);
  const { format } = context.format ? context : await next(url, context);
  const source = await readFile(fileURLToPath(url));
  if (createHash('sha256').update(source).digest('hex') === sha256) return { format, source, shortCircuit: true };
  throw Object.assign(new Error('The file was changed.'), { code: '${SOURCE_CHANGED_CODE}' });
}`;

let isHookRegistered = false;

/**
 * Imports the module if its bytes have this digest, in hexadecimal. Otherwise throws an error for which
 * `isSourceChangedError` returns true. Other errors are those of the module itself. A new `importId` makes Node load
 * the file again instead of returning a cached module.
 */
export async function importApprovedModule(file: string, sha256: string, importId: number): Promise<object> {
  if (!isHookRegistered) register(`data:text/javascript,${encodeURIComponent(loaderHookSource)}`);
  isHookRegistered = true;
  return (await import(
    // guard: module-imported-by-digest
    `${pathToFileURL(file).href}?${DIGEST_PARAM}=${sha256}&import=${importId}`
  )) as object;
}

/** Returns true if an import failed because the bytes of its file have changed. No code of the file has run then. */
export function isSourceChangedError(error: unknown): boolean {
  return (error as NodeJS.ErrnoException | undefined)?.code === SOURCE_CHANGED_CODE;
}
