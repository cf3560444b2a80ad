/** How a check says no, or that it cannot say; with the few comparisons that checks are written in. */

import { differenceOf, textOf } from './json.js';

/** How much of a value a message shows. */
const SHOWN = 240;

/** The runtime does not do what the check asks; the message tells what was expected and what was seen. */
export class CheckFailure extends Error {
  override readonly name = 'CheckFailure';
}

/** The check cannot be made on this runtime; the message tells why. */
export class NotApplicable extends Error {
  override readonly name = 'NotApplicable';
}

/** What is not so ends the check; a message that costs something is given as a function. */
export function demand(holds: boolean, message: string | (() => string)): asserts holds {
  if (!holds) throw new CheckFailure(typeof message === 'string' ? message : message());
}

/** What is not equal, as JSON, ends the check with both sides, or with where they differ if they are long. */
export function demandSame(seen: unknown, expected: unknown, what: string): void {
  const difference = differenceOf(seen, expected);
  if (difference === undefined) return;
  const whole = [expected, seen].every((value) => textOf(value, SHOWN).length <= SHOWN);
  const { at, ...parts } = whole ? { at: '', expected, seen } : difference;
  const where = at === '' ? what : `${what}, at ${at}`;
  throw new CheckFailure(`${where}: expected ${show(parts.expected)}, saw ${show(parts.seen)}`);
}

/** Equal as JSON documents: the order of members does not count, and an undefined member is an absent one. */
export function sameJson(a: unknown, b: unknown): boolean {
  return differenceOf(a, b) === undefined;
}

export function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

/** What is not there: of a failure, many languages write an output of null. */
export function isNothing(value: unknown): boolean {
  return value === undefined || value === null;
}

/** A count or a duration. */
export function isAmount(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0;
}

/** A value in a message: as JSON, cut to a readable length. */
export function show(value: unknown): string {
  const text = textOf(value, SHOWN);
  return text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text;
}

/** What was thrown, as a message. */
export function messageOf(thrown: unknown): string {
  const message = thrown instanceof Error ? thrown.message : textOf(thrown, SHOWN);
  return message === '' ? 'an error without a message' : message;
}
