import { expect, expectTypeOf } from 'vitest';
import { z } from 'zod';
import { hostOf, prompt, typesOf } from '../../spec/support/host-fixture.js';
import { errorOf, outputOf } from '../../spec/support/turn-results.js';
import { verifies } from '../../spec/verifies.js';
import { defineLoop } from './define.js';

const double = defineLoop({
  id: 'double',
  input: z.object({ n: z.number(), unit: z.string().default('m') }),
  output: z.object({ n: z.number(), unit: z.string() }),
  safety: 'pure',
  tool: ({ n, unit }, { log }) => {
    log('info', `doubling ${n}`);
    return { n: n * 2, unit };
  },
});

const twice = defineLoop({
  id: 'twice',
  version: '2.1.0',
  input: z.object({ n: z.number() }),
  output: z.number(),
  run: async ({ n }, scope) => {
    await scope.log('info', 'starting');
    const { n: once } = await scope.call(double, { n });
    await scope.record('acme.halfway', () => once);
    return (await scope.call(double, { n: once })).n;
  },
});

verifies('definition.code', 'a body has the types of its schemas', () => {
  type Input = Parameters<typeof double.body>[0];
  expectTypeOf<Input>().toEqualTypeOf<{ n: number; unit?: string | undefined }>();
  expectTypeOf<Awaited<ReturnType<typeof twice.body>>>().toEqualTypeOf<number>();
  expect(twice.definition).toMatchObject({ id: 'twice', version: '2.1.0', kind: 'composite' });
  expect(double.definition).toMatchObject({ kind: 'tool', version: '1.0.0', inputSchema: { type: 'object' } });
});

verifies('lsem.6.log', 'log lines of bodies and tools are part of the trace', async () => {
  const result = await hostOf([]).run({ loop: twice, input: { n: 3 } });
  expect(result).toMatchObject({ status: 'ok', output: 12 });
  const logs = result.trace.filter(({ type }) => type === 'log');
  expect(logs.map(({ callId, payload }) => [callId.split('.1')[1], payload])).toEqual([
    ['', { level: 'info', message: 'starting' }],
    ['/1', { level: 'info', message: 'doubling 3' }],
    ['/3', { level: 'info', message: 'doubling 6' }],
  ]);
});

verifies('lsem.6.vendor', 'a record of a custom type becomes an event, and a core type cannot be forged', async () => {
  const forgingTool = defineLoop({
    id: 'forging-tool',
    input: true,
    output: true,
    tool: (_, { emit }) => emit('child.started', {}),
  });
  const forgingBody = defineLoop({
    id: 'forging-body',
    input: true,
    output: true,
    run: (_, scope) => scope.record('child.started', () => 1),
  });
  const host = hostOf([]);
  const result = await host.run({ loop: twice, input: { n: 1 } });
  expect(result.trace.filter(({ type }) => type === 'acme.halfway')).toMatchObject([
    { payload: 2, callId: result.callId },
  ]);
  expect((await host.run({ loop: forgingTool, input: 1 })).status).toBe('error');
  const forged = await host.run({ loop: forgingBody, input: 1 });
  expect(typesOf(forged.trace, forged.callId)).not.toContain('child.started');
});

verifies(
  'definition.code',
  'input and output of a loop in code are validated, and the body gets the parsed input',
  async () => {
    const host = hostOf([]);
    expect(outputOf(await host.run({ loop: double, input: { n: 2 } }))).toEqual({ n: 4, unit: 'm' });
    const bad = await host.run({ loop: double, input: { n: 'two' as unknown as number } });
    expect(errorOf(bad)).toMatchObject({ code: 'INPUT_VALIDATION_FAILED', details: { errors: [{ path: '/n' }] } });
    expect(typesOf(bad.trace, bad.callId)).toEqual(['call.started', 'call.errored']);
    const wrong = defineLoop({ id: 'wrong', input: true, output: z.string(), run: () => 5 as unknown as string });
    expect(errorOf(await host.run({ loop: wrong, input: 1 }))?.code).toBe('OUTPUT_VALIDATION_FAILED');
  },
);

