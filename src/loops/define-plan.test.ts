/** Plans in code: the same definition, digest and trace as in TOML and JSON, with inferred types. */
import { expect, expectTypeOf } from 'vitest';
import { z } from 'zod';
import { verifies } from '../../spec/verifies.js';
import { parseToml } from '../adapters/files/parse-toml.js';
import { memoryStore } from '../adapters/memory/index.js';
import { seededIds } from '../adapters/system/seeded-ids.js';
import { Host } from '../host/host.js';
import { createRondo, defineLoop, definePlan } from '../index.js';
import { ManualClock } from '../testing/manual-clock.js';
import { documentParser } from './plan/workflow-document.js';
import { Registry } from './registry.js';

const double = defineLoop({
  id: 'double',
  input: z.object({ n: z.number() }),
  output: z.object({ n: z.number() }),
  run: ({ n }) => ({ n: n * 2 }),
});

const fourfold = definePlan({
  id: 'fourfold',
  input: { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] },
  output: { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] },
  steps: [
    { name: 'first', loop: double, input: { n: '$.input.n' }, capture: 'first' },
    { name: 'second', condition: 'first.output.n > 0', loop: double, input: { n: '$.first.output.n' } },
  ],
});

const TOML = `
[workflow]
name = "fourfold"

[workflow.input]
type = "object"
required = ["n"]
properties.n.type = "number"

[workflow.output]
type = "object"
required = ["n"]
properties.n.type = "number"

[[workflow.steps]]
name = "first"
loop = "double"
capture = "first"
input = { n = "$.input.n" }

[[workflow.steps]]
condition = "first.output.n > 0"
input.n = "$.first.output.n"
loop = "double"
name = "second"
`;

verifies('plan.code', 'a plan in code runs, is called like a function, and has the types of its schemas', async () => {
  const rondo = await createRondo({ store: 'memory:' });
  const result = await rondo.run(fourfold, { n: 3 });
  expect(result).toMatchObject({ status: 'ok', output: { n: 12 } });
  expectTypeOf(fourfold).parameter(0).toEqualTypeOf<{ n: number }>();
  expect((await fourfold({ n: 1 })).n).toBe(4);
  await rondo.close();
});

verifies('plan.code', 'a loop in code calls a plan', async () => {
  const outer = defineLoop({
    id: 'outer',
    input: z.object({ n: z.number() }),
    output: z.object({ n: z.number() }),
    run: (input, scope) => scope.call(fourfold, input),
  });
  expect(await outer({ n: 2 })).toEqual({ n: 8 });
});

verifies('plan.code', 'the same plan in TOML, JSON and code has one digest and one trace', async () => {
  const fromToml = documentParser.parse(parseToml(TOML), 'fourfold.toml', 'fourfold');
  const forms = [fourfold, fromToml, JSON.parse(JSON.stringify(fromToml))];
  const runs = await Promise.all(
    forms.map(async (form) => {
      const registry = new Registry();
      registry.add(double);
      const { digest, definition } = registry.add(form);
      const host = new Host({ store: memoryStore(), clock: new ManualClock(1_000), ids: seededIds(1), registry });
      const { output, trace } = (await host.run({ loop: 'fourfold', input: { n: 3 } })) as {
        output: unknown;
        trace: unknown;
      };
      return { digest, version: definition.version, output, trace };
    }),
  );
  expect(runs[0]).toMatchObject({ output: { n: 12 }, version: expect.stringMatching(/^0\.0\.0\+[0-9a-f]{64}$/) });
  expect(runs[1]).toEqual(runs[0]);
  expect(runs[2]).toEqual(runs[0]);
});

verifies('plan.code', 'an unknown option, an invalid step and a schema that is not JSON Schema are refused', () => {
  const base = { id: 'p', input: {}, steps: [{ loop: double }] } as const;
  expect(() => definePlan({ ...base, step: [] } as never)).toThrow('did you mean "steps"');
  expect(() => definePlan({ ...base, steps: [{ lop: 'x' }] } as never)).toThrow('/composite/plan/steps/0');
  expect(() => definePlan({ ...base, input: z.custom<string>(() => true) } as never)).toThrow('a plan is data');
});
