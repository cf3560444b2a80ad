import { registerSchema, type SchemaObject, unregisterSchema, validate } from '@hyperjump/json-schema/draft-2020-12';
import fc from 'fast-check';
import { expect } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import type { Json } from '../protocol/json.js';
import type { JsonSchema } from '../protocol/loop.js';
import { compileSchema } from './schema.js';

const name = fc.constantFrom('a', 'b', 'c', 'toString', 'x/y');
const scalar = fc.constantFrom<Json>(
  null,
  true,
  false,
  0,
  -0,
  1,
  2,
  2.5,
  -3,
  1e21,
  '',
  'a',
  'ab',
  'abc',
  '😀',
  '😀a',
  'b1',
);
const leaf = fc.oneof(
  scalar,
  fc.constantFrom<Json>([], {}, [1, 1], [1, '1'], { a: 1 }, { b: 'a' }, [{ a: 1 }, { a: 1 }]),
);
const value = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    { weight: 3, arbitrary: leaf },
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(name, tie('value'), { maxKeys: 4 }) as fc.Arbitrary<Json>,
  ),
})).value;

const type = fc.constantFrom('object', 'array', 'string', 'number', 'integer', 'boolean', 'null');
const names = fc.uniqueArray(name, { maxLength: 3 });
const small = fc.nat({ max: 3 });
const source = fc.constantFrom('^a', 'b$', '^.{2}$', '[a-c]', '^\\p{L}+$', 'o');

/** Schemas with a few keywords each, over all keywords, with other schemas as subschemas. */
function keywords(schema: fc.Arbitrary<JsonSchema>): fc.Arbitrary<{ [keyword: string]: Json }> {
  const list = fc.array(schema, { minLength: 1, maxLength: 3 });
  const values: { [keyword: string]: fc.Arbitrary<unknown> } = {
    type: fc.oneof(type, fc.uniqueArray(type, { minLength: 1, maxLength: 3 })),
    enum: fc.uniqueArray(leaf, {
      minLength: 1,
      maxLength: 4,
      comparator: (a, b) => JSON.stringify(a) === JSON.stringify(b),
    }),
    const: leaf,
    minimum: small,
    maximum: small,
    exclusiveMinimum: small,
    exclusiveMaximum: small,
    multipleOf: fc.constantFrom(1, 2, 0.5),
    minLength: small,
    maxLength: small,
    pattern: source,
    required: names,
    minProperties: small,
    maxProperties: small,
    properties: fc.dictionary(name, schema, { maxKeys: 3 }),
    patternProperties: fc.dictionary(source, schema, { maxKeys: 2 }),
    additionalProperties: schema,
    propertyNames: schema,
    dependentRequired: fc.dictionary(name, names, { maxKeys: 2 }),
    dependentSchemas: fc.dictionary(name, schema, { maxKeys: 2 }),
    minItems: small,
    maxItems: small,
    prefixItems: list,
    items: schema,
    contains: schema,
    minContains: small,
    maxContains: small,
    uniqueItems: fc.boolean(),
    allOf: list,
    anyOf: list,
    oneOf: list,
    not: schema,
    unevaluatedProperties: schema,
    unevaluatedItems: schema,
  };
  const conditions = fc.tuple(schema, schema, schema).map(([condition, thenSchema, elseSchema]) =>
    Object.fromEntries([
      ['if', condition],
      ['then', thenSchema],
      ['else', elseSchema],
    ]),
  );
  const pairs = Object.entries(values).map(([keyword, arbitrary]) => arbitrary.map((part) => ({ [keyword]: part })));
  const several = fc.array(fc.oneof(...pairs, conditions), { minLength: 1, maxLength: 4 });
  return several.map((parts) => Object.assign({}, ...parts));
}

const schema = fc.letrec<{ schema: JsonSchema }>((tie) => ({
  schema: fc.oneof(
    { depthSize: 'small', maxDepth: 3 },
    { weight: 1, arbitrary: fc.boolean() },
    { weight: 3, arbitrary: keywords(fc.boolean()) },
    { weight: 6, arbitrary: keywords(tie('schema')) },
  ),
})).schema;

const DRAFT = 'https://json-schema.org/draft/2020-12/schema';

/** The results of an independent validator. */
async function referenceResults(document: JsonSchema, items: readonly Json[]): Promise<boolean[]> {
  const uri = 'https://example.com/random';
  registerSchema(document as SchemaObject, uri, DRAFT);
  try {
    const validateItem = await validate(uri);
    return items.map((item) => validateItem(structuredClone(item) as Parameters<typeof validateItem>[0]).valid);
  } finally {
    unregisterSchema(uri);
  }
}

verifies('schema.valid', 'random schemas and values have the same results as an independent validator', async () => {
  await fc.assert(
    fc.asyncProperty(schema, fc.array(value, { minLength: 4, maxLength: 8 }), async (document, items) => {
      const ours = compileSchema(document, '');
      expect(items.map((item) => ours.isValid(item))).toEqual(await referenceResults(document, items));
      expect(items.map((item) => ours.issues(item).length === 0)).toEqual(items.map((item) => ours.isValid(item)));
    }),
    { numRuns: 1_000 },
  );
});

verifies('schema.pure', 'validation is repeatable and leaves the value unchanged', () => {
  fc.assert(
    fc.property(schema, value, (document, item) => {
      const text = JSON.stringify(item);
      const { isValid, issues } = compileSchema(document, '');
      const results = [isValid(item), issues(item).length === 0, isValid(JSON.parse(text))];
      expect(new Set(results).size).toBe(1);
      expect(JSON.stringify(item)).toBe(text);
    }),
    { numRuns: 500 },
  );
});

const allKeywords =
  '$id $schema $ref $anchor $dynamicRef $dynamicAnchor $vocabulary $comment $defs definitions dependencies type enum const ' +
  'minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength pattern required minProperties ' +
  'maxProperties properties patternProperties additionalProperties propertyNames dependentRequired dependentSchemas ' +
  'minItems maxItems prefixItems items contains minContains maxContains uniqueItems allOf anyOf oneOf not if then else ' +
  'unevaluatedProperties unevaluatedItems title description default deprecated readOnly writeOnly examples format ' +
  'contentEncoding contentMediaType contentSchema';
const keywordValue = fc.oneof(
  leaf,
  fc.constantFrom<Json>(
    'object',
    ['a', 'b'],
    ['string', 'null'],
    [true],
    [{}],
    [{ type: 'strng' }],
    { a: true },
    { a: ['b'] },
  ),
  fc.constantFrom<Json>(
    { a: { type: 'strng' } },
    { a: { minLength: -1 } },
    'https://example.com/',
    '#a',
    'a#b',
    '-1',
    1.5,
    -1,
  ),
);
const nearlyValidSchema = fc.dictionary(fc.constantFrom(...allKeywords.split(' ')), keywordValue, {
  minKeys: 1,
  maxKeys: 3,
}) as fc.Arbitrary<Json>;

verifies('schema.registration', 'the bundled metaschema accepts the same schemas as the published one', async () => {
  const meta = compileSchema({ $ref: DRAFT }, '');
  await fc.assert(
    fc.asyncProperty(fc.array(nearlyValidSchema, { minLength: 20, maxLength: 20 }), async (documents) => {
      const expected = await referenceResults({ $ref: DRAFT }, documents);
      expect(documents.filter((item) => meta.isValid(item))).toEqual(documents.filter((_, index) => expected[index]));
    }),
    { numRuns: 200 },
  );
});
