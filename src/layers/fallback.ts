/** Asks other backends, in order, when one did not answer. What was asked instead, and why, is a fact of the journal. */

import { LoopError } from '../base/errors.js';
import { isObject, type JsonFields } from '../base/own-property.js';
import type { Effect } from '../protocol/body.js';
import type { BackendRef } from '../protocol/loop.js';
import type { Layer } from '../protocol/session.js';

/** What another backend may do better. A refusal, a cancel or a useless answer is no reason to ask somebody else. */
const FALLBACK_CODES: ReadonlySet<string> = new Set(['BACKEND_FAILED', 'TIMEOUT']);

/** Goes to the next backend when the current one failed or took too long; the last one's error tells of all. */
export function fallbackLayer(refs: readonly BackendRef[]): Layer {
  return async (effect, scope, next) => {
    const attempts: { readonly backend: string; readonly code: string }[] = [];
    let current = effect;
    for (let place = 0; ; place++) {
      try {
        return await next(current);
      } catch (thrown) {
        if (!(thrown instanceof LoopError && FALLBACK_CODES.has(thrown.code))) throw thrown;
        const { code, message, data } = thrown;
        attempts.push({ backend: current.name, code });
        const ref = refs[place];
        if (ref === undefined)
          throw new LoopError(code, message, { ...(isObject(data) ? data : {}), attempts }, thrown);
        const from = current.name;
        await scope.record('rondo.backend.fallback', () => ({ from, to: ref.id, code }));
        current = withBackend(effect, ref);
      }
    }
  };
}

/** The same request for another backend: the options were the first one's, and are not passed on. */
function withBackend(effect: Effect, { id, model, options }: BackendRef): Effect {
  if (model === undefined)
    throw new LoopError('DEFINITION_INVALID', `The fallback "${id}" names no model; name one in the definition.`, {
      id,
    });
  const { options: _, ...rest } = (isObject(effect.input) ? effect.input : {}) as JsonFields;
  const request = { ...rest, backendId: id, model };
  return { ...effect, name: id, input: options === undefined ? request : { ...request, options } };
}
