/** The declaration of a check of conformance to LSEM, the Loop Stack Execution Model. */
import type { CheckContext } from './check-context.js';

/** The requirement level: a key word of RFC 2119, or IMPLIED by a table, a diagram or a definition of LSEM. */
export type RequirementLevel = 'MUST' | 'SHOULD' | 'MAY' | 'IMPLIED';

/** One of the five points of LSEM's section on conformance. */
export type ConformancePoint = 1 | 2 | 3 | 4 | 5;

/** A check of one requirement. */
export interface ConformanceCheck {
  /** The id in the report, such as `DEF-01`. */
  readonly id: string;
  /** The sections of LSEM that state the requirement, such as `4, 5`. */
  readonly section: string;
  readonly level: RequirementLevel;
  /** The requirement, as a statement that holds if the check passes. */
  readonly title: string;
  /** The point of LSEM's section on conformance; absent for checks of the suite itself. */
  readonly point?: ConformancePoint;
  /** True if the check runs after the others, over the events of all runs. */
  readonly coversAllRuns?: true;
  /** Rejects with CheckFailure if the requirement is violated, and with NotApplicableError if it cannot be checked. */
  run(context: CheckContext): Promise<void>;
}

/** Returns the checks with their point. */
export function checksOf(
  point: ConformancePoint,
  checks: readonly Omit<ConformanceCheck, 'point'>[],
): readonly ConformanceCheck[] {
  return checks.map((check) => ({ ...check, point }));
}
