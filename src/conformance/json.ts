/**
 * Values that a runtime gave, which may be nested without end, refer to themselves or not be JSON at all: copied,
 * compared, searched and shown. Nothing here recurses deeper than a message shows, so no value exhausts the stack.
 */

import { ownProperty } from '../base/own-property.js';

/** How many values one document may hold; one that refers to itself has more. */
const MAX_VALUES = 200_000;
const MAX_TEXT_DEPTH = 32;

interface JsonLocation {
  readonly name: string;
  readonly parent: JsonLocation | undefined;
}

type JsonContainer = Record<string, unknown> | unknown[];

/** A value as JSON carries it, so that nothing can change it later; throws a TypeError if it cannot be JSON. */
export function jsonCopy(value: unknown): unknown {
  const box: JsonContainer = [undefined];
  const rest: { readonly to: JsonContainer; readonly name: string; readonly value: unknown }[] = [
    { to: box, name: '0', value },
  ];
  let count = 0;
  for (let next = rest.pop(); next !== undefined; next = rest.pop()) {
    count += 1;
    if (count > MAX_VALUES) throw new TypeError(`it holds more than ${MAX_VALUES} values, or refers to itself`);
    const { to, name } = next;
    const given = jsonValueOf(next.value, name);
    if (given === undefined) {
      if (Array.isArray(to) && to !== box) defineMember(to, name, null);
      continue;
    }
    if (typeof given !== 'object' || given === null) {
      defineMember(to, name, given);
      continue;
    }
    const made: JsonContainer = Array.isArray(given) ? [] : {};
    defineMember(to, name, made);
    // Last first, so that the copies of an object's members are made in their order.
    for (const member of Object.keys(given).reverse()) {
      rest.push({ to: made, name: member, value: (given as Record<string, unknown>)[member] });
    }
  }
  return box[0];
}

function defineMember(to: JsonContainer, name: string, value: unknown): void {
  Object.defineProperty(to, name, { value, writable: true, enumerable: true, configurable: true });
}

/** What JSON makes of one value, without its members; undefined for what it leaves out. */
function jsonValueOf(value: unknown, name: string): unknown {
  let given = value;
  if (typeof given === 'object' && given !== null && 'toJSON' in given && typeof given.toJSON === 'function') {
    given = given.toJSON(name);
  }
  if (typeof given === 'bigint') throw new TypeError('a bigint is not JSON');
  if (typeof given === 'number') return Number.isFinite(given) ? given : null;
  return typeof given === 'function' || typeof given === 'symbol' ? undefined : given;
}

export interface JsonDifference {
  /** A JSON Pointer. */
  readonly pointer: string;
  readonly actual: unknown;
  readonly expected: unknown;
}

/** The first place where two values differ as JSON: the order of members does not count, and undefined is absent. */
export function firstDifference(seen: unknown, expected: unknown): JsonDifference | undefined {
  interface Pair {
    readonly seen: unknown;
    readonly expected: unknown;
    readonly place: JsonLocation | undefined;
  }
  const rest: Pair[] = [{ seen, expected, place: undefined }];
  for (let next = rest.pop(), count = 0; next !== undefined; next = rest.pop(), count++) {
    const { seen: a, expected: b, place } = next;
    if (a === b || Object.is(a, b)) continue;
    const parts = [a, b].every((value) => typeof value === 'object' && value !== null);
    if (!parts || Array.isArray(a) !== Array.isArray(b) || count > MAX_VALUES) {
      return { pointer: pointerOf(place), actual: a, expected: b };
    }
    for (const name of [...new Set([...Object.keys(Object(a)), ...Object.keys(Object(b))])].reverse()) {
      rest.push({ seen: ownProperty(a, name), expected: ownProperty(b, name), place: { name, parent: place } });
    }
  }
  return undefined;
}

function pointerOf(place: JsonLocation | undefined): string {
  const names: string[] = [];
  for (let at = place; at !== undefined; at = at.parent) names.push(at.name);
  return names
    .reverse()
    .map((name) => `/${name}`)
    .join('');
}

/** Whether this text is part of any text in the value. */
export function containsText(value: unknown, text: string): boolean {
  const rest: unknown[] = [value];
  for (let count = 0; rest.length > 0 && count < MAX_VALUES; count++) {
    const next = rest.pop();
    if (typeof next === 'string' && next.includes(text)) return true;
    if (typeof next === 'object' && next !== null) for (const part of Object.values(next)) rest.push(part);
  }
  return false;
}

/** A value as JSON text, up to about `limit` characters of it. */
export function jsonTextOf(value: unknown, limit: number): string {
  if (value === undefined) return 'nothing';
  try {
    return writeJson(value, { left: limit }, MAX_TEXT_DEPTH);
  } catch {
    return 'something that is not JSON';
  }
}

function writeJson(value: unknown, budget: { left: number }, depth: number): string {
  const given = jsonValueOf(value, '');
  if (typeof given !== 'object' || given === null) {
    const text = JSON.stringify(typeof given === 'string' ? given.slice(0, budget.left + 1) : given) ?? 'null';
    budget.left -= text.length;
    return text;
  }
  if (depth === 0) return '…';
  const list = Array.isArray(given);
  const parts: string[] = [];
  budget.left -= 2;
  for (const name of Object.keys(given)) {
    if (budget.left < 0) {
      parts.push('…');
      break;
    }
    const member = ownProperty(given, name);
    if (!list && jsonValueOf(member, name) === undefined) continue;
    const label = list ? '' : `${JSON.stringify(name)}:`;
    budget.left -= label.length + 1;
    parts.push(label + writeJson(member, budget, depth - 1));
  }
  return list ? `[${parts.join(',')}]` : `{${parts.join(',')}}`;
}
