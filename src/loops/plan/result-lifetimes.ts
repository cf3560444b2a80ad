/**
 * Liveness analysis of step results: determines the last mapping that may read each result, and whether a mapping may
 * read its times or its trace. A composite of 10,000 steps that each read the previous result holds one result at a
 * time.
 */
import type { StepsSpec } from '../../protocol/loop.js';
import { type PathPrefix, pathPrefixesOf } from '../mapping.js';

interface ResultLifetimes {
  /** For each step, the indexes of the earlier steps whose results its input mapping is the last to read. */
  readonly releasedSteps: readonly (readonly number[])[];
  /** For each step, true if a mapping may read its result. */
  readonly isRead: readonly boolean[];
  /** For each step, true if a mapping may read its times or its trace. */
  readonly needsTimes: readonly boolean[];
}

/** Members of a result that must be folded from the journal. */
const JOURNAL_MEMBERS: ReadonlySet<unknown> = new Set(['startedAt', 'endedAt', 'durationMs', 'trace']);

/** Computes the lifetimes of the results of all steps. */
export function resultLifetimes(id: string, { steps, outputMapping }: StepsSpec): ResultLifetimes {
  const indexByBinding = new Map(
    steps.flatMap(({ outputBinding }, index) => (outputBinding ? [[outputBinding, index]] : [])),
  );
  /** The last step whose mapping reads each result; -1 for none, `steps.length` for the output mapping. */
  const lastReader = steps.map(() => -1);
  const needsTimes = steps.map(() => false);
  const markRead = (prefix: PathPrefix | undefined, reader: number): void => {
    const [first, second, third] = prefix ?? [];
    const isByIndex = first === 'steps';
    const index = isByIndex ? second : indexByBinding.get(String(first));
    // A path that ends at the result, or continues with a wildcard, reads all members.
    const member = isByIndex ? third : second;
    const readsJournal = prefix === undefined || member === undefined || JOURNAL_MEMBERS.has(member);
    if (typeof index === 'number' && index >= 0) {
      // The reader itself and the steps after it have no result yet.
      if (index < reader) lastReader[index] = reader;
      if (index < reader && readsJournal) needsTimes[index] = true;
    } else if (prefix === undefined || isByIndex) {
      lastReader.fill(reader, 0, reader);
      if (readsJournal) needsTimes.fill(true, 0, reader);
    }
  };
  for (const [reader, { inputMapping }] of steps.entries()) {
    for (const prefix of pathPrefixesOf(inputMapping, `${id}: step ${reader}: inputMapping`)) markRead(prefix, reader);
  }
  for (const prefix of outputMapping === undefined ? [] : pathPrefixesOf(outputMapping, `${id}: outputMapping`)) {
    markRead(prefix, steps.length);
  }
  const releasedSteps = steps.map((): number[] => []);
  for (const [index, reader] of lastReader.entries()) releasedSteps[reader]?.push(index);
  return { releasedSteps, isRead: lastReader.map((reader) => reader !== -1), needsTimes };
}
