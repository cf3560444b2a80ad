/**
 * How long a composite has to keep the results of its steps, until the last mapping that may read them, and how much of
 * each. A composite of ten thousand steps that each read the one before holds one result at a time, not ten thousand.
 */
import type { StepsSpec } from '../protocol/loop.js';
import { type PathPrefix, pathPrefixesOf } from './mapping.js';

interface ResultLifetimes {
  /** For each step, the steps whose results no mapping reads once it has ended. */
  readonly releasedSteps: readonly (readonly number[])[];
  /** Whether any mapping may read a result at all. */
  readonly isRead: readonly boolean[];
  /** Whether any mapping may read more of a result than the call itself returns. */
  readonly needsTimes: readonly boolean[];
}

/** The members of a result that are folded from the journal, at a cost. */
const JOURNAL_MEMBERS: ReadonlySet<unknown> = new Set(['startedAt', 'endedAt', 'durationMs', 'trace']);

export function resultLifetimes(id: string, { steps, outputMapping }: StepsSpec): ResultLifetimes {
  const bound = new Map(steps.flatMap(({ outputBinding }, index) => (outputBinding ? [[outputBinding, index]] : [])));
  const last = steps.map(() => -1);
  const timed = steps.map(() => false);
  const use = (read: PathPrefix | undefined, at: number): void => {
    const [first, second, third] = read ?? [];
    const byIndex = first === 'steps';
    const index = byIndex ? second : bound.get(String(first));
    // A path that ends at the result, or goes on with any of its members, reads all of it.
    const member = byIndex ? third : second;
    const folded = read === undefined || member === undefined || JOURNAL_MEMBERS.has(member);
    if (typeof index === 'number' && index >= 0) {
      // A step that has not run yet has nothing to keep, wherever its place is.
      if (index < at) last[index] = at;
      if (index < at && folded) timed[index] = true;
    } else if (read === undefined || byIndex) {
      last.fill(at, 0, at);
      if (folded) timed.fill(true, 0, at);
    }
  };
  for (const [at, { inputMapping }] of steps.entries()) {
    for (const read of pathPrefixesOf(inputMapping, `${id}: step ${at}: inputMapping`)) use(read, at);
  }
  for (const read of outputMapping === undefined ? [] : pathPrefixesOf(outputMapping, `${id}: outputMapping`)) {
    use(read, steps.length);
  }
  const ends = steps.map((): number[] => []);
  for (const [index, at] of last.entries()) ends[at]?.push(index);
  return { releasedSteps: ends, isRead: last.map((at) => at !== -1), needsTimes: timed };
}
