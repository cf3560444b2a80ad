/** The keywords that look into objects. Only own members count, so that `toString` is required like any other name. */
import { isObject } from '../../base/own-property.js';
import type { Json } from '../../protocol/json.js';
import type { LinearPattern } from '../pattern.js';
import {
  assertion,
  below,
  type Check,
  type Compiled,
  type Explain,
  type Fields,
  isOf,
  type Kind,
  type Maker,
  namesOf,
  type Part,
  partwise,
  type Rule,
  type Site,
  shown,
} from './rule.js';

type Schemas = { readonly [name: string]: Json };

const { hasOwn } = Object;
const CLOSED = 'additionalProperties';

function has(value: Fields, name: string): boolean {
  return value[name] !== undefined && hasOwn(value, name);
}

/** A member of an object with `properties` and `required`. */
interface Member {
  readonly name: string;
  readonly rule: Compiled | undefined;
  readonly kind: Kind;
  readonly rest: Check | undefined;
  readonly required: boolean;
}

function membersOf(site: Site): Member[] {
  const { properties = {}, required: names } = site.schema;
  const rules = new Map(Object.entries(properties as Schemas).map(([name, part]) => [name, site.below(part)]));
  const required = new Set(names as readonly string[] | undefined);
  return [...new Set([...rules.keys(), ...required])].map((name) => {
    const rule = rules.get(name);
    const { kind = 0, rest } = rule ?? {};
    return { name, rule, kind, rest, required: required.has(name) };
  });
}

/** Whether nothing may be beside the named members, and whether that can be told by counting. */
function isClosed({ schema }: Site): boolean {
  return (
    schema.additionalProperties === false && schema.properties !== undefined && schema.patternProperties === undefined
  );
}

/** `properties` and `required`, and the commonest `additionalProperties`, in one loop: most of all checking is done here. */
const members: Maker = (site) => {
  const list = membersOf(site);
  const closed = isClosed(site);
  const check: Check = (fields, seen) => {
    if (!isObject(fields)) return true;
    let found = 0;
    for (let i = 0; i < list.length; i++) {
      const { name, kind, rest, required, rule } = list[i] as Member;
      const member = fields[name];
      if (member === undefined || !hasOwn(fields, name)) {
        if (required) return false;
        continue;
      }
      if (!isOf(kind, member) || (rest !== undefined && !rest(member))) return false;
      if (rule === undefined) continue;
      found += 1;
      if (seen !== undefined) seen.keys.add(name);
    }
    return !closed || count(fields) === found;
  };
  return { check, explain: explainMembers(list, closed) };
};

function explainMembers(list: readonly Member[], closed: boolean): Explain {
  const names = new Set(list.filter(({ rule }) => rule !== undefined).map(({ name }) => name));
  return (value, at, report) => {
    const fields = value as Fields;
    for (const { name, required, rule } of list) {
      if (report.full) return;
      const there = has(fields, name);
      if (required && !there) report.add(at, `must have the property ${shown(name)}`, 'required');
      if (rule !== undefined && there && !rule.check(fields[name])) rule.explain(fields[name], below(at, name), report);
    }
    if (!closed) return;
    for (const name of namesOf(fields)) if (!names.has(name)) report.add(below(at, name), 'is not allowed', CLOSED);
  };
}

/** How many members are there. */
function count(fields: Fields): number {
  let found = 0;
  for (const name in fields) if (has(fields, name)) found += 1;
  return found;
}

/** The rule that the members with the names that `meant` picks fit their schema. */
function membersRule(rule: Compiled, meant: (name: string) => boolean): Rule {
  const check: Check = (fields, seen) => {
    if (!isObject(fields)) return true;
    for (const name in fields) {
      const member = fields[name];
      if (member === undefined || !hasOwn(fields, name) || !meant(name)) continue;
      if (!rule.check(member)) return false;
      if (seen !== undefined) seen.keys.add(name);
    }
    return true;
  };
  return partwise(check, (fields: Fields) =>
    namesOf(fields)
      .filter(meant)
      .map((name) => [rule, fields[name], name] as const),
  );
}

