// The JSON Schemas that the package ships agree with the parsers.

import { Ajv2020 } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { expect } from 'vitest';
import { schemaFiles } from '../../scripts/schemas.mjs';
import { configSchema } from '../../src/adapters/files/config-schema.js';
import { isHostedLoopText } from '../../src/adapters/files/hosted-files.js';
import { parseToml } from '../../src/adapters/files/parse-toml.js';
import type { LoopError } from '../../src/base/errors.js';
import { hostedLoopSchema, parseHostedLoop } from '../../src/host/hosted/hosted-document.js';
import { parseDefinition } from '../../src/loops/definition/definition.js';
import { definitionSchema } from '../../src/loops/definition/definition-schema.js';
import { documentParser } from '../../src/loops/plan/workflow-document.js';
import { define, keys, randomDefinition, randomFrom, randomObject } from '../fuzz/broken-definitions.js';
import { readText, textFiles } from '../house/tree.js';
import { fullHostedLoop, randomHostedLoop } from '../support/random-hosted-documents.js';
import { repetitions } from '../support/repetitions.js';
import { verifies } from '../verifies.js';

const readSchema = (name: string): object => JSON.parse(readText(`schemas/${name}`)) as object;
const ajv = new Ajv2020({ strict: false });
const isLoop = ajv.compile(readSchema('loop.schema.json'));
const isHostedLoop = ajv.compile(readSchema('hosted-loop.json'));
const isConfig = ajv.compile(readSchema('rondo.schema.json'));

verifies('definition.schema', 'the schema files are up to date', () => {
  for (const [name, text] of Object.entries(schemaFiles(definitionSchema(), configSchema(), hostedLoopSchema()))) {
    // The linter formats the files, so their values are compared, with the order of the members.
    const advice = 'run: npm run build && node scripts/schemas.mjs && npm run format';
    expect(JSON.stringify(readSchema(name)), advice).toBe(JSON.stringify(JSON.parse(text)));
  }
});

/** Returns the documents below a folder that are definitions, without the hosted loops. */
function definitionsBelow(folder: string): { file: string; value: object }[] {
  return textFiles([folder])
    .filter(({ file }) => /\/loops\/[^/]*\.(?:json|toml)$/.test(file) && !file.endsWith('.script.json'))
    .filter(({ file, text }) => !isHostedLoopText(file, text))
    .map(({ file, text }) => {
      const value = (file.endsWith('.toml') ? parseToml(text) : JSON.parse(text)) as object;
      // A workflow file becomes a definition when it is loaded.
      return { file, value: 'kind' in value ? value : documentParser.parse(value, file, 'flow') };
    });
}

verifies('definition.schema', 'every definition of the examples is valid by the schema', () => {
  const definitions = definitionsBelow('examples');
  expect(definitions.length).toBeGreaterThan(10);
  for (const { file, value } of definitions) {
    expect(isLoop({ $schema: '../node_modules/rondo/schemas/loop.schema.json', ...value }), file).toBe(true);
    expect(isLoop({ ...value, kind: 'skill' }), file).toBe(false);
  }
});

/** Rules of the parser that JSON Schema does not express. */
const INEXPRESSIBLE = new RegExp(
  [
    '^is not a known key; did you mean', // Only keys at the top level that resemble a known one are refused.
    '"\\{\\{"|is not a variable name|not among its variables', // templates
    'is not available yet|has a dash|an earlier step already uses', // what a mapping may read
    'twice$|would both see as', // names of tools
    'on a filter that|is never taken', // policies
    '^must be an id|^must be a semantic version', // details of ids and versions
    '^is cyclic|members; the maximum|^is larger than|lone surrogate|has the key "__proto__"', // not JSON, or too much
  ].join('|'),
);

/** Returns the reasons for which the parser refuses a value; none if it accepts it. */
function reasonsOf(value: unknown): readonly string[] {
  try {
    parseDefinition(value, 'here');
    return [];
  } catch (thrown) {
    return (((thrown as LoopError).data as { flaws?: { reason: string }[] }).flaws ?? []).map(({ reason }) => reason);
  }
}

const CASES = repetitions(10_000);

verifies('definition.schema', `schema and parser agree on ${CASES} broken definitions`, () => {
  const random = randomFrom(7);
  const counts = { accepted: 0, refused: 0 };
  for (let index = 0; index < CASES; index++) {
    const value: unknown = JSON.parse(JSON.stringify(randomDefinition(random)));
    const reasons = reasonsOf(value);
    const text = JSON.stringify(value).slice(0, 2000);
    if (reasons.length === 0) {
      counts.accepted++;
      expect(isLoop(value), `the schema refuses ${text}: ${JSON.stringify(isLoop.errors)}`).toBe(true);
    } else if (!reasons.every((reason) => INEXPRESSIBLE.test(reason))) {
      counts.refused++;
      expect(isLoop(value), `the schema accepts ${text}, which the parser refuses: ${reasons.join('; ')}`).toBe(false);
    }
  }
  expect(counts.accepted).toBeGreaterThan(CASES * 0.075);
  expect(counts.refused).toBeGreaterThan(CASES * 0.25);
});

