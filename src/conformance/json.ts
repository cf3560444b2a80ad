/**
 * Copies, compares, searches and prints values that a runtime returns. They may be deeply nested, cyclic or not JSON.
 * The functions are iterative, or recurse to a fixed depth, so that no value overflows the stack.
 */
import { ownProperty } from '../base/own-property.js';

/** The maximum number of values that a function visits. A cyclic value exceeds it. */
const MAX_VALUES = 200_000;
/** The maximum nesting depth of printed values. */
const MAX_TEXT_DEPTH = 32;

interface JsonLocation {
  readonly name: string;
  readonly parent: JsonLocation | undefined;
}

type JsonContainer = Record<string, unknown> | unknown[];

/**
 * Copies a value as `JSON.stringify` would write it; returns undefined for a value that JSON omits, such as a function.
 * Throws a TypeError for a bigint, a cyclic value and a value with more than MAX_VALUES parts.
 */
export function jsonCopy(value: unknown): unknown {
  const root: JsonContainer = [undefined];
  const stack: { readonly target: JsonContainer; readonly name: string; readonly value: unknown }[] = [
    { target: root, name: '0', value },
  ];
  let count = 0;
  for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
    count += 1;
    if (count > MAX_VALUES) throw new TypeError(`it contains more than ${MAX_VALUES} values, or refers to itself`);
    const { target, name } = next;
    const source = jsonValueOf(next.value, name);
    if (source === undefined) {
      if (Array.isArray(target) && target !== root) defineMember(target, name, null);
      continue;
    }
    if (typeof source !== 'object' || source === null) {
      defineMember(target, name, source);
      continue;
    }
    const copy: JsonContainer = Array.isArray(source) ? [] : {};
    defineMember(target, name, copy);
    // Pushed in reverse, so that the members are copied in their original order.
    for (const member of Object.keys(source).reverse()) {
      stack.push({ target: copy, name: member, value: (source as Record<string, unknown>)[member] });
    }
  }
  return root[0];
}

/** Defines a member without invoking setters such as `__proto__`. */
function defineMember(target: JsonContainer, name: string, value: unknown): void {
  Object.defineProperty(target, name, { value, writable: true, enumerable: true, configurable: true });
}

/** Returns the JSON form of one value, with its members unconverted; undefined if JSON omits it. */
function jsonValueOf(value: unknown, name: string): unknown {
  let result = value;
  if (typeof result === 'object' && result !== null && 'toJSON' in result && typeof result.toJSON === 'function') {
    result = result.toJSON(name);
  }
  if (typeof result === 'bigint') throw new TypeError('a bigint is not JSON');
  if (typeof result === 'number') return Number.isFinite(result) ? result : null;
  return typeof result === 'function' || typeof result === 'symbol' ? undefined : result;
}

/** A difference of two values. */
interface JsonDifference {
  /** The path of the differing parts, like a JSON Pointer but without escapes. */
  readonly pointer: string;
  readonly actual: unknown;
  readonly expected: unknown;
}

/**
 * Returns the first difference of two values; undefined if they are equal. The order of members is ignored, and a
 * member that is undefined equals an absent one. Values that are too large to compare count as different.
 */
export function firstDifference(actual: unknown, expected: unknown): JsonDifference | undefined {
  interface Pair {
    readonly actual: unknown;
    readonly expected: unknown;
    readonly location: JsonLocation | undefined;
  }
  const stack: Pair[] = [{ actual, expected, location: undefined }];
  for (let next = stack.pop(), count = 0; next !== undefined; next = stack.pop(), count++) {
    const { actual: a, expected: b, location } = next;
    if (a === b || Object.is(a, b)) continue;
    const areContainers = [a, b].every((value) => typeof value === 'object' && value !== null);
    if (!areContainers || Array.isArray(a) !== Array.isArray(b) || count > MAX_VALUES) {
      return { pointer: pointerOf(location), actual: a, expected: b };
    }
    for (const name of [...new Set([...Object.keys(Object(a)), ...Object.keys(Object(b))])].reverse()) {
      const child = { name, parent: location };
      stack.push({ actual: ownProperty(a, name), expected: ownProperty(b, name), location: child });
    }
  }
  return undefined;
}

function pointerOf(location: JsonLocation | undefined): string {
  const names: string[] = [];
  for (let current = location; current !== undefined; current = current.parent) names.push(current.name);
  return names
    .reverse()
    .map((name) => `/${name}`)
    .join('');
}

/**
 * Returns true if a string in the value contains the text. Member names and parts beyond MAX_VALUES are not searched.
 */
export function containsText(value: unknown, text: string): boolean {
  const stack: unknown[] = [value];
  for (let count = 0; stack.length > 0 && count < MAX_VALUES; count++) {
    const next = stack.pop();
    if (typeof next === 'string' && next.includes(text)) return true;
    if (typeof next === 'object' && next !== null) for (const member of Object.values(next)) stack.push(member);
  }
  return false;
}

/**
 * Returns a value as JSON text that is cut off with `…` after about `limit` characters. Returns a phrase for undefined
 * and for a value that is not JSON.
 */
export function jsonTextOf(value: unknown, limit: number): string {
  if (value === undefined) return 'nothing';
  try {
    return writeJson(value, { remainingChars: limit }, MAX_TEXT_DEPTH);
  } catch {
    return 'something that is not JSON';
  }
}

function writeJson(value: unknown, budget: { remainingChars: number }, depth: number): string {
  const source = jsonValueOf(value, '');
  if (typeof source !== 'object' || source === null) {
    const limited = typeof source === 'string' ? source.slice(0, budget.remainingChars + 1) : source;
    const text = JSON.stringify(limited) ?? 'null';
    budget.remainingChars -= text.length;
    return text;
  }
  if (depth === 0) return '…';
  const isArray = Array.isArray(source);
  const parts: string[] = [];
  budget.remainingChars -= 2;
  for (const name of Object.keys(source)) {
    if (budget.remainingChars < 0) {
      parts.push('…');
      break;
    }
    const member = ownProperty(source, name);
    if (!isArray && jsonValueOf(member, name) === undefined) continue;
    const label = isArray ? '' : `${JSON.stringify(name)}:`;
    budget.remainingChars -= label.length + 1;
    parts.push(label + writeJson(member, budget, depth - 1));
  }
  return isArray ? `[${parts.join(',')}]` : `{${parts.join(',')}}`;
}
