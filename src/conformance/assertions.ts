/** The errors and assertions of conformance checks. */
import { firstDifference, jsonTextOf } from './json.js';

/** The maximum length of a value in a message. */
const MAX_DESCRIBED_CHARS = 240;

/** Thrown if the runtime violates a requirement. The message contains the expected and the actual behaviour. */
export class CheckFailure extends Error {
  override readonly name = 'CheckFailure';
}

/** Thrown if a check cannot be applied to this runtime. The message contains the reason. */
export class NotApplicableError extends Error {
  override readonly name = 'NotApplicable';
}

/** Fails the check if the condition is false. Pass an expensive message as a function. */
export function assertThat(condition: boolean, message: string | (() => string)): asserts condition {
  if (!condition) throw new CheckFailure(typeof message === 'string' ? message : message());
}

/**
 * Fails the check if two values differ; see `firstDifference`. The message contains both values, or the first differing
 * parts if one of them is long.
 */
export function assertSameJson(actual: unknown, expected: unknown, what: string): void {
  const difference = firstDifference(actual, expected);
  if (difference === undefined) return;
  const isShort = [expected, actual].every(
    (value) => jsonTextOf(value, MAX_DESCRIBED_CHARS).length <= MAX_DESCRIBED_CHARS,
  );
  const { pointer, ...sides } = isShort ? { pointer: '', expected, actual } : difference;
  const where = pointer === '' ? what : `${what}, at ${pointer}`;
  throw new CheckFailure(`${where}: expected ${describeValue(sides.expected)}, saw ${describeValue(sides.actual)}`);
}

/** Returns true if two values are equal; see `firstDifference`. */
export function isSameJson(a: unknown, b: unknown): boolean {
  return firstDifference(a, b) === undefined;
}

/** Returns true for a non-empty string. */
export function isNonEmptyString(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

/** Returns true for undefined and null. Runtimes in many languages write absent members as null. */
export function isNullish(value: unknown): boolean {
  return value === undefined || value === null;
}

/** Returns true for a finite number that is not negative, such as a count or a duration. */
export function isNonNegativeNumber(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0;
}

/** Returns a value as JSON of limited length, for messages. */
export function describeValue(value: unknown): string {
  const text = jsonTextOf(value, MAX_DESCRIBED_CHARS);
  return text.length > MAX_DESCRIBED_CHARS ? `${text.slice(0, MAX_DESCRIBED_CHARS)}…` : text;
}

/** Returns the message of a thrown value; the value as JSON if it is not an Error. */
export function messageOf(thrown: unknown): string {
  const message = thrown instanceof Error ? thrown.message : jsonTextOf(thrown, MAX_DESCRIBED_CHARS);
  return message === '' ? 'an error without a message' : message;
}
