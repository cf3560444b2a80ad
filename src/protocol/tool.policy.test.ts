import { expect, expectTypeOf } from 'vitest';
import { z } from 'zod';
import { ended, options, streamed, ways, writer } from '../../spec/support/ai-sdk-tools.js';
import { verifies } from '../../spec/verifies.js';
import { type ApprovalPolicy, ApprovalRequiredError, type LoopsTool, loopsTool } from './tool.js';

const never = (): never => {
  throw new Error('this must not run');
};

verifies('looops.policy.always_allow', 'a tool that is always allowed asks, or does not run', async () => {
  expectTypeOf<'always_allow'>().toExtend<ApprovalPolicy>();
  const { writeFile, wrote, asked } = writer();
  for (const way of ways) {
    const { parts } = await way(writeFile.withApproval('always_allow', 'watched'), { path: 'a' });
    expect(parts).toEqual([['tool-result', { ok: true }]]);
  }
  expect([wrote.length, asked]).toEqual([2, []]);
});

verifies('looops.policy.ask', 'a tool runs before its description was approved', async () => {
  expectTypeOf<ApprovalPolicy>().toEqualTypeOf<'always_allow' | 'ask' | 'blocked'>();
  const { writeFile, wrote } = writer();
  const tool = writeFile.withApproval('ask', 'supervised');
  const error = await ended(tool.makeTool({}), { path: 'a' });
  expect(error).toBeInstanceOf(ApprovalRequiredError);
  expect(error).toMatchObject({
    name: 'ApprovalRequiredError',
    toolName: 'write_file',
    description: 'Write to `a`?',
    input: { path: 'a' },
    toolCallId: 'c9',
  });
  for (const way of ways) {
    const { parts, text } = await way(tool, { path: 'a' });
    expect(parts).toMatchObject([['tool-error', expect.stringMatching(/^ApprovalRequiredError: .*Write to `a`\?/)]]);
    expect(text).toBe('done');
  }
  expect(wrote).toEqual([]);
});

verifies('looops.policy.ask', 'what a tool is told of how it is watched is not what the runtime said', async () => {
  const { writeFile, wrote, asked } = writer();
  const input = { path: 'a', content: '' };
  expect(await ended(writeFile.withApproval('ask', 'unsupervised'), input)).toEqual({ ok: true });
  expect(await ended(writeFile.withApproval('ask').makeTool({ mode: 'unsupervised' }), input)).toEqual({ ok: true });
  const named = writeFile.withApproval('ask', 'watched').makeTool({ mode: 'unsupervised' });
  expect(await ended(named, input)).toBeInstanceOf(ApprovalRequiredError);
  const again = writeFile.withApproval('ask', 'unsupervised').withApproval('ask');
  expect(await ended(again, input)).toBeInstanceOf(ApprovalRequiredError);
  expect(asked.map(({ mode }) => mode)).toEqual(['unsupervised', 'unsupervised', 'watched', undefined]);
  expect(wrote).toHaveLength(2);
});

verifies('looops.policy.ask', 'an answer that is not null lets a tool run', async () => {
  const asking = (told: unknown): LoopsTool<unknown, unknown> =>
    loopsTool({
      name: 'x',
      inputSchema: z.unknown(),
      requestApproval: () => told as null,
      execute: () => 'ran',
    }).withApproval('ask');
  for (const told of ['', '  ', undefined, false, true, 0, {}, []]) {
    for (const answer of [told, Promise.resolve(told)]) {
      expect(await ended(asking(answer), {})).toMatchObject({ name: 'ApprovalRequiredError', description: 'Run x?' });
    }
  }
  expect(await ended(asking(Promise.resolve('Sure?')), {})).toMatchObject({ description: 'Sure?' });
  expect(await ended(asking(null), {})).toBe('ran');
  expect(await ended(asking(Promise.resolve(null)), {})).toBe('ran');
  const unasked = loopsTool({ name: 'y', inputSchema: z.unknown(), execute: () => 'ran' }).withApproval('ask');
  expect(await ended(unasked, {})).toBe('ran');
});

verifies('looops.policy.ask', 'a question that fails lets the tool run', async () => {
  for (const requestApproval of [never, async () => never(), () => Promise.reject(new Error('this must not run'))]) {
    const tool = loopsTool({ name: 'x', inputSchema: z.unknown(), requestApproval, execute: () => 'ran' });
    expect(await ended(tool.withApproval('ask'), {})).toMatchObject({ message: 'this must not run' });
  }
  const abortSignal = AbortSignal.abort(new Error('stopped'));
  const slow = loopsTool({ name: 'x', inputSchema: z.unknown(), requestApproval: async () => null, execute: never });
  expect(await ended(slow.withApproval('ask'), {}, { abortSignal })).toMatchObject({ message: 'stopped' });
});

verifies('looops.policy.ask', 'a tool that yields begins before it is asked about, or loses its values', async () => {
  let begun = 0;
  async function* values(): AsyncGenerator<string> {
    begun += 1;
    yield 'half';
    yield 'whole';
  }
  const made = (told: unknown, execute: () => AsyncIterable<string>): LoopsTool<unknown, string> =>
    loopsTool({ name: 'x', inputSchema: z.unknown(), requestApproval: () => told as null, execute }).withApproval(
      'ask',
    );
  for (const told of ['Sure?', Promise.resolve('Sure?')]) {
    for (const execute of [values, () => values()]) {
      expect(await ended(made(told, execute), {})).toBeInstanceOf(ApprovalRequiredError);
      for (const way of ways) expect((await way(made(told, execute), {})).parts).toMatchObject([['tool-error', {}]]);
    }
  }
  // Nobody looks at this one: that it fails must not end the process.
  expect(made(Promise.resolve('Sure?'), values).execute({}, options())).toHaveProperty('next');
  expect(begun).toBe(0);
  const both = { values: ['half', 'whole'] };
  expect(await ended(made(null, values), {})).toEqual(both);
  expect(
    await ended(
      made(null, () => values()),
      {},
    ),
  ).toEqual(both);
  expect(await ended(made(Promise.resolve(null), values), {})).toEqual(both);
  expect(
    await ended(
      made(Promise.resolve(null), () => values()),
      {},
    ),
  ).toBe('whole');
  for (const told of [null, Promise.resolve(null)]) {
    expect((await streamed(made(told, values), {})).parts).toEqual([
      ['preliminary', 'half'],
      ['preliminary', 'whole'],
      ['tool-result', 'whole'],
    ]);
  }
});

verifies('looops.policy.blocked', 'a blocked tool runs, or asks', async () => {
  expectTypeOf<'blocked'>().toExtend<ApprovalPolicy>();
  const { writeFile, wrote, asked } = writer();
  const tool = writeFile.withApproval('blocked', 'unsupervised');
  const error = await ended(tool.makeTool({ mode: 'unsupervised' }), { path: 'a' });
  expect(error).toMatchObject({ name: 'ToolBlockedError', message: expect.stringContaining('"write_file"') });
  for (const way of ways) {
    const { parts } = await way(tool, { path: 'a' });
    expect(parts).toMatchObject([['tool-error', expect.stringMatching(/^ToolBlockedError: .*blocked/)]]);
  }
  expect([wrote, asked]).toEqual([[], []]);
});
