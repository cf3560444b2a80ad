import { expect } from 'vitest';
import { inProcessorTime } from '../../spec/support/processor-time.js';
import { verifies } from '../../spec/verifies.js';
import { LoopError } from '../base/errors.js';
import type { Json } from '../protocol/json.js';
import { compileSchema, createSchemaCheck, type Validator } from './schema.js';

function refusal(schema: unknown): { code: string; path: string; reason: string; message: string } {
  try {
    compileSchema(schema, '/inputSchema');
  } catch (error) {
    if (!(error instanceof LoopError)) throw error;
    return { code: error.code, message: error.message, ...(error.data as { path: string; reason: string }) };
  }
  return { code: 'nothing', path: '', reason: '', message: '' };
}

const paths = (validator: Validator, value: Json) =>
  validator.issues(value).map(({ path, message }) => `${path} ${message}`);

verifies('schema.registration', 'a malformed schema is refused with the location of the mistake', () => {
  const malformed: [schema: unknown, path: string][] = [
    [{ type: 'strng' }, '/type'],
    [{ type: ['string', 'string'] }, '/type'],
    [{ properties: { a: { minLength: -1 } } }, '/properties/a/minLength'],
    [{ properties: { a: { minLength: 1.5 } } }, '/properties/a/minLength'],
    [{ properties: [] }, '/properties'],
    [{ properties: { a: 'string' } }, '/properties/a'],
    [{ required: 'a' }, '/required'],
    [{ required: ['a', 'a'] }, '/required'],
    [{ required: [1] }, '/required/0'],
    [{ enum: 'a' }, '/enum'],
    [{ multipleOf: 0 }, '/multipleOf'],
    [{ minimum: '1' }, '/minimum'],
    [{ allOf: [] }, '/allOf'],
    [{ anyOf: {} }, '/anyOf'],
    [{ additionalProperties: null }, '/additionalProperties'],
    [{ $defs: { a: { uniqueItems: 'yes' } } }, '/$defs/a/uniqueItems'],
    [{ $id: 'a#b' }, '/$id'],
    [{ $anchor: '1a' }, '/$anchor'],
    [{ not: { items: { title: 1 } } }, '/not/items/title'],
  ];
  for (const [schema, path] of malformed) {
    expect(refusal(schema), JSON.stringify(schema)).toMatchObject({
      code: 'DEFINITION_INVALID',
      path: `/inputSchema${path}`,
    });
  }
  expect(refusal({ type: 'strng' }).message).toContain('must be one of "array", "boolean"');
});

verifies('schema.registration', 'a value that is not a schema is refused', () => {
  const cyclic: { self?: unknown } = {};
  cyclic.self = cyclic;
  for (const schema of [undefined, null, 1, 'object', [], [{}], () => true, new Map(), cyclic, { default: 1n }]) {
    expect(refusal(schema).code).toBe('DEFINITION_INVALID');
  }
  expect(refusal(JSON.parse('{"properties": {"__proto__": {}}}')).reason).toContain('__proto__');
  expect(refusal(JSON.parse('{"default": {"a": [{"__proto__": 1}]}}')).reason).toContain('__proto__');
  expect(() => compileSchema({}, '', { documents: {}, strict: true } as object)).toThrow('no option "strict"');
});

