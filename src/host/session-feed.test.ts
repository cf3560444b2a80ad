import { expect } from 'vitest';
import { hostOf, tool } from '../../spec/support/host-fixture.js';
import { agentDef, modelOf, partsOf, told } from '../../spec/support/scripted-agents.js';
import { verifies } from '../../spec/verifies.js';
import type { ModelProvider } from '../loops/model.js';
import type { ToolFunction } from '../loops/tool-implementation.js';
import type { EventEnvelope } from '../protocol/events.js';
import type { LiveDelta } from '../protocol/live.js';
import type { Model, ModelStreamPart } from '../protocol/model.js';
import type { StreamHandlers } from '../protocol/streaming.js';

/** A backend whose replies come when they are let go, part by part. */
function held(
  replies: Parameters<typeof partsOf>[0][],
): ModelProvider & { go(parts?: number): Promise<void>; readonly aborted: unknown[] } {
  const gates: (() => void)[] = [];
  const aborted: unknown[] = [];
  let nth = 0;
  const model: Model = {
    ...modelOf([]),
    doStream: async ({ abortSignal }) => {
      abortSignal?.addEventListener('abort', () => aborted.push(abortSignal.reason));
      const parts = partsOf(replies[nth] ?? { text: 'end' }, nth++);
      const pull = async (out: ReadableStreamDefaultController<ModelStreamPart>): Promise<void> => {
        await new Promise<void>((resolve) => gates.push(resolve));
        const part = parts.shift();
        if (part === undefined) out.close();
        else out.enqueue(part);
      };
      return { stream: new ReadableStream({ pull }, { highWaterMark: 0 }) };
    },
  };
  const go = async (parts = 100): Promise<void> => {
    for (let left = parts; left > 0; left--) {
      for (let turns = 0; turns < 200 && gates.length === 0; turns++)
        await new Promise((resolve) => setImmediate(resolve));
      gates.shift()?.();
    }
    for (let turns = 0; turns < 5; turns++) await new Promise((resolve) => setImmediate(resolve));
  };
  return { id: 'told', defaultModel: 'told-1', open: async () => model, go, aborted };
}

const streaming: ToolFunction = (_, call) => {
  call.delta('half ');
  call.delta('done');
  return 'ok';
};

verifies('agent.stream', 'what was streamed is not what is kept, or streaming changes what happens', async () => {
  const replies = [
    { reasoning: 'hm hm ', text: 'Let me see. ', calls: [['work', { x: 1 }]] as const },
    { text: 'All is well.' },
  ];
  const run = async (watch: boolean) => {
    const deltas: LiveDelta[] = [];
    const envelopes: EventEnvelope[] = [];
    const host = hostOf([agentDef('agent', { tools: ['work'] }), tool('work', 'builtin:work')], {
      backends: [told(replies)],
      tools: { work: streaming },
    });
    const options = {
      onDelta: (delta: LiveDelta) => deltas.push(delta),
      onEnvelope: (one: EventEnvelope) => envelopes.push(one),
    };
    const result = await host.run({ loop: 'agent', input: { prompt: 'go' }, sessionId: 's' }, watch ? options : {});
    return {
      deltas,
      envelopes,
      events: await host.archive.events('s'),
      entries: await host.archive.entries('s'),
      result,
    };
  };
  const [seen, unseen] = [await run(true), await run(false)];
  expect(seen.entries).toEqual(unseen.entries);
  expect(seen.envelopes).toEqual(seen.events);
  const joined = (kind: string): string =>
    seen.deltas.flatMap((delta) => (delta.kind === kind ? [delta.text] : [])).join('');
  expect(joined('text')).toBe('Let me see. All is well.');
  expect(joined('reasoning')).toBe('hm hm ');
  expect(joined('tool-input')).toBe('{"x":1}');
  expect(joined('tool-output')).toBe('half done');
  expect(seen.events.find(({ type }) => type === 'tool-result')?.content).toMatchObject({
    result: 'ok',
    output: 'half done',
  });
  expect(seen.deltas.every(({ generationId }) => generationId === seen.result.turnId)).toBe(true);
  expect(seen.entries.some(({ type }) => type.includes('delta'))).toBe(false);
});

