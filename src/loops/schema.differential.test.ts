import { Ajv2020 } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { expect } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import type { Json } from '../protocol/json.js';
import type { JsonSchema } from '../protocol/loop.js';
import { compileSchema } from './schema.js';

/** An independent validator; what it does otherwise by default is switched to the letter of the draft. */
const ajv = new Ajv2020({ strict: false, ownProperties: true, validateFormats: false, addUsedSchema: false });

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

/** Schemas of every keyword, a few at a time; `schema` is tied to them again. */
function keywords(schema: fc.Arbitrary<JsonSchema>): fc.Arbitrary<{ [keyword: string]: Json }> {
  const list = fc.array(schema, { minLength: 1, maxLength: 3 });
  const one: { [keyword: string]: fc.Arbitrary<unknown> } = {
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
  const conditions = fc.tuple(schema, schema, schema).map((parts) => {
    const [first, second, third] = parts;
    return Object.fromEntries([
      ['if', first],
      ['then', second],
      ['else', third],
    ]);
  });
  const pairs = Object.entries(one).map(([keyword, values]) => values.map((part) => ({ [keyword]: part })));
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

verifies('schema.valid', 'a value passes here that no other validator would let pass, or the other way round', () => {
  fc.assert(
    fc.property(schema, fc.array(value, { minLength: 4, maxLength: 8 }), (document, values) => {
      const ours = compileSchema(document, '');
      const theirs = ajv.compile(document);
      for (const item of values) {
        expect([ours.check(item), item]).toEqual([theirs(item), item]);
        expect(ours.flaws(item).length === 0).toBe(ours.check(item));
      }
    }),
    { numRuns: 20_000 },
  );
});

verifies('schema.pure', 'a check of a random schema changes the value or forgets its answer', () => {
  fc.assert(
    fc.property(schema, value, (document, item) => {
      const text = JSON.stringify(item);
      const { check, flaws } = compileSchema(document, '');
      const answers = [check(item), flaws(item).length === 0, check(JSON.parse(text))];
      expect(new Set(answers).size).toBe(1);
      expect(JSON.stringify(item)).toBe(text);
    }),
    { numRuns: 500 },
  );
});
