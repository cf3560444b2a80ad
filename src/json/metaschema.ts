/**
 * The schemas of schemas: draft 2020-12 as it is published, one document for each vocabulary, without the texts that say
 * nothing to a checker. A definition may refer to them; everything that is registered is checked against them.
 */
import type { JsonSchema } from '../protocol/loop.js';

/** The dialect that a schema is read as unless it says another. */
export const DIALECT = 'https://json-schema.org/draft/2020-12/schema';

const BASE = 'https://json-schema.org/draft/2020-12/';
const schema = { $dynamicRef: '#meta' };
const schemas = { type: 'object', additionalProperties: schema };
const list = { $ref: '#/$defs/schemaArray' };
const text = { type: 'string' };
const flag = { type: 'boolean' };
const anchor = { $ref: '#/$defs/anchorString' };
const uri = { $ref: '#/$defs/uriString' };
const reference = { $ref: '#/$defs/uriReferenceString' };

type Members = { readonly [name: string]: JsonSchema };

function each(keywords: string, member: JsonSchema): Members {
  return Object.fromEntries(keywords.split(' ').map((keyword) => [keyword, member]));
}

function vocabulary(name: string, properties: Members, $defs?: Members): JsonSchema {
  const $id = `${BASE}meta/${name}`;
  const document = { $schema: DIALECT, $id, $dynamicAnchor: 'meta', type: ['object', 'boolean'], properties };
  return $defs === undefined ? document : { ...document, $defs };
}

const core = vocabulary(
  'core',
  {
    $id: { ...reference, pattern: '^[^#]*#?$' },
    $schema: uri,
    $ref: reference,
    $anchor: anchor,
    $dynamicRef: reference,
    $dynamicAnchor: anchor,
    $vocabulary: { type: 'object', propertyNames: uri, additionalProperties: flag },
    $comment: text,
    $defs: schemas,
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
    ...each('prefixItems allOf anyOf oneOf', list),
    ...each('items contains additionalProperties propertyNames if then else not', schema),
    ...each('properties dependentSchemas', schemas),
    patternProperties: { ...schemas, propertyNames: { format: 'regex' } },
  },
  { schemaArray: { type: 'array', minItems: 1, items: schema } },
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
    ...each('minimum maximum exclusiveMinimum exclusiveMaximum', { type: 'number' }),
    ...each('minLength minItems minProperties', { $ref: '#/$defs/nonNegativeIntegerDefault0' }),
    ...each('maxLength maxItems maxProperties minContains maxContains', { $ref: '#/$defs/nonNegativeInteger' }),
    pattern: { type: 'string', format: 'regex' },
    uniqueItems: flag,
    required: { $ref: '#/$defs/stringArray' },
    dependentRequired: { type: 'object', additionalProperties: { $ref: '#/$defs/stringArray' } },
  },
  {
    nonNegativeInteger: { type: 'integer', minimum: 0 },
    nonNegativeIntegerDefault0: { $ref: '#/$defs/nonNegativeInteger', default: 0 },
    simpleTypes: { enum: ['array', 'boolean', 'integer', 'null', 'number', 'object', 'string'] },
    stringArray: { type: 'array', items: text, uniqueItems: true, default: [] },
  },
);

const unevaluated = vocabulary('unevaluated', { unevaluatedItems: schema, unevaluatedProperties: schema });

const metadata = vocabulary('meta-data', {
  title: text,
  description: text,
  default: true,
  deprecated: flag,
  readOnly: flag,
  writeOnly: flag,
  examples: { type: 'array', items: true },
});

const format = vocabulary('format-annotation', { format: text });

const content = vocabulary('content', { contentEncoding: text, contentMediaType: text, contentSchema: schema });

const whole: JsonSchema = {
  $schema: DIALECT,
  $id: DIALECT,
  $dynamicAnchor: 'meta',
  allOf: ['core', 'applicator', 'unevaluated', 'validation', 'meta-data', 'format-annotation', 'content'].map(
    (name) => ({ $ref: `meta/${name}` }),
  ),
  type: ['object', 'boolean'],
  properties: {
    definitions: schemas,
    dependencies: {
      type: 'object',
      additionalProperties: { anyOf: [schema, { $ref: 'meta/validation#/$defs/stringArray' }] },
    },
    $recursiveAnchor: { $ref: 'meta/core#/$defs/anchorString' },
    $recursiveRef: { $ref: 'meta/core#/$defs/uriReferenceString' },
  },
};

/** The documents by their address. */
export const metaschemas: ReadonlyMap<string, JsonSchema> = new Map([
  [DIALECT, whole],
  [`${BASE}meta/core`, core],
  [`${BASE}meta/applicator`, applicator],
  [`${BASE}meta/unevaluated`, unevaluated],
  [`${BASE}meta/validation`, validation],
  [`${BASE}meta/meta-data`, metadata],
  [`${BASE}meta/format-annotation`, format],
  [`${BASE}meta/content`, content],
]);