verifies('definition.schema', 'a policy without effect is invalid by the schema', () => {
  const base = { id: 'a', name: 'A', version: '1.0.0', inputSchema: true, outputSchema: true };
  const tool = (safety: object, policy: object): object => ({
    ...base,
    kind: 'tool',
    tool: { implementation: 'builtin:echo', ...safety },
    policy,
  });
  expect(isLoop(tool({}, { timeoutMs: 5 }))).toBe(true);
  for (const safety of [{}, { safety: 'once' }]) {
    expect(isLoop(tool(safety, { retry: { attempts: 2 } }))).toBe(false);
    expect(isLoop(tool(safety, { cache: {} }))).toBe(false);
  }
  expect(isLoop(tool({ safety: 'keyed' }, { retry: { attempts: 2 } }))).toBe(true);
  expect(isLoop(tool({}, { routing: [{ when: {}, backend: { id: 'mock' } }] }))).toBe(false);
});

verifies('definition.schema', 'the schema of rondo.toml has the rules of its parser', () => {
  const server = { kind: 'openai-compatible', baseURL: 'https://llm.example.com/v1' };
  const price = { inputPerMillion: 1, outputPerMillion: 5 };
  for (const config of [
    {},
    {
      $schema: 'node_modules/rondo/schemas/rondo.schema.json',
      data: 'd',
      loops: 'l',
      store: 'memory:',
      engine: 'local',
    },
    { backends: { lab: { ...server, apiKeyEnv: 'LAB_KEY', model: 'm' } }, prices: { 'lab/m': price } },
    { prices: { 'lab/m': { ...price, from: '2026-01-31' }, 'lab/n': [price, { ...price, from: '2026-01-31' }] } },
  ])
    expect(isConfig(config), JSON.stringify(config)).toBe(true);
  for (const config of [
    { lops: 'l' },
    { data: '' },
    { engine: 1 },
    { trust: { directories: ['.'] } },
    { prices: { lab: price } },
    { prices: { 'lab/m': { inputPerMillion: -1, outputPerMillion: 1 } } },
    { prices: { 'lab/m': { inputPerMillion: 1 } } },
    { prices: { 'lab/m': { ...price, inputPerMillion: 0.5 } } },
    { prices: { 'lab/m': { ...price, from: 'soon' } } },
    { prices: { 'lab/m': [] } },
    { backends: { lab: { baseURL: 'https://x' } } },
    { backends: { lab: { ...server, kind: 'openai' } } },
    { backends: { lab: { ...server, baseURL: 'ftp://x' } } },
    { backends: { lab: { ...server, apiKeyEnv: 'sk-1' } } },
    { backends: { lab: { ...server, apiKey: 'k' } } },
  ])
    expect(isConfig(config), JSON.stringify(config)).toBe(false);
});

verifies(
  'hosted.document',
  'the schema accepts every valid hosted loop, and refuses unknown and missing members',
  () => {
    expect(isHostedLoop({ $schema: '../node_modules/rondo/schemas/hosted-loop.json', ...fullHostedLoop })).toBe(true);
    fc.assert(
      fc.property(randomHostedLoop, (document) => {
        expect(isHostedLoop(document), JSON.stringify(isHostedLoop.errors)).toBe(true);
      }),
    );
    const { stop: _, ...unbounded } = fullHostedLoop;
    const bad = [
      unbounded,
      { ...unbounded, stop: {} },
      { ...fullHostedLoop, stopp: 1 },
      { ...fullHostedLoop, turn: [] },
    ];
    for (const document of bad) expect(isHostedLoop(document), JSON.stringify(document)).toBe(false);
  },
);

const HOSTED = repetitions(4000);

verifies('hosted.document', 'the schema accepts every hosted loop that the parser accepts', () => {
  const random = randomFrom(7);
  let accepted = 0;
  for (let index = 0; index < HOSTED; index++) {
    const value = structuredClone(fullHostedLoop) as unknown as { [name: string]: unknown };
    const target = randomObject(value, random);
    const key = random.pick([...Object.keys(target), random.pick(keys)]);
    define(target, key, random.pick<unknown>([null, true, 0, 1, -1, 0.5, '', '$', '$.last', 'a', [], {}, ['a']]));
    try {
      parseHostedLoop(value);
    } catch {
      continue;
    }
    accepted++;
    expect(isHostedLoop(value), `${JSON.stringify(value)}: ${JSON.stringify(isHostedLoop.errors)}`).toBe(true);
  }
  expect(accepted).toBeGreaterThan(HOSTED / 20);
});
