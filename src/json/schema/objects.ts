/** The keywords for objects. Only own members count, so `toString` is a name like any other. */
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

/** The rule of one member that `properties` or `required` names. */
interface PropertyRule {
  readonly name: string;
  readonly rule: CompiledSchema | undefined;
  readonly typeCode: TypeCode;
  readonly checkRest: SchemaCheck | undefined;
  readonly isRequired: boolean;
}

function propertyRulesOf(context: KeywordContext): PropertyRule[] {
  const { properties = {}, required: names } = context.schema;
  const rules = new Map(
    Object.entries(properties as SchemaMap).map(([name, part]) => [name, context.compileChild(part)]),
  );
  const required = new Set(names as readonly string[] | undefined);
  return [...new Set([...rules.keys(), ...required])].map((name) => {
    const rule = rules.get(name);
    const { typeCode = 0, checkRest } = rule ?? {};
    return { name, rule, typeCode, checkRest, isRequired: required.has(name) };
  });
}

/** True if only the members of `properties` are allowed; counting the members then suffices to check that. */
function isClosedObject({ schema }: KeywordContext): boolean {
  return (
    schema.additionalProperties === false && schema.properties !== undefined && schema.patternProperties === undefined
  );
}

/** `properties`, `required` and `additionalProperties: false` in one loop. It is the hot path of validation. */
const propertiesKeyword: KeywordCompiler = (context) => {
  const propertyRules = propertyRulesOf(context);
  const isClosed = isClosedObject(context);
  const check: SchemaCheck = (fields, evaluated) => {
    if (!isObject(fields)) return true;
    let matched = 0;
    for (let i = 0; i < propertyRules.length; i++) {
      const { name, typeCode, checkRest, isRequired, rule } = propertyRules[i] as PropertyRule;
      const member = fields[name];
      if (member === undefined || !hasOwn(fields, name)) {
        if (isRequired) return false;
        continue;
      }
      if (!hasType(typeCode, member) || (checkRest !== undefined && !checkRest(member))) return false;
      if (rule === undefined) continue;
      matched += 1;
      if (evaluated !== undefined) evaluated.propertyNames.add(name);
    }
    return !isClosed || countProperties(fields) === matched;
  };
  return { check, explain: explainProperties(propertyRules, isClosed) };
};

function explainProperties(propertyRules: readonly PropertyRule[], isClosed: boolean): ExplainIssues {
  const names = new Set(propertyRules.filter(({ rule }) => rule !== undefined).map(({ name }) => name));
  return (value, at, report) => {
    const fields = value as UnknownObject;
    for (const { name, isRequired, rule } of propertyRules) {
      if (report.isFull) return;
      const isPresent = hasProperty(fields, name);
      if (isRequired && !isPresent) report.add(at, `must have the property ${quoteJson(name)}`, 'required');
      if (rule !== undefined && isPresent && !rule.check(fields[name]))
        rule.explain(fields[name], appendPointer(at, name), report);
    }
    if (!isClosed) return;
    for (const name of definedNames(fields))
      if (!names.has(name)) report.add(appendPointer(at, name), 'is not allowed', ADDITIONAL_PROPERTIES);
  };
}

/** Counts the defined own members. */
function countProperties(fields: UnknownObject): number {
  let count = 0;
  for (const name in fields) if (hasProperty(fields, name)) count += 1;
  return count;
}

/** Returns a rule that requires the members whose names `matches` selects to be valid under a schema. */
function matchingPropertiesRule(rule: CompiledSchema, matches: (name: string) => boolean): SchemaRule {
  const check: SchemaCheck = (fields, evaluated) => {
    if (!isObject(fields)) return true;
    for (const name in fields) {
      const member = fields[name];
      if (member === undefined || !hasOwn(fields, name) || !matches(name)) continue;
      if (!rule.check(member)) return false;
      if (evaluated !== undefined) evaluated.propertyNames.add(name);
    }
    return true;
  };
  return eachPartRule(check, (fields: UnknownObject) =>
    definedNames(fields)
      .filter(matches)
      .map((name) => [rule, fields[name], name] as const),
  );
}

