/** The errors of the toolbox. A message states what is wrong and where, and what to do if the model can do something. */
import { LoopError } from '../../base/errors.js';
import type { Json } from '../../protocol/json.js';
import { truncate } from './text.js';

/** Creates a TOOL_FAILED error, which is returned to the model. */
export function toolError(message: string, data?: { readonly [name: string]: Json }, cause?: unknown): LoopError {
  return new LoopError('TOOL_FAILED', message, data, cause);
}

/** Creates the TOOL_NOT_ADMITTED error for a call that would not act on the approved target. */
export function notApprovedError(reason: string): LoopError {
  return new LoopError('TOOL_NOT_ADMITTED', `Nothing was done: ${reason}. Ask again.`);
}

/**
 * Quotes a requested path for a message, truncated to 200 characters. Do not pass a real path: it may reveal a location
 * outside of the roots.
 */
export function quotePath(path: string): string {
  return JSON.stringify(truncate(path, 200));
}

/** Descriptions of system errors that complete a sentence starting with the path. */
const reasonsByErrorCode: { readonly [code: string]: string } = {
  ENOENT: 'does not exist; check with list_files',
  ENOTDIR: 'contains a part that is not a directory; check with list_files',
  EISDIR: 'is a directory, not a file',
  ELOOP: 'is or contains a link that is not followed',
  EACCES: 'cannot be used: permission denied',
  EPERM: 'cannot be used: permission denied',
  EROFS: 'is on a read-only file system',
  ENXIO: 'is not a regular file',
  ENAMETOOLONG: 'has a name that is too long',
  ENOSPC: 'cannot be written: no space left on the device',
};

/** Converts a system error about a path to a TOOL_FAILED error. Returns a LoopError unchanged. */
export function toPathError(path: string, error: unknown): LoopError {
  if (error instanceof LoopError) return error;
  const { code = 'unknown' } = error as NodeJS.ErrnoException;
  const reason = Object.hasOwn(reasonsByErrorCode, code) ? reasonsByErrorCode[code] : `cannot be used (${code})`;
  return toolError(`${quotePath(path)} ${reason}.`, undefined, error);
}
