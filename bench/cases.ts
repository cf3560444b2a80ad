/** The cases that are measured in memory, by name. */
import { memoryStore } from '../src/index.js';
import type { Case } from './measure.js';
import * as work from './work.js';

const start = { n: 0 };
const kept = memoryStore();

export const cases = {
  'bare sequence': { steps: 10, run: () => work.bareInSequence(10) },
  'sequence of 10': { steps: 10, run: () => work.runOnce(work.inSequence(10), start) },
  'sequence of 10,000': { steps: 10_000, run: () => work.runOnce(work.inSequence(10_000), start) },
  'bare depth': { steps: 10, run: () => work.bareNested({ n: 9 }) },
  'depth 10': { steps: 10, run: () => work.runOnce(work.nested, { n: 9 }) },
  'depth 1,000': { steps: 1_000, run: () => work.runOnce(work.nested, { n: 999 }) },
  'bare width': { steps: 100, run: () => work.bareSideBySide(100) },
  'width 100': { steps: 100, run: () => work.runOnce(work.sideBySide(100), start) },
  'width 10,000': { steps: 10_000, run: () => work.runOnce(work.sideBySide(10_000), start) },
  'sequence of 10, kept': { steps: 10, run: () => work.runOnce(work.inSequence(10), start, kept) },
  'once effects': { steps: 10, run: () => work.runOnce(work.effectsInSequence(10, 'once'), start) },
} as const satisfies Record<string, Case>;
