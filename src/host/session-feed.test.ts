import { expect } from 'vitest';
import { hostOf, tool } from '../../spec/support/host-fixture.js';
import { agentDef, modelOf, partsOf, replyProvider } from '../../spec/support/scripted-agents.js';
import { verifies } from '../../spec/verifies.js';
import type { ModelProvider } from '../loops/model.js';
import type { ToolFunction } from '../loops/tool-implementation.js';
import type { EventEnvelope } from '../protocol/events.js';
import type { LiveDelta } from '../protocol/live.js';
import type { Model, ModelStreamPart } from '../protocol/model.js';
import type { StreamHandlers } from '../protocol/streaming.js';

/** Returns a provider that streams one part of its replies for each call of `release`. */
function gatedProvider(
  replies: Parameters<typeof partsOf>[0][],
): ModelProvider & { release(parts?: number): Promise<void>; readonly aborted: unknown[] } {
  const gates: (() => void)[] = [];
  const aborted: unknown[] = [];
  let replyIndex = 0;
  const model: Model = {
    ...modelOf([]),
    doStream: async ({ abortSignal }) => {
      abortSignal?.addEventListener('abort', () => aborted.push(abortSignal.reason));
      const parts = partsOf(replies[replyIndex] ?? { text: 'end' }, replyIndex++);
      const pull = async (controller: ReadableStreamDefaultController<ModelStreamPart>): Promise<void> => {
        await new Promise<void>((resolve) => gates.push(resolve));
        const part = parts.shift();
        if (part === undefined) controller.close();
        else controller.enqueue(part);
      };
      return { stream: new ReadableStream({ pull }, { highWaterMark: 0 }) };
    },
  };
  const release = async (parts = 100): Promise<void> => {
    for (let remaining = parts; remaining > 0; remaining--) {
      for (let ticks = 0; ticks < 200 && gates.length === 0; ticks++)
        await new Promise((resolve) => setImmediate(resolve));
      gates.shift()?.();
    }
    for (let ticks = 0; ticks < 5; ticks++) await new Promise((resolve) => setImmediate(resolve));
  };
  return { id: 'replies', defaultModel: 'replies-1', open: async () => model, release, aborted };
}

const streamingTool: ToolFunction = (_, call) => {
  call.delta('half ');
  call.delta('done');
  return 'ok';
};

verifies(
  'agent.stream',
  'the streamed text equals the journaled text, and streaming does not change the entries',
  async () => {
    const replies = [
      { reasoning: 'hm hm ', text: 'Let me see. ', calls: [['work', { x: 1 }]] as const },
      { text: 'All is well.' },
    ];
    const run = async (isSubscribed: boolean) => {
      const deltas: LiveDelta[] = [];
      const envelopes: EventEnvelope[] = [];
      const host = hostOf([agentDef('agent', { tools: ['work'] }), tool('work', 'builtin:work')], {
        providers: [replyProvider(replies)],
        tools: { work: streamingTool },
      });
      const options = {
        onDelta: (delta: LiveDelta) => deltas.push(delta),
        onEnvelope: (one: EventEnvelope) => envelopes.push(one),
      };
      const result = await host.run(
        { loop: 'agent', input: { prompt: 'go' }, sessionId: 's' },
        isSubscribed ? options : {},
      );
      return {
        deltas,
        envelopes,
        events: await host.archive.events('s'),
        entries: await host.archive.entries('s'),
        result,
      };
    };
    const [streamed, unstreamed] = [await run(true), await run(false)];
    expect(streamed.entries).toEqual(unstreamed.entries);
    expect(streamed.envelopes).toEqual(streamed.events);
    const joined = (kind: string): string =>
      streamed.deltas.flatMap((delta) => (delta.kind === kind ? [delta.text] : [])).join('');
    expect(joined('text')).toBe('Let me see. All is well.');
    expect(joined('reasoning')).toBe('hm hm ');
    expect(joined('tool-input')).toBe('{"x":1}');
    expect(joined('tool-output')).toBe('half done');
    expect(streamed.events.find(({ type }) => type === 'tool-result')?.content).toMatchObject({
      result: 'ok',
      output: 'half done',
    });
    expect(streamed.deltas.every(({ generationId }) => generationId === streamed.result.turnId)).toBe(true);
    expect(streamed.entries.some(({ type }) => type.includes('delta'))).toBe(false);
  },
);

verifies('looops.tool.delta', 'the agent calls every stream handler, in order', async () => {
  const replies = [
    {
      reasoning: 'hm ',
      text: 'Hi ',
      calls: [
        ['work', {}],
        ['missing', {}],
        ['fail', {}],
        ['ask', {}],
      ] as const,
    },
    { text: 'bye' },
  ];
  const called: string[] = [];
  const messageHandlers =
    'onAssistantMessage onAssistantMessageDelta onReasoningStart onReasoningDelta onToolCall onToolResult';
  const toolHandlers = 'onToolNotFound onToolError onToolOutputDelta onToolApprovalRequired';
  const stream = Object.fromEntries(
    `${messageHandlers} ${toolHandlers}`.split(' ').map((name) => [
      name,
      async () => {
        await new Promise((resolve) => setImmediate(resolve));
        called.push(name);
      },
    ]),
  ) as StreamHandlers;
  const host = hostOf(
    [
      agentDef('agent', { tools: ['work', 'fail', 'ask'], approvals: { ask: 'ask' } }),
      tool('work', 'builtin:work'),
      tool('fail', 'builtin:fail'),
      tool('ask'),
    ],
    { providers: [replyProvider(replies)], tools: { work: streamingTool } },
  );
  const paused = await host.run({ loop: 'agent', input: { prompt: 'go' }, sessionId: 's' }, { stream });
  expect(paused.status).toBe('paused');
  const first = ['onReasoningStart', 'onReasoningDelta', 'onAssistantMessage', 'onAssistantMessageDelta'];
  expect(called.slice(0, 4)).toEqual(first);
  expect(new Set(called)).toEqual(new Set(`${messageHandlers} ${toolHandlers}`.split(' ')));
  const [approval] = await host.archive.approvals();
  await host.answer({ id: approval?.id ?? '', approved: false, by: 'ada', reason: 'no' });
  called.length = 0;
  await host.resume(paused.turnId, { stream });
  expect(called).toEqual(['onToolError', 'onAssistantMessage', 'onAssistantMessageDelta']);
});

