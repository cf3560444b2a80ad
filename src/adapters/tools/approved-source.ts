/**
 * Makes Node run a module from the approved bytes. Node would read the file by its path after it was compared, and a process that
 * may write there could replace it in between: the module's top level would have run before that is noticed. A loader hook
 * reads the file once, compares the digest, and returns what it has compared as the source. Loaders that are registered
 * besides, such as compilers, do not change an approved module.
 */
import { register } from 'node:module';
import { pathToFileURL } from 'node:url';

const DIGEST_PARAM = 'rondo-sha256';
const SOURCE_CHANGED_CODE = 'ERR_RONDO_SOURCE_CHANGED';

/** It runs in Node's thread for loader hooks, so it stands alone; other modules pass unchanged. */
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

/** Imports the module with this digest, and nothing else; `number` makes Node load it again. See `isChangedSource`. */
export async function importApprovedModule(file: string, sha256: string, number: number): Promise<object> {
  if (!isHookRegistered) register(`data:text/javascript,${encodeURIComponent(loaderHookSource)}`);
  isHookRegistered = true;
  return (await import(
    // guard: module-imported-by-digest
    `${pathToFileURL(file).href}?${DIGEST_PARAM}=${sha256}&import=${number}`
  )) as object;
}

/** True for the failure of an import whose file has other bytes by now: nothing of it has run. */
export function isSourceChangedError(error: unknown): boolean {
  return (error as NodeJS.ErrnoException | undefined)?.code === SOURCE_CHANGED_CODE;
}