verifies('schema.registration', 'a reference that cannot be resolved is refused', () => {
  const dangling: [schema: Json, path: string][] = [
    [{ $ref: '#/$defs/missing' }, '/$ref'],
    [{ properties: { a: { $ref: '#nowhere' } } }, '/properties/a/$ref'],
    [{ $dynamicRef: '#nowhere' }, '/$dynamicRef'],
    [{ $ref: 'other.json' }, '/$ref'],
    [{ $ref: 'https://example.com/schema' }, '/$ref'],
    [{ $ref: '#/$defs/a/b', $defs: { a: { title: 'b' } } }, '/$ref'],
    [{ $ref: '#/required/0', required: ['a'] }, '/$ref'],
    [{ $ref: '#/$defs/toString', $defs: {} }, '/$ref'],
    [{ $ref: '#/%zz' }, '/$ref'],
    [{ $ref: 'http://[' }, '/$ref'],
    [{ $defs: { unused: { $ref: '#gone' } } }, '/$defs/unused/$ref'],
  ];
  for (const [schema, path] of dangling) {
    expect(refusal(schema), JSON.stringify(schema)).toMatchObject({
      code: 'DEFINITION_INVALID',
      path: `/inputSchema${path}`,
    });
  }
  expect(refusal({ $ref: 'https://example.com/schema' }).reason).toContain('nothing is fetched');
  expect(refusal({ $defs: { a: { $id: 'x' }, b: { $id: 'x' } } }).reason).toContain('two schemas');
  expect(refusal({ $defs: { a: { $anchor: 'x' }, b: { $anchor: 'x' } } }).reason).toContain('two schemas');
});

verifies('schema.registration', 'circular references that never descend into the value are refused', () => {
  const circular: Json[] = [
    { $ref: '#' },
    { $defs: { a: { $ref: '#/$defs/b' }, b: { $ref: '#/$defs/a' } }, $ref: '#/$defs/a' },
    { allOf: [{ anyOf: [{ $ref: '#' }] }] },
    { not: { $ref: '#' } },
    JSON.parse('{ "if": true, "then": { "$ref": "#" } }'),
    { dependentSchemas: { a: { $ref: '#' } } },
    { $dynamicAnchor: 'a', $dynamicRef: '#a' },
    { type: 'string', $defs: { unused: { oneOf: [{ $ref: '#/$defs/unused' }] } } },
  ];
  for (const schema of circular) expect(refusal(schema).reason, JSON.stringify(schema)).toContain('back to themselves');
  const tree = { properties: { child: { $ref: '#' } }, items: { $ref: '#' }, additionalProperties: false };
  expect(compileSchema(tree, '').isValid({ child: { child: {} } })).toBe(true);
  expect(compileSchema(tree, '').isValid({ child: { child: { x: 1 } } })).toBe(false);
});

verifies('schema.registration', 'a schema that is too large or nested too deeply is refused', () => {
  let deep: Json = {};
  for (let i = 0; i < 201; i++) deep = { not: deep };
  expect(refusal(deep).reason).toContain('deeper');
  let bottomless: Json = {};
  for (let i = 0; i < 100_000; i++) bottomless = { not: bottomless };
  expect(refusal(bottomless).code).toBe('DEFINITION_INVALID');
  expect(refusal({ enum: Array.from({ length: 150_000 }, (_, i) => `v${i}`) }).reason).toContain('larger');
  const chain: { [name: string]: Json } = { d0: { type: 'string' } };
  for (let i = 1; i < 5_000; i++) chain[`d${i}`] = { $ref: `#/$defs/d${i - 1}` };
  expect(compileSchema({ $defs: chain, $ref: '#/$defs/d9' }, '').isValid('text')).toBe(true);
  expect(typeof compileSchema({ $defs: chain, $ref: '#/$defs/d4999' }, '').isValid('text')).toBe('boolean');
});

