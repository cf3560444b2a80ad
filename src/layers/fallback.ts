/**
 * The fallback layer: tries other backends (model providers), in order, when a backend fails. Each switch and its
 * reason are journaled.
 */

import { LoopError } from '../base/errors.js';
import { isObject } from '../base/own-property.js';
import type { Effect } from '../protocol/body.js';
import type { JsonObject } from '../protocol/json.js';
import type { BackendRef } from '../protocol/loop.js';
import type { Layer } from '../protocol/session.js';

/**
 * Errors that another backend may avoid. An empty or oversized reply is BACKEND_FAILED too. CONTENT_REFUSED, a
 * cancellation and a reply that does not fit the output schema cause no fallback.
 */
const FALLBACK_CODES: ReadonlySet<string> = new Set(['BACKEND_FAILED', 'TIMEOUT']);

/**
 * Returns a layer that switches to the next backend when the current one fails or times out. If the last one fails too,
 * its error is thrown with a list of all attempts in its data.
 */
export function fallbackLayer(refs: readonly BackendRef[]): Layer {
  return async (effect, scope, next) => {
    const attempts: { readonly backend: string; readonly code: string }[] = [];
    let current = effect;
    for (let index = 0; ; index++) {
      try {
        return await next(current);
      } catch (thrown) {
        if (!(thrown instanceof LoopError && FALLBACK_CODES.has(thrown.code))) throw thrown;
        const { code, message, data } = thrown;
        attempts.push({ backend: current.name, code });
        const ref = refs[index];
        if (ref === undefined)
          throw new LoopError(code, message, { ...(isObject(data) ? data : {}), attempts }, thrown);
        const from = current.name;
        await scope.record('rondo.backend.fallback', () => ({ from, to: ref.id, code }));
        current = withBackend(effect, ref);
      }
    }
  };
}

/**
 * Returns the effect for another backend. Options are specific to a backend, so those of the first are dropped. Throws
 * DEFINITION_INVALID if the reference names no model.
 */
export function withBackend(effect: Effect, { id, model, options }: BackendRef): Effect {
  if (model === undefined)
    throw new LoopError('DEFINITION_INVALID', `The fallback "${id}" names no model; name one in the definition.`, {
      id,
    });
  const { options: _, ...rest } = (isObject(effect.input) ? effect.input : {}) as JsonObject;
  const request = { ...rest, backendId: id, model };
  return { ...effect, name: id, input: options === undefined ? request : { ...request, options } };
}
