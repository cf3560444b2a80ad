/**
 * How long one check may take. Schemas that refer to each other can ask the same question again and again, doubling with
 * every level; the number of references that are followed for one value is therefore bounded.
 */

const MAX_STEPS = 5_000_000;

let remainingSteps = MAX_STEPS;

/** The check of a value took more steps than any reasonable schema needs. */
export class StepLimitError extends Error {}

/** Takes one step of the current check. */
export function spendStep(): void {
  if (--remainingSteps < 0) throw new StepLimitError('The check takes too many steps.');
}

/** Begins a new check. */
export function resetSteps(): void {
  remainingSteps = MAX_STEPS;
}
