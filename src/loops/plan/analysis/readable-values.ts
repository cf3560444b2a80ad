/**
 * What is known of the values that a step of a plan can read, as JSON Schemas. A name without a schema cannot be read;
 * an empty schema stands for any value.
 */
import { isObject } from '../../../base/own-property.js';
import { canonicalJson } from '../../../json/canonical.js';
import type { Json, JsonObject } from '../../../protocol/json.js';
import type { JsonSchema } from '../../../protocol/loop.js';

/** Schemas by name. */
export type Schemas = { readonly [name: string]: JsonSchema };

/** The values that can be read at one point of a plan. */
export interface PlanTypes {
  /** What can be read here. */
  readonly values: Schemas;
  /** What only a repetition can read, because a later step of an earlier repetition captures it. */
  readonly carried: Schemas;
}

/** The schema of any value. */
export const ANY: JsonSchema = {};

/** Returns the schema of the result of a step whose output has this schema. */
export function resultSchema(output: JsonSchema): JsonSchema {
  return {
    type: 'object',
    properties: {
      ok: { type: 'boolean' },
      status: { type: 'string' },
      output: output as Json,
      error: { type: 'object', properties: { code: { type: 'string' }, message: { type: 'string' } } },
    },
    additionalProperties: false,
  };
}

/** The schema of a result with any output. */
export const ANY_RESULT = resultSchema(ANY);

/** Returns the types with further or other values. */
export function withValues(types: PlanTypes, values: Schemas): PlanTypes {
  return { ...types, values: { ...types.values, ...values } };
}

/** Returns the types with this result of the last step, under `result` and under the name that captures it. */
export function withResult(types: PlanTypes, result: JsonSchema, capture?: string): PlanTypes {
  return withValues(types, capture === undefined ? { result } : { result, [capture]: result });
}

/** Returns the types of steps that run only on a condition, which may say that a repetition has captured a name. */
export function onCondition(types: PlanTypes): PlanTypes {
  return { ...types, values: { ...types.carried, ...types.values } };
}

/** Returns what can be read after steps that ran on a condition: no longer what only the condition made readable. */
export function afterCondition(before: PlanTypes, after: PlanTypes): PlanTypes {
  const isKept = ([name, schema]: readonly [string, JsonSchema]): boolean =>
    Object.hasOwn(before.values, name) || schema !== before.carried[name];
  return { ...before, values: Object.fromEntries(Object.entries(after.values).filter(isKept)) };
}

/** Returns the types after one of several paths: all names, each with its schema if all paths agree on it. */
export function mergeTypes(first: PlanTypes, ...others: readonly PlanTypes[]): PlanTypes {
  const values: { [name: string]: JsonSchema } = { ...first.values };
  for (const other of others)
    for (const [name, schema] of Object.entries(other.values)) {
      const known = Object.hasOwn(values, name) ? values[name] : schema;
      values[name] = known !== undefined && isSameSchema(known, schema) ? schema : ANY_RESULT;
    }
  return { ...first, values };
}

function isSameSchema(first: JsonSchema, second: JsonSchema): boolean {
  return first === second || canonicalJson(first as Json) === canonicalJson(second as Json);
}

/** Returns the types after a block: the names that exist only inside of it are those of the types before it. */
export function afterBlock(before: PlanTypes, inside: PlanTypes, blockNames: readonly string[]): PlanTypes {
  const values: { [name: string]: JsonSchema } = { ...inside.values };
  for (const name of blockNames) {
    const outer = before.values[name];
    if (outer === undefined) delete values[name];
    else values[name] = outer;
  }
  return { values, carried: before.carried };
}

/** Returns the schema of the member at a path, or any value if it is not known. */
export function schemaAt(types: Schemas, path: readonly (string | number | undefined)[]): JsonSchema {
  const [name, ...segments] = path;
  let schema: JsonSchema | undefined = typeof name === 'string' ? types[name] : undefined;
  for (const segment of segments)
    schema = typeof segment === 'string' ? memberSchema(schema, segment) : elements(schema);
  return schema ?? ANY;
}

function memberSchema(schema: JsonSchema | undefined, name: string): JsonSchema | undefined {
  const properties = plainMember(schema, 'properties');
  const member = isObject(properties) && Object.hasOwn(properties, name) ? properties[name] : undefined;
  return member as JsonSchema | undefined;
}

/** Returns the schema of the elements of a list, or any value if it is not known. */
export function elements(schema: JsonSchema | undefined): JsonSchema {
  if (plainMember(schema, 'prefixItems') !== undefined) return ANY;
  return (plainMember(schema, 'items') as JsonSchema | undefined) ?? ANY;
}

/** Returns a member of a schema, unless another keyword may say more about the value. */
function plainMember(schema: JsonSchema | undefined, name: string): Json | undefined {
  if (!isObject(schema as Json)) return undefined;
  const object = schema as JsonObject;
  return ['$ref', '$dynamicRef', 'allOf', 'anyOf', 'oneOf', 'if'].some((keyword) => Object.hasOwn(object, keyword))
    ? undefined
    : object[name];
}