verifies('schema.registration', 'an older draft is accepted only where its meaning is the same', () => {
  const draft7 = 'http://json-schema.org/draft-07/schema#';
  const same = {
    $schema: draft7,
    definitions: { name: { type: 'string', minLength: 1 } },
    properties: { name: { $ref: '#/definitions/name' }, both: { dependencies: { a: ['b'], c: { required: ['d'] } } } },
  };
  const validator = compileSchema(same, '');
  expect(validator.isValid({ name: '' })).toBe(false);
  expect([{ a: 1 }, { a: 1, b: 1 }, { c: 1 }, { c: 1, d: 1 }].map((both) => validator.isValid({ both }))).toEqual([
    false,
    true,
    false,
    true,
  ]);
  const different: Json[] = [
    { $schema: draft7, items: [{ type: 'string' }] },
    { $schema: draft7, $ref: '#/definitions/a', minLength: 1, definitions: { a: {} } },
    { $schema: draft7, properties: { a: { unevaluatedProperties: false } } },
    { $schema: draft7, minContains: 2, contains: {} },
    { $schema: 'https://json-schema.org/draft/2019-09/schema', $recursiveRef: '#' },
    { $schema: 'http://json-schema.org/draft-04/schema#' },
    { $schema: 'https://example.com/mine' },
    { items: [{ type: 'string' }] },
  ];
  for (const schema of different) expect(refusal(schema).code, JSON.stringify(schema)).toBe('DEFINITION_INVALID');
  expect(refusal({ items: [{}] }).reason).toContain('prefixItems');
  expect(refusal({ $schema: 'https://json-schema.org/draft/2020-12/schema#' }).code).toBe('nothing');
});

verifies('schema.registration', 'equal schemas are compiled once, and registration is fast', async () => {
  const schema = () => ({ type: 'object', properties: { n: { type: 'number' } }, required: ['n'] });
  expect(compileSchema(schema(), '/a')).toBe(compileSchema(schema(), '/b'));
  let bound = 0;
  await inProcessorTime(1000, () => {
    for (const end = bound + 1_000; bound < end; bound++) {
      compileSchema({ type: 'object', properties: { n: { type: 'number', minimum: bound } }, required: ['n'] }, '/in');
      compileSchema({ type: 'object', properties: { text: { type: 'string', minLength: bound } } }, '/out');
    }
  });
});

verifies('schema.linear', 'patterns in a schema match in linear time', async () => {
  const evil = `${'a'.repeat(50_000)}!`;
  const validator = compileSchema(
    { properties: { text: { pattern: '^(a+)+$' } }, patternProperties: { '^(b|b)*c$': false } },
    '',
  );
  await inProcessorTime(100, () => {
    expect(validator.isValid({ text: evil })).toBe(false);
    expect(validator.isValid({ ['b'.repeat(50_000)]: 1 })).toBe(true);
  });
  expect(refusal({ properties: { a: { pattern: '(?=a)' } } })).toMatchObject({
    code: 'DEFINITION_INVALID',
    path: '/inputSchema/properties/a',
  });
  expect(refusal({ patternProperties: { '(a)\\1': {} } }).reason).toContain('backreference');
  expect(refusal({ pattern: '(' }).code).toBe('DEFINITION_INVALID');
});

verifies('schema.linear', 'validation with an exponential schema ends at the step limit', () => {
  const exponential: { [name: string]: Json } = { d0: { type: 'string' } };
  for (let i = 1; i < 60; i++)
    exponential[`d${i}`] = { allOf: [{ $ref: `#/$defs/d${i - 1}` }, { $ref: `#/$defs/d${i - 1}` }] };
  const validator = compileSchema({ $defs: exponential, $ref: '#/$defs/d59' }, '');
  const start = performance.now();
  expect(validator.isValid('text')).toBe(false);
  expect(validator.issues('text')).toEqual([{ path: '', message: 'takes too long to check with this schema' }]);
  expect(performance.now() - start).toBeLessThan(10_000);
  const many = Array.from({ length: 30_000 }, (_, id) => ({ id: `item ${id}` }));
  expect(compileSchema({ uniqueItems: true }, '').isValid(many)).toBe(true);
  expect(compileSchema({ uniqueItems: true }, '').isValid([...many, { id: 'item 7' }])).toBe(false);
});

