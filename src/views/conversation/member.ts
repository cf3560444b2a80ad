/** Members of values whose shape nobody vouches for: own properties only, and of the kind that is asked for. */
import type { Json } from '../../protocol/json.js';

/** A member of an object; undefined for anything else. */
export function memberOf(value: Json | undefined, name: string): Json | undefined {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
  return (value as { readonly [name: string]: Json })[name];
}

/** A member that is text; the empty text if there is none. */
export function textOf(value: Json | undefined, name: string): string {
  const member = memberOf(value, name);
  return typeof member === 'string' ? member : '';
}
