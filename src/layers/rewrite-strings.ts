/** Applies a function to every string of a JSON value. */
import { isObject } from '../base/own-property.js';
import type { Json } from '../protocol/json.js';

/**
 * Members whose strings are not rewritten, by name. `true` skips the entire member; an object skips the members that it
 * names inside of it. The items of a list are treated like the list itself.
 */
export interface SkippedMembers {
  readonly [name: string]: true | SkippedMembers;
}

/**
 * Returns a copy in which `rewrite` has replaced every string value, except in skipped members. Member names are never
 * rewritten.
 */
export function rewriteStrings(value: Json, rewrite: (text: string) => string, skipped: SkippedMembers = {}): Json {
  if (typeof value === 'string') return rewrite(value);
  if (Array.isArray(value)) return value.map((item: Json) => rewriteStrings(item, rewrite, skipped));
  if (!isObject(value)) return value;
  const members = Object.entries(value).map(([name, member]): [string, Json] => {
    const inside = Object.hasOwn(skipped, name) ? skipped[name] : undefined;
    return [name, inside === true ? member : rewriteStrings(member, rewrite, inside)];
  });
  return Object.fromEntries(members);
}