verifies('schema.valid', 'a value that is nested deeper than the stack is invalid or checked safely', () => {
  let deep: Json = {};
  for (let i = 0; i < 100_000; i++) deep = { child: deep, list: [deep] };
  for (const schema of [
    { properties: { child: { $ref: '#' }, list: { items: { $ref: '#' } } } },
    { uniqueItems: true },
    { $ref: 'https://json-schema.org/draft/2020-12/schema' },
  ]) {
    const validator = compileSchema(schema, '');
    expect(validator.isValid([deep, deep])).toBe(false);
    expect(validator.issues([deep])).toEqual([{ path: '', message: 'is nested deeper than 256' }]);
  }
  for (const schema of [
    true,
    { type: 'object', properties: { child: { type: 'object' } } },
    { const: { child: {} } },
  ]) {
    expect(typeof compileSchema(schema, '').isValid(deep)).toBe('boolean');
    expect(compileSchema(schema, '').issues(deep).length).toBeLessThan(21);
  }
});

verifies('schema.valid', 'inherited members do not count as members', () => {
  const names = ['toString', 'constructor', '__proto__', 'hasOwnProperty'];
  const validator = compileSchema({ required: names }, '');
  expect(validator.isValid({})).toBe(false);
  expect(validator.issues({})).toHaveLength(4);
  expect(validator.isValid(JSON.parse('{"toString":1,"constructor":2,"__proto__":3,"hasOwnProperty":4}'))).toBe(true);
  expect(validator.isValid(Object.create({ toString: 1, constructor: 2, hasOwnProperty: 3 }))).toBe(false);
  const typed = compileSchema({ properties: { toString: { type: 'number' } }, additionalProperties: false }, '');
  expect(typed.isValid({})).toBe(true);
  expect(typed.isValid({ toString: 'x' })).toBe(false);
  expect(typed.isValid(Object.create({ other: 1 }))).toBe(true);
  expect(typed.isValid(JSON.parse('{"__proto__": 1}'))).toBe(false);
  expect(compileSchema({ properties: { a: false }, additionalProperties: false }, '').isValid({})).toBe(true);
});

verifies('schema.valid', 'a member with the value undefined counts as absent', () => {
  const validator = compileSchema(
    { properties: { a: { type: 'string' } }, required: ['a'], additionalProperties: false },
    '',
  );
  const value = (fields: object) => fields as Json;
  expect(validator.isValid(value({ a: undefined }))).toBe(false);
  expect(validator.isValid(value({ a: 'x', b: undefined }))).toBe(true);
  expect(compileSchema({ minProperties: 1 }, '').isValid(value({ a: undefined }))).toBe(false);
  for (const type of ['object', 'array', 'string', 'number', 'integer', 'boolean', 'null']) {
    expect(compileSchema({ type }, '').isValid(undefined)).toBe(false);
    expect(compileSchema({ type }, '').isValid(Number.NaN)).toBe(false);
  }
  expect([0.3, 1e22, 0.35].map((n) => compileSchema({ multipleOf: 0.1 }, '').isValid(n))).toEqual([true, true, false]);
});

verifies('schema.valid', 'each issue names the location and the requirement', () => {
  const validator = compileSchema(
    {
      type: 'object',
      properties: {
        question: { type: 'string' },
        k: { type: 'integer', minimum: 1 },
        'a/b~': { items: { enum: ['x', null] } },
        home: {
          anyOf: [{ type: 'null' }, { type: 'object', properties: { zip: { type: 'string' } }, required: ['zip'] }],
        },
        either: { oneOf: [{ type: 'string' }, { type: 'boolean' }] },
        shape: {
          anyOf: [
            { properties: { kind: { const: 'circle' }, r: { type: 'number' } } },
            { properties: { kind: { const: 'square' }, side: { type: 'number' } } },
          ],
        },
      },
      required: ['question', 'answer'],
      additionalProperties: false,
      if: { properties: { k: { const: 3 } }, required: ['k'] },
      else: true,
      ...JSON.parse('{ "then": { "required": ["three"] } }'),
    },
    '',
  );
  const value = {
    question: 1,
    k: 0.5,
    'a/b~': ['x', 'y'],
    home: { zip: 5 },
    either: 1,
    shape: { kind: 'square', side: 'x' },
    extra: true,
  };
  expect(paths(validator, value)).toEqual([
    '/question must be string',
    '/k must be integer',
    '/k must be >= 1',
    '/a~1b~0/1 must be one of "x", null',
    '/home/zip must be string',
    '/either must fit one of the 2 schemas of oneOf',
    '/shape/side must be number',
    ' must have the property "answer"',
    '/extra is not allowed',
  ]);
  expect(paths(validator, { question: 'q', answer: 1, k: 3 } as Json)).toEqual([
    '/answer is not allowed',
    ' must have the property "three"',
  ]);
  expect(
    paths(compileSchema({ unevaluatedProperties: false, allOf: [{ properties: { a: {} } }] }, ''), { a: 1, b: 2 }),
  ).toEqual(['/b is not allowed']);
  const list = compileSchema({ items: { type: 'string' } }, '');
  expect(list.issues(Array.from({ length: 1_000 }, (_, i) => i))).toHaveLength(20);
  expect(list.issues(['a'])).toEqual([]);
});

