/** How the tools of the toolbox say no: what is wrong, where, and what to do. */
import { LoopError } from '../../base/errors.js';
import type { Json } from '../../protocol/json.js';
import { truncate } from './text.js';

/** A failure that the model is shown. */
export function toolError(message: string, data?: { readonly [name: string]: Json }, cause?: unknown): LoopError {
  return new LoopError('TOOL_FAILED', message, data, cause);
}

/** A call that would not act on what was approved; nothing was done. */
export function notApprovedError(why: string): LoopError {
  return new LoopError('TOOL_NOT_ADMITTED', `Nothing was done: ${why}. Ask again.`);
}

/** A path as it was asked for: never what stands behind it, which may be outside. */
export function quotePath(path: string): string {
  return JSON.stringify(truncate(path, 200));
}

/** What the system says when a path cannot be used, by its code. */
const reasonsByErrorCode: { readonly [code: string]: string } = {
  ENOENT: 'does not exist; look with list_files',
  ENOTDIR: 'leads through something that is not a directory; look with list_files',
  EISDIR: 'is a directory, not a file',
  ELOOP: 'is or leads through a link that is not followed',
  EACCES: 'may not be used: the system denies it',
  EPERM: 'may not be used: the system denies it',
  EROFS: 'is on a file system that cannot be written',
  ENXIO: 'is not a regular file',
  ENAMETOOLONG: 'has a name that is too long',
  ENOSPC: 'cannot be written: there is no room left',
};

/** Any failure about a path as one that can be shown; what is one already stays itself. */
export function toPathError(path: string, error: unknown): LoopError {
  if (error instanceof LoopError) return error;
  const { code = 'unknown' } = error as NodeJS.ErrnoException;
  const reason = Object.hasOwn(reasonsByErrorCode, code) ? reasonsByErrorCode[code] : `cannot be used (${code})`;
  return toolError(`${quotePath(path)} ${reason}.`, undefined, error);
}
