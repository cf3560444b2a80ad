/** The keywords that look into objects. Only own members count, so that `toString` is required like any other name. */
import { isObject } from '../../base/own-property.js';
import type { Json } from '../../protocol/json.js';
import type { LinearPattern } from '../linear-pattern.js';
import {
  appendPointer,
  assertionRule,
  type CompiledSchema,
  definedNames,
  type ExplainIssues,
  eachPartRule,
  hasType,
  type KeywordCompiler,
  type KeywordContext,
  quoteJson,
  type RulePart,
  type SchemaCheck,
  type SchemaRule,
  type TypeCode,
  type UnknownObject,
} from './rule.js';

type SchemaMap = { readonly [name: string]: Json };

const { hasOwn } = Object;
const ADDITIONAL_PROPERTIES = 'additionalProperties';

function hasProperty(value: UnknownObject, name: string): boolean {
  return value[name] !== undefined && hasOwn(value, name);
}

/** A member of an object with `properties` and `required`. */
interface PropertyRule {
  readonly name: string;
  readonly rule: CompiledSchema | undefined;
  readonly typeCode: TypeCode;
  readonly checkRest: SchemaCheck | undefined;
  readonly isRequired: boolean;
}

function propertyRulesOf(site: KeywordContext): PropertyRule[] {
  const { properties = {}, required: names } = site.schema;
  const rules = new Map(Object.entries(properties as SchemaMap).map(([name, part]) => [name, site.compileChild(part)]));
  const required = new Set(names as readonly string[] | undefined);
  return [...new Set([...rules.keys(), ...required])].map((name) => {
    const rule = rules.get(name);
    const { typeCode = 0, checkRest } = rule ?? {};
    return { name, rule, typeCode, checkRest, isRequired: required.has(name) };
  });
}

/** Whether nothing may be beside the named members, and whether that can be told by counting. */
function isClosedObject({ schema }: KeywordContext): boolean {
  return (
    schema.additionalProperties === false && schema.properties !== undefined && schema.patternProperties === undefined
  );
}

/** `properties` and `required`, and the commonest `additionalProperties`, in one loop: most of all checking is done here. */
const propertiesKeyword: KeywordCompiler = (site) => {
  const list = propertyRulesOf(site);
  const closed = isClosedObject(site);
  const check: SchemaCheck = (fields, seen) => {
    if (!isObject(fields)) return true;
    let found = 0;
    for (let i = 0; i < list.length; i++) {
      const { name, typeCode, checkRest, isRequired, rule } = list[i] as PropertyRule;
      const member = fields[name];
      if (member === undefined || !hasOwn(fields, name)) {
        if (isRequired) return false;
        continue;
      }
      if (!hasType(typeCode, member) || (checkRest !== undefined && !checkRest(member))) return false;
      if (rule === undefined) continue;
      found += 1;
      if (seen !== undefined) seen.propertyNames.add(name);
    }
    return !closed || countProperties(fields) === found;
  };
  return { check, explain: explainProperties(list, closed) };
};

function explainProperties(list: readonly PropertyRule[], closed: boolean): ExplainIssues {
  const names = new Set(list.filter(({ rule }) => rule !== undefined).map(({ name }) => name));
  return (value, at, report) => {
    const fields = value as UnknownObject;
    for (const { name, isRequired, rule } of list) {
      if (report.isFull) return;
      const there = hasProperty(fields, name);
      if (isRequired && !there) report.add(at, `must have the property ${quoteJson(name)}`, 'required');
      if (rule !== undefined && there && !rule.check(fields[name]))
        rule.explain(fields[name], appendPointer(at, name), report);
    }
    if (!closed) return;
    for (const name of definedNames(fields))
      if (!names.has(name)) report.add(appendPointer(at, name), 'is not allowed', ADDITIONAL_PROPERTIES);
  };
}

/** How many members are there. */
function countProperties(fields: UnknownObject): number {
  let found = 0;
  for (const name in fields) if (hasProperty(fields, name)) found += 1;
  return found;
}

/** The rule that the members with the names that `meant` picks fit their schema. */
function matchingPropertiesRule(rule: CompiledSchema, meant: (name: string) => boolean): SchemaRule {
  const check: SchemaCheck = (fields, seen) => {
    if (!isObject(fields)) return true;
    for (const name in fields) {
      const member = fields[name];
      if (member === undefined || !hasOwn(fields, name) || !meant(name)) continue;
      if (!rule.check(member)) return false;
      if (seen !== undefined) seen.propertyNames.add(name);
    }
    return true;
  };
  return eachPartRule(check, (fields: UnknownObject) =>
    definedNames(fields)
      .filter(meant)
      .map((name) => [rule, fields[name], name] as const),
  );
}

