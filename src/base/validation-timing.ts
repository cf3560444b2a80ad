/**
 * Decides which validations are timed. Reading the clock takes longer than a fast validation of a small value, so such
 * validations are not timed: those of validators that are known to be fast, and of validators that have proved it.
 */

/** Validations of larger values are always timed. */
const MAX_UNTIMED_BYTES = 4096;
/** A validator that took no measurable time for this many small values in a row has proved to be fast. */
const QUICK_RUNS_OF_FAST_VALIDATOR = 100;

/** The number of quick validations in a row, by the function that validates. */
const quickRuns = new WeakMap<object, number>();

/** True if a validation is timed. `bytes` is the size of the value; infinity if it is not known yet. */
export function isValidationTimed(validator: object | undefined, isFast: boolean, bytes: number): boolean {
  if (validator === undefined) return false;
  if (bytes > MAX_UNTIMED_BYTES) return true;
  return !isFast && (quickRuns.get(validator) ?? 0) < QUICK_RUNS_OF_FAST_VALIDATOR;
}

/** The validators that were timed last. One that is created for each call is never found here, and costs nothing more. */
const recentValidators: object[] = [];
const MAX_RECENT = 8;
let nextRecent = 0;

function wasTimedRecently(validator: object): boolean {
  if (recentValidators.includes(validator)) return true;
  recentValidators[nextRecent] = validator;
  nextRecent = (nextRecent + 1) % MAX_RECENT;
  return false;
}

/** Records whether a validation took no measurable time. Large values prove nothing, because they are always timed. */
export function recordValidation(validator: object | undefined, bytes: number, wasQuick: boolean): void {
  if (validator === undefined || bytes > MAX_UNTIMED_BYTES || !wasTimedRecently(validator)) return;
  quickRuns.set(validator, wasQuick ? (quickRuns.get(validator) ?? 0) + 1 : 0);
}