const patternProperties: Maker = (site, value) => {
  const rules = Object.entries(value as Schemas).map(([source, schema]) => {
    const pattern = site.pattern(source);
    return membersRule(site.below(schema), (name) => pattern.test(name));
  });
  return {
    check: (fields, seen) => rules.every((rule) => rule.check(fields, seen)),
    explain: (fields, at, report) => {
      for (const rule of rules) rule.explain(fields, at, report);
    },
  };
};

const additionalProperties: Maker = (site, value) => {
  if (isClosed(site)) return undefined;
  const { properties: named = {}, patternProperties: matched = {} } = site.schema;
  const names = new Set(Object.keys(named as Schemas));
  const patterns: LinearPattern[] = Object.keys(matched as Schemas).map((source) => site.pattern(source));
  const rule = site.below(value);
  if (patterns.length === 0) return membersRule(rule, (name) => !names.has(name));
  return membersRule(rule, (name) => !names.has(name) && !patterns.some((pattern) => pattern.test(name)));
};

const propertyNames: Maker = (site, value) => {
  const rule = site.below(value);
  return {
    check: (fields) => !isObject(fields) || namesOf(fields).every((name) => rule.check(name)),
    explain: (fields, at, report) => {
      for (const name of namesOf(fields as Fields)) {
        if (report.full) return;
        if (!rule.check(name)) report.add(below(at, name), 'has a name that is not allowed', 'propertyNames');
      }
    },
  };
};

function counted(keyword: string, fits: (found: number, bound: number) => boolean, words: string): Maker {
  return (_, bound) =>
    assertion(
      keyword,
      (fields) => !isObject(fields) || fits(count(fields), bound as number),
      `must have ${words} ${bound} properties`,
    );
}

function dependent(name: string, rule: Rule): Rule {
  return {
    check: (fields, seen) => !isObject(fields) || !has(fields, name) || rule.check(fields, seen),
    explain: (fields, at, report) => rule.explain(fields, at, report),
  };
}

function together(rules: readonly Rule[]): Rule {
  return {
    check: (value, seen) => rules.every((rule) => rule.check(value, seen)),
    explain: (value, at, report) => {
      for (const rule of rules) if (!rule.check(value)) rule.explain(value, at, report);
    },
  };
}

function needs(name: string, names: readonly string[]): Rule[] {
  return names.map((other) =>
    dependent(
      name,
      assertion(
        'dependentRequired',
        (fields) => has(fields as Fields, other),
        `must have the property ${shown(other)}, because it has ${shown(name)}`,
      ),
    ),
  );
}

const dependentRequired: Maker = (_, value) =>
  together(Object.entries(value as { [name: string]: string[] }).flatMap(([name, names]) => needs(name, names)));

/** Both forms: `dependencies` of the older drafts has schemas and lists of names side by side. */
const dependentSchemas: Maker = (site, value) =>
  together(
    Object.entries(value as Schemas).flatMap(([name, schema]) =>
      Array.isArray(schema) ? needs(name, schema as string[]) : dependent(name, site.here(schema)),
    ),
  );

export const unevaluatedProperties: Maker = (site, value) => {
  const rule = site.below(value);
  const check: Check = (fields, seen) => {
    if (!isObject(fields) || seen === undefined) return true;
    for (const name of namesOf(fields)) {
      if (seen.keys.has(name)) continue;
      if (!rule.check(fields[name])) return false;
      seen.keys.add(name);
    }
    return true;
  };
  return partwise(check, (fields: Fields, seen): Part[] =>
    namesOf(fields)
      .filter((name) => !seen?.keys.has(name))
      .map((name) => [rule, fields[name], name] as const),
  );
};

export const objects: { readonly [keyword: string]: Maker } = {
  required: (site, value) => (site.schema.properties === undefined ? members(site, value) : undefined),
  minProperties: counted('minProperties', (found, bound) => found >= bound, 'at least'),
  maxProperties: counted('maxProperties', (found, bound) => found <= bound, 'at most'),
  properties: members,
  patternProperties,
  additionalProperties,
  propertyNames,
  dependentRequired,
  dependentSchemas,
  dependencies: dependentSchemas,
};
