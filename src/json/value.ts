/**
 * Values that cross the journal. `snapshot` checks and copies in one walk: what is journaled is plain JSON of
 * bounded depth and size, and nobody who keeps a reference can change it afterwards.
 */

import { LoopError, outcomeOf } from '../base/errors.js';
import type { Json } from '../protocol/json.js';

const DEPTH = 256;
const SIZE = 64 * 1024 * 1024;

type Fields = { readonly [key: string]: unknown };

const PLAIN = Object.prototype;

let weight = 0;
/** Whether somebody gave all objects of the process a member: until then what a plain one shows is its own, and need not be asked. */
let polluted = false;

/** About how many bytes the value of the last snapshot has. */
export function weighed(): number {
  return weight;
}

/** Why a value cannot be copied; where, is found only when it matters. */
class Flaw extends Error {}

function copyFields(source: Fields, depth: number): { [key: string]: Json } {
  const proto = Object.getPrototypeOf(source);
  // guard: class-instance-refused
  if (proto !== PLAIN && proto !== null && Object.getPrototypeOf(proto) !== null) {
    throw new Flaw(`an instance of ${proto.constructor?.name ?? 'a class'} is not JSON; convert it first`);
  }
  const copied: { [key: string]: Json } = {};
  const own = proto === PLAIN && !polluted;
  for (const key in source) {
    if (!own && !Object.hasOwn(source, key)) continue;
    // guard: proto-key-refused
    if (key === '__proto__') throw new Flaw('the key "__proto__" is forbidden');
    const value = source[key];
    if (value === undefined) continue;
    weight += key.length + 4;
    copied[key] = copyOf(value, depth);
  }
  return copied;
}

function copyList(list: readonly unknown[], depth: number): Json[] {
  const copy: Json[] = [];
  for (let i = 0; i < list.length; i++) copy.push(copyOf(list[i], depth));
  return copy;
}

function copyOf(value: unknown, depth: number): Json {
  if (weight > SIZE) throw new Flaw(`the whole is larger than ${SIZE} bytes`);
  weight += 8;
  switch (typeof value) {
    case 'string':
      weight += value.length;
      if (weight > SIZE) throw new Flaw(`the whole is larger than ${SIZE} bytes`);
      return value;
    case 'number':
      // guard: number-is-finite
      if (!Number.isFinite(value)) throw new Flaw(`${value} is not a JSON number`);
      return value === 0 ? 0 : value;
    case 'boolean':
      return value;
    case 'object':
      if (value === null) return null;
      // guard: value-depth-bounded
      if (depth >= DEPTH) throw new Flaw(`it is cyclic, or nested deeper than ${DEPTH}`);
      return Array.isArray(value) ? copyList(value, depth + 1) : copyFields(value as Fields, depth + 1);
    default:
      throw new Flaw(`${typeof value === 'undefined' ? 'undefined' : `a ${typeof value}`} is not JSON`);
  }
}

/** The path to the innermost part that cannot be copied by itself; a value that is only too large or too deep has none. */
function placeOf(value: unknown, depth = 0): string {
  if (typeof value !== 'object' || value === null || depth > 20) return '';
  for (const key of Object.keys(value)) {
    let part: unknown;
    try {
      weight = 0;
      part = (value as Fields)[key];
      if (part !== undefined || Array.isArray(value)) copyOf(part, 0);
    } catch {
      return `[${JSON.stringify(key)}]${placeOf(part, depth + 1)}`;
    }
  }
  return '';
}

/** A private copy of a JSON value, or a LoopError that says where it is not one. Undefined stays undefined. */
export function snapshot(value: unknown, what: string, key?: string): Json | undefined {
  weight = 0;
  if (value === undefined) return undefined;
  polluted = false;
  for (const _ in PLAIN) polluted = true;
  try {
    return copyOf(value, 0);
  } catch (thrown) {
    const reason = thrown instanceof Flaw ? thrown.message : `reading it failed: ${outcomeOf(thrown).message}`;
    const path = placeOf(value);
    const place = `${key === undefined ? what : `the value of ${what} at ${key}`}${path === '' ? '' : `, at ${path}`}`;
    throw new LoopError('VALUE_INVALID', `Cannot record ${place}: ${reason}.`, { path, reason });
  }
}

/** A copy of a value that is known to be JSON: what a body gets is its own, and never what the journal holds. */
export function copy(value: Json | undefined): Json | undefined {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => copy(item) as Json);
  const fields: { [key: string]: Json } = { ...(value as { readonly [key: string]: Json }) };
  for (const key in fields) {
    const field = fields[key];
    if (typeof field === 'object' && field !== null) fields[key] = copy(field) as Json;
  }
  return fields;
}

/** Whether two JSON values are the same; the order of keys does not matter. */
export function same(a: Json | undefined, b: Json | undefined): boolean {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  const left = a as { readonly [key: string]: Json };
  const right = b as { readonly [key: string]: Json };
  const keys = Object.keys(left);
  if (Array.isArray(a) !== Array.isArray(b) || keys.length !== Object.keys(right).length) return false;
  return keys.every((key) => Object.hasOwn(right, key) && same(left[key], right[key]));
}