verifies('schema.valid', 'a validation error carries its issues', () => {
  const validator = compileSchema(
    { type: 'object', properties: { question: { type: 'string' }, k: { minimum: 1 } }, required: ['question'] },
    '',
  );
  const input = createSchemaCheck(validator, 'INPUT_VALIDATION_FAILED', 'rag');
  const value = { question: 'why', k: 1 };
  expect(input(value)).toBe(value);
  expect(() => input({ question: 1, k: 0 })).toThrow(
    'The input of "rag" does not fit its schema: /question must be string; /k must be >= 1.',
  );
  try {
    createSchemaCheck(validator, 'OUTPUT_VALIDATION_FAILED', 'rag')(3);
    expect.unreachable();
  } catch (error) {
    expect(error).toMatchObject({
      code: 'OUTPUT_VALIDATION_FAILED',
      message: 'The output of "rag" does not fit its schema: it must be object.',
      data: { errors: [{ path: '', message: 'must be object', keyword: 'type' }] },
    });
  }
});

verifies('schema.pure', 'validation changes neither the value nor depends on later changes of the schema', () => {
  const schema = { type: 'object', properties: { a: { default: 1, type: 'number' }, n: { type: 'number' } } };
  const validator = compileSchema(schema, '');
  schema.properties.n.type = 'string';
  const value = Object.freeze({ n: 1 });
  expect(validator.isValid(value)).toBe(true);
  expect(value).toEqual({ n: 1 });
  expect(validator.schema).toEqual({
    type: 'object',
    properties: { a: { default: 1, type: 'number' }, n: { type: 'number' } },
  });
  expect([{ n: 1 }, { n: 'x' }].map(validator.isValid)).toEqual([true, false]);
});

verifies(
  'schema.valid',
  'a schema can refer to the documents passed with it and to the metaschemas, and to no others',
  () => {
    const documents = { 'https://example.com/id': { $anchor: 'short', type: 'string', maxLength: 3 } };
    const schema = { properties: { id: { $ref: 'https://example.com/id#short' } } };
    expect(compileSchema(schema, '', { documents }).isValid({ id: 'long' })).toBe(false);
    expect(compileSchema(schema, '', { documents }).isValid({ id: 'abc' })).toBe(true);
    expect(refusal(schema).reason).toContain('nothing is fetched');
    const broken = { 'https://example.com/id': { type: 'strng' } };
    expect(() => compileSchema({ $ref: 'https://example.com/id' }, '', { documents: broken })).toThrow(
      'https://example.com/id#/type',
    );
    const meta = compileSchema({ $ref: 'https://json-schema.org/draft/2020-12/schema' }, '');
    expect([{ type: 'string' }, true, { type: 'strng' }, 3].map((value) => meta.isValid(value as Json))).toEqual([
      true,
      true,
      false,
      false,
    ]);
  },
);
