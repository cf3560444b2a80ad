/** Numeric ranges of settings: one check and one wording for definitions, tool configs, options and policies. */

interface NumberRange {
  /** How a message names the range: `a whole number from 1 to 20`. */
  readonly description: string;
  includes(value: unknown): value is number;
}

/** Returns the range of whole numbers from `min` to `max`, both inclusive. */
export function wholeNumbers(min: number, max: number = Number.MAX_SAFE_INTEGER): NumberRange {
  const { description, includes } = numbers(min, max);
  return {
    description: description.replace('a number', 'a whole number'),
    includes: (value): value is number => Number.isSafeInteger(value) && includes(value),
  };
}

/** Returns the range of numbers from `min` to `max`, both inclusive. */
export function numbers(min: number, max: number = Number.MAX_SAFE_INTEGER): NumberRange {
  return {
    description: max === Number.MAX_SAFE_INTEGER ? `a number from ${min} up` : `a number from ${min} to ${max}`,
    includes: (value): value is number => typeof value === 'number' && value >= min && value <= max,
  };
}
