/**
 * The effects that the runtime makes itself: model calls, tools, approvals and context. Their kind and their boundary
 * decide what a grant and a policy demand of them, and receipts state both, so code cannot claim them for an effect of
 * its own.
 */
import { LoopError } from '../base/errors.js';
import type { Effect } from '../protocol/body.js';

/** Marks an effect of the runtime. Copies of the effect keep the mark. */
const MADE_BY_RUNTIME = Symbol('made by the runtime');

/** The kinds that only the runtime uses. */
const RESERVED_KINDS: ReadonlySet<string> = new Set(['gate', 'context']);

/** The boundary of the gate of a body: an effect that does nothing, before which a person is asked. */
export const GATE_BOUNDARY = 'gate';

/** The kind of model calls. Code may use it for its own, unless a grant limits them in another way than other effects. */
const MODEL_KIND = 'model';

/** The boundary of an effect in code: nothing confines it. */
const CODE_BOUNDARY = 'code';

/** Marks a new effect as one that the runtime made, and returns it. */
export function runtimeEffect<E extends Effect>(effect: E): E {
  (effect as { [MADE_BY_RUNTIME]?: true })[MADE_BY_RUNTIME] = true;
  return effect;
}

/**
 * Throws VALUE_INVALID if an effect that the runtime did not make has a kind or a boundary that only the runtime uses.
 *
 * @param hasGrant True if the turn has a grant.
 */
export function assertNothingClaimed(effect: Effect, hasGrant: boolean): void {
  if ((effect as { readonly [MADE_BY_RUNTIME]?: true })[MADE_BY_RUNTIME] === true) return;
  const { kind, name, boundary } = effect;
  // guard: effect-of-code-has-own-kind
  if (RESERVED_KINDS.has(kind) || (hasGrant && kind === MODEL_KIND))
    throw claimError(name, `the kind "${kind}" is reserved for the runtime; use another, such as "code"`);
  // guard: effect-of-code-has-no-boundary
  if (boundary !== undefined && boundary !== CODE_BOUNDARY)
    throw claimError(name, `its boundary is "${boundary}", and nothing confines an effect in code; omit the boundary`);
}

function claimError(name: string, problem: string): LoopError {
  return new LoopError('VALUE_INVALID', `The effect "${name}" is refused: ${problem}.`, { name });
}
