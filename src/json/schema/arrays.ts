/** The keywords that look into arrays. */
import type { Json } from '../../protocol/json.js';
import {
  assertionRule,
  definedNames,
  eachPartRule,
  hasType,
  type KeywordCompiler,
  type RulePart,
  type SchemaCheck,
  type SchemaRule,
  type UnknownObject,
} from './rule.js';

type UnknownArray = readonly unknown[];

function itemCountKeyword(
  keyword: string,
  fits: (count: number, bound: number) => boolean,
  words: string,
): KeywordCompiler {
  return (_, bound) =>
    assertionRule(
      keyword,
      (list) => !Array.isArray(list) || fits(list.length, bound as number),
      `must have ${words} ${bound} items`,
    );
}

const prefixItems: KeywordCompiler = (site, value) => {
  const rules = (value as readonly Json[]).map((schema) => site.compileChild(schema));
  const check: SchemaCheck = (list, seen) => {
    if (!Array.isArray(list)) return true;
    const length = Math.min(rules.length, list.length);
    for (let i = 0; i < length; i++) if (!(rules[i] as SchemaRule).check(list[i])) return false;
    if (seen !== undefined) seen.evaluatedPrefix = Math.max(seen.evaluatedPrefix, length);
    return true;
  };
  return eachPartRule(check, (list: UnknownArray) =>
    rules.slice(0, list.length).map((rule, index) => [rule, list[index], index] as const),
  );
};

const items: KeywordCompiler = (site, value) => {
  const { prefixItems: prefix = [] } = site.schema;
  const from = (prefix as readonly Json[]).length;
  const rule = site.compileChild(value);
  const { typeCode, checkRest } = rule;
  const check: SchemaCheck = (list, seen) => {
    if (!Array.isArray(list)) return true;
    for (let i = from; i < list.length; i++) {
      const item = list[i];
      if (!hasType(typeCode, item) || (checkRest !== undefined && !checkRest(item))) return false;
    }
    if (seen !== undefined) seen.evaluatedPrefix = Math.max(seen.evaluatedPrefix, list.length);
    return true;
  };
  return eachPartRule(check, (list: UnknownArray) =>
    list.slice(from).map((item, index) => [rule, item, from + index] as const),
  );
};

const contains: KeywordCompiler = (site, value) => {
  const { minContains = 1, maxContains = Number.POSITIVE_INFINITY } = site.schema;
  const [least, most] = [minContains as number, maxContains as number];
  const rule = site.compileChild(value);
  const check: SchemaCheck = (list, seen) => {
    if (!Array.isArray(list)) return true;
    let found = 0;
    for (let i = 0; i < list.length; i++) {
      if (!rule.check(list[i])) continue;
      found += 1;
      if (seen !== undefined) seen.itemIndexes.add(i);
    }
    return found >= least && found <= most;
  };
  const bound = most === Number.POSITIVE_INFINITY ? '' : ` and at most ${most}`;
  return assertionRule('contains', check, `must have at least ${least}${bound} items that fit "contains"`);
};

/** A text that is the same for equal values and for no others. */
function equalityKey(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'undefined';
  if (Array.isArray(value)) return `[${value.map(equalityKey).join()}]`;
  const fields = value as UnknownObject;
  const names = definedNames(fields).sort();
  return `{${names.map((name) => `${JSON.stringify(name)}:${equalityKey(fields[name])}`).join()}}`;
}

const uniqueItems: KeywordCompiler = (_, value) => {
  if (value !== true) return undefined;
  const check: SchemaCheck = (list) => {
    if (!Array.isArray(list)) return true;
    const known = new Set<string>();
    for (const item of list) {
      const text = equalityKey(item);
      if (known.has(text)) return false;
      known.add(text);
    }
    return true;
  };
  return assertionRule('uniqueItems', check, 'must not have the same item twice');
};

export const unevaluatedItems: KeywordCompiler = (site, value) => {
  const rule = site.compileChild(value);
  const check: SchemaCheck = (list, seen) => {
    if (!Array.isArray(list) || seen === undefined) return true;
    for (let i = seen.evaluatedPrefix; i < list.length; i++) {
      if (!seen.itemIndexes.has(i) && !rule.check(list[i])) return false;
    }
    seen.evaluatedPrefix = list.length;
    return true;
  };
  return eachPartRule(check, (list: UnknownArray, seen): RulePart[] =>
    list.flatMap((item, index): RulePart[] =>
      index < (seen?.evaluatedPrefix ?? 0) || seen?.itemIndexes.has(index) ? [] : [[rule, item, index]],
    ),
  );
};

export const arrayKeywords: { readonly [keyword: string]: KeywordCompiler } = {
  minItems: itemCountKeyword('minItems', (count, bound) => count >= bound, 'at least'),
  maxItems: itemCountKeyword('maxItems', (count, bound) => count <= bound, 'at most'),
  prefixItems,
  items,
  contains,
  uniqueItems,
};
