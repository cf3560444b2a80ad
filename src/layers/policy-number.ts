/** Validates the numbers of a policy where they are used, so that an invalid number never disables a limit. */

import { LoopError } from '../base/errors.js';
import { numbers } from '../base/number-range.js';

/** The values that a number of a policy may have. */
interface PolicyNumberRange {
  readonly min: number;
  readonly max?: number;
  /** Replaces an absent number. Without it, the number is required. */
  readonly defaultValue?: number;
}

/**
 * Returns the number, or its default if it is absent. Throws DEFINITION_INVALID if it is not a number, is out of range,
 * or is absent without a default.
 */
export function policyNumber(name: string, value: unknown, { min, max, defaultValue }: PolicyNumberRange): number {
  const number = value ?? defaultValue;
  const { description, includes } = numbers(min, max);
  if (includes(number)) return number;
  const message = `The policy's ${name} must be ${description}; change it in the definition.`;
  throw new LoopError('DEFINITION_INVALID', message, { setting: name });
}
