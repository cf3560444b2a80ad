/** The keywords for arrays. */
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
  isWithin: (count: number, bound: number) => boolean,
  qualifier: string,
): KeywordCompiler {
  return (_, bound) =>
    assertionRule(
      keyword,
      (list) => !Array.isArray(list) || isWithin(list.length, bound as number),
      `must have ${qualifier} ${bound} items`,
    );
}

const prefixItems: KeywordCompiler = (context, value) => {
  const rules = (value as readonly Json[]).map((schema) => context.compileChild(schema));
  const check: SchemaCheck = (list, evaluated) => {
    if (!Array.isArray(list)) return true;
    const length = Math.min(rules.length, list.length);
    for (let i = 0; i < length; i++) if (!(rules[i] as SchemaRule).check(list[i])) return false;
    if (evaluated !== undefined) evaluated.evaluatedPrefix = Math.max(evaluated.evaluatedPrefix, length);
    return true;
  };
  return eachPartRule(check, (list: UnknownArray) =>
    rules.slice(0, list.length).map((rule, index) => [rule, list[index], index] as const),
  );
};

const items: KeywordCompiler = (context, value) => {
  const { prefixItems: prefix = [] } = context.schema;
  const from = (prefix as readonly Json[]).length;
  const rule = context.compileChild(value);
  const { typeCode, checkRest } = rule;
  const check: SchemaCheck = (list, evaluated) => {
    if (!Array.isArray(list)) return true;
    for (let i = from; i < list.length; i++) {
      const item = list[i];
      if (!hasType(typeCode, item) || (checkRest !== undefined && !checkRest(item))) return false;
    }
    if (evaluated !== undefined) evaluated.evaluatedPrefix = Math.max(evaluated.evaluatedPrefix, list.length);
    return true;
  };
  return eachPartRule(check, (list: UnknownArray) =>
    list.slice(from).map((item, index) => [rule, item, from + index] as const),
  );
};

const contains: KeywordCompiler = (context, value) => {
  const { minContains = 1, maxContains = Number.POSITIVE_INFINITY } = context.schema;
  const [min, max] = [minContains as number, maxContains as number];
  const rule = context.compileChild(value);
  const check: SchemaCheck = (list, evaluated) => {
    if (!Array.isArray(list)) return true;
    let matches = 0;
    for (let i = 0; i < list.length; i++) {
      if (!rule.check(list[i])) continue;
      matches += 1;
      if (evaluated !== undefined) evaluated.itemIndexes.add(i);
    }
    return matches >= min && matches <= max;
  };
  const bound = max === Number.POSITIVE_INFINITY ? '' : ` and at most ${max}`;
  return assertionRule('contains', check, `must have at least ${min}${bound} items that fit "contains"`);
};

/** Returns a text that is the same for equal values and different for all others. */
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
    const keys = new Set<string>();
    for (const item of list) {
      const key = equalityKey(item);
      if (keys.has(key)) return false;
      keys.add(key);
    }
    return true;
  };
  return assertionRule('uniqueItems', check, 'must not have the same item twice');
};

/** `unevaluatedItems`. It applies to the items that no other keyword has evaluated. */
export const unevaluatedItems: KeywordCompiler = (context, value) => {
  const rule = context.compileChild(value);
  const check: SchemaCheck = (list, evaluated) => {
    if (!Array.isArray(list) || evaluated === undefined) return true;
    for (let i = evaluated.evaluatedPrefix; i < list.length; i++) {
      if (!evaluated.itemIndexes.has(i) && !rule.check(list[i])) return false;
    }
    evaluated.evaluatedPrefix = list.length;
    return true;
  };
  return eachPartRule(check, (list: UnknownArray, evaluated): RulePart[] =>
    list.flatMap((item, index): RulePart[] =>
      index < (evaluated?.evaluatedPrefix ?? 0) || evaluated?.itemIndexes.has(index) ? [] : [[rule, item, index]],
    ),
  );
};

/** The compilers of the array keywords, except `unevaluatedItems`. */
export const arrayKeywords: { readonly [keyword: string]: KeywordCompiler } = {
  minItems: itemCountKeyword('minItems', (count, bound) => count >= bound, 'at least'),
  maxItems: itemCountKeyword('maxItems', (count, bound) => count <= bound, 'at most'),
  prefixItems,
  items,
  contains,
  uniqueItems,
};
