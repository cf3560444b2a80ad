import { lazySchema, type ToolResultOutput } from '@ai-sdk/provider-utils';
import {
  generateText,
  type InferToolInput,
  type InferToolOutput,
  jsonSchema,
  type ModelMessage,
  type ToolExecutionOptions,
  type ToolSet,
} from 'ai';
import { expect, expectTypeOf } from 'vitest';
import { z } from 'zod';
import { caller, ended, options, settings, streamed, ways, writer } from '../../spec/support/ai-sdk-tools.js';
import { verifies } from '../../spec/verifies.js';
import type { Safety } from './entry.js';
import {
  type ApprovalPolicy,
  type LoopsTool,
  type LoopsToolOptions,
  type LoopsToolSet,
  loopsTool,
  type ToolCallOptions,
  type ToolMessage,
  type ToolModelOutput,
  type TurnTool,
} from './tool.js';

type PartOf<Output extends { type: string }> = Extract<
  Output,
  { type: 'content'; value: unknown }
>['value'] extends (infer Part)[]
  ? Part
  : never;

verifies('looops.tool.factory', 'one tool works in generateText, in streamText and alone', async () => {
  const { writeFile, wrote } = writer();
  for (const way of ways) {
    const { parts, text, shown } = await way(writeFile, { path: 'a.txt', content: 'hi' });
    expect([parts, text]).toEqual([[['tool-result', { ok: true }]], 'done']);
    expect(shown).toMatchObject([{ type: 'tool-result', output: { type: 'json', value: { ok: true } } }]);
  }
  expect(await ended(writeFile, { path: 'b.txt', content: 'ho' })).toEqual({ ok: true });
  expect(wrote).toEqual([
    ['a.txt', 'hi'],
    ['a.txt', 'hi'],
    ['b.txt', 'ho'],
  ]);
  expect(writeFile).toMatchObject({ name: 'write_file', readOnly: false, policy: 'always_allow' });
  expect(writeFile.description).toBe('Write content to a file');
});

verifies('looops.tool.factory', 'types are inferred from the schema through the tool to the AI SDK', () => {
  const { writeFile } = writer();
  const many = loopsTool({
    name: 'many',
    inputSchema: jsonSchema<{ n: number }>({ type: 'object' }),
    execute: async function* ({ n }) {
      yield `${n}`;
    },
  });
  type Input = { path: string; content: string };
  expectTypeOf(writeFile).toEqualTypeOf<LoopsTool<Input, { ok: boolean }>>();
  expectTypeOf(many).toEqualTypeOf<LoopsTool<{ n: number }, string>>();
  expectTypeOf<InferToolInput<typeof writeFile>>().toEqualTypeOf<Input>();
  expectTypeOf<InferToolOutput<typeof writeFile>>().toEqualTypeOf<{ ok: boolean }>();
  expectTypeOf<InferToolInput<typeof many>>().toEqualTypeOf<{ n: number }>();
  expectTypeOf<InferToolOutput<typeof many>>().toEqualTypeOf<string>();
  expectTypeOf(writeFile.makeTool({})).toEqualTypeOf<TurnTool<Input, { ok: boolean }>>();
  expectTypeOf<LoopsTool<unknown, unknown>>().not.toExtend<typeof writeFile>();
  expectTypeOf<Parameters<typeof writeFile.withApproval>>().toEqualTypeOf<
    [policy: ApprovalPolicy, modeName?: string | undefined]
  >();
  expectTypeOf<typeof writeFile.safety>().toEqualTypeOf<Safety | undefined>();
  const set: LoopsToolSet = { writeFile, many };
  expectTypeOf<LoopsToolSet>().toExtend<ToolSet>();
  expectTypeOf<Record<string, TurnTool<unknown, unknown>>>().toExtend<ToolSet>();
  expect(Object.values(set).map(({ name }) => name)).toEqual(['write_file', 'many']);
});

