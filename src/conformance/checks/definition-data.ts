/** Sample data for the checks of definitions. */

/** Misspelt members of a definition, and the member that each resembles. */
export const nearMisses: { readonly [wrong: string]: string } = {
  ID: 'id',
  Name: 'name',
  Version: 'version',
  inputschema: 'inputSchema',
  input_schema: 'inputSchema',
  outputschema: 'outputSchema',
  outputSchemas: 'outputSchema',
  Kind: 'kind',
  Tool: 'tool',
  tools: 'tool',
};

/** The URI of the draft. */
export const DRAFT_2020_12_URI = 'https://json-schema.org/draft/2020-12/schema';
/** JSON Schema features of draft 2020-12, each with a value that matches and one that does not. */
export const draft2020Cases: readonly (readonly [schema: object, fits: unknown, unfit: unknown])[] = [
  [{ type: 'array', prefixItems: [{ type: 'string' }, { type: 'number' }], items: false }, ['a', 1], [1, 'a']],
  [{ type: 'object', dependentRequired: { card: ['name'] } }, { card: 1, name: 'n' }, { card: 1 }],
  [
    { $defs: { word: { type: 'string', minLength: 2 } }, type: 'object', properties: { w: { $ref: '#/$defs/word' } } },
    { w: 'ok' },
    { w: 'x' },
  ],
  [
    { type: 'object', allOf: [{ properties: { a: { type: 'number' } } }], unevaluatedProperties: false },
    { a: 1 },
    { a: 1, b: 2 },
  ],
];
