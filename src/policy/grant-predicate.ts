/**
 * Predicates of standing grants: JSON Schemas over the arguments of a call. A predicate must limit the value or the
 * range of at least one argument. Two checks prove this: a keyword that can limit a value (`const`, `enum`, a numeric
 * bound, `pattern`, or a keyword that nests these), and counterexamples, other values of which the schema must reject
 * at least one.
 */

import { escapeForDisplay } from '../base/escape-text.js';
import { isObject } from '../base/own-property.js';
import { compileSchema, type Validator } from '../json/schema.js';
import type { Json, JsonObject } from '../protocol/json.js';
import type { JsonSchema } from '../protocol/loop.js';

/** The names of the members that lead from the arguments to a value; empty for the arguments themselves. */
type MemberPath = readonly string[];
interface GrantPredicate {
  readonly schema: Json;
  /** The paths of the arguments that it limits, as JSON arrays; absent in grants of earlier versions. */
  readonly limitedPaths?: readonly string[] | undefined;
}

const NUMERIC_BOUNDS = ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum'] as const;
const MAX_DEPTH = 32;
const MAX_EXAMPLE_CHARS = 300;
/** Bounds on the analysis. What exceeds them does not count as limited. */
const MAX_ALTERNATIVES = 100;
const MAX_PATHS = 100;
const MAX_MEMBERS = 20;

/** True if the schema accepts these arguments, and each argument that the grant limits is still limited. */
export function grantCovers({ schema, limitedPaths }: GrantPredicate, input: Json): boolean {
  if (!schemaAccepts(schema, input)) return false;
  const limited = limitedArguments(schema, input);
  return (
    limited.length > 0 &&
    /* guard: granted-limits-still-apply */ (limitedPaths ?? []).every((path) => limited.includes(path))
  );
}

/** True if a schema accepts these arguments. A schema that cannot be compiled accepts none. */
export function schemaAccepts(schema: Json, input: Json): boolean {
  return validatorAccepts(compileOrUndefined(schema), input);
}

function compileOrUndefined(schema: Json): Validator | undefined {
  try {
    return compileSchema(schema as JsonSchema, 'the standing grant');
  } catch {
    return undefined;
  }
}

function validatorAccepts(validator: Validator | undefined, input: Json): boolean {
  try {
    return validator?.isValid(input) === true;
  } catch {
    return false;
  }
}

/** Returns the paths of the present arguments whose value or range a schema limits, as JSON arrays. */
export function limitedArguments(schema: Json, input: Json): readonly string[] {
  const validator = compileOrUndefined(schema);
  const paths = limitedPaths(schema, input, MAX_DEPTH).slice(0, MAX_PATHS);
  const pathsByName = new Map(paths.map((path) => [JSON.stringify(path), path]));
  return [...pathsByName].flatMap(([name, path]) => {
    const counterexamples = counterexamplesOf(valueAt(input, path));
    return counterexamples.some(
      (other) => /* guard: limit-excludes-other-values */ !validatorAccepts(validator, withValueAt(input, path, other)),
    )
      ? [name]
      : [];
  });
}

/** Returns an example of a predicate for these arguments, as JSON text of bounded length. */
export function examplePredicate(input: Json): string {
  const [name = 'amount', value = 5] = isObject(input) ? (Object.entries(input)[0] ?? []) : [];
  const limit = typeof value === 'number' ? { maximum: value } : { const: value };
  const text = escapeForDisplay(JSON.stringify({ properties: { [name]: limit }, required: [name] }), MAX_EXAMPLE_CHARS);
  return text.length <= MAX_EXAMPLE_CHARS ? text : '{"properties": {"amount": {"maximum": 5}}, "required": ["amount"]}';
}

