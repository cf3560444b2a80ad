import { expect, expectTypeOf } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import { compileSchema } from '../json/schema.js';
import type { Json } from '../protocol/json.js';
import type { JsonSchema } from '../protocol/loop.js';
import { defineLoop } from './define.js';
import type { JsonSchemaType } from './json-schema-inference.js';
import type { InputOf, OutputOf } from './standard-schema.js';

/** Infers the type of a literal the way `defineLoop` does. */
const typeOf = <const S extends JsonSchema>(_: S): JsonSchemaType<S> => undefined as JsonSchemaType<S>;

/** True if the schema accepts the value; the compiler accepts only a value of the inferred type. */
const isValid = <const S extends JsonSchema>(schema: S, value: JsonSchemaType<S>): boolean =>
  compileSchema(schema, 'schema').isValid(value as Json);

verifies('types.schema', 'scalars, enumerations and constants have their own types', () => {
  expectTypeOf(typeOf({ type: 'string', minLength: 1 })).toEqualTypeOf<string>();
  expectTypeOf(typeOf({ type: 'integer' })).toEqualTypeOf<number>();
  expectTypeOf(typeOf({ type: ['string', 'null'] })).toEqualTypeOf<string | null>();
  expectTypeOf(typeOf({ type: 'string', enum: ['a', 'b'] })).toEqualTypeOf<'a' | 'b'>();
  expectTypeOf(typeOf({ const: 7 })).toEqualTypeOf<7>();
  expectTypeOf(typeOf(false)).toEqualTypeOf<never>();
  expect(isValid({ type: ['string', 'null'] }, null)).toBe(true);
  expect(isValid({ type: 'string', enum: ['a', 'b'] }, 'b')).toBe(true);
});

verifies('types.schema', 'members are optional unless they are required', () => {
  const properties = { name: { type: 'string' }, tags: { type: 'array', items: { type: 'string' } } } as const;
  expectTypeOf(typeOf({ type: 'object', properties, required: ['name'] })).toEqualTypeOf<{
    name: string;
    tags?: string[];
  }>();
  expectTypeOf(typeOf({ type: 'object', properties })).toEqualTypeOf<{ name?: string; tags?: string[] }>();
  expectTypeOf(typeOf({ type: 'object', required: ['id'] })).toEqualTypeOf<{ id: unknown }>();
  expect(isValid({ type: 'object', properties, required: ['name'] }, { name: 'Ada' })).toBe(true);
  expect(isValid({ type: 'object', required: ['id'] }, { id: 1 })).toBe(true);
  const names: string[] = ['name'];
  expectTypeOf(typeOf({ type: 'object', properties, required: names })).toEqualTypeOf<{
    name?: string;
    tags?: string[];
  }>();
});

verifies('types.schema', 'additional members have the type of their schema', () => {
  expectTypeOf(typeOf({ type: 'object' })).toEqualTypeOf<{ [name: string]: unknown }>();
  expectTypeOf(typeOf({ type: 'object', additionalProperties: { type: 'number' } })).toEqualTypeOf<{
    [name: string]: number;
  }>();
  expectTypeOf(typeOf({ type: 'object', additionalProperties: false })).toEqualTypeOf<{ [name: string]: never }>();
  const both = { properties: { name: { type: 'string' } }, additionalProperties: { type: 'number' } } as const;
  const value = typeOf({ type: 'object', required: ['name'], ...both });
  type Value = typeof value;
  expectTypeOf<Value['name']>().toEqualTypeOf<string>();
  expectTypeOf<Value['other']>().toEqualTypeOf<string | number>();
  expect(isValid({ type: 'object', additionalProperties: { type: 'number' } }, { a: 1 })).toBe(true);
});

verifies('types.schema', 'alternatives are a union, within the type beside them', () => {
  expectTypeOf(typeOf({ anyOf: [{ type: 'string' }, { type: 'null' }] })).toEqualTypeOf<string | null>();
  expectTypeOf(typeOf({ oneOf: [{ const: 'a' }, { type: 'array', items: { type: 'boolean' } }] })).toEqualTypeOf<
    'a' | boolean[]
  >();
  const properties = { a: { type: 'string' } } as const;
  expectTypeOf(typeOf({ type: 'object', properties, anyOf: [{ required: ['a'] }, true] })).toEqualTypeOf<{
    a?: string;
  }>();
  expect(isValid({ anyOf: [{ type: 'string' }, { type: 'null' }] }, null)).toBe(true);
});

verifies('types.schema', 'a tuple has the types of its positions', () => {
  const prefixItems = [{ type: 'string' }, { type: 'number' }] as const;
  expectTypeOf(typeOf({ type: 'array', prefixItems, minItems: 2, items: false })).toEqualTypeOf<
    [string, number, ...never[]]
  >();
  expectTypeOf(typeOf({ type: 'array', prefixItems })).toEqualTypeOf<[string?, number?, ...unknown[]]>();
  expect(isValid({ type: 'array', prefixItems, minItems: 2, items: false }, ['a', 1])).toBe(true);
  expect(isValid({ type: 'array', prefixItems }, ['a'])).toBe(true);
});

verifies('types.schema', 'what is not a literal, not converted or too deep is unknown', () => {
  expectTypeOf(typeOf({ type: 'object' } as JsonSchema)).toEqualTypeOf<unknown>();
  expectTypeOf(typeOf({ $ref: '#/$defs/a', $defs: { a: { type: 'string' } } })).toEqualTypeOf<unknown>();
  expectTypeOf(typeOf({ properties: { a: { type: 'string' } } })).toEqualTypeOf<unknown>();
  expectTypeOf(typeOf(true)).toEqualTypeOf<unknown>();
  type Nested = { type: 'array'; items: Nested };
  type Unbounded = JsonSchemaType<Nested>;
  expectTypeOf<Unbounded>().toEqualTypeOf<unknown[][][][][][][][]>();
  expect(isValid({ properties: { a: { type: 'string' } } }, 7)).toBe(true);
});

verifies('types.schema', 'defineLoop infers both sides of a JSON Schema literal', () => {
  const input = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] } as const;
  const loop = defineLoop({
    id: 'greet',
    input: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
    output: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
    run: ({ name }) => {
      expectTypeOf(name).toEqualTypeOf<string>();
      return { text: name };
    },
  });
  expectTypeOf(loop.body).parameter(0).toEqualTypeOf<{ name: string }>();
  expectTypeOf<InputOf<typeof input>>().toEqualTypeOf<{ name: string }>();
  expectTypeOf<OutputOf<typeof input>>().toEqualTypeOf<{ name: string }>();
  expect(loop.input?.({ name: 'Ada' })).toEqual({ name: 'Ada' });
  expect(() => loop.input?.({})).toThrow('does not fit its schema');
});
