/** Grants that are narrowed for one turn: what a turn grant omits, it inherits; what it has may only permit less. */
import type { Grant } from '../protocol/grant.js';
import type { TurnGrant } from '../protocol/hosted-loop.js';
import { deriveGrant } from './derive-grant.js';
import { type EnforcedGrant, parseGrant } from './grant.js';
import { isCovered } from './grant-pattern.js';

/**
 * Returns a grant after each of these has narrowed it, one after another. Throws GRANT_WIDENED if one permits more than
 * what is left of the grant, and GRANT_INVALID if one is not valid.
 */
export function narrowGrant(grant: Grant, turnGrants: readonly TurnGrant[]): EnforcedGrant {
  let narrowed = parseGrant(grant, { isOperators: true });
  let outer: Inherited = grant;
  for (const turnGrant of turnGrants) {
    const complete = completeTurnGrant(turnGrant, outer);
    // guard: turn-grant-narrows
    narrowed = deriveGrant(narrowed, parseGrant(complete, { isOperators: true }));
    outer = complete;
  }
  return narrowed;
}

/** The members of a grant that a turn grant without them inherits when it is completed. */
type Inherited = Pick<Grant, 'allowedTools' | 'unconfined'>;

/**
 * Returns a turn grant as a complete grant: with the tools that it inherits, and without limits of its own. Of the tools
 * that nothing confines, it inherits those that it still allows.
 */
export function completeTurnGrant(turnGrant: TurnGrant, outer: Inherited): Grant {
  const { allowedTools = outer.allowedTools } = turnGrant;
  // What is no list is refused when the complete grant is parsed.
  const isAllowed = (name: string): boolean => Array.isArray(allowedTools) && isCovered(allowedTools, name);
  const unconfined = outer.unconfined?.filter(isAllowed);
  return { allowedTools, limits: {}, ...(unconfined !== undefined && { unconfined }), ...turnGrant };
}
