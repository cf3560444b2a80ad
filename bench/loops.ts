// Typed loops as users write them: a host, a registry, definitions with schemas and mappings, and the complete trace.

import { Host, memoryStore, Registry, systemClock, systemIds } from '../src/host-entry.js';
import { type DefinedLoop, defineLoop, type Scope } from '../src/index.js';
import type { Json } from '../src/protocol/index.js';
import type { Count } from './work.js';

const schema = { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] } as const;
const schemas = { input: schema, output: schema };

const increment = defineLoop({ id: 'increment', ...schemas, run: async ({ n }) => ({ n: n + 1 }) });

const incrementTool = defineLoop({ id: 'increment-tool', ...schemas, tool: ({ n }) => ({ n: n + 1 }) });

/** A composite of `steps` steps, each with the output of the previous one as input. */
function chain(steps: number, loopId = 'increment'): Json {
  const path = (index: number): string => (index === 0 ? '$.input.n' : `$.steps[${index - 1}].output.n`);
  const step = (index: number): Json => ({ loopId, inputMapping: { n: path(index) } });
  return document('chain', {
    kind: 'composite',
    composite: { steps: Array.from({ length: steps }, (_, i) => step(i)) },
  });
}

function document(id: string, more: { readonly [key: string]: Json }): Json {
  return { id, name: id, version: '1.0.0', inputSchema: schema, outputSchema: schema, ...more } as Json;
}

const planDocument = (id: string, steps: readonly Json[]): Json =>
  document(id, { inputSchema: true, kind: 'composite', composite: { plan: { steps } } });

/** A plan of `steps` steps, each with the output of the previous one as input. */
function plan(steps: number): Json {
  const first = { loop: 'increment', input: { n: '$.input.n' } };
  const next = { loop: 'increment', input: { n: '$.result.output.n' } };
  return planDocument('plan', [first, ...Array.from({ length: steps - 1 }, () => next)]);
}

/** A plan that repeats a step. `loop` is the loop that it calls with the number of the repetition. */
export function repeatPlan(max: number, loop = 'increment'): Json {
  return planDocument('repeat', [{ type: 'repeat', repeat: { steps: [{ loop, input: { n: '$.iteration' } }], max } }]);
}

/** A plan with a step for each item of its input. */
export function eachPlan(loop = 'increment'): Json {
  return planDocument('each', [
    { type: 'each', each: { items: '$.input.items', steps: [{ loop, input: { n: '$.item' } }] } },
  ]);
}

/** Returns the input of a plan with this many items. */
export const itemsInput = (count: number): Json => ({ n: 0, items: Array.from({ length: count }, (_, n) => n) });

const inCode = (steps: number) =>
  defineLoop({
    id: 'in-code',
    ...schemas,
    run: async (input, scope) => {
      let value = input;
      for (let i = 0; i < steps; i++) value = await scope.call(increment, value);
      return value;
    },
  });

const nested: DefinedLoop<Count, Count> = defineLoop({
  id: 'nested',
  ...schemas,
  run: async (input, scope) => (input.n === 0 ? input : scope.call(nested, { n: input.n - 1 })),
});

const sideBySide = (branches: number) =>
  defineLoop({
    id: 'side-by-side',
    ...schemas,
    run: async (_, scope) => {
      const each = Array.from({ length: branches }, (__, n) => (branch: Scope) => branch.call(increment, { n }));
      return { n: (await scope.all(each)).length };
    },
  });

const loops = {
  chain: (steps: number): unknown => chain(steps),
  tools: (steps: number): unknown => chain(steps, 'increment-tool'),
  code: (steps: number): unknown => inCode(steps),
  nested: (): unknown => nested,
  wide: (branches: number): unknown => sideBySide(branches),
  plan: (steps: number): unknown => plan(steps),
  repeat: (steps: number): unknown => repeatPlan(steps),
  each: (): unknown => eachPlan(),
} as const;

/** Returns a function that runs such a loop in a new session and, with 'read', reads its trace. */
export function turns(kind: keyof typeof loops, size: number, trace: 'kept' | 'read' = 'read'): () => Promise<void> {
  const registry = new Registry();
  registry.add(increment);
  registry.add(incrementTool);
  const { definition } = registry.add(loops[kind](size));
  const input = kind === 'each' ? itemsInput(size) : { n: kind === 'nested' ? size - 1 : 0 };
  return async () => {
    const host = new Host({ store: memoryStore(), clock: systemClock, ids: systemIds, registry });
    const result = await host.run({ loop: definition.id, input });
    const hasTrace = trace === 'kept' || result.trace.length > 4 * size;
    if (result.status !== 'ok' || !hasTrace) throw new Error(`Unexpected result: ${JSON.stringify(result)}.`);
  };
}

/** Returns a function that registers `count` different definitions. */
export function registrations(count: number): () => Promise<void> {
  const documents = Array.from({ length: count }, (_, i) => ({
    ...(document(`loop-${i}`, {
      kind: 'prompt',
      prompt: { template: `Say {{n}} ${i} times` },
      backend: { id: 'mock' },
    }) as object),
    inputSchema: { ...schema, description: `input ${i}` },
    outputSchema: { ...schema, description: `output ${i}`, additionalProperties: false },
  }));
  return async () => {
    const registry = new Registry();
    for (const definition of documents) registry.add(definition);
  };
}
