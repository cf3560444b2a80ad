/** What a check is. */
import type { CheckContext } from './check-context.js';

/** How strongly LSEM asks: in a key word of RFC 2119, or through a table, a diagram or a definition. */
export type RequirementLevel = 'MUST' | 'SHOULD' | 'MAY' | 'IMPLIED';

/** One of the five points of LSEM's section on conformance. */
export type ConformancePoint = 1 | 2 | 3 | 4 | 5;

/** One thing that a runtime must do, as something that can fail. */
export interface ConformanceCheck {
  readonly id: string;
  readonly section: string;
  readonly level: RequirementLevel;
  /** What holds when it passes. */
  readonly title: string;
  /** The point it belongs to; none for what concerns the suite itself. */
  readonly point?: ConformancePoint;
  /** Judged after the others, over every run that was made. */
  readonly coversAllRuns?: true;
  run(stage: CheckContext): Promise<void>;
}

/** The checks of one point, in the order of the report. */
export function checksOf(
  point: ConformancePoint,
  checks: readonly Omit<ConformanceCheck, 'point'>[],
): readonly ConformanceCheck[] {
  return checks.map((check) => ({ ...check, point }));
}
