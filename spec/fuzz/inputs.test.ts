// Ten thousand hostile inputs, each through a complete turn: every one ends in a result with a known code.

import fc from 'fast-check';
import { expect } from 'vitest';
import { errorCodes } from '../../src/base/errors.js';
import type { ResultError, TurnResult } from '../../src/protocol/trace.js';
import { composite, hostOf, prompt, tool } from '../support/host-fixture.js';
import { repetitions } from '../support/repetitions.js';
import { errorOf } from '../support/turn-results.js';
import { verifies } from '../verifies.js';

const seed = Number(process.env.RONDO_SEED ?? 7);
const schema = {
  type: 'object',
  properties: {
    text: { type: 'string', maxLength: 20, pattern: '^(a+)+$' },
    list: { type: 'array', items: { $ref: '#/$defs/item' }, uniqueItems: true },
    more: { anyOf: [{ type: 'null' }, { type: 'object', additionalProperties: { type: 'number' } }] },
  },
  required: ['text'],
  $defs: { item: { oneOf: [{ type: 'integer' }, { type: 'array', items: { $ref: '#/$defs/item' } }] } },
} as const;

const loops = [
  tool('open'),
  tool('strict', 'builtin:echo', { inputSchema: schema, outputSchema: schema }),
  prompt('prompt', '{{text}} {{more.x}} {{list.0}}'),
  composite('composite', [
    { loopId: 'strict', inputMapping: { text: '$.input.text', list: 'optional:$.input.list' }, outputBinding: 'one' },
    { loopId: 'open', inputMapping: { all: '$..*', first: '$.one.output' } },
  ]),
];

const nested = (depth: number): unknown => {
  let value: unknown = 1;
  for (let i = 0; i < depth; i++) value = i % 2 === 0 ? [value] : { list: value };
  return value;
};

const cyclic = (): unknown => {
  const value: { self?: unknown } = {};
  value.self = value;
  return value;
};

const trap = new Proxy({}, { get: () => trap, ownKeys: () => ['a', 'b'], getPrototypeOf: () => null });

const hostileInputs: readonly unknown[] = [
  undefined,
  Number.NaN,
  -0,
  1e308 * 10,
  10n,
  Symbol('x'),
  () => 1,
  new Date(0),
  new Map(),
  /a/,
  new Uint8Array(9),
  cyclic(),
  nested(100_000),
  nested(255),
  JSON.parse('{"__proto__": {"polluted": true}}'),
  { constructor: { prototype: { polluted: true } } },
  { text: `${'a'.repeat(100_000)}!` },
  { text: '{{more.x}}', more: { x: '{{text}}' } },
  { toJSON: () => 'x', text: 'a' },
  Object.create({ text: 'inherited' }),
  '\ud800',
  trap,
  {
    get text(): string {
      throw new Error('a getter that throws');
    },
  },
];

const plausibleInputs = fc.record(
  {
    text: fc.oneof(fc.string(), fc.constantFrom('a', 'aaa', '{{text}}', '$.input'), fc.integer()),
    list: fc.oneof(fc.array(fc.integer()), fc.jsonValue()),
    more: fc.oneof(fc.constant(null), fc.dictionary(fc.string(), fc.double()), fc.jsonValue()),
  },
  { requiredKeys: [] },
);
const inputs = fc.oneof(
  plausibleInputs,
  fc.jsonValue({ maxDepth: 6 }),
  fc.constantFrom(...hostileInputs),
  fc.anything(),
);

function problemOf(result: TurnResult): string | undefined {
  const { status, trace } = result;
  const { output, error } = result as { output?: unknown; error?: ResultError };
  if (status === 'ok') return error === undefined ? undefined : 'ok with an error';
  if (status !== 'error' || output !== undefined) return `a status of ${status}`;
  if (error === undefined || !(error.code in errorCodes)) return `the code ${error?.code}`;
  const last = trace.at(-1)?.type ?? 'call.errored';
  return last === 'call.errored' ? undefined : `a trace that ends with ${last}`;
}

verifies(
  'fuzz.inputs',
  'every input ends in a result, with a typed error if it is refused',
  async () => {
    const host = hostOf(loops);
    const names = loops.map(({ id }: { id?: string }) => id ?? '');
    const counts = new Map<string, number>();
    const samples = fc.sample(inputs, { seed, numRuns: repetitions(10_000) });
    for (const [index, input] of [...hostileInputs.flatMap((one) => [one, one, one, one]), ...samples].entries()) {
      const result = await host.run({ loop: names[index % names.length] ?? '', input });
      expect(problemOf(result), `seed ${seed}, input ${index}`).toBeUndefined();
      const kind = errorOf(result)?.code ?? 'ok';
      counts.set(kind, (counts.get(kind) ?? 0) + 1);
    }
    expect([...counts.keys()]).toEqual(
      expect.arrayContaining(['ok', 'INPUT_VALIDATION_FAILED', 'VALUE_INVALID', 'TEMPLATE_FAILED']),
    );
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  },
  300_000,
);
