import { generateText, stepCountIs, streamText } from 'ai';
import { convertArrayToReadableStream, MockLanguageModelV3 } from 'ai/test';
import { expect } from 'vitest';
import { z } from 'zod';
import { hostOf, tool } from '../../../spec/support/host-fixture.js';
import { agentDef, partsOf, type Reply, replyProvider } from '../../../spec/support/scripted-agents.js';
import { verifies } from '../../../spec/verifies.js';
import { defineLoop } from '../../loops/define.js';
import type { LoopDef } from '../../protocol/loop.js';
import { ApprovalRequiredError } from '../../protocol/tool.js';
import { toAISDKTool } from './tool.js';

type Generated = Awaited<ReturnType<MockLanguageModelV3['doGenerate']>>;

/** Returns a mock model of the SDK with scripted replies. */
function sdkModel(replies: readonly Reply[]): MockLanguageModelV3 {
  let index = 0;
  const next = () => partsOf(replies[index] ?? {}, index++);
  return new MockLanguageModelV3({
    doGenerate: async () => {
      const parts = next();
      const text = parts.flatMap((part) => (part.type === 'text-delta' ? [part.delta] : [])).join('');
      const calls = parts.filter((part) => part.type === 'tool-call');
      const finish = parts.find((part) => part.type === 'finish');
      const content = [...(text === '' ? [] : [{ type: 'text', text }]), ...calls];
      return { ...finish, content, warnings: [] } as unknown as Generated;
    },
    doStream: async () => ({ stream: convertArrayToReadableStream(next()) as never }),
  });
}

const PAY: Partial<LoopDef> = {
  description: 'Pays money back.',
  inputSchema: { type: 'object', properties: { amount: { type: 'number' } }, required: ['amount'] },
};

function createPayHost(more: Partial<LoopDef> = {}) {
  const paid: number[] = [];
  const host = hostOf([tool('pay', 'builtin:pay', { ...PAY, ...more })], {
    tools: {
      pay: (input) => {
        const { amount } = input as { readonly amount: number };
        if (amount < 0) throw new Error('less than nothing');
        paid.push(amount);
        return { paid: amount };
      },
    },
  });
  return { host, paid };
}

const call = (amount: unknown, id = 'c1'): Reply => ({ calls: [['pay', { amount }, id]] });

verifies('aisdk.tool', 'a loop that generateText calls is journaled, and its result reaches the model', async () => {
  const { host, paid } = createPayHost();
  const model = sdkModel([call(5), { text: 'Paid.' }]);
  const tools = { pay: toAISDKTool('pay', { host, sessionId: 'shop', principal: 'ada' }) };
  const { text, steps } = await generateText({
    model,
    tools,
    prompt: 'pay',
    stopWhen: stepCountIs(3),
    maxRetries: 0,
  });
  expect(text).toBe('Paid.');
  expect(paid).toEqual([5]);
  expect(steps[0]?.toolResults).toMatchObject([{ toolName: 'pay', input: { amount: 5 }, output: { paid: 5 } }]);
  expect(await host.archive.turns('shop')).toMatchObject([{ loopId: 'pay', status: 'ok' }]);
  expect(model.doGenerateCalls[0]?.tools).toMatchObject([
    { name: 'pay', description: 'Pays money back.', inputSchema: { required: ['amount'] } },
  ]);
});

verifies('aisdk.tool', 'invalid arguments never reach the loop', async () => {
  const { host, paid } = createPayHost();
  const tools = { pay: toAISDKTool('pay', { host }) };
  const model = sdkModel([call('five'), { text: 'Sorry.' }]);
  const { steps } = await generateText({ model, tools, prompt: 'pay', stopWhen: stepCountIs(2), maxRetries: 0 });
  expect(paid).toEqual([]);
  expect(steps[0]?.content.filter(({ type }) => type === 'tool-error')).toMatchObject([{ toolName: 'pay' }]);
  expect(await host.archive.turns()).toEqual([]);
  const { validate, jsonSchema } = tools.pay.inputSchema['~standard'];
  expect(validate({ amount: 'five' })).toMatchObject({ issues: [{ path: ['amount'] }] });
  expect(validate({ amount: 5 })).toEqual({ value: { amount: 5 } });
  expect(jsonSchema.input()).toMatchObject({ type: 'object', required: ['amount'] });
});

