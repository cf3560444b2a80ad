/**
 * Reads objects of unknown shape by own property only. Inherited members are never data: a document may have a member
 * named `constructor` or `__proto__`, and `Object.prototype` may be polluted.
 */
import type { Json, JsonObject } from '../protocol/json.js';

/** An object of unknown shape. */
type UnknownFields = { readonly [name: string]: unknown };

/** True for an object that is neither null nor an array. */
export function isObject(value: Json | undefined): value is JsonObject;
export function isObject(value: unknown): value is UnknownFields;
export function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Returns the own property of an object or array; undefined if there is none, or if its getter throws. A getter is
 * called only once, because it could return another value the second time.
 */
export function ownProperty(value: Json | undefined, name: string | number): Json | undefined;
export function ownProperty(value: unknown, name: string | number): unknown;
export function ownProperty(value: unknown, name: string | number): unknown {
  if (typeof value !== 'object' || value === null) return undefined;
  try {
    return Object.hasOwn(value, name) ? (value as UnknownFields)[name] : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the own property if it is a string; otherwise the empty string. */
export function ownText(value: unknown, name: string): string {
  const property = ownProperty(value, name);
  return typeof property === 'string' ? property : '';
}

/** Returns the value if it is a non-empty string; otherwise undefined. */
export function asNonEmptyText(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** Returns the value if it is a safe integer of zero or more; otherwise undefined. */
export function asNonNegativeInteger(value: unknown): number | undefined {
  return Number.isSafeInteger(value) && Number(value) >= 0 ? Number(value) : undefined;
}
