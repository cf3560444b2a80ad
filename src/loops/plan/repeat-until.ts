/** Repetition as a program. */
import type { Instruction, Program } from './driver.js';

/** Returns a program that repeats instructions until a condition holds after them. The first one has the index 0. */
export function repeatUntil<S>(steps: readonly Instruction<S>[], isDone: (state: S) => boolean): Program<S> {
  return [...steps, { kind: 'step', run: (state) => (isDone(state) ? steps.length + 1 : 0) }];
}
