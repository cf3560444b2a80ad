import { expect, expectTypeOf } from 'vitest';
import { z } from 'zod';
import { ended, options, streamed, ways, writer } from '../../spec/support/ai-sdk-tools.js';
import { verifies } from '../../spec/verifies.js';
import { type ApprovalPolicy, ApprovalRequiredError, type LoopsTool, loopsTool } from './tool.js';

const never = (): never => {
  throw new Error('this must not run');
};

verifies('looops.policy.always_allow', 'a tool that is always allowed runs and never asks', async () => {
  expectTypeOf<'always_allow'>().toExtend<ApprovalPolicy>();
  const { writeFile, wrote, asked } = writer();
  for (const way of ways) {
    const { parts } = await way(writeFile.withApproval('always_allow', 'watched'), { path: 'a' });
    expect(parts).toEqual([['tool-result', { ok: true }]]);
  }
  expect([wrote.length, asked]).toEqual([2, []]);
});

verifies('looops.policy.ask', 'a tool under ask throws ApprovalRequiredError and does not run', async () => {
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

verifies('looops.policy.ask', 'requestApproval gets the mode of the policy, else the mode of the turn', async () => {
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

verifies('looops.policy.ask', 'only null permits a call; any other answer asks', async () => {
  const asking = (question: unknown): LoopsTool<unknown, unknown> =>
    loopsTool({
      name: 'x',
      inputSchema: z.unknown(),
      requestApproval: () => question as null,
      execute: () => 'ran',
    }).withApproval('ask');
  for (const question of ['', '  ', undefined, false, true, 0, {}, []]) {
    for (const returned of [question, Promise.resolve(question)]) {
      expect(await ended(asking(returned), {})).toMatchObject({ name: 'ApprovalRequiredError', description: 'Run x?' });
    }
  }
  expect(await ended(asking(Promise.resolve('Sure?')), {})).toMatchObject({ description: 'Sure?' });
  expect(await ended(asking(null), {})).toBe('ran');
  expect(await ended(asking(Promise.resolve(null)), {})).toBe('ran');
  const unasked = loopsTool({ name: 'y', inputSchema: z.unknown(), execute: () => 'ran' }).withApproval('ask');
  expect(await ended(unasked, {})).toBe('ran');
});

verifies('looops.policy.ask', 'a tool does not run if requestApproval throws or the call is aborted', async () => {
  for (const requestApproval of [never, async () => never(), () => Promise.reject(new Error('this must not run'))]) {
    const tool = loopsTool({ name: 'x', inputSchema: z.unknown(), requestApproval, execute: () => 'ran' });
    expect(await ended(tool.withApproval('ask'), {})).toMatchObject({ message: 'this must not run' });
  }
  const abortSignal = AbortSignal.abort(new Error('stopped'));
  const slow = loopsTool({ name: 'x', inputSchema: z.unknown(), requestApproval: async () => null, execute: never });
  expect(await ended(slow.withApproval('ask'), {}, { abortSignal })).toMatchObject({ message: 'stopped' });
});

verifies(
  'looops.policy.ask',
  'a generator starts only after its approval check, and all its values arrive',
  async () => {
    let started = 0;
    async function* values(): AsyncGenerator<string> {
      started += 1;
      yield 'half';
      yield 'whole';
    }
    const askingTool = (question: unknown, execute: () => AsyncIterable<string>): LoopsTool<unknown, string> =>
      loopsTool({ name: 'x', inputSchema: z.unknown(), requestApproval: () => question as null, execute }).withApproval(
        'ask',
      );
    for (const question of ['Sure?', Promise.resolve('Sure?')]) {
      for (const execute of [values, () => values()]) {
        expect(await ended(askingTool(question, execute), {})).toBeInstanceOf(ApprovalRequiredError);
        for (const way of ways)
          expect((await way(askingTool(question, execute), {})).parts).toMatchObject([['tool-error', {}]]);
      }
    }
    // This stream has no consumer: its rejection must not end the process.
    expect(askingTool(Promise.resolve('Sure?'), values).execute({}, options())).toHaveProperty('next');
    expect(started).toBe(0);
    const both = { values: ['half', 'whole'] };
    expect(await ended(askingTool(null, values), {})).toEqual(both);
    expect(
      await ended(
        askingTool(null, () => values()),
        {},
      ),
    ).toEqual(both);
    expect(await ended(askingTool(Promise.resolve(null), values), {})).toEqual(both);
    expect(
      await ended(
        askingTool(Promise.resolve(null), () => values()),
        {},
      ),
    ).toBe('whole');
    for (const question of [null, Promise.resolve(null)]) {
      expect((await streamed(askingTool(question, values), {})).parts).toEqual([
        ['preliminary', 'half'],
        ['preliminary', 'whole'],
        ['tool-result', 'whole'],
      ]);
    }
  },
);

verifies('looops.policy.blocked', 'a blocked tool neither runs nor asks', async () => {
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
