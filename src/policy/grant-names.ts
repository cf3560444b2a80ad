/**
 * The names of tools for which a grant has a rule. A rule for a misspelt name would guard nothing, so a name must be
 * permitted by `allowedTools`, and one that only a pattern permits must be that of a loop that is known.
 */

import { LoopError } from '../base/errors.js';
import type { CounterLimits } from './grant.js';
import { ANY_NAME, isCovered, matchesPattern } from './grant-pattern.js';

/** The part of a grant that names tools. */
export interface NamedTools {
  readonly allowedTools: readonly string[];
  readonly argumentRules: readonly { readonly pattern: string }[];
  readonly review: ReadonlyMap<string, unknown>;
  readonly limits: CounterLimits;
  readonly unconfined: readonly string[];
}

/** A name or pattern for which a grant has a rule, and where. */
interface RuleName {
  readonly path: string;
  readonly name: string;
}

const EFFECTS_OF = 'effects:';

/** Returns the counter of the effects of one tool. */
export function effectsOf(tool: string): string {
  return `${EFFECTS_OF}${tool}`;
}

/** Returns the tool whose effects a counter counts; undefined for any other counter. */
export function toolOfCounter(counter: string): string | undefined {
  return counter.startsWith(EFFECTS_OF) ? counter.slice(EFFECTS_OF.length) : undefined;
}

/** Returns the error of a grant document with a problem at `path`. */
export function invalidGrant(path: string, problem: string): LoopError {
  return new LoopError('GRANT_INVALID', `The grant is not valid: ${path || 'it'} ${problem}.`, {
    path,
    reason: problem,
  });
}

/**
 * Returns true if a rule for a name or pattern can apply to a permitted tool: one that an entry of `allowedTools` covers,
 * or a pattern that covers an entry.
 */
export function isNamePermitted(allowedTools: readonly string[], name: string): boolean {
  return name === ANY_NAME || isCovered(allowedTools, name) || allowedTools.some((tool) => matchesPattern(name, tool));
}

/** Throws GRANT_INVALID if a rule is for a name that `allowedTools` does not permit. */
export function assertNamesPermitted(grant: NamedTools): void {
  for (const { path, name } of ruleNames(grant)) {
    // guard: rule-for-permitted-name
    if (isNamePermitted(grant.allowedTools, name)) continue;
    throw invalidGrant(path, `is for "${name}", which allowedTools does not permit. Correct the name or add it there`);
  }
}

/**
 * Throws GRANT_INVALID if a rule is for a name that only a pattern of `allowedTools` permits, and that is the name of no
 * known loop. An exact entry of `allowedTools` can name a tool that is not known here.
 */
export function assertNamesKnown(grant: NamedTools, isAnyKnown: (matches: (id: string) => boolean) => boolean): void {
  for (const { path, name } of ruleNames(grant)) {
    if (name === ANY_NAME || grant.allowedTools.some((tool) => matchesPattern(name, tool))) continue;
    // guard: rule-for-known-loop
    if (isAnyKnown((id) => matchesPattern(name, id))) continue;
    const remedy = `Correct the name, or list "${name}" itself in allowedTools if its tool is not registered here`;
    throw invalidGrant(path, `is for "${name}", and no registered loop has such an id. ${remedy}`);
  }
}

function ruleNames({ argumentRules, review, limits, unconfined }: NamedTools): readonly RuleName[] {
  const at = (path: string) => (name: string) => ({ path: `${path}/${name}`, name });
  const counted = Object.keys(limits).flatMap((counter) => toolOfCounter(counter) ?? []);
  return [
    ...argumentRules.map(({ pattern }) => pattern).map(at('/arguments')),
    ...[...review.keys()].map(at('/review')),
    ...counted.map(at('/limits/effects')),
    ...unconfined.map((name, index) => ({ path: `/unconfined/${index}`, name })),
  ];
}
