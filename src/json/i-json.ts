/**
 * I-JSON (RFC 7493): the values whose JSON text means the same to every reader. Only these are signed. A value that is
 * not JSON, or that a reader could take for another one, is refused and never converted.
 */
import { LoopError } from '../base/errors.js';
import type { Json } from '../protocol/json.js';
import { canonicalJson } from './canonical.js';

const MAX_DEPTH = 64;

const LONE_SURROGATE = /\p{Surrogate}/u;

/** True if a text contains half of a surrogate pair, which has no UTF-8 form. */
export function hasLoneSurrogate(text: string): boolean {
  return LONE_SURROGATE.test(text);
}

/** Returns the canonical text (RFC 8785) of a value that is I-JSON. Throws VALUE_INVALID for any other value. */
export function signableJson(value: unknown): string {
  assertIJson(value, '', 0);
  return canonicalJson(value as Json);
}

/**
 * True if the keys of all objects in a value are sorted and its numbers portable, and nothing is undefined. The value
 * consists of texts, numbers, booleans, arrays and plain objects without accessors.
 */
export function isInCanonicalOrder(value: unknown): boolean {
  if (typeof value === 'number') return isPortableNumber(value);
  if (typeof value !== 'object' || value === null) return value !== undefined;
  if (Array.isArray(value)) return value.every(isInCanonicalOrder);
  let last = '';
  for (const key of Object.keys(value)) {
    if (key < last || !isInCanonicalOrder((value as { readonly [name: string]: unknown })[key])) return false;
    last = key;
  }
  return true;
}

/** True if a text that `JSON.stringify` wrote may contain half of a surrogate pair: it is written as an escape. */
export function mayHaveLoneSurrogate(jsonText: string): boolean {
  return jsonText.includes('\\ud');
}

function assertIJson(value: unknown, path: string, depth: number): void {
  if (value === null || typeof value === 'boolean') return;
  // guard: signed-text-is-well-formed
  if (typeof value === 'string' && !hasLoneSurrogate(value)) return;
  if (typeof value === 'number' && isPortableNumber(value)) return;
  if (typeof value !== 'object') throw notSignable(path, describe(value));
  if (depth >= MAX_DEPTH) throw notSignable(path, `it is cyclic, or nested deeper than ${MAX_DEPTH}`);
  if (Array.isArray(value)) assertItems(value, path, depth);
  else assertMembers(value, path, depth);
}

function assertItems(list: readonly unknown[], path: string, depth: number): void {
  if (Object.keys(list).length !== list.length) throw notSignable(path, 'the array has holes or further members');
  for (const [index, item] of list.entries()) assertIJson(item, `${path}/${index}`, depth + 1);
}

function assertMembers(source: object, path: string, depth: number): void {
  const proto = Object.getPrototypeOf(source);
  if (proto !== Object.prototype && proto !== null) throw notSignable(path, 'an instance of a class is not JSON');
  for (const key of Reflect.ownKeys(source)) {
    if (typeof key === 'symbol') throw notSignable(path, 'a symbol is no key of JSON');
    // guard: signed-keys-are-safe
    if (key === '__proto__' || hasLoneSurrogate(key)) throw notSignable(path, 'it has a forbidden key');
    const descriptor = Object.getOwnPropertyDescriptor(source, key);
    // A getter could return another value when the text is made.
    if (descriptor === undefined || !('value' in descriptor) || descriptor.enumerable !== true)
      throw notSignable(path, `its member ${JSON.stringify(key)} is computed or hidden`);
    assertIJson(descriptor.value, `${path}/${key}`, depth + 1);
  }
}

/** True for a number that every reader understands alike: an integer only up to 2^53 - 1, and no negative zero. */
function isPortableNumber(value: number): boolean {
  if (Object.is(value, -0)) return false;
  return Number.isInteger(value) ? Number.isSafeInteger(value) : Number.isFinite(value);
}

function describe(value: unknown): string {
  if (typeof value === 'number') return `the number ${Object.is(value, -0) ? '-0' : value} is not portable`;
  if (typeof value === 'string') return 'a text contains half of a surrogate pair';
  return `${value === undefined ? 'undefined' : `a ${typeof value}`} is not JSON`;
}

function notSignable(path: string, reason: string): LoopError {
  const shown = path.slice(0, 200);
  const message = `A value cannot be signed${shown === '' ? '' : `, at ${shown}`}: ${reason}.`;
  return new LoopError('VALUE_INVALID', message, { path: Buffer.from(shown).toString(), reason });
}
