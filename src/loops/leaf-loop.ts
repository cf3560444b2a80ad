/** Loops whose calls consist of one effect. */
import type { Effect, Leaf, Loop, Scope } from '../protocol/body.js';
import type { Json } from '../protocol/json.js';

/**
 * Returns the members of a loop whose calls consist of one effect: the leaf, and a body that performs the same effect as
 * its only step, for calls that cannot be recorded together with their effect.
 */
export function leafMembers(leaf: Leaf<Json>): Pick<Loop<Json, Json>, 'leaf' | 'body'> {
  const { outputMember } = leaf;
  const body = (input: Json, scope: Scope): Promise<Json> => {
    const result = scope.effect(leaf.effect(input, scope) as Effect<Json>);
    if (outputMember === undefined) return result;
    return result.then((recorded) => (recorded as { readonly [name: string]: Json })[outputMember] as Json);
  };
  return { leaf, body };
}
