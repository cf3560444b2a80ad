/**
 * The TypeScript type of the values that a JSON Schema literal accepts. A keyword that is not converted here does not
 * narrow the type, so the type is never narrower than the schema. Types only.
 */

/** The depth up to which nested schemas are converted; deeper ones are `unknown`. The index is the remaining depth. */
type NextDepth = [never, 0, 1, 2, 3, 4, 5, 6, 7];

interface PrimitiveTypes {
  string: string;
  number: number;
  integer: number;
  boolean: boolean;
  null: null;
}

/**
 * The type of the values that the JSON Schema `S` accepts; `unknown` if `S` is not a literal. It converts `const`,
 * `enum`, `type`, `properties`, `required`, `additionalProperties`, `items`, `prefixItems`, `anyOf` and `oneOf`.
 *
 * @example
 * ```ts
 * type Person = JsonSchemaType<{ type: 'object'; properties: { name: { type: 'string' } }; required: ['name'] }>;
 * // { name: string }
 * ```
 */
export type JsonSchemaType<S, Depth extends number = 8> = Depth extends 0
  ? unknown
  : S extends false
    ? never
    : S extends { readonly const: infer C }
      ? C
      : S extends { readonly enum: readonly (infer E)[] }
        ? E
        : TypeKeyword<S, NextDepth[Depth]> & Alternatives<S, NextDepth[Depth]>;

/** The type according to `type` and the keywords that belong to it. */
type TypeKeyword<S, Depth extends number> = S extends { readonly type: readonly (infer T)[] }
  ? NamedType<S, T, Depth>
  : S extends { readonly type: infer T }
    ? NamedType<S, T, Depth>
    : unknown;

type NamedType<S, T, Depth extends number> = T extends keyof PrimitiveTypes
  ? PrimitiveTypes[T]
  : T extends 'object'
    ? ObjectType<S, Depth>
    : T extends 'array'
      ? ArrayType<S, Depth>
      : unknown;

type Alternatives<S, Depth extends number> = (S extends { readonly anyOf: readonly (infer A)[] }
  ? JsonSchemaType<A, Depth>
  : unknown) &
  (S extends { readonly oneOf: readonly (infer A)[] } ? JsonSchemaType<A, Depth> : unknown);

type ObjectType<S, Depth extends number> = S extends { readonly properties: infer P }
  ? WithAdditional<Members<P, RequiredNames<S>, Depth>, S, Depth>
  : [RequiredNames<S>] extends [never]
    ? { [name: string]: AdditionalType<S, Depth> }
    : WithAdditional<Members<unknown, RequiredNames<S>, Depth>, S, Depth>;

/** The names in `required`; none if the compiler does not know them. */
type RequiredNames<S> = S extends { readonly required: readonly (infer R)[] }
  ? string extends R
    ? never
    : R & string
  : never;

type Members<P, Required extends string, Depth extends number> = { [K in Required]: Member<P, K, Depth> } & {
  [K in Exclude<keyof P, Required>]?: JsonSchemaType<P[K], Depth>;
} extends infer M
  ? { [K in keyof M]: M[K] }
  : never;

type Member<P, K, Depth extends number> = K extends keyof P ? JsonSchemaType<P[K], Depth> : unknown;

/** Adds an index signature if the schema describes further members. It includes the types of the named ones. */
type WithAdditional<M, S, Depth extends number> = S extends { readonly additionalProperties: infer A }
  ? A extends object
    ? M & { [name: string]: JsonSchemaType<A, Depth> | M[keyof M] }
    : M
  : M;

type AdditionalType<S, Depth extends number> = S extends { readonly additionalProperties: infer A }
  ? JsonSchemaType<A, Depth>
  : unknown;

type ArrayType<S, Depth extends number> = S extends { readonly prefixItems: infer P extends readonly unknown[] }
  ? S extends { readonly minItems: P['length'] }
    ? [...TupleItems<P, Depth>, ...ItemType<S, Depth>[]]
    : [...Partial<TupleItems<P, Depth>>, ...ItemType<S, Depth>[]]
  : ItemType<S, Depth>[];

type TupleItems<P extends readonly unknown[], Depth extends number> = {
  -readonly [I in keyof P]: JsonSchemaType<P[I], Depth>;
};

type ItemType<S, Depth extends number> = S extends { readonly items: infer I } ? JsonSchemaType<I, Depth> : unknown;