verifies('agent.reconnect', 'a client that reconnects receives every envelope and delta exactly once', async () => {
  const provider = gatedProvider([{ text: 'one two three ' }, { text: 'four' }]);
  const host = hostOf([agentDef('agent')], { providers: [provider] });
  const running = host.run({ loop: 'agent', input: { prompt: 'count' }, sessionId: 's' }, { onDelta: () => {} });
  await provider.release(4);
  const received: string[] = [];
  const subscriber = {
    envelope: ({ type }: EventEnvelope) => received.push(type),
    delta: ({ text }: LiveDelta) => received.push(`+${text}`),
  };
  const unsubscribe = await host.follow('s', subscriber);
  expect(received).toEqual(['user-message', '+one two ']);
  await provider.release();
  expect(await running).toMatchObject({ status: 'ok', output: { text: 'one two three ' } });
  expect(received).toEqual(['user-message', '+one two ', '+three ', 'assistant-message']);
  unsubscribe();
  const [first] = await host.archive.events('s');
  const rest: string[] = [];
  const unsubscribeRest = await host.follow('s', { envelope: ({ type }) => rest.push(type) }, first?.id);
  unsubscribeRest();
  expect(rest).toEqual(['assistant-message']);
});

verifies(
  'agent.abort',
  'an abort ends the turn without waiting for the model, and is journaled',
  async () => {
    const provider = gatedProvider([{ text: 'a long answer that is cut off ' }]);
    const host = hostOf([agentDef('agent')], { providers: [provider] });
    const running = host.run({ loop: 'agent', input: { prompt: 'talk' }, sessionId: 's' }, { onDelta: () => {} });
    await provider.release(5);
    const [turn] = await host.archive.turns('s');
    expect(await host.cancel(turn?.turnId ?? '', 'enough')).toBe(true);
    expect(await running).toMatchObject({ status: 'cancelled', error: { code: 'CANCELLED' } });
    expect(provider.aborted).toHaveLength(1);
    expect((await host.archive.events('s')).map(({ type }) => type)).toEqual(['user-message', 'user-abort']);
  },
  20_000,
);

verifies(
  'agent.steer',
  'a message to a running agent is delivered exactly once, at the next round or after the answer',
  async () => {
    const provider = replyProvider([{ calls: [['work', {}]] }, { text: 'first answer' }, { text: 'second answer' }]);
    let sendMessages: () => Promise<void> = async () => {};
    const host = hostOf([agentDef('agent', { tools: ['work'] }), tool('work', 'builtin:work')], {
      providers: [provider],
      tools: {
        work: async () => {
          await sendMessages();
          return 'done';
        },
      },
    });
    sendMessages = async () => {
      await host.sendMessage({ sessionId: 's', text: 'be quick', id: 'm1' });
      await host.sendMessage({ sessionId: 's', text: 'be quick', id: 'm1' });
      await host.sendMessage({ sessionId: 's', text: 'and then?', mode: 'queue', id: 'm2' });
    };
    const result = await host.run({ loop: 'agent', input: { prompt: 'go' }, sessionId: 's' });
    expect(result).toMatchObject({ status: 'ok', output: { text: 'second answer' } });
    const userTexts = (index: number): string[] =>
      (provider.requests[index]?.prompt ?? []).flatMap(({ role, content }) =>
        role === 'user' && typeof content !== 'string' ? content.map((part) => part.text) : [],
      );
    expect(userTexts(1)).toEqual(['go', 'be quick']);
    expect(userTexts(2)).toEqual(['go', 'be quick', 'and then?']);
    expect(await host.replay(result.turnId)).toMatchObject({ matches: true });
    const types = (await host.archive.events('s')).map(({ type }) => type);
    expect(types.filter((type) => type === 'user-message')).toHaveLength(3);
    await expect(host.sendMessage({ sessionId: 's', text: 'late' })).rejects.toMatchObject({ code: 'TURN_NOT_FOUND' });
  },
);

verifies(
  'agent.abort',
  'a subscriber that cancels the turn from a callback leaves a journal that replays',
  async () => {
    const provider = replyProvider([{ text: 'a ', calls: [['work', {}]] }, { text: 'never' }]);
    const host = hostOf([agentDef('agent', { tools: ['work'] }), tool('work', 'builtin:work')], {
      providers: [provider],
      tools: { work: () => 'done' },
    });
    const stops: Promise<unknown>[] = [];
    const onEnvelope = ({ generationId }: EventEnvelope): void => {
      const ignore = (): void => undefined;
      stops.push(
        host.cancel(generationId, 'stop').catch(ignore),
        host.sendMessage({ sessionId: 's', text: 'x' }).catch(ignore),
      );
    };
    const result = await host.run({ loop: 'agent', input: { prompt: 'go' }, sessionId: 's' }, { onEnvelope });
    expect(result).toMatchObject({ status: 'cancelled', error: { code: 'CANCELLED' } });
    await Promise.all(stops);
    expect(await host.replay(result.turnId)).toMatchObject({ matches: true });
  },
);
