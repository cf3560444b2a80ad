/**
 * The check that no layer changes an effect after its admission: what was admitted, shown and approved is what runs. Only a
 * model may be replaced, by one of the fallbacks of the policy, which the approval names.
 */

import { cloneJson, jsonEquals } from '../json/value.js';
import { notAdmittedError } from '../policy/approval-request.js';
import type { Effect } from '../protocol/body.js';
import type { Json } from '../protocol/json.js';
import type { BackendRef } from '../protocol/loop.js';
import type { Layer } from '../protocol/session.js';
import { withBackend } from './fallback.js';

/**
 * Returns a layer that notes what an effect would do, and one that refuses an attempt at anything else. The layers between
 * the two can change only how the effect is performed.
 */
export function fixedInput(fallback: readonly BackendRef[]): readonly [note: Layer, check: Layer] {
  let admitted: Effect | undefined;
  const note: Layer = (effect, _scope, next) => {
    // A copy: a layer could change the members of the input.
    admitted = { ...effect, input: cloneJson(effect.input as Json) };
    return next();
  };
  const check: Layer = async (effect, _scope, next) => {
    // guard: admitted-input-performed
    if (admitted === undefined || !isAdmitted(effect, admitted, fallback))
      throw notAdmittedError(effect.name, 'it was changed after it was admitted');
    return next();
  };
  return [note, check];
}

function isAdmitted(effect: Effect, admitted: Effect, fallback: readonly BackendRef[]): boolean {
  if (isSameCall(effect, admitted)) return true;
  return admitted.kind === 'model' && fallback.some((ref) => isSameCall(effect, withBackend(admitted, ref)));
}

function isSameCall(a: Effect, b: Effect): boolean {
  return a.kind === b.kind && a.name === b.name && jsonEquals(a.input as Json, b.input as Json);
}
