/**
 * Admission: whether a grant permits an effect or the body of a loop, and which review it demands of it. Every effect of a
 * turn with a grant is checked, on each attempt.
 */

import { LoopError } from '../base/errors.js';
import { copyAsJson } from '../json/value.js';
import type { Effect } from '../protocol/body.js';
import type { GrantReview } from '../protocol/grant.js';
import type { Json } from '../protocol/json.js';
import type { EnforcedGrant } from './grant.js';
import { effectsOf } from './grant-names.js';
import { ANY_NAME, isCovered, matchesPattern } from './grant-pattern.js';

/** The boundaries within which a grant can hold a tool to its roots and destinations. */
const CONFINED_BOUNDARIES: ReadonlySet<string> = new Set(['builtin', 'toolbox', 'http']);

/** Throws TOOL_NOT_ADMITTED if the grant does not permit the effect. Model calls are limited by their budget only. */
export function assertAdmitted(grant: EnforcedGrant, effect: Effect): void {
  if (effect.kind === 'model' || effect.kind === 'gate') return;
  const problem = admissionProblem(grant, effect);
  if (problem !== undefined) throw notPermitted(effect.name, problem);
}

function notPermitted(name: string, problem: string): LoopError {
  return new LoopError('TOOL_NOT_ADMITTED', `The grant does not permit "${name}": ${problem}.`, { name });
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
    if (matchesPattern(pattern, name) && !validator.isValid(input as Json)) return argumentsProblem(pattern);
  return confinementProblem(grant, name, effect.boundary ?? 'code');
}

function argumentsProblem(pattern: string): string {
  return `its arguments do not satisfy the schema for "${pattern}"`;
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

/** A call of a loop whose body is not one effect: a composite, a plan, a prompt, an agent or code. */
export interface BodyCall {
  readonly name: string;
  /** The input as the body gets it. */
  readonly input: unknown;
  /** True if a model chose the loop as a tool. */
  readonly isChosen: boolean;
  /** True if the body is code, whose actions nothing can inspect. */
  readonly isCode: boolean;
  /** True for the loop that the turn was opened with. */
  readonly isRoot: boolean;
}

/**
 * Throws TOOL_NOT_ADMITTED if the body of a loop may not run: a model chose it as a tool that is not permitted, its review
 * or its arguments exclude it, or it is code that nothing confines.
 */
export function assertBodyAdmitted(grant: EnforcedGrant, call: BodyCall): void {
  const problem = bodyProblem(grant, call);
  if (problem !== undefined) throw notPermitted(call.name, problem);
}

function bodyProblem(grant: EnforcedGrant, call: BodyCall): string | undefined {
  const { name, isChosen, isCode } = call;
  // guard: chosen-loop-admitted
  if (isChosen && !isCovered(grant.allowedTools, name)) return 'it is not in allowedTools';
  // guard: blocked-body-refused
  if (reviewOfBody(grant, call) === 'blocked') return 'its review is "blocked"';
  // The pattern for all names stands for tools: the steps of a loop that no model chose are checked themselves.
  const rules = grant.argumentRules.filter(
    ({ pattern }) => matchesPattern(pattern, name) && (isChosen || pattern !== ANY_NAME),
  );
  if (rules.length > 0) {
    const input = copyAsJson(call.input, name) as Json;
    // guard: arguments-of-body-satisfy-grant
    for (const { pattern, validator } of rules) if (!validator.isValid(input)) return argumentsProblem(pattern);
  }
  return isCode ? confinementProblem(grant, name, 'code') : undefined;
}

/** Returns true if the call of a body passes a gate: because a person approves it, or because such calls are counted. */
export function needsGate(grant: EnforcedGrant, call: BodyCall): boolean {
  // guard: body-asked-and-counted
  return reviewOfBody(grant, call) !== undefined || grant.limits[effectsOf(call.name)] !== undefined;
}

/**
 * Returns the review of a body. The pattern for all names covers code, because nothing else is asked for what it does, but
 * no other body and not the loop of the turn itself.
 */
function reviewOfBody(grant: EnforcedGrant, { name, isCode, isRoot }: BodyCall): GrantReview | undefined {
  return reviewOf(grant, name, isCode && !isRoot);
}

/** Returns the review that a grant demands of an effect; undefined if none. Models and the runtime itself are no tools. */
export function reviewOfEffect(grant: EnforcedGrant, { kind, name, boundary }: Effect): GrantReview | undefined {
  if (kind === 'model' || kind === 'gate' || kind === 'context') return undefined;
  if (boundary !== 'gate') return reviewOf(grant, name);
  // The gate of a body, which asks if it is reached: `*` does not block composites and agents.
  return reviewOf(grant, name, false) ?? (grant.review.get(ANY_NAME) === 'ask' ? 'ask' : undefined);
}

/**
 * Returns the review that a grant demands of a name; undefined if none. The strictest pattern counts. `coversAny` says
 * whether the pattern for all names does.
 */
export function reviewOf({ review }: EnforcedGrant, name: string, coversAny = true): GrantReview | undefined {
  let strictest: GrantReview | undefined;
  for (const [pattern, demanded] of review) {
    if (pattern === ANY_NAME && !coversAny) continue;
    if (matchesPattern(pattern, name) && strictest !== 'blocked') strictest = demanded;
  }
  return strictest;
}
