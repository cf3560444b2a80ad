/** Numbers of a policy, checked where they are used: a definition comes from a file, and a slip must not undo a guard. */

import { LoopError } from '../base/errors.js';
import { numbers } from '../base/number-range.js';

export interface Range {
  readonly least: number;
  readonly most?: number;
  /** What an absent number means; without it, the number must be there. */
  readonly otherwise?: number;
}

/** The number, or what its absence means; DEFINITION_INVALID if it is none that can be used. */
export function setting(name: string, value: unknown, { least, most, otherwise }: Range): number {
  const number = value ?? otherwise;
  const { description, includes } = numbers(least, most);
  if (includes(number)) return number;
  const message = `The policy's ${name} must be ${description}; change it in the definition.`;
  throw new LoopError('DEFINITION_INVALID', message, { setting: name });
}
