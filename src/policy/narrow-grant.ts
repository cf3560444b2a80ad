/** Grants that are narrowed for one turn: what a turn grant omits, it inherits; what it has may only permit less. */
import type { Grant } from '../protocol/grant.js';
import type { TurnGrant } from '../protocol/hosted-loop.js';
import { deriveGrant } from './derive-grant.js';
import { type EnforcedGrant, parseGrant } from './grant.js';

/**
 * Returns a grant after each of these has narrowed it, one after another. Throws GRANT_WIDENED if one permits more than
 * what is left of the grant, and GRANT_INVALID if one is not valid.
 */
export function narrowGrant(grant: Grant, turnGrants: readonly TurnGrant[]): EnforcedGrant {
  let narrowed = parseGrant(grant, { isOperators: true });
  let { allowedTools } = grant;
  for (const turnGrant of turnGrants) {
    const complete = completeTurnGrant(turnGrant, allowedTools);
    // guard: turn-grant-narrows
    narrowed = deriveGrant(narrowed, parseGrant(complete, { isOperators: true }));
    ({ allowedTools } = complete);
  }
  return narrowed;
}

/** Returns a turn grant as a complete grant: with the tools that it inherits, and without limits of its own. */
export function completeTurnGrant(turnGrant: TurnGrant, allowedTools: Grant['allowedTools']): Grant {
  return { allowedTools, limits: {}, ...turnGrant };
}