verifies('aisdk.tool', 'a repeated call is performed once', async () => {
  const { host, paid } = createPayHost();
  const pay = toAISDKTool('pay', { host, sessionId: 'shop' });
  const results = await Promise.all([0, 1].map(() => pay.execute({ amount: 5 }, { toolCallId: 'c1' })));
  expect(results).toEqual([{ paid: 5 }, { paid: 5 }]);
  expect(paid).toEqual([5]);
  await pay.execute({ amount: 5 }, { toolCallId: 'c2' });
  expect(paid).toEqual([5, 5]);
  await expect(pay.execute({ amount: 6 }, { toolCallId: 'c1' })).rejects.toMatchObject({ code: 'KEY_CONFLICT' });
});

verifies('aisdk.tool', 'a loop that requires an approval does not run before it is approved', async () => {
  const { host, paid } = createPayHost({ policy: { approval: 'ask' } });
  const pay = toAISDKTool('pay', { host, sessionId: 'shop' });
  const model = sdkModel([call(5), { text: 'It must be approved.' }]);
  const { steps } = await generateText({
    model,
    tools: { pay },
    prompt: 'pay',
    stopWhen: stepCountIs(2),
    maxRetries: 0,
  });
  const [failed] = steps[0]?.content.filter(({ type }) => type === 'tool-error') ?? [];
  expect(paid).toEqual([]);
  expect(failed).toMatchObject({ error: { name: 'ApprovalRequiredError', toolName: 'pay', input: { amount: 5 } } });
  const [approval] = await host.archive.approvals('shop');
  await host.answer({ id: approval?.id ?? '', approved: true, by: 'ada' });
  expect(await pay.execute({ amount: 5 }, { toolCallId: 'c1' })).toEqual({ paid: 5 });
  expect(paid).toEqual([5]);
});

verifies('aisdk.tool', 'an approval below a tool names the tool call that needs it', async () => {
  const provider = replyProvider([{ calls: [['pay', { amount: 9 }]] }, { text: 'Paid.' }]);
  const agent = agentDef('clerk', { tools: ['pay'], approvals: { pay: 'ask' } });
  const host = hostOf([agent, tool('pay', 'builtin:echo', PAY)], { providers: [provider] });
  const clerk = toAISDKTool('clerk', { host });
  const thrown: unknown = await clerk.execute({ prompt: 'go' }, { toolCallId: 'c1' }).catch((error: unknown) => error);
  expect(thrown).toBeInstanceOf(ApprovalRequiredError);
  expect(thrown).toMatchObject({ toolName: 'pay', input: { amount: 9 }, toolCallId: 'c1' });
  const [approval] = await host.archive.approvals();
  await host.answer({ id: approval?.id ?? '', approved: true, by: 'ada' });
  expect(await clerk.execute({ prompt: 'go' }, { toolCallId: 'c1' })).toEqual({ text: 'Paid.' });
});

verifies('aisdk.tool', 'a loop that fails throws a LoopError with its code', async () => {
  const { host } = createPayHost();
  const pay = toAISDKTool('pay', { host });
  await expect(pay.execute({ amount: -1 }, { toolCallId: 'c1' })).rejects.toMatchObject({
    name: 'LoopError',
    code: 'TOOL_FAILED',
  });
  await expect(pay.execute({}, { toolCallId: 'c2' })).rejects.toMatchObject({ code: 'INPUT_VALIDATION_FAILED' });
});

verifies('aisdk.tool', 'an aborted tool call cancels its turn', async () => {
  let markStarted = (): void => {};
  const started = new Promise<void>((resolve) => {
    markStarted = resolve;
  });
  const wait = defineLoop({
    id: 'wait',
    input: z.object({}),
    output: z.string(),
    tool: (_, { signal }) =>
      new Promise<string>((_resolve, reject) => {
        markStarted();
        signal?.addEventListener('abort', () => reject(signal.reason));
      }),
  });
  const host = hostOf([wait]);
  const stop = new AbortController();
  const running = toAISDKTool(wait, { host }).execute({}, { toolCallId: 'c1', abortSignal: stop.signal });
  const rejection = expect(running).rejects.toMatchObject({ code: 'CANCELLED' });
  await started;
  stop.abort();
  await rejection;
  const late = toAISDKTool(wait, { host }).execute({}, { toolCallId: 'c2', abortSignal: stop.signal });
  await expect(late).rejects.toMatchObject({ name: 'AbortError' });
  expect(await host.archive.turns()).toHaveLength(1);
});

