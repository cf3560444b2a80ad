/** How a check says no, or that it cannot say; with the few comparisons that checks are written in. */

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
  const whole = [expected, seen].every((value) => textOf(value).length <= SHOWN);
  const { at, ...parts } = whole ? { at: '', expected, seen } : difference;
  const where = at === '' ? what : `${what}, at ${at}`;
  throw new CheckFailure(`${where}: expected ${show(parts.expected)}, saw ${show(parts.seen)}`);
}

/** Equal as JSON documents: the order of members does not count, and an undefined member is an absent one. */
export function sameJson(a: unknown, b: unknown): boolean {
  return differenceOf(a, b) === undefined;
}

interface Difference {
  /** A JSON Pointer. */
  readonly at: string;
  readonly seen: unknown;
  readonly expected: unknown;
}

function differenceOf(seen: unknown, expected: unknown, at = ''): Difference | undefined {
  if (seen === expected || Object.is(seen, expected)) return undefined;
  const parts = [seen, expected].every((value) => typeof value === 'object' && value !== null);
  if (!parts || Array.isArray(seen) !== Array.isArray(expected)) return { at, seen, expected };
  for (const name of new Set([...Object.keys(Object(seen)), ...Object.keys(Object(expected))])) {
    const difference = differenceOf(memberOf(seen, name), memberOf(expected, name), `${at}/${name}`);
    if (difference !== undefined) return difference;
  }
  return undefined;
}

function memberOf(value: unknown, name: string): unknown {
  return Object.hasOwn(Object(value), name) ? (value as Record<string, unknown>)[name] : undefined;
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A member of a value that a runtime gave; undefined when there is none of its own. */
export function own(value: unknown, name: string): unknown {
  return isRecord(value) ? memberOf(value, name) : undefined;
}

export function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

/** A count or a duration. */
export function isAmount(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0;
}

/** A value in a message: as JSON, cut to a readable length. */
export function show(value: unknown): string {
  const text = textOf(value);
  return text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text;
}

function textOf(value: unknown): string {
  if (value === undefined) return 'nothing';
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return 'something that is not JSON';
  }
}

/** What was thrown, as a message. */
export function messageOf(thrown: unknown): string {
  const message = thrown instanceof Error ? thrown.message : textOf(thrown);
  return message === '' ? 'an error without a message' : message;
}
