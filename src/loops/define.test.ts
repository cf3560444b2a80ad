import { expect, expectTypeOf } from 'vitest';
import { z } from 'zod';
import { hostOf, prompt, typesOf } from '../../spec/support/host-fixture.js';
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
  body: async ({ n }, scope) => {
    await scope.log('info', 'starting');
    const { n: once } = await scope.call(double, { n });
    await scope.record('acme.halfway', () => once);
    return (await scope.call(double, { n: once })).n;
  },
});

verifies('definition.code', 'types are lost between a schema and a body', () => {
  type Input = Parameters<typeof double.body>[0];
  expectTypeOf<Input>().toEqualTypeOf<{ n: number; unit?: string | undefined }>();
  expectTypeOf<Awaited<ReturnType<typeof twice.body>>>().toEqualTypeOf<number>();
  expect(twice.definition).toMatchObject({ id: 'twice', version: '2.1.0', kind: 'composite' });
  expect(double.definition).toMatchObject({ kind: 'tool', version: '1.0.0', inputSchema: { type: 'object' } });
});

verifies('lsem.6.log', 'a body cannot say anything into the trace', async () => {
  const result = await hostOf([]).run({ loop: twice, input: { n: 3 } });
  expect(result).toMatchObject({ status: 'ok', output: 12 });
  const logs = result.trace.filter(({ type }) => type === 'log');
  expect(logs.map(({ callId, payload }) => [callId.split('.1')[1], payload])).toEqual([
    ['', { level: 'info', message: 'starting' }],
    ['/1', { level: 'info', message: 'doubling 3' }],
    ['/3', { level: 'info', message: 'doubling 6' }],
  ]);
});

verifies(
  'lsem.6.vendor',
  "a fact of one's own type does not become an event, or takes a core type's name",
  async () => {
    const liar = defineLoop({
      id: 'liar',
      input: true,
      output: true,
      tool: (_, { emit }) => emit('child.started', {}),
    });
    const body = defineLoop({
      id: 'lies',
      input: true,
      output: true,
      body: (_, scope) => scope.record('child.started', () => 1),
    });
    const host = hostOf([]);
    const result = await host.run({ loop: twice, input: { n: 1 } });
    expect(result.trace.filter(({ type }) => type === 'acme.halfway')).toMatchObject([
      { payload: 2, callId: result.callId },
    ]);
    expect((await host.run({ loop: liar, input: 1 })).status).toBe('error');
    const lied = await host.run({ loop: body, input: 1 });
    expect(typesOf(lied.trace, lied.callId)).not.toContain('child.started');
  },
);

verifies('definition.code', 'an end in code is not checked, or what the check made of it is lost', async () => {
  const host = hostOf([]);
  expect((await host.run({ loop: double, input: { n: 2 } })).output).toEqual({ n: 4, unit: 'm' });
  const bad = await host.run({ loop: double, input: { n: 'two' as unknown as number } });
  expect(bad.error).toMatchObject({ code: 'INPUT_VALIDATION_FAILED', details: { errors: [{ path: '/n' }] } });
  expect(typesOf(bad.trace, bad.callId)).toEqual(['call.started', 'call.errored']);
  const wrong = defineLoop({ id: 'wrong', input: true, output: z.string(), body: () => 5 as unknown as string });
  expect((await host.run({ loop: wrong, input: 1 })).error?.code).toBe('OUTPUT_VALIDATION_FAILED');
});

verifies('definition.code', 'a prompt in code is another thing than a prompt in JSON', async () => {
  const output = z.object({ answer: z.string() });
  const ask = defineLoop({ id: 'ask', input: z.object({ q: z.string() }), output, prompt: 'Answer: {{q}}' });
  const json = prompt('ask', 'Answer: {{q}}', ask.definition);
  const [inCode, inJson] = [
    await hostOf([]).run({ loop: ask, input: { q: 'why?' } }),
    await hostOf([json]).run({ loop: 'ask', input: { q: 'why?' } }),
  ];
  expect(inCode.status).toBe('ok');
  expect(inCode.output).toEqual(inJson.output);
  expect(typesOf(inCode.trace, inCode.callId)).toEqual(typesOf(inJson.trace, inJson.callId));
});

verifies('definition.code', 'a loop in code that is no loop is taken for one', () => {
  const ends = { input: true, output: true } as const;
  const make = (spec: object) => () => defineLoop(spec as Parameters<typeof defineLoop>[0]);
  expect(make({ id: 'x', ...ends })).toThrow(/exactly one of body, tool and prompt/);
  expect(make({ id: 'x', ...ends, body: () => 1, tool: () => 1 })).toThrow(/exactly one/);
  expect(make({ id: 'x', ...ends, boddy: () => 1 })).toThrow(/unknown option "boddy"/);
  expect(make({ id: 'a\nb', ...ends, body: () => 1 })).toThrow(/id/);
  expect(make({ id: 'x', version: 'latest', ...ends, body: () => 1 })).toThrow(/version/);
  expect(make({ id: 'x', input: { type: 'strng' }, output: true, body: () => 1 })).toThrow(/inputSchema|strng|input/);
});

verifies('lsem.4.input', 'a schema that waits is taken for one that passed', async () => {
  const waits = defineLoop({
    id: 'waits',
    input: z.string().refine(async () => false),
    output: true,
    body: () => 'reached',
  });
  const result = await hostOf([]).run({ loop: waits, input: 'x' });
  expect(result.status).toBe('error');
  expect(result.output).toBeUndefined();
});

verifies(
  'lsem.4.input',
  'a promise that is not one of ours passes as a verdict, or its failure ends the process',
  async () => {
    const unhandled: unknown[] = [];
    const hear = (reason: unknown): unknown => unhandled.push(reason);
    process.on('unhandledRejection', hear);
    const passes = (done: (verdict: object) => void): void => done({ value: 1 });
    const own = Object.fromEntries([['then', passes]]);
    for (const verdict of [() => own, () => Promise.reject(new Error('late'))]) {
      const input = { '~standard': { version: 1, vendor: 'x', validate: verdict as () => Promise<never> } } as const;
      const loop = defineLoop({ id: 'late', input, output: true, body: () => 'reached' });
      expect((await hostOf([]).run({ loop, input: 1 })).error?.message).toContain('asynchronous');
    }
    await new Promise((resolve) => setTimeout(resolve, 5));
    process.off('unhandledRejection', hear);
    expect(unhandled).toEqual([]);
  },
);