verifies('looops.tool.delta', 'a handler of the protocol is not called by the agent, or out of order', async () => {
  const replies = [
    {
      reasoning: 'hm ',
      text: 'Hi ',
      calls: [
        ['work', {}],
        ['nobody', {}],
        ['fail', {}],
        ['ask', {}],
      ] as const,
    },
    { text: 'bye' },
  ];
  const called: string[] = [];
  const names = 'onAssistantMessage onAssistantMessageDelta onReasoningStart onReasoningDelta onToolCall onToolResult';
  const more = 'onToolNotFound onToolError onToolOutputDelta onToolApprovalRequired';
  const stream = Object.fromEntries(
    `${names} ${more}`.split(' ').map((name) => [
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
    { backends: [told(replies)], tools: { work: streaming } },
  );
  const paused = await host.run({ loop: 'agent', input: { prompt: 'go' }, sessionId: 's' }, { stream });
  expect(paused.status).toBe('paused');
  const first = ['onReasoningStart', 'onReasoningDelta', 'onAssistantMessage', 'onAssistantMessageDelta'];
  expect(called.slice(0, 4)).toEqual(first);
  expect(new Set(called)).toEqual(new Set(`${names} ${more}`.split(' ')));
  const [approval] = await host.archive.approvals();
  await host.answer({ id: approval?.id ?? '', approved: false, by: 'ada', reason: 'no' });
  called.length = 0;
  await host.resume(paused.turnId, { stream });
  expect(called).toEqual(['onToolError', 'onAssistantMessage', 'onAssistantMessageDelta']);
});

verifies('agent.reconnect', 'a client that comes back misses something, or gets it twice', async () => {
  const backend = held([{ text: 'one two three ' }, { text: 'four' }]);
  const host = hostOf([agentDef('agent')], { backends: [backend] });
  const running = host.run({ loop: 'agent', input: { prompt: 'count' }, sessionId: 's' }, { onDelta: () => {} });
  await backend.go(4);
  const seen: string[] = [];
  const watcher = {
    envelope: ({ type }: EventEnvelope) => seen.push(type),
    delta: ({ text }: LiveDelta) => seen.push(`+${text}`),
  };
  const leave = await host.follow('s', watcher);
  expect(seen).toEqual(['user-message', '+one two ']);
  await backend.go();
  expect(await running).toMatchObject({ status: 'ok', output: { text: 'one two three ' } });
  expect(seen).toEqual(['user-message', '+one two ', '+three ', 'assistant-message']);
  leave();
  const [first] = await host.archive.events('s');
  const rest: string[] = [];
  const gone = await host.follow('s', { envelope: ({ type }) => rest.push(type) }, first?.id);
  gone();
  expect(rest).toEqual(['assistant-message']);
});

verifies(
  'agent.abort',
  'an abort waits for the model, is not journaled, or hangs',
  async () => {
    const backend = held([{ text: 'a long answer that nobody wants ' }]);
    const host = hostOf([agentDef('agent')], { backends: [backend] });
    const running = host.run({ loop: 'agent', input: { prompt: 'talk' }, sessionId: 's' }, { onDelta: () => {} });
    await backend.go(5);
    const [turn] = await host.archive.turns('s');
    expect(await host.cancel(turn?.turnId ?? '', 'enough')).toBe(true);
    expect(await running).toMatchObject({ status: 'error', error: { code: 'CANCELLED' } });
    expect(backend.aborted).toHaveLength(1);
    expect((await host.archive.events('s')).map(({ type }) => type)).toEqual(['user-message', 'user-abort']);
  },
  20_000,
);

verifies('agent.steer', 'a message that comes while the agent works is lost, heard twice or out of turn', async () => {
  const backend = told([{ calls: [['work', {}]] }, { text: 'first answer' }, { text: 'second answer' }]);
  let say: () => Promise<void> = async () => {};
  const host = hostOf([agentDef('agent', { tools: ['work'] }), tool('work', 'builtin:work')], {
    backends: [backend],
    tools: {
      work: async () => {
        await say();
        return 'done';
      },
    },
  });
  say = async () => {
    await host.sendMessage({ sessionId: 's', text: 'be quick', id: 'm1' });
    await host.sendMessage({ sessionId: 's', text: 'be quick', id: 'm1' });
    await host.sendMessage({ sessionId: 's', text: 'and then?', mode: 'queue', id: 'm2' });
  };
  const result = await host.run({ loop: 'agent', input: { prompt: 'go' }, sessionId: 's' });
  expect(result).toMatchObject({ status: 'ok', output: { text: 'second answer' } });
  const words = (nth: number): string[] =>
    (backend.asked[nth]?.prompt ?? []).flatMap(({ role, content }) =>
      role === 'user' && typeof content !== 'string' ? content.map((part) => part.text) : [],
    );
  expect(words(1)).toEqual(['go', 'be quick']);
  expect(words(2)).toEqual(['go', 'be quick', 'and then?']);
  expect(await host.replay(result.turnId)).toMatchObject({ matches: true });
  const types = (await host.archive.events('s')).map(({ type }) => type);
  expect(types.filter((type) => type === 'user-message')).toHaveLength(3);
  await expect(host.sendMessage({ sessionId: 's', text: 'late' })).rejects.toMatchObject({ code: 'TURN_NOT_FOUND' });
});

verifies('agent.abort', 'whoever stops a turn in the middle of hearing of it breaks its journal', async () => {
  const backend = told([{ text: 'a ', calls: [['work', {}]] }, { text: 'never' }]);
  const host = hostOf([agentDef('agent', { tools: ['work'] }), tool('work', 'builtin:work')], {
    backends: [backend],
    tools: { work: () => 'done' },
  });
  const stops: Promise<unknown>[] = [];
  const onEnvelope = ({ generationId }: EventEnvelope): void => {
    const late = (): void => undefined;
    stops.push(
      host.cancel(generationId, 'stop').catch(late),
      host.sendMessage({ sessionId: 's', text: 'x' }).catch(late),
    );
  };
  const result = await host.run({ loop: 'agent', input: { prompt: 'go' }, sessionId: 's' }, { onEnvelope });
  expect(result).toMatchObject({ status: 'error', error: { code: 'CANCELLED' } });
  await Promise.all(stops);
  expect(await host.replay(result.turnId)).toMatchObject({ matches: true });
});