verifies('looops.tool.factory', "the call options and messages are assignable to and from the AI SDK's", async () => {
  type ExtendedOptions = ToolExecutionOptions & { onToolOutputDelta(delta: string): void };
  expectTypeOf<ExtendedOptions>().toExtend<LoopsToolOptions>();
  expectTypeOf<LoopsToolOptions>().toExtend<ExtendedOptions>();
  expectTypeOf<ToolExecutionOptions>().toExtend<ToolCallOptions>();
  expectTypeOf<ModelMessage>().toExtend<ToolMessage>();
  expectTypeOf<ToolMessage>().toExtend<ModelMessage>();
  expectTypeOf<ToolResultOutput>().toExtend<ToolModelOutput>();
  expectTypeOf<ToolModelOutput>().toExtend<ToolResultOutput>();
  // The compiler does not compare types nested in three arrays, so these parts are compared separately.
  expectTypeOf<PartOf<ToolResultOutput>>().toExtend<PartOf<ToolModelOutput>>();
  expectTypeOf<PartOf<ToolModelOutput>>().toExtend<PartOf<ToolResultOutput>>();
  expectTypeOf<ToolExecutionOptions>().not.toExtend<LoopsToolOptions>();
  const received: LoopsToolOptions[] = [];
  const tool = loopsTool({
    name: 'keeps',
    inputSchema: z.object({}),
    execute: (_, opts) => void received.push(opts),
  });
  const abortSignal = new AbortController().signal;
  await generateText({
    ...settings,
    model: caller({}),
    tools: { t: tool },
    abortSignal,
    experimental_context: { user: 'u1' },
  });
  expect(received).toMatchObject([
    { toolCallId: 'c1', messages: [{ role: 'user', content: 'Do it.' }], experimental_context: { user: 'u1' } },
  ]);
  expect(received[0]?.abortSignal).toBeInstanceOf(AbortSignal);
});

verifies('looops.tool.factory', 'a tool never runs with an input that its schema rejects', async () => {
  const numberSchema = { type: 'object', properties: { n: { type: 'number' } } } as const;
  const validate = (value: unknown) =>
    typeof (value as { n?: unknown }).n === 'number'
      ? { success: true as const, value: value as { n: number } }
      : { success: false as const, error: new Error('n must be a number') };
  const described = jsonSchema<{ n: number }>(numberSchema, { validate });
  for (const inputSchema of [z.object({ n: z.number() }), described, lazySchema(() => described)]) {
    const tool = loopsTool({ name: 'counts', inputSchema, execute: ({ n }) => n + 1 });
    for (const way of ways) {
      expect((await way(tool, { n: 2 })).parts).toEqual([['tool-result', 3]]);
      const { parts } = await way(tool, { n: 'two' });
      expect(parts).toMatchObject([['tool-error', expect.stringContaining('Invalid input for tool t')]]);
    }
    const { validate: check } = tool.inputSchema['~standard'];
    expect(await check({ n: 1 })).toMatchObject({ value: { n: 1 } });
    expect((await check({ n: 'one' })).issues).toHaveLength(1);
  }
});

verifies('looops.tool.factory', 'the model gets the JSON Schema of the tool', async () => {
  const document = { type: 'object', properties: { n: { type: 'number' } } } as const;
  const model = caller({ n: 1 });
  const tool = loopsTool({ name: 'counts', inputSchema: jsonSchema<{ n: number }>(document), execute: ({ n }) => n });
  await generateText({ ...settings, model, tools: { t: tool } });
  const later = loopsTool({ name: 'later', inputSchema: jsonSchema(Promise.resolve(document)), execute: () => 1 });
  await streamed(later, {}, model);
  for (const { tools } of [...model.doGenerateCalls, ...model.doStreamCalls]) {
    expect(tools).toMatchObject([{ type: 'function', name: 't', inputSchema: document }]);
  }
  expect([model.doGenerateCalls.length, model.doStreamCalls.length]).toEqual([2, 2]);
  const { jsonSchema: resolved } = tool.inputSchema['~standard'] as unknown as { jsonSchema: { input(): unknown } };
  expect(resolved.input()).toEqual(document);
  const { jsonSchema: pending } = later.inputSchema['~standard'] as unknown as { jsonSchema: { input(): unknown } };
  expect(() => pending.input()).toThrow(/is a promise/);
});

verifies('looops.tool.factory', 'an unknown or invalid member is refused with a message that names it', () => {
  const good = { name: 'x', inputSchema: z.object({}), execute: () => 1 };
  const make = (more: object) => () => loopsTool({ ...good, ...more });
  const refused: readonly [member: object, message: RegExp][] = [
    [{ requestAproval: () => 'sure?' }, /"x".*no member "requestAproval"/],
    [{ needsApproval: true }, /no member "needsApproval"/],
    [{ constructor: Object }, /no member "constructor"/],
    [{ name: undefined }, /name must be/],
    [{ name: '' }, /name must be/],
    [{ name: '../x' }, /name must be/],
    [{ inputSchema: undefined }, /inputSchema must/],
    [{ inputSchema: { type: 'object' } }, /inputSchema must.*jsonSchema\(\)/],
    [{ inputSchema: () => ({ type: 'object' }) }, /inputSchema must/],
    [{ execute: undefined }, /execute must be a function/],
    [{ execute: 'rm' }, /execute must be a function/],
    [{ requestApproval: 'sure?' }, /requestApproval must be a function/],
    [{ readOnly: 'no' }, /readOnly must be/],
    [{ safety: 'safe' }, /safety must be one of pure/],
    [{ description: 1 }, /description must be a string/],
    [{ toModelOutput: 'text' }, /toModelOutput must be a function/],
  ];
  for (const [member, message] of refused) {
    expect(make(member)).toThrow(TypeError);
    expect(make(member)).toThrow(message);
  }
  expect(make({})()).toMatchObject({ readOnly: false });
  expect(make({ safety: 'pure', readOnly: true })()).toMatchObject({ safety: 'pure', readOnly: true });
});

