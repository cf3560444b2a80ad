/** Creates the entries of what did not succeed: failed effects, refused steps, and resolutions of effects in doubt. */
import type { LoopError } from '../base/errors.js';
import type { Resolution } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import type { ResolutionDetails } from '../protocol/session.js';
import type { NewEntry } from './new-entry.js';

const RESOLUTIONS: ReadonlySet<string> = new Set(['retry', 'supply', 'fail']);

/** Creates `effect.failed` with the error of an effect. */
export function newFailedEntry(key: string, error: LoopError): NewEntry {
  return { seq: 0, at: 0, type: 'effect.failed', key, error: error.toErrorRecord() };
}

/** Creates `step.refused` for the first entry of a step. The name of the step becomes its kind. */
export function newRefusedEntry({ type, key, name, value }: NewEntry, refusal: LoopError): NewEntry {
  const refused = { seq: 0, at: 0, type: 'step.refused', key, name: type, value, error: refusal.toErrorRecord() };
  return name === undefined ? refused : { ...refused, kind: name };
}

/** Creates `effect.resolved`. Throws a TypeError if the resolution is unknown. `retryKey` is the key of the resolution. */
export function newResolvedEntry(
  retryKey: string,
  resolution: Resolution,
  by: string,
  { reason, value }: ResolutionDetails,
): NewEntry {
  if (!RESOLUTIONS.has(resolution))
    throw new TypeError(`A resolution is retry, supply or fail; not ${String(resolution)}.`);
  return { seq: 0, at: 0, type: 'effect.resolved', key: retryKey, resolution, by, reason, value: value as Json };
}