const patternProperties: KeywordCompiler = (site, value) => {
  const rules = Object.entries(value as SchemaMap).map(([source, schema]) => {
    const pattern = site.compilePattern(source);
    return matchingPropertiesRule(site.compileChild(schema), (name) => pattern.test(name));
  });
  return {
    check: (fields, seen) => rules.every((rule) => rule.check(fields, seen)),
    explain: (fields, at, report) => {
      for (const rule of rules) rule.explain(fields, at, report);
    },
  };
};

const additionalProperties: KeywordCompiler = (site, value) => {
  if (isClosedObject(site)) return undefined;
  const { properties: named = {}, patternProperties: matched = {} } = site.schema;
  const names = new Set(Object.keys(named as SchemaMap));
  const patterns: LinearPattern[] = Object.keys(matched as SchemaMap).map((source) => site.compilePattern(source));
  const rule = site.compileChild(value);
  if (patterns.length === 0) return matchingPropertiesRule(rule, (name) => !names.has(name));
  return matchingPropertiesRule(rule, (name) => !names.has(name) && !patterns.some((pattern) => pattern.test(name)));
};

const propertyNames: KeywordCompiler = (site, value) => {
  const rule = site.compileChild(value);
  return {
    check: (fields) => !isObject(fields) || definedNames(fields).every((name) => rule.check(name)),
    explain: (fields, at, report) => {
      for (const name of definedNames(fields as UnknownObject)) {
        if (report.isFull) return;
        if (!rule.check(name)) report.add(appendPointer(at, name), 'has a name that is not allowed', 'propertyNames');
      }
    },
  };
};

function propertyCountKeyword(
  keyword: string,
  fits: (found: number, bound: number) => boolean,
  words: string,
): KeywordCompiler {
  return (_, bound) =>
    assertionRule(
      keyword,
      (fields) => !isObject(fields) || fits(countProperties(fields), bound as number),
      `must have ${words} ${bound} properties`,
    );
}

function whenPresent(name: string, rule: SchemaRule): SchemaRule {
  return {
    check: (fields, seen) => !isObject(fields) || !hasProperty(fields, name) || rule.check(fields, seen),
    explain: (fields, at, report) => rule.explain(fields, at, report),
  };
}

function allRules(rules: readonly SchemaRule[]): SchemaRule {
  return {
    check: (value, seen) => rules.every((rule) => rule.check(value, seen)),
    explain: (value, at, report) => {
      for (const rule of rules) if (!rule.check(value)) rule.explain(value, at, report);
    },
  };
}

function requiredWhenPresent(name: string, names: readonly string[]): SchemaRule[] {
  return names.map((other) =>
    whenPresent(
      name,
      assertionRule(
        'dependentRequired',
        (fields) => hasProperty(fields as UnknownObject, other),
        `must have the property ${quoteJson(other)}, because it has ${quoteJson(name)}`,
      ),
    ),
  );
}

const dependentRequired: KeywordCompiler = (_, value) =>
  allRules(
    Object.entries(value as { [name: string]: string[] }).flatMap(([name, names]) => requiredWhenPresent(name, names)),
  );

/** Both forms: `dependencies` of the older drafts has schemas and lists of names side by side. */
const dependentSchemas: KeywordCompiler = (site, value) =>
  allRules(
    Object.entries(value as SchemaMap).flatMap(([name, schema]) =>
      Array.isArray(schema)
        ? requiredWhenPresent(name, schema as string[])
        : whenPresent(name, site.compileInPlace(schema)),
    ),
  );

export const unevaluatedProperties: KeywordCompiler = (site, value) => {
  const rule = site.compileChild(value);
  const check: SchemaCheck = (fields, seen) => {
    if (!isObject(fields) || seen === undefined) return true;
    for (const name of definedNames(fields)) {
      if (seen.propertyNames.has(name)) continue;
      if (!rule.check(fields[name])) return false;
      seen.propertyNames.add(name);
    }
    return true;
  };
  return eachPartRule(check, (fields: UnknownObject, seen): RulePart[] =>
    definedNames(fields)
      .filter((name) => !seen?.propertyNames.has(name))
      .map((name) => [rule, fields[name], name] as const),
  );
};

export const objectKeywords: { readonly [keyword: string]: KeywordCompiler } = {
  required: (site, value) => (site.schema.properties === undefined ? propertiesKeyword(site, value) : undefined),
  minProperties: propertyCountKeyword('minProperties', (found, bound) => found >= bound, 'at least'),
  maxProperties: propertyCountKeyword('maxProperties', (found, bound) => found <= bound, 'at most'),
  properties: propertiesKeyword,
  patternProperties,
  additionalProperties,
  propertyNames,
  dependentRequired,
  dependentSchemas,
  dependencies: dependentSchemas,
};
