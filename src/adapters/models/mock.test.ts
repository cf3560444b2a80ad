import { Ajv2020 } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import Schema from 'typebox/schema';
import { expect } from 'vitest';
import { verifies } from '../../../spec/verifies.js';
import type { ModelReply } from '../../loops/model.js';
import { callModel, type ModelDelta } from '../../loops/model-call.js';
import type { Json } from '../../protocol/json.js';
import { mockProvider } from './mock.js';
import { sampleValue } from './sample.js';

const openContext = { origin: { directory: undefined, trusted: false }, turnId: 't1', replyCount: 0 };
const ajv = new Ajv2020({ strict: false, validateFormats: false });

async function ask(prompt: string, schema?: Json, deltas: ModelDelta[] = []): Promise<ModelReply> {
  const model = await mockProvider().open({ id: 'mock', model: 'mock-1' }, openContext);
  const request = { backendId: 'mock', model: 'mock-1', promptLength: prompt.length, prompt };
  const options = { signal: new AbortController().signal, onDelta: (delta: ModelDelta) => void deltas.push(delta) };
  return callModel(model, schema === undefined ? request : { ...request, schema }, options);
}

/** Validates with two independent validators, of which the second also checks formats. Returns '' if both accept. */
function validationErrors(schema: Json, value: Json): string {
  if (!ajv.validate(schema as object, value)) return `${ajv.errorsText()} in ${JSON.stringify(value)}`;
  return Schema.Check(schema as object, value) ? '' : `typebox rejects ${JSON.stringify(value)}`;
}

const text = { type: 'string' };
const texts = { type: 'array', items: text };
const tree = {
  type: 'object',
  properties: { name: text, children: { type: 'array', items: { $ref: '#' } } },
  required: ['name', 'children'],
};
const list = {
  $defs: {
    node: {
      type: 'object',
      properties: { value: { type: 'integer' }, next: { anyOf: [{ $ref: '#/$defs/node' }, { type: 'null' }] } },
      required: ['value', 'next'],
      additionalProperties: false,
    },
  },
  $ref: '#/$defs/node',
};

const schemas: Readonly<Record<string, Json>> = {
  hello: { type: 'object', properties: { greeting: text }, required: ['greeting'] },
  summarize: {
    type: 'object',
    properties: { summary: text, keyPoints: { ...texts, minItems: 1 } },
    required: ['summary', 'keyPoints'],
    additionalProperties: false,
  },
  'extract-keywords': { type: 'object', properties: { keywords: texts }, required: ['keywords'] },
  'retrieve-context': { type: 'object', properties: { documents: texts }, required: ['documents'] },
  'retrieve-objects': {
    type: 'object',
    properties: {
      documents: {
        type: 'array',
        minItems: 2,
        uniqueItems: true,
        items: {
          type: 'object',
          properties: { id: text, score: { type: 'number', minimum: 0, maximum: 1 } },
          required: ['id', 'score'],
        },
      },
    },
    required: ['documents'],
  },
  'synthesize-answer': { type: 'object', properties: { answer: { ...text, minLength: 1 } }, required: ['answer'] },
  formats: {
    type: 'object',
    properties: Object.fromEntries(
      ['date-time', 'date', 'time', 'duration', 'email', 'hostname', 'uri', 'uuid', 'ipv4', 'ipv6'].map((format) => [
        format,
        { type: 'string', format },
      ]),
    ),
  },
  bounds: {
    type: 'object',
    properties: {
      short: { type: 'string', maxLength: 3 },
      long: { type: 'string', minLength: 300, maxLength: 300 },
      share: { type: 'number', exclusiveMinimum: 0, exclusiveMaximum: 1 },
      cents: { type: 'number', minimum: 0.5, maximum: 1, multipleOf: 0.01 },
      stars: { type: 'integer', minimum: 1, maximum: 5 },
      even: { type: 'integer', multipleOf: 2, minimum: -7, maximum: -3 },
      big: { type: 'integer', minimum: 1_000_000 },
      small: { type: 'number', maximum: -5.5 },
      yes: { type: 'boolean' },
      none: { type: 'null' },
      maybe: { type: ['null', 'integer'], minimum: 3 },
      one: { const: { a: [1] } },
      some: { enum: ['x', 'y'] },
    },
    required: ['short', 'more'],
  },
  lists: {
    type: 'object',
    properties: {
      pair: { type: 'array', prefixItems: [text, { type: 'integer' }], items: false },
      many: { type: 'array', minItems: 7, items: { type: 'integer', minimum: 1, maximum: 9 }, uniqueItems: true },
      few: { type: 'array', maxItems: 1, items: text },
      words: { type: 'array', items: { enum: ['a', 'b'] }, uniqueItems: true },
      open: { type: 'object', additionalProperties: { type: 'integer' }, minProperties: 2 },
      narrow: { type: 'object', properties: { a: text, b: text }, maxProperties: 1 },
    },
  },
  combined: {
    $defs: { base: { type: 'object', properties: { id: { type: 'string', minLength: 2 } }, required: ['id'] } },
    allOf: [
      { $ref: '#/$defs/base' },
      { properties: { id: { maxLength: 4 }, count: { type: 'integer' } }, required: ['count'] },
    ],
    oneOf: [
      { properties: { kind: { const: 'a' }, a: text }, required: ['kind', 'a'] },
      { properties: { kind: { const: 'b' } }, required: ['kind'] },
    ],
  },
  tree,
  list,
  anything: true,
  escaped: { $defs: { 'a/b~c': { type: 'boolean' } }, $ref: '#/$defs/a~1b~0c' },
  example: { type: 'string', pattern: '^[A-Z]{3}-\\d+$', examples: ['ABC-1'] },
  '__proto__ of all': { type: 'object', required: ['__proto__', 'constructor', 'toString'] },
};

