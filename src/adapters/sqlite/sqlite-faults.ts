/**
 * What a failure of SQLite or of a file beside it means: one place maps result codes and errnos to Faults.
 * A full disk passes; an I/O error does not, because after a failed sync nobody knows what is on the disk.
 */
import { type ErrorCode, Fault } from '../../base/errors.js';

const CODE_BY_RESULT_CODE = new Map<number, ErrorCode>([
  [3, 'STORE_READ_ONLY'],
  [5, 'STORE_OWNED'],
  [6, 'STORE_OWNED'],
  [8, 'STORE_READ_ONLY'],
  [10, 'SYNC_FAILED'],
  [11, 'STORE_DAMAGED'],
  [13, 'STORE_FULL'],
  [14, 'STORE_READ_ONLY'],
  [26, 'STORE_DAMAGED'],
]);

const CODE_BY_ERRNO = new Map<string, ErrorCode>([
  ['ENOSPC', 'STORE_FULL'],
  ['EDQUOT', 'STORE_FULL'],
  ['EROFS', 'STORE_READ_ONLY'],
  ['EACCES', 'STORE_READ_ONLY'],
  ['EPERM', 'STORE_READ_ONLY'],
  ['EIO', 'SYNC_FAILED'],
]);

const ADVICE_BY_CODE: Partial<Record<ErrorCode, string>> = {
  STORE_FULL: 'Free some space; nothing of this commit was acknowledged.',
  STORE_READ_ONLY: 'Check the permissions of the file and of its directory.',
  STORE_DAMAGED: 'Restore it from a backup, or open it with check "full" to see what is left.',
  SYNC_FAILED: 'Nothing more is accepted: check the disk, then open the store again.',
};

/** SQLite's primary result code (SQLITE_FULL is 13), from whatever shape the binding's error has. */
export function sqliteResultCode(error: unknown): number | undefined {
  if (!(error instanceof Error)) return undefined;
  const { errcode, rawCode } = error as { errcode?: unknown; rawCode?: unknown };
  if (typeof errcode === 'number') return errcode & 255;
  if (typeof rawCode === 'number') return rawCode & 255;
  // libsql reports a failed open as text only, with SQLite's code at its end.
  const told = /Unable to open connection.*: (\d+)/.exec(error.message)?.[1];
  return told === undefined ? undefined : Number(told) & 255;
}

function faultCodeOf(error: unknown): ErrorCode {
  const number = sqliteResultCode(error);
  if (number !== undefined) return CODE_BY_RESULT_CODE.get(number) ?? 'STORE_FAILED';
  const errno = error instanceof Error && 'code' in error ? String(error.code) : '';
  return CODE_BY_ERRNO.get(errno) ?? 'STORE_FAILED';
}

/** The Fault for a failure while `doing` something to the file; a Fault stays itself. */
export function toFault(error: unknown, doing: string, path: string, code: ErrorCode = faultCodeOf(error)): Fault {
  if (error instanceof Fault) return error;
  const reason = error instanceof Error ? error.message : String(error);
  const message = `${doing} ${path} failed: ${reason}. ${ADVICE_BY_CODE[code] ?? ''}`.trimEnd();
  return new Fault(code, message, { path }, error);
}

/** The Fault for a failed reading: nothing was at stake on the disk, so an I/O error is not a failed sync. */
export function toReadFault(error: unknown, path: string): Fault {
  const code = faultCodeOf(error);
  // A number no table of ours can hold makes node:sqlite throw a RangeError: that is damage too.
  if (error instanceof RangeError) return toFault(error, 'Reading', path, 'STORE_DAMAGED');
  return toFault(error, 'Reading', path, code === 'SYNC_FAILED' ? 'STORE_FAILED' : code);
}
