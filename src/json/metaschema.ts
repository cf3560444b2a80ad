/**
 * The metaschemas of JSON Schema draft 2020-12 as published, one document per vocabulary, without titles and comments.
 * Every registered schema is validated against them, and a schema may refer to them.
 */
import type { JsonSchema } from '../protocol/loop.js';

/** The default dialect, and its address. */
export const DRAFT_2020_12 = 'https://json-schema.org/draft/2020-12/schema';

const DRAFT_BASE_URI = 'https://json-schema.org/draft/2020-12/';
const schemaRef = { $dynamicRef: '#meta' };
const schemaMap = { type: 'object', additionalProperties: schemaRef };
const schemaArrayRef = { $ref: '#/$defs/schemaArray' };
const stringType = { type: 'string' };
const booleanType = { type: 'boolean' };
const anchorRef = { $ref: '#/$defs/anchorString' };
const uriRef = { $ref: '#/$defs/uriString' };
const uriReferenceRef = { $ref: '#/$defs/uriReferenceString' };

type SchemaMembers = { readonly [name: string]: JsonSchema };

function forKeywords(keywords: string, member: JsonSchema): SchemaMembers {
  return Object.fromEntries(keywords.split(' ').map((keyword) => [keyword, member]));
}

function vocabulary(name: string, properties: SchemaMembers, $defs?: SchemaMembers): JsonSchema {
  const $id = `${DRAFT_BASE_URI}meta/${name}`;
  const document = { $schema: DRAFT_2020_12, $id, $dynamicAnchor: 'meta', type: ['object', 'boolean'], properties };
  return $defs === undefined ? document : { ...document, $defs };
}

const core = vocabulary(
  'core',
  {
    $id: { ...uriReferenceRef, pattern: '^[^#]*#?$' },
    $schema: uriRef,
    $ref: uriReferenceRef,
    $anchor: anchorRef,
    $dynamicRef: uriReferenceRef,
    $dynamicAnchor: anchorRef,
    $vocabulary: { type: 'object', propertyNames: uriRef, additionalProperties: booleanType },
    $comment: stringType,
    $defs: schemaMap,
  },
  {
    anchorString: { type: 'string', pattern: '^[A-Za-z_][-A-Za-z0-9._]*$' },
    uriString: { type: 'string', format: 'uri' },
    uriReferenceString: { type: 'string', format: 'uri-reference' },
  },
);

const applicator = vocabulary(
  'applicator',
  {
    ...forKeywords('prefixItems allOf anyOf oneOf', schemaArrayRef),
    ...forKeywords('items contains additionalProperties propertyNames if then else not', schemaRef),
    ...forKeywords('properties dependentSchemas', schemaMap),
    patternProperties: { ...schemaMap, propertyNames: { format: 'regex' } },
  },
  { schemaArray: { type: 'array', minItems: 1, items: schemaRef } },
);

const validation = vocabulary(
  'validation',
  {
    type: {
      anyOf: [
        { $ref: '#/$defs/simpleTypes' },
        { type: 'array', items: { $ref: '#/$defs/simpleTypes' }, minItems: 1, uniqueItems: true },
      ],
    },
    const: true,
    enum: { type: 'array', items: true },
    multipleOf: { type: 'number', exclusiveMinimum: 0 },
    ...forKeywords('minimum maximum exclusiveMinimum exclusiveMaximum', { type: 'number' }),
    ...forKeywords('minLength minItems minProperties', { $ref: '#/$defs/nonNegativeIntegerDefault0' }),
    ...forKeywords('maxLength maxItems maxProperties minContains maxContains', { $ref: '#/$defs/nonNegativeInteger' }),
    pattern: { type: 'string', format: 'regex' },
    uniqueItems: booleanType,
    required: { $ref: '#/$defs/stringArray' },
    dependentRequired: { type: 'object', additionalProperties: { $ref: '#/$defs/stringArray' } },
  },
  {
    nonNegativeInteger: { type: 'integer', minimum: 0 },
    nonNegativeIntegerDefault0: { $ref: '#/$defs/nonNegativeInteger', default: 0 },
    simpleTypes: { enum: ['array', 'boolean', 'integer', 'null', 'number', 'object', 'string'] },
    stringArray: { type: 'array', items: stringType, uniqueItems: true, default: [] },
  },
);

const unevaluated = vocabulary('unevaluated', { unevaluatedItems: schemaRef, unevaluatedProperties: schemaRef });

const metadata = vocabulary('meta-data', {
  title: stringType,
  description: stringType,
  default: true,
  deprecated: booleanType,
  readOnly: booleanType,
  writeOnly: booleanType,
  examples: { type: 'array', items: true },
});

const format = vocabulary('format-annotation', { format: stringType });

const content = vocabulary('content', {
  contentEncoding: stringType,
  contentMediaType: stringType,
  contentSchema: schemaRef,
});

const dialectSchema: JsonSchema = {
  $schema: DRAFT_2020_12,
  $id: DRAFT_2020_12,
  $dynamicAnchor: 'meta',
  allOf: ['core', 'applicator', 'unevaluated', 'validation', 'meta-data', 'format-annotation', 'content'].map(
    (name) => ({ $ref: `meta/${name}` }),
  ),
  type: ['object', 'boolean'],
  properties: {
    definitions: schemaMap,
    dependencies: {
      type: 'object',
      additionalProperties: { anyOf: [schemaRef, { $ref: 'meta/validation#/$defs/stringArray' }] },
    },
    $recursiveAnchor: { $ref: 'meta/core#/$defs/anchorString' },
    $recursiveRef: { $ref: 'meta/core#/$defs/uriReferenceString' },
  },
};

/** The metaschemas by address. */
export const metaschemas: ReadonlyMap<string, JsonSchema> = new Map([
  [DRAFT_2020_12, dialectSchema],
  [`${DRAFT_BASE_URI}meta/core`, core],
  [`${DRAFT_BASE_URI}meta/applicator`, applicator],
  [`${DRAFT_BASE_URI}meta/unevaluated`, unevaluated],
  [`${DRAFT_BASE_URI}meta/validation`, validation],
  [`${DRAFT_BASE_URI}meta/meta-data`, metadata],
  [`${DRAFT_BASE_URI}meta/format-annotation`, format],
  [`${DRAFT_BASE_URI}meta/content`, content],
]);
