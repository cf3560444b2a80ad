/**
 * Checks the options that a definition gives to its model provider (its `backend`), and creates the errors of
 * providers. Unknown options, such as `apiKey`, are errors.
 */
import { LoopError } from '../../base/errors.js';
import type { Json } from '../../protocol/json.js';
import type { BackendRef } from '../../protocol/loop.js';

/** Creates a BACKEND_FAILED error that is not retryable. Its message is truncated to 500 characters. */
export function permanentBackendError(message: string): LoopError {
  return new LoopError('BACKEND_FAILED', message.slice(0, 500), { retryable: false });
}

/** Returns the options of a backend reference. Throws BACKEND_FAILED if one of them is not in `knownNames`. */
export function knownOptionsOf(ref: BackendRef, knownNames: readonly string[]): { readonly [name: string]: Json } {
  const options = ref.options ?? {};
  for (const name of Object.keys(options)) {
    if (knownNames.includes(name)) continue;
    const allowed = knownNames.length === 0 ? 'it has none' : `it has ${knownNames.join(', ')}`;
    const isKey = /^api_?key$/i.test(name);
    const advice = isKey ? ' Do not put a key into a definition: put it into an environment variable.' : '';
    throw permanentBackendError(`The backend '${ref.id}' has no option '${name.slice(0, 60)}' (${allowed}).${advice}`);
  }
  return options;
}

/**
 * Parses a delay in milliseconds; undefined means 0. Throws BACKEND_FAILED if it is not an integer from 0 to one day.
 * `where` names the value in the error message.
 */
export function parseDelayMs(value: unknown, where: string): number {
  if (value === undefined) return 0;
  if (Number.isSafeInteger(value) && Number(value) >= 0 && Number(value) <= 86_400_000) return Number(value);
  throw permanentBackendError(`${where} must be an integer number of milliseconds from 0 to 86400000.`);
}
