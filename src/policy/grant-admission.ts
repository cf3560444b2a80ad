/** Admission: whether a grant permits an effect. Every effect of a turn with a grant is checked, on each attempt. */

import { LoopError } from '../base/errors.js';
import type { Effect } from '../protocol/body.js';
import type { Json } from '../protocol/json.js';
import type { ApprovalPolicy } from '../protocol/loop.js';
import type { EnforcedGrant } from './grant.js';
import { isCovered, matchesPattern } from './grant-pattern.js';

/** The boundaries within which a grant can hold a tool to its roots and destinations. */
const CONFINED_BOUNDARIES: ReadonlySet<string> = new Set(['builtin', 'toolbox', 'http']);

/** Throws TOOL_NOT_ADMITTED if the grant does not permit the effect. Model calls are limited by their budget only. */
export function assertAdmitted(grant: EnforcedGrant, effect: Effect): void {
  if (effect.kind === 'model' || effect.kind === 'gate') return;
  const problem = admissionProblem(grant, effect);
  if (problem === undefined) return;
  const { name } = effect;
  throw new LoopError('TOOL_NOT_ADMITTED', `The grant does not permit "${name}": ${problem}.`, { name });
}

function admissionProblem(grant: EnforcedGrant, effect: Effect): string | undefined {
  const { name, input, scopes = [] } = effect;
  // guard: only-allowed-tools-admitted
  if (!isCovered(grant.allowedTools, name)) return 'it is not in allowedTools';
  // guard: blocked-review-refuses
  if (reviewOf(grant, name) === 'blocked') return 'its review is "blocked"';
  const scope = scopes.find((required) => grant.scopes !== undefined && !isCovered(grant.scopes, required));
  // guard: scopes-of-tool-granted
  if (scope !== undefined) return `it requires the scope "${scope}"`;
  // guard: arguments-satisfy-grant
  for (const { pattern, validator } of grant.argumentRules)
    if (matchesPattern(pattern, name) && !validator.isValid(input as Json))
      return `its arguments do not satisfy the schema for "${pattern}"`;
  return confinementProblem(grant, name, effect.boundary ?? 'code');
}

/** Returns why nothing would hold an effect to the roots or destinations of the grant; undefined if something does. */
function confinementProblem(
  { roots, destinations, unconfined }: EnforcedGrant,
  name: string,
  boundary: string,
): string | undefined {
  if (roots === undefined && destinations === undefined) return undefined;
  // guard: unconfined-effect-listed
  if (CONFINED_BOUNDARIES.has(boundary) || unconfined.includes(name)) return undefined;
  return `nothing confines it (${boundary}) to the roots and destinations of the grant, and it is not listed as unconfined`;
}

/**
 * Throws TOOL_NOT_ADMITTED if the body of a loop may not run: a model chose it as a tool that is not permitted, or it is
 * code that nothing confines.
 */
export function assertBodyAdmitted(
  grant: EnforcedGrant,
  name: string,
  { isChosen, isCode }: { readonly isChosen: boolean; readonly isCode: boolean },
): void {
  // guard: chosen-loop-admitted
  const isRefused = isChosen && !isCovered(grant.allowedTools, name);
  const problem = isRefused
    ? 'it is not in allowedTools'
    : isCode
      ? confinementProblem(grant, name, 'code')
      : undefined;
  if (problem !== undefined)
    throw new LoopError('TOOL_NOT_ADMITTED', `The grant does not permit "${name}": ${problem}.`, { name });
}

/** Returns the review that a grant demands of a tool; undefined if none. The strictest pattern counts. */
export function reviewOf({ review }: EnforcedGrant, name: string): Exclude<ApprovalPolicy, 'always_allow'> | undefined {
  let strictest: 'ask' | 'blocked' | undefined;
  for (const [pattern, demanded] of review)
    if (matchesPattern(pattern, name) && strictest !== 'blocked') strictest = demanded;
  return strictest;
}
