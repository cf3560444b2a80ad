/** The JSON Schema of a grant, for editors. It accepts every grant that `parseGrant` accepts, and some others. */
import { ISO_TIME_PATTERN } from '../../base/iso-time.js';
import type { Grant, GrantLimits } from '../../protocol/grant.js';
import type { JsonObject } from '../../protocol/json.js';

const texts: JsonObject = { type: 'array', items: { type: 'string' }, maxItems: 1000 };
const limit: JsonObject = { type: 'integer', minimum: 0, maximum: Number.MAX_SAFE_INTEGER };

const limitProperties = {
  turns: limit,
  modelRounds: limit,
  toolRounds: limit,
  inputTokens: limit,
  outputTokens: limit,
  costMicros: limit,
  effects: { anyOf: [limit, { type: 'object', additionalProperties: limit }] },
  wallMs: limit,
  fanOut: limit,
  depth: limit,
} as const satisfies Record<keyof Required<GrantLimits>, JsonObject>;

const grantProperties = {
  id: { type: 'string', pattern: '^[A-Za-z0-9_@-][A-Za-z0-9_@.:-]{0,99}$' },
  allowedTools: texts,
  scopes: texts,
  arguments: { type: 'object', additionalProperties: { type: ['object', 'boolean'] } },
  review: { type: 'object', additionalProperties: { enum: ['ask', 'blocked'] } },
  limits: { type: 'object', properties: limitProperties, additionalProperties: false },
  roots: texts,
  destinations: texts,
  unconfined: texts,
  approvers: texts,
  expiresAt: { type: 'string', pattern: ISO_TIME_PATTERN.source },
} as const satisfies Record<keyof Required<Grant>, JsonObject>;

/** Returns the JSON Schema of a grant. */
export function grantSchema(): JsonObject {
  return {
    type: 'object',
    properties: grantProperties,
    required: ['allowedTools', 'limits'],
    additionalProperties: false,
  };
}
