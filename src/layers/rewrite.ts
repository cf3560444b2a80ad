/** Passing every text of a JSON value through a function. */
import { isObject } from '../base/own-property.js';
import type { Json } from '../protocol/json.js';

/** Members that are left as they are, or members inside of them; what a list holds counts as the list itself. */
export interface Kept {
  readonly [name: string]: true | Kept;
}

/** A copy in which every text is what `rewrite` made of it. The names of members are no texts: they are the value's shape. */
export function rewriteTexts(value: Json, rewrite: (text: string) => string, kept: Kept = {}): Json {
  if (typeof value === 'string') return rewrite(value);
  if (Array.isArray(value)) return value.map((item: Json) => rewriteTexts(item, rewrite, kept));
  if (!isObject(value)) return value;
  const members = Object.entries(value).map(([name, member]): [string, Json] => {
    const inside = Object.hasOwn(kept, name) ? kept[name] : undefined;
    return [name, inside === true ? member : rewriteTexts(member, rewrite, inside)];
  });
  return Object.fromEntries(members);
}
