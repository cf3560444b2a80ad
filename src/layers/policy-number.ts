/** Numbers of a policy, checked where they are used: a definition comes from a file, and a slip must not undo a guard. */

import { LoopError } from '../base/errors.js';
import { numbers } from '../base/number-range.js';

export interface PolicyNumberRange {
  readonly min: number;
  readonly max?: number;
  /** What an absent number means; without it, the number must be there. */
  readonly defaultValue?: number;
}

/** The number, or what its absence means; DEFINITION_INVALID if it is none that can be used. */
export function policyNumber(name: string, value: unknown, { min, max, defaultValue }: PolicyNumberRange): number {
  const number = value ?? defaultValue;
  const { description, includes } = numbers(min, max);
  if (includes(number)) return number;
  const message = `The policy's ${name} must be ${description}; change it in the definition.`;
  throw new LoopError('DEFINITION_INVALID', message, { setting: name });
}