verifies('aisdk.tool', 'a loop in code keeps its types and schema as a tool', async () => {
  const double = defineLoop({
    id: 'double',
    input: z.object({ number: z.number() }),
    output: z.object({ number: z.number() }),
    run: ({ number }) => ({ number: number * 2 }),
  });
  const host = hostOf([]);
  const doubling = toAISDKTool(double, { host });
  const output: { number: number } = await doubling.execute({ number: 4 }, { toolCallId: 'c1' });
  expect(output).toEqual({ number: 8 });
  const model = sdkModel([{ calls: [['double', { number: 21 }]] }, { text: 'It is 42.' }]);
  const result = streamText({
    model,
    tools: { double: doubling },
    prompt: 'go',
    stopWhen: stepCountIs(2),
    maxRetries: 0,
  });
  expect(await result.text).toBe('It is 42.');
  expect((await result.steps)[0]?.toolResults).toMatchObject([{ output: { number: 42 } }]);
});

verifies('aisdk.tool', 'an unknown loop, version or option is an error', () => {
  const { host } = createPayHost();
  expect(() => toAISDKTool('nothing', { host })).toThrow(/no loop "nothing"/);
  expect(() => toAISDKTool('pay', { host, version: '9.0.0' })).toThrow(/pay@9.0.0/);
  expect(() => toAISDKTool('pay', { host, session: 'x' } as never)).toThrow(/no option "session"/);
});

verifies('aisdk.identity', 'calls of different principals with the same id are different turns', async () => {
  for (const session of [{}, { sessionId: 'shop' }]) {
    const { host, paid } = createPayHost();
    const call = { toolCallId: 'call_0' };
    for (const principal of ['ada', 'eve']) {
      const pay = toAISDKTool('pay', { host, principal, ...session });
      await Promise.all([0, 1].map(() => pay.execute({ amount: 5 }, call)));
    }
    await toAISDKTool('pay', { host, ...session }).execute({ amount: 5 }, call);
    expect(paid).toEqual([5, 5, 5]);
    const turns = await host.archive.turns();
    expect(new Set(turns.map(({ principal }) => principal))).toEqual(new Set(['ada', 'eve', undefined]));
  }
});

verifies(
  'aisdk.identity',
  'one tool object separates users and conversations that use the same tool call ids',
  async () => {
    const { host, paid } = createPayHost();
    const context = ({ experimental_context }: { readonly experimental_context?: unknown }) =>
      experimental_context as { readonly user: string; readonly chat: string };
    const pay = toAISDKTool('pay', {
      host,
      principal: (call) => context(call).user,
      sessionId: (call) => context(call).chat,
    });
    const buy = async (experimental_context: unknown) => {
      const model = sdkModel([call(5, 'call_0'), { text: 'Paid.' }]);
      const options = { model, tools: { pay }, stopWhen: stepCountIs(2), maxRetries: 0 };
      const { steps } = await generateText({ ...options, prompt: 'pay', experimental_context });
      return steps[0]?.content.some(({ type }) => type === 'tool-error') === false;
    };
    const successes = [
      await buy({ user: 'ada', chat: 'one' }),
      await buy({ user: 'ada', chat: 'one' }),
      await buy({ user: 'ada', chat: 'two' }),
      await buy({ user: 'eve', chat: 'one' }),
      await buy({ chat: 'one' }),
    ];
    expect(successes).toEqual([true, true, true, true, false]);
    expect(paid).toEqual([5, 5, 5]);
  },
);

verifies('aisdk.identity', 'without a session, calls of different conversations are different turns', async () => {
  const { host, paid } = createPayHost();
  const pay = toAISDKTool('pay', { host });
  const buy = () => {
    const model = sdkModel([call(5, 'call_0'), { text: 'Paid.' }]);
    return generateText({ model, tools: { pay }, prompt: 'pay', stopWhen: stepCountIs(2), maxRetries: 0 });
  };
  await buy();
  await buy();
  expect(paid).toEqual([5, 5]);
  const messages = [{ role: 'user', content: 'pay' }];
  const repeated = { toolCallId: 'call_0', messages };
  await pay.execute({ amount: 7 }, repeated);
  await pay.execute({ amount: 7 }, repeated);
  await pay.execute({ amount: 7 }, { toolCallId: 'call_0', messages: [...messages] });
  await toAISDKTool('pay', { host }).execute({ amount: 9 }, { toolCallId: 'call_0' });
  await toAISDKTool('pay', { host }).execute({ amount: 9 }, { toolCallId: 'call_0' });
  expect(paid).toEqual([5, 5, 7, 7, 9, 9]);
});
