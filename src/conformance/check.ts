/** What a check is. */
import type { Stage } from './stage.js';

/** How strongly LSEM asks: in a key word of RFC 2119, or through a table, a diagram or a definition. */
export type Level = 'MUST' | 'SHOULD' | 'MAY' | 'IMPLIED';

/** One of the five points of LSEM's section on conformance. */
export type Point = 1 | 2 | 3 | 4 | 5;

/** One thing that a runtime must do, as something that can fail. */
export interface Check {
  readonly id: string;
  readonly section: string;
  readonly level: Level;
  /** What holds when it passes. */
  readonly title: string;
  /** The point it belongs to; none for what concerns the suite itself. */
  readonly point?: Point;
  /** Judged after the others, over every run that was made. */
  readonly census?: true;
  run(stage: Stage): Promise<void>;
}

/** The checks of one point, in the order of the report. */
export function checksOf(point: Point, checks: readonly Omit<Check, 'point'>[]): readonly Check[] {
  return checks.map((check) => ({ ...check, point }));
}
