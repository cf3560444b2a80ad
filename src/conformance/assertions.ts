/** How a check says no, or that it cannot say; with the few comparisons that checks are written in. */

import { firstDifference, jsonTextOf } from './json.js';

/** How much of a value a message shows. */
const MAX_DESCRIBED_CHARS = 240;

/** The runtime does not do what the check asks; the message tells what was expected and what was seen. */
export class CheckFailure extends Error {
  override readonly name = 'CheckFailure';
}

/** The check cannot be made on this runtime; the message tells why. */
export class NotApplicableError extends Error {
  override readonly name = 'NotApplicable';
}

/** What is not so ends the check; a message that costs something is given as a function. */
export function assertThat(holds: boolean, message: string | (() => string)): asserts holds {
  if (!holds) throw new CheckFailure(typeof message === 'string' ? message : message());
}

/** What is not equal, as JSON, ends the check with both sides, or with where they differ if they are long. */
export function assertSameJson(seen: unknown, expected: unknown, what: string): void {
  const difference = firstDifference(seen, expected);
  if (difference === undefined) return;
  const whole = [expected, seen].every((value) => jsonTextOf(value, MAX_DESCRIBED_CHARS).length <= MAX_DESCRIBED_CHARS);
  const { pointer, ...parts } = whole ? { pointer: '', expected, actual: seen } : difference;
  const where = pointer === '' ? what : `${what}, at ${pointer}`;
  throw new CheckFailure(`${where}: expected ${describeValue(parts.expected)}, saw ${describeValue(parts.actual)}`);
}

/** Equal as JSON documents: the order of members does not count, and an undefined member is an absent one. */
export function isSameJson(a: unknown, b: unknown): boolean {
  return firstDifference(a, b) === undefined;
}

export function isNonEmptyString(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

/** What is not there: of a failure, many languages write an output of null. */
export function isNullish(value: unknown): boolean {
  return value === undefined || value === null;
}

/** A count or a duration. */
export function isNonNegativeNumber(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0;
}

/** A value in a message: as JSON, cut to a readable length. */
export function describeValue(value: unknown): string {
  const text = jsonTextOf(value, MAX_DESCRIBED_CHARS);
  return text.length > MAX_DESCRIBED_CHARS ? `${text.slice(0, MAX_DESCRIBED_CHARS)}…` : text;
}

/** What was thrown, as a message. */
export function messageOf(thrown: unknown): string {
  const message = thrown instanceof Error ? thrown.message : jsonTextOf(thrown, MAX_DESCRIBED_CHARS);
  return message === '' ? 'an error without a message' : message;
}