const patternProperties: KeywordCompiler = (context, value) => {
  const rules = Object.entries(value as SchemaMap).map(([source, schema]) => {
    const pattern = context.compilePattern(source);
    return matchingPropertiesRule(context.compileChild(schema), (name) => pattern.test(name));
  });
  return {
    check: (fields, evaluated) => rules.every((rule) => rule.check(fields, evaluated)),
    explain: (fields, at, report) => {
      for (const rule of rules) rule.explain(fields, at, report);
    },
  };
};

const additionalProperties: KeywordCompiler = (context, value) => {
  if (isClosedObject(context)) return undefined;
  const { properties = {}, patternProperties: patternSchemas = {} } = context.schema;
  const names = new Set(Object.keys(properties as SchemaMap));
  const patterns: LinearPattern[] = Object.keys(patternSchemas as SchemaMap).map((source) =>
    context.compilePattern(source),
  );
  const rule = context.compileChild(value);
  if (patterns.length === 0) return matchingPropertiesRule(rule, (name) => !names.has(name));
  return matchingPropertiesRule(rule, (name) => !names.has(name) && !patterns.some((pattern) => pattern.test(name)));
};

const propertyNames: KeywordCompiler = (context, value) => {
  const rule = context.compileChild(value);
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
  isWithin: (count: number, bound: number) => boolean,
  qualifier: string,
): KeywordCompiler {
  return (_, bound) =>
    assertionRule(
      keyword,
      (fields) => !isObject(fields) || isWithin(countProperties(fields), bound as number),
      `must have ${qualifier} ${bound} properties`,
    );
}

/** Returns a rule that applies only to objects with a member of this name. */
function whenPresent(name: string, rule: SchemaRule): SchemaRule {
  return {
    check: (fields, evaluated) => !isObject(fields) || !hasProperty(fields, name) || rule.check(fields, evaluated),
    explain: (fields, at, report) => rule.explain(fields, at, report),
  };
}

function allRules(rules: readonly SchemaRule[]): SchemaRule {
  return {
    check: (value, evaluated) => rules.every((rule) => rule.check(value, evaluated)),
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

/** `dependentSchemas`, and `dependencies` of older drafts, which mixes schemas and lists of names. */
const dependentSchemas: KeywordCompiler = (context, value) =>
  allRules(
    Object.entries(value as SchemaMap).flatMap(([name, schema]) =>
      Array.isArray(schema)
        ? requiredWhenPresent(name, schema as string[])
        : whenPresent(name, context.compileInPlace(schema)),
    ),
  );

/** `unevaluatedProperties`. It applies to the members that no other keyword has evaluated. */
export const unevaluatedProperties: KeywordCompiler = (context, value) => {
  const rule = context.compileChild(value);
  const check: SchemaCheck = (fields, evaluated) => {
    if (!isObject(fields) || evaluated === undefined) return true;
    for (const name of definedNames(fields)) {
      if (evaluated.propertyNames.has(name)) continue;
      if (!rule.check(fields[name])) return false;
      evaluated.propertyNames.add(name);
    }
    return true;
  };
  return eachPartRule(check, (fields: UnknownObject, evaluated): RulePart[] =>
    definedNames(fields)
      .filter((name) => !evaluated?.propertyNames.has(name))
      .map((name) => [rule, fields[name], name] as const),
  );
};

/** The compilers of the object keywords, except `unevaluatedProperties`. */
export const objectKeywords: { readonly [keyword: string]: KeywordCompiler } = {
  required: (context, value) =>
    context.schema.properties === undefined ? propertiesKeyword(context, value) : undefined,
  minProperties: propertyCountKeyword('minProperties', (count, bound) => count >= bound, 'at least'),
  maxProperties: propertyCountKeyword('maxProperties', (count, bound) => count <= bound, 'at most'),
  properties: propertiesKeyword,
  patternProperties,
  additionalProperties,
  propertyNames,
  dependentRequired,
  dependentSchemas,
  dependencies: dependentSchemas,
};
