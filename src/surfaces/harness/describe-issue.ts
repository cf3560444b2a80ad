/** Describes what is wrong with a harness file: an unknown member or value is reported with those that are known there. */
import { nearestWord } from '../../base/nearest-word.js';
import { isObject, ownProperty } from '../../base/own-property.js';
import type { SchemaIssue } from '../../json/schema.js';
import { didYouMean } from '../../loops/definition/shape.js';
import type { JsonSchema } from '../../protocol/loop.js';

/** Returns the message of an issue that a schema has found. */
export function describeIssue({ path, message, keyword }: SchemaIssue, schema: JsonSchema): string {
  const tokens = path.split('/').slice(1);
  if (keyword === 'enum') {
    const values = ownProperty(schemaAt(schema, tokens), 'enum');
    return Array.isArray(values)
      ? `must be one of ${values.map((value) => JSON.stringify(value)).join(', ')}`
      : message;
  }
  const known = ownProperty(schemaAt(schema, tokens.slice(0, -1)), 'properties');
  if (keyword !== 'additionalProperties' || !isObject(known)) return message;
  const names = Object.keys(known);
  return `${message}; known here: ${names.join(', ')}${didYouMean(nearestWord(tokens.at(-1) ?? '', names))}`;
}

/** Returns the schema of a part; undefined if nothing is said about it. */
function schemaAt(schema: JsonSchema, tokens: readonly string[]): unknown {
  return tokens.reduce<unknown>(
    (part, token) => ownProperty(ownProperty(part, 'properties'), token) ?? ownProperty(part, 'items'),
    schema,
  );
}
