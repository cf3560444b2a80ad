/** The keywords that look into arrays. */
import type { Json } from '../../protocol/json.js';
import {
  assertion,
  type Check,
  type Fields,
  isOf,
  type Maker,
  namesOf,
  type Part,
  partwise,
  type Rule,
} from './rule.js';

type List = readonly unknown[];

function counted(keyword: string, fits: (count: number, bound: number) => boolean, words: string): Maker {
  return (_, bound) =>
    assertion(
      keyword,
      (list) => !Array.isArray(list) || fits(list.length, bound as number),
      `must have ${words} ${bound} items`,
    );
}

const prefixItems: Maker = (site, value) => {
  const rules = (value as readonly Json[]).map((schema) => site.below(schema));
  const check: Check = (list, seen) => {
    if (!Array.isArray(list)) return true;
    const length = Math.min(rules.length, list.length);
    for (let i = 0; i < length; i++) if (!(rules[i] as Rule).check(list[i])) return false;
    if (seen !== undefined) seen.items = Math.max(seen.items, length);
    return true;
  };
  return partwise(check, (list: List) =>
    rules.slice(0, list.length).map((rule, index) => [rule, list[index], index] as const),
  );
};

const items: Maker = (site, value) => {
  const { prefixItems: prefix = [] } = site.schema;
  const from = (prefix as readonly Json[]).length;
  const rule = site.below(value);
  const { kind, rest } = rule;
  const check: Check = (list, seen) => {
    if (!Array.isArray(list)) return true;
    for (let i = from; i < list.length; i++) {
      const item = list[i];
      if (!isOf(kind, item) || (rest !== undefined && !rest(item))) return false;
    }
    if (seen !== undefined) seen.items = Math.max(seen.items, list.length);
    return true;
  };
  return partwise(check, (list: List) => list.slice(from).map((item, index) => [rule, item, from + index] as const));
};

const contains: Maker = (site, value) => {
  const { minContains = 1, maxContains = Number.POSITIVE_INFINITY } = site.schema;
  const [least, most] = [minContains as number, maxContains as number];
  const rule = site.below(value);
  const check: Check = (list, seen) => {
    if (!Array.isArray(list)) return true;
    let found = 0;
    for (let i = 0; i < list.length; i++) {
      if (!rule.check(list[i])) continue;
      found += 1;
      if (seen !== undefined) seen.indexes.add(i);
    }
    return found >= least && found <= most;
  };
  const bound = most === Number.POSITIVE_INFINITY ? '' : ` and at most ${most}`;
  return assertion('contains', check, `must have at least ${least}${bound} items that fit "contains"`);
};

/** A text that is the same for equal values and for no others. */
function identity(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'undefined';
  if (Array.isArray(value)) return `[${value.map(identity).join()}]`;
  const fields = value as Fields;
  const names = namesOf(fields).sort();
  return `{${names.map((name) => `${JSON.stringify(name)}:${identity(fields[name])}`).join()}}`;
}

const uniqueItems: Maker = (_, value) => {
  if (value !== true) return undefined;
  const check: Check = (list) => {
    if (!Array.isArray(list)) return true;
    const known = new Set<string>();
    for (const item of list) {
      const text = identity(item);
      if (known.has(text)) return false;
      known.add(text);
    }
    return true;
  };
  return assertion('uniqueItems', check, 'must not have the same item twice');
};

export const unevaluatedItems: Maker = (site, value) => {
  const rule = site.below(value);
  const check: Check = (list, seen) => {
    if (!Array.isArray(list) || seen === undefined) return true;
    for (let i = seen.items; i < list.length; i++) {
      if (!seen.indexes.has(i) && !rule.check(list[i])) return false;
    }
    seen.items = list.length;
    return true;
  };
  return partwise(check, (list: List, seen): Part[] =>
    list.flatMap((item, index): Part[] =>
      index < (seen?.items ?? 0) || seen?.indexes.has(index) ? [] : [[rule, item, index]],
    ),
  );
};

export const arrays: { readonly [keyword: string]: Maker } = {
  minItems: counted('minItems', (count, bound) => count >= bound, 'at least'),
  maxItems: counted('maxItems', (count, bound) => count <= bound, 'at most'),
  prefixItems,
  items,
  contains,
  uniqueItems,
};