verifies(
  'looops.tool.factory',
  'the policy of a tool cannot be changed, and withApproval leaves the original as it is',
  async () => {
    const { writeFile, wrote } = writer();
    const blocked = writeFile.withApproval('blocked', 'watched');
    expect([writeFile.policy, writeFile.mode, blocked.policy, blocked.mode]).toEqual([
      'always_allow',
      undefined,
      'blocked',
      'watched',
    ]);
    expect(() => Object.assign(blocked, { policy: 'always_allow' })).toThrow(TypeError);
    const spread: TurnTool<unknown, unknown> = { ...blocked, ...{ policy: 'always_allow' } };
    expect(await ended(spread, { path: 'a' })).toBeInstanceOf(Error);
    const { execute } = blocked;
    expect(() => execute({ path: 'a', content: '' }, options())).toThrow(/blocked/);
    for (const policy of ['Ask', 'allow', '', undefined, null, 'toString'] as unknown as ApprovalPolicy[]) {
      expect(() => writeFile.withApproval(policy)).toThrow(TypeError);
    }
    expect(() => writeFile.withApproval('ask', 7 as unknown as string)).toThrow(/mode must be a string/);
    expect(wrote).toEqual([]);
  },
);

verifies('looops.tool.factory', 'a tool can convert its result for the model', async () => {
  const tool = loopsTool({
    name: 'shows',
    inputSchema: z.object({ a: z.string() }),
    execute: ({ a }) => ({ a }),
    toModelOutput: ({ input, output, toolCallId }) => ({ type: 'text', value: `${toolCallId} ${input.a} ${output.a}` }),
  });
  expectTypeOf<ReturnType<NonNullable<typeof tool.toModelOutput>>>().toEqualTypeOf<
    ToolModelOutput | PromiseLike<ToolModelOutput>
  >();
  for (const way of ways) {
    for (const variant of [tool, tool.makeTool({})]) {
      expect((await way(variant, { a: 'x' })).shown).toMatchObject([{ output: { type: 'text', value: 'c1 x x' } }]);
    }
  }
});

verifies('looops.tool.delta', 'streamed output reaches the subscriber with the id of its call', async () => {
  const { writeFile } = writer();
  const deltas: [string, string][] = [];
  const tool = writeFile.makeTool({ onToolOutputDelta: (delta, toolCallId) => void deltas.push([toolCallId, delta]) });
  expect(await ended(tool, { path: 'a', content: 'abc' }, { toolCallId: 'c7' })).toEqual({ ok: true });
  for (const way of ways) expect((await way(tool, { path: 'b' })).parts).toEqual([['tool-result', { ok: true }]]);
  expect(deltas).toEqual([
    ['c7', 'Writing 3 bytes to a…\n'],
    ['c1', 'Writing 0 bytes to b…\n'],
    ['c1', 'Writing 0 bytes to b…\n'],
  ]);
  expectTypeOf<LoopsToolOptions['onToolOutputDelta']>().toEqualTypeOf<(delta: string) => void>();
});

verifies(
  'looops.tool.delta',
  'a tool that passes its options to another tool passes on the streamed output too',
  async () => {
    const { writeFile } = writer();
    const outer = loopsTool({
      name: 'outer',
      inputSchema: z.object({ path: z.string() }),
      execute: async ({ path }, opts) => writeFile.execute({ path, content: '' }, opts),
    });
    const deltas: string[] = [];
    await ended(outer.makeTool({ onToolOutputDelta: (delta) => void deltas.push(delta) }), { path: 'a' });
    expect(deltas).toEqual(['Writing 0 bytes to a…\n']);
    expect(await ended(outer, { path: 'a' })).toEqual({ ok: true });
    expect(deltas).toHaveLength(1);
  },
);
