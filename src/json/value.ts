/**
 * Journaled values. `copyAsJson` checks and copies a value in one pass, so what is journaled is plain JSON of bounded
 * depth and size, and no outside reference can change it afterwards.
 */

import { LoopError, toLoopError } from '../base/errors.js';
import type { Json } from '../protocol/json.js';

const MAX_JSON_DEPTH = 256;
const MAX_JSON_BYTES = 64 * 1024 * 1024;

type ObjectFields = { readonly [key: string]: unknown };

const OBJECT_PROTOTYPE = Object.prototype;

let copiedBytes = 0;
/** True if `Object.prototype` is polluted; only then do plain objects need own-property checks. */
let isPrototypePolluted = false;

/** Returns the approximate size in bytes of the last value that `copyAsJson` copied; 0 if that was undefined. */
export function lastCopyBytes(): number {
  return copiedBytes;
}

/** The reason why a value cannot be copied. The path to it is computed later, outside of the hot path. */
class NotJsonError extends Error {}

// Messages are created outside of the functions that copy: V8 inlines only small functions.
const TOO_LARGE = `the value is larger than ${MAX_JSON_BYTES} bytes`;
const TOO_DEEP = `it is cyclic, or nested deeper than ${MAX_JSON_DEPTH}`;

function classInstanceError(proto: object): NotJsonError {
  return new NotJsonError(`an instance of ${proto.constructor?.name ?? 'a class'} is not JSON; convert it first`);
}

function notJsonError(value: unknown): NotJsonError {
  if (typeof value === 'number') return new NotJsonError(`${value} is not a JSON number`);
  return new NotJsonError(`${value === undefined ? 'undefined' : `a ${typeof value}`} is not JSON`);
}

function addToSize(bytes: number): void {
  copiedBytes += bytes;
  if (copiedBytes > MAX_JSON_BYTES) throw new NotJsonError(TOO_LARGE);
}

function copyObject(source: ObjectFields, depth: number): { [key: string]: Json } {
  const proto = Object.getPrototypeOf(source);
  // guard: class-instance-refused
  if (proto !== OBJECT_PROTOTYPE && proto !== null && Object.getPrototypeOf(proto) !== null) {
    throw classInstanceError(proto);
  }
  const copied: { [key: string]: Json } = {};
  const hasOnlyOwnKeys = proto === OBJECT_PROTOTYPE && !isPrototypePolluted;
  for (const key in source) {
    if (!hasOnlyOwnKeys && !Object.hasOwn(source, key)) continue;
    // guard: proto-key-refused
    if (key === '__proto__') throw new NotJsonError('the key "__proto__" is forbidden');
    const value = source[key];
    if (value === undefined) continue;
    copiedBytes += key.length + 4;
    // `copyValue`, written out: V8 does not inline it here, because it calls this function.
    copied[key] = typeof value === 'object' && value !== null ? copyContainer(value, depth) : copyPrimitive(value);
  }
  return copied;
}

function copyArray(list: readonly unknown[], depth: number): Json[] {
  const copy: Json[] = [];
  for (let i = 0; i < list.length; i++) copy.push(copyValue(list[i], depth));
  return copy;
}

function copyContainer(value: object, depth: number): Json {
  addToSize(8);
  // guard: value-depth-bounded
  if (depth >= MAX_JSON_DEPTH) throw new NotJsonError(TOO_DEEP);
  return Array.isArray(value) ? copyArray(value, depth + 1) : copyObject(value as ObjectFields, depth + 1);
}

function copyPrimitive(value: unknown): Json {
  addToSize(typeof value === 'string' ? value.length + 8 : 8);
  if (typeof value === 'number') {
    // guard: number-is-finite
    if (!Number.isFinite(value)) throw notJsonError(value);
    return value === 0 ? 0 : value;
  }
  if (typeof value === 'string' || typeof value === 'boolean' || value === null) return value;
  throw notJsonError(value);
}

function copyValue(value: unknown, depth: number): Json {
  return typeof value === 'object' && value !== null ? copyContainer(value, depth) : copyPrimitive(value);
}

/**
 * Returns the path to the innermost part that is invalid by itself. Empty for a value that is only too large or too
 * deep. Stops at a depth of 20.
 */
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

/**
 * Returns a private copy of a JSON value, or undefined for undefined. Members that are undefined are omitted. Throws
 * VALUE_INVALID if the value is not JSON, too large or too deep, with the path to the invalid part. `subject` and `key`
 * name the value in the message.
 */
export function copyAsJson(value: unknown, subject: string, key?: string): Json | undefined {
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
    const name = key === undefined ? subject : `the value of ${subject} at ${key}`;
    const location = path === '' ? name : `${name}, at ${path}`;
    throw new LoopError('VALUE_INVALID', `Cannot record ${location}: ${reason}.`, { path, reason });
  }
}

/** Returns a deep copy of a JSON value, so that a body never gets a reference into the journal. */
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

/** True if two JSON values are equal. The order of keys is ignored. */
export function jsonEquals(a: Json | undefined, b: Json | undefined): boolean {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  const left = a as { readonly [key: string]: Json };
  const right = b as { readonly [key: string]: Json };
  const keys = Object.keys(left);
  if (Array.isArray(a) !== Array.isArray(b) || keys.length !== Object.keys(right).length) return false;
  return keys.every((key) => Object.hasOwn(right, key) && jsonEquals(left[key], right[key]));
}
