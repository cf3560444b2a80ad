/**
 * Derives a grant from another: the only comparison of grants. Every member has one rule; what a derived grant omits, it
 * inherits. A member that would permit more is refused and named, and schemas and reviews of both grants apply. Rules for
 * tools that the derived grant does not permit stay: a composite that no model chose runs without being permitted.
 */

import { LoopError } from '../base/errors.js';
import { matchesDestination } from '../base/permits.js';
import type { Json } from '../protocol/json.js';
import type { CounterLimits, EnforcedGrant } from './grant.js';
import { coversPattern } from './grant-pattern.js';

/** Records that a member of the derived grant permits more. */
type Report = (problem: string) => void;

/** The rule of each member: returns its effective value. */
type Rules = {
  readonly [M in keyof EnforcedGrant]: (
    outer: EnforcedGrant[M],
    inner: EnforcedGrant[M],
    report: Report,
  ) => EnforcedGrant[M];
};

/** Returns the list, or the inherited one if it is absent. Reports the items that the outer list does not cover. */
function narrowList(covers: (outer: string, inner: string) => boolean) {
  return (
    outer: readonly string[] | undefined,
    inner: readonly string[] | undefined,
    report: Report,
  ): readonly string[] | undefined => {
    if (outer === undefined || inner === undefined) return inner ?? outer;
    // guard: derived-list-covered
    for (const item of inner)
      if (!outer.some((other) => covers(other, item))) report(`${JSON.stringify(item)} is not permitted above`);
    return inner;
  };
}

const isSame = (outer: string, inner: string): boolean => outer === inner;
const narrowPatterns = narrowList(coversPattern);
const narrowNames = narrowList(isSame);

const RULES: Rules = {
  id: (outer, inner, report) => {
    if (inner !== undefined && inner !== outer) report('a derived grant shares the budget of the other, and its id');
    return outer;
  },
  allowedTools: (outer, inner, report) => narrowPatterns(outer, inner, report) ?? [],
  scopes: narrowPatterns,
  argumentRules: (outer, inner) => [...outer, ...inner],
  review: (outer, inner) => {
    const both = new Map(inner);
    for (const [pattern, review] of outer) if (both.get(pattern) !== 'blocked') both.set(pattern, review);
    return both;
  },
  limits: narrowLimits,
  roots: narrowList(containsPath),
  destinations: narrowList(coversDestination),
  unconfined: (outer, inner, report) => narrowNames(outer, inner, report) ?? [],
  approvers: narrowNames,
  expiresAt: (outer, inner, report) => {
    if (outer === undefined || inner === undefined) return inner ?? outer;
    // guard: derived-grant-expires-no-later
    if (inner > outer) report(`it would end after ${new Date(outer).toISOString()}`);
    return Math.min(outer, inner);
  },
};

/**
 * Returns the grant that `inner`, which is part of the authority of `outer`, has in effect. Throws GRANT_WIDENED, with
 * every member that would permit more.
 */
export function deriveGrant(outer: EnforcedGrant, inner: EnforcedGrant): EnforcedGrant {
  const problems: { readonly member: string; readonly problem: string }[] = [];
  const derived: { [member: string]: unknown } = {};
  for (const member of Object.keys(RULES) as (keyof EnforcedGrant)[]) {
    const rule = RULES[member] as (outer: unknown, inner: unknown, report: Report) => unknown;
    derived[member] = rule(outer[member], inner[member], (problem) => problems.push({ member, problem }));
  }
  // guard: wider-grant-refused
  if (problems.length === 0) return derived as unknown as EnforcedGrant;
  const text = problems.map(({ member, problem }) => `${member}: ${problem}`).join('; ');
  const message = `A derived grant may only permit less: ${text}.`;
  throw new LoopError('GRANT_WIDENED', message, { problems: problems as unknown as Json });
}

function narrowLimits(outer: CounterLimits, inner: CounterLimits, report: Report): CounterLimits {
  const limits: { [counter: string]: number } = Object.assign(Object.create(null), outer);
  for (const [counter, limit] of Object.entries(inner)) {
    const above = outer[counter];
    // guard: derived-limit-not-above
    if (above !== undefined && limit > above) report(`${counter} is ${limit}, above ${above}`);
    else limits[counter] = limit;
  }
  return limits;
}

/** Returns true if a path is a directory or inside it. Both are absolute and without `.` and `..`. */
export function containsPath(directory: string, path: string): boolean {
  return path === directory || path.startsWith(directory === '/' ? '/' : `${directory}/`);
}

function coversDestination(outer: string, inner: string): boolean {
  if (outer === inner) return true;
  if (inner.startsWith('*.')) return outer.startsWith('*.') && inner.slice(1).endsWith(outer.slice(1));
  // An entry without a scheme stands for both.
  const texts = inner.includes('://') ? [inner] : [`https://${inner}`, `http://${inner}`];
  return (
    outer.startsWith('*.') && texts.every((text) => URL.canParse(text) && matchesDestination(outer, new URL(text)))
  );
}
