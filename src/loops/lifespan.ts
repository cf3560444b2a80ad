/**
 * How long a composite has to keep the results of its steps: until the last mapping that may read them. A composite of
 * ten thousand steps that each read the one before holds one result at a time, not ten thousand.
 */
import type { StepsSpec } from '../protocol/loop.js';
import { type Read, readsOf } from './mapping.js';

/** For each step, the steps whose results nobody reads once it has ended; a result that nobody reads is never kept. */
export function lifespans(
  id: string,
  { steps, outputMapping }: StepsSpec,
): {
  readonly ends: readonly (readonly number[])[];
  readonly kept: readonly boolean[];
} {
  const bound = new Map(steps.flatMap(({ outputBinding }, index) => (outputBinding ? [[outputBinding, index]] : [])));
  const last = steps.map(() => -1);
  const use = (read: Read | undefined, at: number): void => {
    const index = read === undefined ? undefined : read[0] === 'steps' ? read[1] : bound.get(String(read[0]));
    if (typeof index === 'number' && index >= 0) {
      // A step that has not run yet has nothing to keep, wherever its place is.
      if (index < at) last[index] = at;
    } else if (read === undefined || read[0] === 'steps') last.fill(at, 0, at);
  };
  for (const [at, { inputMapping }] of steps.entries()) {
    for (const read of readsOf(inputMapping, `${id}: step ${at}: inputMapping`)) use(read, at);
  }
  for (const read of outputMapping === undefined ? [] : readsOf(outputMapping, `${id}: outputMapping`)) {
    use(read, steps.length);
  }
  const ends = steps.map((): number[] => []);
  for (const [index, at] of last.entries()) ends[at]?.push(index);
  return { ends, kept: last.map((at) => at !== -1) };
}
