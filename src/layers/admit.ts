/**
 * The admission layer, directly inside of the input filters: an effect that the grant of its turn does not permit is refused before anyone is
 * asked, and an answer from a cache is not given either. Each attempt is admitted again when it starts.
 */

import type { Effect } from '../protocol/body.js';
import type { Layer } from '../protocol/session.js';

/** Returns the layer of a check that throws if the effect is not permitted. */
export function admitLayer(assertAdmitted: (effect: Effect) => void): Layer {
  return async (effect, _scope, next) => {
    // guard: cached-answer-admitted
    assertAdmitted(effect);
    return next();
  };
}