for (const [name, schema] of Object.entries(schemas)) {
  verifies('model.mock', `a mock reply matches its schema (${name})`, async () => {
    const { text: reply } = await ask('Summarize this for Ada:\nThe loom weaves algebraic patterns.', schema);
    expect(validationErrors(schema, JSON.parse(reply))).toBe('');
  });
}

const leaf = fc.oneof(
  fc.record({ type: fc.constant('string'), minLength: fc.nat(40), maxLength: fc.integer({ min: 40, max: 90 }) }),
  fc.record({ type: fc.constant('integer'), minimum: fc.integer({ min: -50, max: 0 }), maximum: fc.nat(50) }),
  fc.record({ type: fc.constant('number'), exclusiveMinimum: fc.integer({ min: -9, max: 9 }) }),
  fc.record({ enum: fc.uniqueArray(fc.jsonValue({ maxDepth: 1 }), { minLength: 1, maxLength: 4 }) }),
  fc.record({ type: fc.constantFrom('boolean', 'null', 'string', 'number') }),
);
const names = fc.constantFrom('a', 'summary', 'keyPoints', 'toString', 'x-y');
const { schema: anySchema } = fc.letrec<{ schema: Json }>((tie) => ({
  schema: fc.oneof(
    { maxDepth: 4 },
    leaf as fc.Arbitrary<Json>,
    fc.record({ type: fc.constant('array'), items: tie('schema'), minItems: fc.nat(5) }),
    fc.dictionary(names, tie('schema'), { maxKeys: 4, noNullPrototype: true }).chain((properties) =>
      fc.record({
        type: fc.constant('object'),
        properties: fc.constant(properties),
        required: fc.subarray(Object.keys(properties)),
        additionalProperties: fc.constant(false),
      }),
    ),
    fc.record({ anyOf: fc.array(tie('schema'), { minLength: 1, maxLength: 3 }) }),
  ),
}));

verifies('model.mock', 'a mock reply matches randomly generated schemas', () => {
  fc.assert(
    fc.property(anySchema, fc.string(), (schema, prompt) => {
      expect(validationErrors(schema, sampleValue(schema, prompt))).toBe('');
    }),
    { numRuns: 300, seed: 7 },
  );
});

