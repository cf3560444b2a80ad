/** Compares what a call passes with the input schema of the loop that it calls. */
import { nearestWord } from '../../../base/nearest-word.js';
import { isObject } from '../../../base/own-property.js';
import type { Json, JsonObject } from '../../../protocol/json.js';
import type { JsonSchema } from '../../../protocol/loop.js';
import { type DefinitionIssue, didYouMean } from '../../definition/shape.js';
import { plainMember } from './readable-values.js';

/**
 * Returns why a value with the schema `passed` cannot be the input of a loop with the schema `accepted`, for the member
 * that each issue is about: a path of at most one member. Only what is certain is an issue.
 */
export function inputIssues(accepted: JsonSchema, passed: JsonSchema): readonly DefinitionIssue[] {
  if (areDisjoint(accepted, passed))
    return [
      { path: '', reason: `takes ${typesOf(accepted)?.join(' or ')}, and gets ${typesOf(passed)?.join(' or ')}` },
    ];
  const known = membersOf(passed);
  if (known === undefined) return [];
  const members = membersOf(accepted) ?? {};
  const missing = requiredOf(accepted)
    .filter((name) => !Object.hasOwn(known, name))
    .map((name) => ({ path: '', reason: `requires ${JSON.stringify(name)}, which is not passed` }));
  const wrong = Object.entries(known).flatMap(([name, schema]) => {
    const member = Object.hasOwn(members, name) ? (members[name] as JsonSchema) : undefined;
    const reason = member === undefined ? unknownReason(accepted, passed, name) : typeReason(member, schema, name);
    return reason === undefined ? [] : [{ path: name, reason }];
  });
  return [...missing, ...wrong];
}

function typeReason(accepted: JsonSchema, passed: JsonSchema, name: string): string | undefined {
  if (!areDisjoint(accepted, passed)) return undefined;
  return `takes ${typesOf(accepted)?.join(' or ')} as ${JSON.stringify(name)}, and gets ${typesOf(passed)?.join(' or ')}`;
}

/** A member that is always passed is refused by a schema that has no place for it. */
function unknownReason(accepted: JsonSchema, passed: JsonSchema, name: string): string | undefined {
  const isOpen =
    plainMember(accepted, 'additionalProperties') !== false || plainMember(accepted, 'patternProperties') !== undefined;
  if (isOpen || !requiredOf(passed).includes(name)) return undefined;
  const names = Object.keys(membersOf(accepted) ?? {});
  return `has no input ${JSON.stringify(name)}; known: ${names.join(', ')}${didYouMean(nearestWord(name, names))}`;
}

/** Returns the members of a schema that lists them all; undefined for any other. */
function membersOf(schema: JsonSchema): { readonly [name: string]: JsonSchema } | undefined {
  const properties = plainMember(schema, 'properties');
  const others = plainMember(schema, 'additionalProperties');
  if (others !== undefined && others !== false) return undefined;
  return isObject(properties) ? (properties as { readonly [name: string]: JsonSchema }) : undefined;
}

function requiredOf(schema: JsonSchema): readonly string[] {
  const required = plainMember(schema, 'required');
  return Array.isArray(required) ? required.filter((name) => typeof name === 'string') : [];
}

function areDisjoint(accepted: JsonSchema, passed: JsonSchema): boolean {
  const [some, others] = [typesOf(accepted), typesOf(passed)];
  if (some === undefined || others === undefined) return false;
  // Some numbers are integers.
  const kindOf = (type: string): string => (type === 'integer' ? 'number' : type);
  return !some.some((type) => others.some((other) => kindOf(type) === kindOf(other)));
}

function typesOf(schema: JsonSchema): readonly string[] | undefined {
  const type: Json | undefined = plainMember(schema, 'type');
  if (typeof type === 'string') return [type];
  return Array.isArray(type) ? type.filter((name) => typeof name === 'string') : undefined;
}

/** Returns the schema of an object with these members. Those that are required are always there. */
export function objectSchema(
  properties: { readonly [name: string]: JsonSchema },
  required: readonly string[] = Object.keys(properties),
): JsonObject {
  return { type: 'object', properties: properties as never, required, additionalProperties: false } as JsonObject;
}
