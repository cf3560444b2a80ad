/** Passing every text of a JSON value through a function. */
import { isObject } from '../base/own-property.js';
import type { Json } from '../protocol/json.js';

/** Members that are left as they are, or members inside of them; what a list holds counts as the list itself. */
export interface SkippedMembers {
  readonly [name: string]: true | SkippedMembers;
}

/** A copy in which every text is what `rewrite` made of it. The names of members are no texts: they are the value's shape. */
export function rewriteStrings(value: Json, rewrite: (text: string) => string, kept: SkippedMembers = {}): Json {
  if (typeof value === 'string') return rewrite(value);
  if (Array.isArray(value)) return value.map((item: Json) => rewriteStrings(item, rewrite, kept));
  if (!isObject(value)) return value;
  const members = Object.entries(value).map(([name, member]): [string, Json] => {
    const inside = Object.hasOwn(kept, name) ? kept[name] : undefined;
    return [name, inside === true ? member : rewriteStrings(member, rewrite, inside)];
  });
  return Object.fromEntries(members);
}
