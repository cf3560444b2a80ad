/** The shape of mappings: a path or a literal, or one for each member. */
import { isObject } from '../../base/own-property.js';
import type { Json, JsonObject } from '../../protocol/json.js';
import { appendPointer, type DefinitionCheck, withSchema } from './shape.js';

/** Why a text is no mapping. */
export const INVALID_PATH_REASON = 'must be a path that starts with $, optional: and a path, or literal: and a text';

const MAPPING_PATH_SCHEMA = { type: 'string', pattern: '^(?:\\$|optional:\\$|literal:)' };
/** Returns the JSON Schema of a mapping. */
export const mappingSchema = (): JsonObject => ({
  anyOf: [MAPPING_PATH_SCHEMA, { type: 'object', additionalProperties: MAPPING_PATH_SCHEMA }],
});

/** Checks the shape of a mapping. What it can read is not known here. */
export const mappingShape: DefinitionCheck = withSchema(mappingSchema, (value, path, issues) => {
  const isMapping = (part: Json): boolean => typeof part === 'string' && /^(?:\$|optional:\$|literal:)/.test(part);
  if (!isObject(value)) {
    if (!isMapping(value)) issues.add(path, INVALID_PATH_REASON);
    return;
  }
  for (const [member, part] of Object.entries(value))
    if (!isMapping(part)) issues.add(appendPointer(path, member), INVALID_PATH_REASON);
});
