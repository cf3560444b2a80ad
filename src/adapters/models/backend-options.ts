/** What a definition may tell a backend: only options that the backend knows, and never a secret. */
import { LoopError } from '../../base/errors.js';
import type { Json } from '../../protocol/json.js';
import type { BackendRef } from '../../protocol/loop.js';

/** A failure that trying again does not mend. */
export function permanentBackendError(message: string): LoopError {
  return new LoopError('BACKEND_FAILED', message.slice(0, 500), { retryable: false });
}

/** The options of a reference, all of them known; an unknown one is refused with the list of the known ones. */
export function knownOptionsOf(ref: BackendRef, known: readonly string[]): { readonly [name: string]: Json } {
  const options = ref.options ?? {};
  for (const name of Object.keys(options)) {
    if (known.includes(name)) continue;
    const allowed = known.length === 0 ? 'it has none' : `it has ${known.join(', ')}`;
    const key = /^api_?key$/i.test(name);
    const advice = key ? ' A definition is no place for a key: put it into an environment variable.' : '';
    throw permanentBackendError(`The backend '${ref.id}' has no option '${name.slice(0, 60)}' (${allowed}).${advice}`);
  }
  return options;
}

/** A number of milliseconds among the options, 0 unless told. */
export function parseDelayMs(value: unknown, where: string): number {
  if (value === undefined) return 0;
  if (Number.isSafeInteger(value) && Number(value) >= 0 && Number(value) <= 86_400_000) return Number(value);
  throw permanentBackendError(`${where} must be a whole number of milliseconds from 0 to 86400000.`);
}
