/** Reading journaled values of unknown shape, by own property only. */
import type { Json } from '../protocol/json.js';

export type Fields = { readonly [name: string]: Json };

/** The value as an object; undefined if it is text, a list or anything else. */
export function fieldsOf(value: unknown): Fields | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : undefined;
}

/** One member of a value, if it is an object and has it. */
export function fieldOf(value: unknown, name: string): Json | undefined {
  const fields = fieldsOf(value);
  return fields !== undefined && Object.hasOwn(fields, name) ? fields[name] : undefined;
}
