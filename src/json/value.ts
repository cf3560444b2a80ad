/**
 * Values that cross the journal. `snapshot` checks and copies in one walk: what is journaled is plain JSON of
 * bounded depth and size, and nobody who keeps a reference can change it afterwards.
 */

import { LoopError, toLoopError } from '../base/errors.js';
import type { Json } from '../protocol/json.js';

const MAX_JSON_DEPTH = 256;
const MAX_JSON_BYTES = 64 * 1024 * 1024;

type ObjectFields = { readonly [key: string]: unknown };

const OBJECT_PROTOTYPE = Object.prototype;

let copiedBytes = 0;
/** Whether somebody gave all objects of the process a member: until then what a plain one shows is its own, and need not be asked. */
let isPrototypePolluted = false;

/** About how many bytes the value of the last snapshot has. */
export function lastCopyBytes(): number {
  return copiedBytes;
}

/** Why a value cannot be copied; where, is found only when it matters. */
class NotJsonError extends Error {}

function copyObject(source: ObjectFields, depth: number): { [key: string]: Json } {
  const proto = Object.getPrototypeOf(source);
  // guard: class-instance-refused
  if (proto !== OBJECT_PROTOTYPE && proto !== null && Object.getPrototypeOf(proto) !== null) {
    throw new NotJsonError(`an instance of ${proto.constructor?.name ?? 'a class'} is not JSON; convert it first`);
  }
  const copied: { [key: string]: Json } = {};
  const own = proto === OBJECT_PROTOTYPE && !isPrototypePolluted;
  for (const key in source) {
    if (!own && !Object.hasOwn(source, key)) continue;
    // guard: proto-key-refused
    if (key === '__proto__') throw new NotJsonError('the key "__proto__" is forbidden');
    const value = source[key];
    if (value === undefined) continue;
    copiedBytes += key.length + 4;
    copied[key] = copyValue(value, depth);
  }
  return copied;
}

function copyArray(list: readonly unknown[], depth: number): Json[] {
  const copy: Json[] = [];
  for (let i = 0; i < list.length; i++) copy.push(copyValue(list[i], depth));
  return copy;
}

function copyValue(value: unknown, depth: number): Json {
  if (copiedBytes > MAX_JSON_BYTES) throw new NotJsonError(`the whole is larger than ${MAX_JSON_BYTES} bytes`);
  copiedBytes += 8;
  switch (typeof value) {
    case 'string':
      copiedBytes += value.length;
      if (copiedBytes > MAX_JSON_BYTES) throw new NotJsonError(`the whole is larger than ${MAX_JSON_BYTES} bytes`);
      return value;
    case 'number':
      // guard: number-is-finite
      if (!Number.isFinite(value)) throw new NotJsonError(`${value} is not a JSON number`);
      return value === 0 ? 0 : value;
    case 'boolean':
      return value;
    case 'object':
      if (value === null) return null;
      // guard: value-depth-bounded
      if (depth >= MAX_JSON_DEPTH) throw new NotJsonError(`it is cyclic, or nested deeper than ${MAX_JSON_DEPTH}`);
      return Array.isArray(value) ? copyArray(value, depth + 1) : copyObject(value as ObjectFields, depth + 1);
    default:
      throw new NotJsonError(`${typeof value === 'undefined' ? 'undefined' : `a ${typeof value}`} is not JSON`);
  }
}

/** The path to the innermost part that cannot be copied by itself; a value that is only too large or too deep has none. */
function pathToInvalidPart(value: unknown, depth = 0): string {
  if (typeof value !== 'object' || value === null || depth > 20) return '';
  for (const key of Object.keys(value)) {
    let part: unknown;
    try {
      copiedBytes = 0;
      part = (value as ObjectFields)[key];
      if (part !== undefined || Array.isArray(value)) copyValue(part, 0);
    } catch {
      return `[${JSON.stringify(key)}]${pathToInvalidPart(part, depth + 1)}`;
    }
  }
  return '';
}

/** A private copy of a JSON value, or a LoopError that says where it is not one. Undefined stays undefined. */
export function copyAsJson(value: unknown, what: string, key?: string): Json | undefined {
  copiedBytes = 0;
  if (value === undefined) return undefined;
  isPrototypePolluted = false;
  for (const _ in OBJECT_PROTOTYPE) isPrototypePolluted = true;
  try {
    return copyValue(value, 0);
  } catch (thrown) {
    const reason =
      thrown instanceof NotJsonError ? thrown.message : `reading it failed: ${toLoopError(thrown).message}`;
    const path = pathToInvalidPart(value);
    const place = `${key === undefined ? what : `the value of ${what} at ${key}`}${path === '' ? '' : `, at ${path}`}`;
    throw new LoopError('VALUE_INVALID', `Cannot record ${place}: ${reason}.`, { path, reason });
  }
}

/** A copy of a value that is known to be JSON: what a body gets is its own, and never what the journal holds. */
export function cloneJson(value: Json | undefined): Json | undefined {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => cloneJson(item) as Json);
  const fields: { [key: string]: Json } = { ...(value as { readonly [key: string]: Json }) };
  for (const key in fields) {
    const field = fields[key];
    if (typeof field === 'object' && field !== null) fields[key] = cloneJson(field) as Json;
  }
  return fields;
}

/** Whether two JSON values are the same; the order of keys does not matter. */
export function jsonEquals(a: Json | undefined, b: Json | undefined): boolean {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  const left = a as { readonly [key: string]: Json };
  const right = b as { readonly [key: string]: Json };
  const keys = Object.keys(left);
  if (Array.isArray(a) !== Array.isArray(b) || keys.length !== Object.keys(right).length) return false;
  return keys.every((key) => Object.hasOwn(right, key) && jsonEquals(left[key], right[key]));
}
