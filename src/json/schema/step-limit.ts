/**
 * The step limit of one validation. Schemas that refer to each other can make validation exponential in their depth, so
 * the number of references that are followed for one value is bounded. Validation is synchronous, so one counter
 * suffices.
 */

const MAX_STEPS = 5_000_000;

let remainingSteps = MAX_STEPS;

/** Thrown if a validation exceeds the step limit. */
export class StepLimitError extends Error {}

/** Counts one step of the current validation. Throws StepLimitError over the limit. */
export function spendStep(): void {
  if (--remainingSteps < 0) throw new StepLimitError('The validation takes too many steps.');
}

/** Starts a new validation. */
export function resetSteps(): void {
  remainingSteps = MAX_STEPS;
}
