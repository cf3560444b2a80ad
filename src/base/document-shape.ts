/**
 * Shapes of untrusted documents: small checks that are composed to a description of a whole document. A shape returns
 * what is wrong, with its place, or undefined. Unknown members are always refused, and everything is bounded.
 */
import { ownProperty } from './own-property.js';

/** Returns what is wrong with a value, as `<place>: <problem>`; undefined if nothing is. */
export type Shape = (value: unknown) => string | undefined;

/** A shape of a member that may be absent. */
interface OptionalShape {
  readonly optional: Shape;
}

const MAX_TEXT_CHARS = 4096;

const problem = (reason: string): string => `: ${reason}`;

/** A text of at most `max` characters. @default 4096 */
export function text(max: number = MAX_TEXT_CHARS): Shape {
  return (value) =>
    typeof value === 'string' && value.length <= max
      ? undefined
      : problem(`must be a text of at most ${max} characters`);
}

/** A text that is not empty. */
export const nonEmptyText: Shape = (value) =>
  typeof value === 'string' && value !== '' && value.length <= MAX_TEXT_CHARS
    ? undefined
    : problem(`must be a text of 1 to ${MAX_TEXT_CHARS} characters`);

/** A text that matches a pattern. */
export function matching(pattern: RegExp, description: string): Shape {
  return (value) =>
    typeof value === 'string' && value.length <= MAX_TEXT_CHARS && pattern.test(value)
      ? undefined
      : problem(`must be ${description}`);
}

/** A SHA-256 digest as 64 lower-case hexadecimal digits. */
export const hexDigest: Shape = matching(/^[0-9a-f]{64}$/, '64 lower-case hexadecimal digits');

/** An integer from 0 to 2^53 - 1. */
export const index: Shape = (value) =>
  Number.isSafeInteger(value) && Number(value) >= 0 && !Object.is(value, -0)
    ? undefined
    : problem('must be an integer of 0 or more');

/** Any finite number. */
export const finiteNumber: Shape = (value) =>
  typeof value === 'number' && Number.isFinite(value) ? undefined : problem('must be a number');

/** True or false. */
export const flag: Shape = (value) => (typeof value === 'boolean' ? undefined : problem('must be true or false'));

/** One of these values. */
export function oneOf(...values: readonly (string | number | boolean)[]): Shape {
  const known: ReadonlySet<unknown> = new Set(values);
  return (value) => (known.has(value) ? undefined : problem(`must be ${values.map((each) => `${each}`).join(', ')}`));
}

/** A value that has one of these shapes. */
export function anyOf(...shapes: readonly Shape[]): Shape {
  return (value) => {
    const problems = shapes.map((shape) => shape(value));
    return problems.includes(undefined) ? undefined : problems[0];
  };
}

/** A list of at most `max` items of one shape. */
export function listOf(shape: Shape, max: number): Shape {
  return (value) => {
    if (!Array.isArray(value) || value.length > max) return problem(`must be a list of at most ${max} items`);
    for (let i = 0; i < value.length; i++) {
      const found = shape(value[i]);
      if (found !== undefined) return `[${i}]${found}`;
    }
    return undefined;
  };
}

/** An object with at most `max` members of any name and one shape. */
export function recordOf(shape: Shape, max: number): Shape {
  return (value) => {
    if (!isPlain(value)) return problem('must be an object');
    const names = Object.keys(value);
    if (names.length > max) return problem(`must have at most ${max} members`);
    for (const name of names) {
      const found = shape(ownProperty(value, name));
      if (found !== undefined) return `.${name.slice(0, 60)}${found}`;
    }
    return undefined;
  };
}

/** Marks a member that may be absent. */
export function optional(shape: Shape): OptionalShape {
  return { optional: shape };
}

/** An object with exactly these members. */
export function members(shapes: { readonly [name: string]: Shape | OptionalShape }): Shape {
  const known = new Map(Object.entries(shapes));
  const required = Object.keys(shapes).filter((name) => typeof shapes[name] === 'function');
  return (value) => {
    if (!isPlain(value)) return problem('must be an object');
    const names = Object.keys(value);
    let found = 0;
    for (const name of names) {
      const shape = known.get(name);
      // guard: unknown-member-refused
      if (shape === undefined) return `.${name.slice(0, 60)}: is not a known member`;
      const member = (value as { readonly [name: string]: unknown })[name];
      if (typeof shape === 'function') found += 1;
      else if (member === undefined) continue;
      const wrong = typeof shape === 'function' ? shape(member) : shape?.optional(member);
      if (wrong !== undefined) return `.${name}${wrong}`;
    }
    // guard: missing-member-refused
    if (found < required.length) return `.${required.find((name) => !names.includes(name))}: is missing`;
    return undefined;
  };
}

function isPlain(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
