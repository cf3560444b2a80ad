/** The Fault of a file beside the keys that cannot be written. A full disk passes, and is said so, as for the store. */
import { Fault } from '../../base/errors.js';

const FULL: ReadonlySet<string | undefined> = new Set(['ENOSPC', 'EDQUOT']);

/** Returns STORE_FULL for a full disk or an exhausted quota; otherwise KEYS_UNUSABLE with this message. */
export function writeFault(path: string, message: string, cause: unknown): Fault {
  // guard: full-disk-is-no-key-problem
  if (!FULL.has((cause as NodeJS.ErrnoException).code)) return new Fault('KEYS_UNUSABLE', message, { path }, cause);
  const full = `${path} cannot be written: ${(cause as Error).message}. Free some disk space, and try again.`;
  return new Fault('STORE_FULL', full, { path }, cause);
}
