/**
 * Maps failures of SQLite and of the files next to the database to Faults, by result code or errno. A full disk is
 * recoverable. An I/O error is not, because after a failed sync the content of the disk is unknown.
 */
import { type ErrorCode, Fault } from '../../base/errors.js';

/**
 * Error codes by primary result code of SQLite: 3 PERM, 5 BUSY, 6 LOCKED, 8 READONLY, 10 IOERR, 11 CORRUPT, 13 FULL,
 * 14 CANTOPEN, 26 NOTADB.
 */
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
  STORE_FULL: 'Free some disk space; nothing of this commit was acknowledged.',
  STORE_READ_ONLY: 'Check the permissions of the file and of its directory.',
  STORE_DAMAGED: 'Restore it from a backup, or open it with check: "full" to see what can still be read.',
  SYNC_FAILED: 'The store accepts no more writes: check the disk, then open the store again.',
};

/**
 * Returns SQLite's primary result code (SQLITE_FULL is 13) from an error of either binding, or undefined for another
 * error.
 */
export function sqliteResultCode(error: unknown): number | undefined {
  if (!(error instanceof Error)) return undefined;
  const { errcode, rawCode } = error as { errcode?: unknown; rawCode?: unknown };
  if (typeof errcode === 'number') return errcode & 255;
  if (typeof rawCode === 'number') return rawCode & 255;
  // libsql reports a failed open only as text that ends with SQLite's result code.
  const codeInMessage = /Unable to open connection.*: (\d+)/.exec(error.message)?.[1];
  return codeInMessage === undefined ? undefined : Number(codeInMessage) & 255;
}

function faultCodeOf(error: unknown): ErrorCode {
  const resultCode = sqliteResultCode(error);
  if (resultCode !== undefined) return CODE_BY_RESULT_CODE.get(resultCode) ?? 'STORE_FAILED';
  const errno = error instanceof Error && 'code' in error ? String(error.code) : '';
  return CODE_BY_ERRNO.get(errno) ?? 'STORE_FAILED';
}

/**
 * Converts an error into a Fault with this code, by default the code that follows from the error. `doing` names the
 * failed operation at the start of the message. A Fault is returned unchanged, whatever the code.
 */
export function toFault(error: unknown, doing: string, path: string, code: ErrorCode = faultCodeOf(error)): Fault {
  if (error instanceof Fault) return error;
  const reason = error instanceof Error ? error.message : String(error);
  const message = `${doing} ${path} failed: ${reason}. ${ADVICE_BY_CODE[code] ?? ''}`.trimEnd();
  return new Fault(code, message, { path }, error);
}

/**
 * Converts an error of a read into a Fault. A read puts no write at risk, so an I/O error becomes STORE_FAILED instead
 * of SYNC_FAILED.
 */
export function toReadFault(error: unknown, path: string): Fault {
  const code = faultCodeOf(error);
  // node:sqlite throws a RangeError for an integer that the store never writes, so the file is damaged.
  if (error instanceof RangeError) return toFault(error, 'Reading', path, 'STORE_DAMAGED');
  return toFault(error, 'Reading', path, code === 'SYNC_FAILED' ? 'STORE_FAILED' : code);
}
