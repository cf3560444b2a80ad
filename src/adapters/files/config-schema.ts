/**
 * The JSON Schema of rondo.toml, for editors, and the keys and patterns that the parser takes from it, so that both
 * accept the same keys. The parser also checks what JSON Schema cannot express, such as that paths stay in the project.
 */
import type { JsonObject } from '../../protocol/json.js';

/** The patterns that parser and schema share. */
export const configPatterns = {
  priceName: /^[^/]+\/[\s\S]/,
  baseURL: /^https?:\/\/[^\s/@]/,
  apiKeyEnv: /^[A-Za-z_][A-Za-z0-9_]*$/,
  model: /^[^:\s][^:]*(?::\S[\s\S]*)?$/,
  verb: /^[^\s'"{}]+$/,
  day: /^\d{4}-\d\d-\d\d$/,
} as const;

const text = (description: string, pattern = /\S/): JsonObject => ({
  type: 'string',
  pattern: pattern.source,
  description,
});
const amount = (description: string): JsonObject => ({ type: 'integer', minimum: 0, description });

const price = {
  inputPerMillion: amount('The price of one million input tokens, in millionths of a currency unit.'),
  outputPerMillion: amount('The price of one million output tokens, in millionths of a currency unit.'),
  from: text('The first day on which the price applies, such as 2026-01-31. Default: always', configPatterns.day),
};

const priceTable: JsonObject = {
  type: 'object',
  properties: price,
  required: ['inputPerMillion', 'outputPerMillion'],
  additionalProperties: false,
};

const backend = {
  kind: { const: 'openai-compatible', description: 'The API of the server: an OpenAI-compatible chat API.' },
  baseURL: text('The address of the API, such as https://llm.example.com/v1.', configPatterns.baseURL),
  apiKeyEnv: text(
    'The name of the environment variable that holds the API key. The operator permits it with: rondo trust --send',
    configPatterns.apiKeyEnv,
  ),
  model: text('The model to use if a definition names none.'),
};

const root = {
  data: text('The data directory, relative to this file. Default: .rondo'),
  loops: text('The directory of the definitions, relative to this file. Default: loops'),
  store: text('The store: sqlite: (in the data directory), sqlite:PATH or memory:.'),
  engine: text('The engine that runs turns. Default: local'),
  model: text('The model of prompts in JSON that name none, as PROVIDER or PROVIDER:MODEL.', configPatterns.model),
  prices: {
    type: 'object',
    description: 'Prices of models, by "backend/model": one price, or a list of prices from different days on.',
    patternProperties: {
      [configPatterns.priceName.source]: { anyOf: [priceTable, { type: 'array', items: priceTable, minItems: 1 }] },
    },
    additionalProperties: false,
  },
  backends: {
    type: 'object',
    description: 'Model servers, by the id that definitions use.',
    additionalProperties: {
      type: 'object',
      properties: backend,
      required: ['kind', 'baseURL'],
      additionalProperties: false,
    },
  },
  verbs: {
    type: 'object',
    description: 'The loops that the verbs of workflows stand for, by verb. A loop gets { verb, args, raw }.',
    patternProperties: { [configPatterns.verb.source]: text('The id of a loop.') },
    additionalProperties: false,
  },
  $schema: text('The JSON Schema of this file.'),
} satisfies JsonObject;

/** The keys of each table of the file. */
export const configKeys = {
  root: Object.keys(root),
  price: Object.keys(price),
  backend: Object.keys(backend),
} as const;

/** Returns the JSON Schema (draft 2020-12) of rondo.toml. */
export function configSchema(): JsonObject {
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'rondo.toml',
    description: 'The configuration of a Rondo project.',
    type: 'object',
    properties: root,
    additionalProperties: false,
  };
}