/** Returns the paths at which keywords of a schema limit the value. `not`, `type` and `required` do not count. */
function limitedPaths(schema: Json, value: Json, depth: number): readonly MemberPath[] {
  if (!isObject(schema) || depth === 0) return [];
  const paths: MemberPath[] = limitsItself(schema, value, depth) ? [[]] : [];
  const { properties, allOf, anyOf, oneOf } = schema;
  if (isObject(properties) && isObject(value)) {
    for (const [name, member] of Object.entries(properties)) {
      if (!Object.hasOwn(value, name)) continue;
      for (const path of limitedPaths(member, value[name] as Json, depth - 1)) paths.push([name, ...path]);
    }
  }
  if (Array.isArray(allOf)) for (const part of allOf) paths.push(...limitedPaths(part, value, depth - 1));
  for (const choice of [anyOf, oneOf]) {
    if (Array.isArray(choice)) paths.push(...limitedInAll(choice.map((part) => limitedPaths(part, value, depth - 1))));
  }
  return paths;
}

/** True if a schema limits the value itself. A keyword for another type does not apply to the value. */
function limitsItself(schema: JsonObject, value: Json, depth: number): boolean {
  if (Object.hasOwn(schema, 'const') || Object.hasOwn(schema, 'enum')) return true;
  if (typeof value === 'number') return NUMERIC_BOUNDS.some((bound) => rejectsOthers(schema, bound, value));
  if (typeof value === 'string') return rejectsOthers(schema, 'pattern', value);
  // `items` does not apply to the items of `prefixItems`.
  const { items = true, prefixItems } = schema;
  if (!Array.isArray(value) || value.length === 0 || prefixItems !== undefined) return false;
  return value.every((item) => limitedPaths(items, item, depth - 1).length > 0);
}

/**
 * True if a keyword by itself rejects a counterexample of the value. A pattern that matches every text rejects none.
 */
function rejectsOthers(schema: JsonObject, keyword: string, value: Json): boolean {
  if (!Object.hasOwn(schema, keyword)) return false;
  const validator = compileOrUndefined({ [keyword]: schema[keyword] ?? null });
  return validator !== undefined && counterexamplesOf(value).some((other) => !validatorAccepts(validator, other));
}

/** Returns the paths that every alternative limits, at the path itself or at a value that contains it. */
function limitedInAll(alternatives: readonly (readonly MemberPath[])[]): readonly MemberPath[] {
  if (alternatives.length > MAX_ALTERNATIVES) return [];
  const isIn = (paths: readonly MemberPath[], path: MemberPath): boolean =>
    paths.some((outer) => outer.every((name, index) => path[index] === name));
  return alternatives.flat().filter((path) => alternatives.every((paths) => isIn(paths, path)));
}

/**
 * Returns values that differ much from this one, mostly of the same type. A schema that accepts all of them limits
 * nothing.
 */
function counterexamplesOf(value: Json | undefined): readonly Json[] {
  if (typeof value === 'string') return [`${value} and more`, `another ${value}`, 'QJX 0451', 'zebra/../42?'];
  if (typeof value === 'number') return [Number.MAX_SAFE_INTEGER, -Number.MAX_SAFE_INTEGER];
  if (typeof value === 'boolean') return [!value];
  if (Array.isArray(value)) {
    const [first, ...rest] = value as readonly Json[];
    return [...counterexamplesOf(first).map((other) => [other, ...rest]), ['QJX 0451']];
  }
  if (!isObject(value)) return ['QJX 0451'];
  const members = Object.entries(value)
    .slice(0, MAX_MEMBERS)
    .flatMap(([name, member]) => counterexamplesOf(member).map((other) => ({ ...value, [name]: other })));
  return [...members, { ...value, 'no such member': 0 }];
}

function valueAt(value: Json | undefined, path: MemberPath): Json | undefined {
  const [name, ...rest] = path;
  if (name === undefined) return value;
  return isObject(value) ? valueAt(value[name], rest) : undefined;
}

function withValueAt(value: Json, path: MemberPath, other: Json): Json {
  const [name, ...rest] = path;
  if (name === undefined || !isObject(value)) return other;
  return { ...value, [name]: withValueAt(value[name] ?? null, rest, other) };
}
