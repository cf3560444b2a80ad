// A program of a consumer of the package. spec/types/matrix.test.ts compiles it against the packed declarations with
// several compilers and settings; it is never run. It uses no other package, so that each error is one of the package.

import { type AnySchema, defineLoop, type InputOf, type OutputOf, type StandardSchema } from 'rondo';

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;

/** Accepts only a pair of identical types. */
declare function same<A, B>(proof: Equal<A, B>): void;

declare const order: StandardSchema<{ sku: string; amount?: number }, { sku: string; amount: number }>;
declare const anySchema: AnySchema;

/** A Standard Schema: the body gets its output type, callers pass its input type. */
const priced = defineLoop({
  id: 'priced',
  input: order,
  output: order,
  run: async ({ sku, amount }) => {
    same<typeof amount, number>(true);
    return { sku };
  },
});
same<InputOf<typeof order>, { sku: string; amount?: number }>(true);
same<OutputOf<typeof order>, { sku: string; amount: number }>(true);

/** JSON Schema literals: both sides are inferred, without `as const`. */
export const greet = defineLoop({
  id: 'greet',
  input: {
    type: 'object',
    properties: {
      name: { type: 'string' },
      mood: { enum: ['glad', 'sad'] },
      tags: { type: 'array', items: { type: 'string' } },
    },
    required: ['name'],
  },
  output: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
  run: async ({ name, mood, tags }, scope) => {
    same<typeof name, string>(true);
    same<typeof mood, 'glad' | 'sad' | undefined>(true);
    same<typeof tags, string[] | undefined>(true);
    const { amount } = await scope.call(priced, { sku: name });
    same<typeof amount, number>(true);
    const [first, second] = await scope.all([async () => 1, (branch) => branch.call(priced, { sku: name })]);
    same<typeof first, number>(true);
    return { text: `${second.sku} ${first}` };
  },
});

/** A schema that is not a literal: anything. */
export const anything = defineLoop({ id: 'anything', input: anySchema, output: true, run: (input) => input });