verifies('definition.code', 'a prompt in code behaves like the same prompt in JSON', async () => {
  const output = z.object({ answer: z.string() });
  const ask = defineLoop({
    id: 'ask',
    input: z.object({ q: z.string() }),
    output,
    prompt: 'Answer: {{q}}',
    model: 'mock',
  });
  const json = prompt('ask', 'Answer: {{q}}', ask.definition);
  const [inCode, inJson] = [
    await hostOf([]).run({ loop: ask, input: { q: 'why?' } }),
    await hostOf([json]).run({ loop: 'ask', input: { q: 'why?' } }),
  ];
  expect(inCode.status).toBe('ok');
  expect(outputOf(inCode)).toEqual(outputOf(inJson));
  expect(typesOf(inCode.trace, inCode.callId)).toEqual(typesOf(inJson.trace, inJson.callId));
});

verifies('definition.code', 'defineLoop refuses invalid options', () => {
  const schemas = { input: true, output: true } as const;
  const make = (spec: object) => () => defineLoop(spec as Parameters<typeof defineLoop>[0]);
  expect(make({ id: 'x', ...schemas })).toThrow(/exactly one of run, tool and prompt/);
  expect(make({ id: 'x', ...schemas, run: () => 1, tool: () => 1 })).toThrow(/exactly one/);
  expect(make({ id: 'x', ...schemas, prompt: 'Hi' })).toThrow(/needs a model: .*Providers: .*mock/);
  expect(make({ id: 'x', ...schemas, run: () => 1, model: 'mock' })).toThrow(/model is an option of prompts/);
  expect(make({ id: 'x', ...schemas, boddy: () => 1 })).toThrow(/unknown option "boddy"/);
  expect(make({ id: 'x', ...schemas, body: () => 1 })).toThrow('"body" (did you mean "run"?); the options are ');
  expect(make({ id: 'x', ...schemas, backend: {} })).toThrow('"backend" (did you mean "model"?)');
  expect(make({ id: 'a\nb', ...schemas, run: () => 1 })).toThrow(/id/);
  expect(make({ id: 'x', version: 'latest', ...schemas, run: () => 1 })).toThrow(/version/);
  expect(make({ id: 'x', input: { type: 'strng' }, output: true, run: () => 1 })).toThrow(/inputSchema|strng|input/);
});

verifies('lsem.4.input', 'an asynchronous schema never accepts a value', async () => {
  const asynchronous = defineLoop({
    id: 'asynchronous',
    input: z.string().refine(async () => false),
    output: true,
    run: () => 'reached',
  });
  const result = await hostOf([]).run({ loop: asynchronous, input: 'x' });
  expect(result.status).toBe('error');
  expect(outputOf(result)).toBeUndefined();
});

verifies(
  'lsem.4.input',
  'a thenable validation result is refused, and its rejection does not end the process',
  async () => {
    const unhandled: unknown[] = [];
    const onRejection = (reason: unknown): unknown => unhandled.push(reason);
    process.on('unhandledRejection', onRejection);
    const then = (resolve: (result: object) => void): void => resolve({ value: 1 });
    const thenable = Object.fromEntries([['then', then]]);
    for (const validate of [() => thenable, () => Promise.reject(new Error('late'))]) {
      const input = { '~standard': { version: 1, vendor: 'x', validate: validate as () => Promise<never> } } as const;
      const loop = defineLoop({ id: 'late', input, output: true, run: () => 'reached' });
      expect(errorOf(await hostOf([]).run({ loop, input: 1 }))?.message).toContain('asynchronous');
    }
    await new Promise((resolve) => setTimeout(resolve, 5));
    process.off('unhandledRejection', onRejection);
    expect(unhandled).toEqual([]);
  },
);