verifies('model.mock', 'a mock reply quotes the prompt', async () => {
  const { text: greeting } = await ask('Greet Ada warmly', schemas.hello);
  expect(JSON.parse(greeting)).toEqual({ greeting: 'A mock greeting for: Greet Ada warmly.' });
  const { text: keywords } = await ask('Extract keywords from: looms and algebra', schemas['extract-keywords']);
  expect(JSON.parse(keywords)).toEqual({ keywords: ['algebra', 'looms', 'keywords'] });
  expect((await ask('What is a loom?')).text).toBe('A mock answer for: What is a loom.');
});

verifies('model.mock', 'the same request gets the same reply', async () => {
  const [first, second] = [await ask('Hello', schemas.bounds), await ask('Hello', schemas.bounds)];
  expect(first).toEqual(second);
  expect(first.inputTokens).toBe(2);
  expect(first.outputTokens).toBe(Math.ceil(first.text.length / 4));
});

verifies('model.mock', 'the streamed chunks add up to the complete text', async () => {
  const deltas: ModelDelta[] = [];
  const { text: fullText } = await ask('Say 👋🏽 to Zoë 😀😀😀', undefined, deltas);
  expect(deltas.length).toBe(4);
  expect(deltas.map((delta) => delta.text).join('')).toBe(fullText);
  for (const { text: chunk } of deltas) expect(chunk).not.toMatch(/\p{Cs}/u);
  const model = await mockProvider().open({ id: 'mock', model: 'mock-1' }, openContext);
  const generated = await model.doGenerate({ prompt: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }] });
  expect(generated.content).toEqual([{ type: 'text', text: 'A mock answer for: Hi.' }]);
});

const wide = Object.fromEntries(Array.from({ length: 30 }, (_, index) => [`p${index}`, { $ref: '#' }]));
const hostile: readonly Json[] = [
  { type: 'object', properties: wide, required: Object.keys(wide) },
  { allOf: [{ $ref: '#' }, { $ref: '#' }, { $ref: '#' }] },
  { anyOf: [{ anyOf: [{ $ref: '#' }, { $ref: '#' }] }, { $ref: '#' }] },
  { $ref: '#' },
  { $ref: 'https://example.com/elsewhere' },
  { $ref: '#/%ZZ/no' },
  { type: 'array', minItems: 1e12, items: { type: 'array', minItems: 1e12 } },
  { type: 'string', minLength: 1e12 },
  { type: 'object', minProperties: 1e12 },
  { type: 'integer', multipleOf: 0, minimum: 'x' },
  { type: 7, enum: [], required: 'x', properties: [] },
  false,
];

verifies('model.mock', 'the sample for a hostile schema is bounded', () => {
  for (const schema of hostile) expect(JSON.stringify(sampleValue(schema, 'Hello')).length).toBeLessThan(4_000_000);
});

verifies('model.mock', 'an unknown or invalid option is an error', async () => {
  const open = (options: { [name: string]: Json }) =>
    mockProvider().open({ id: 'mock', model: 'mock-1', options }, openContext);
  await expect(open({ delay: 5 })).rejects.toMatchObject({ code: 'BACKEND_FAILED', data: { retryable: false } });
  await expect(open({ delay: 5 })).rejects.toThrow(/'delay'.*delayMs/);
  await expect(open({ delayMs: -1 })).rejects.toThrow(/delayMs/);
});

verifies('model.mock', 'an abort does not wait for a delayed reply', async () => {
  const model = await mockProvider().open({ id: 'mock', model: 'mock-1', options: { delayMs: 60_000 } }, openContext);
  const request = { backendId: 'mock', model: 'mock-1', promptLength: 2, prompt: 'Hi' };
  const [controller, reason] = [new AbortController(), new Error('enough')];
  setTimeout(() => controller.abort(reason), 20);
  await expect(callModel(model, request, { signal: controller.signal })).rejects.toBe(reason);
});
