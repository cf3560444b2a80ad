import { expect } from 'vitest';
import { composite, hostOf, tool } from '../../../spec/support/host-fixture.js';
import { agentDef, replyProvider } from '../../../spec/support/scripted-agents.js';
import { errorOf } from '../../../spec/support/turn-results.js';
import { verifies } from '../../../spec/verifies.js';
import { memoryStore } from '../../adapters/memory/index.js';
import type { ToolFunction } from '../tool-implementation.js';

const add: ToolFunction = (input) => {
  const { a, b } = input as { a: number; b: number };
  return a + b;
};
const ADD = tool('add', 'builtin:add', {
  inputSchema: {
    type: 'object',
    properties: { a: { type: 'number' }, b: { type: 'number' } },
    required: ['a', 'b'],
  },
});
const typesIn = async (host: ReturnType<typeof hostOf>, session = 's'): Promise<string[]> =>
  (await host.archive.events(session)).map(({ type }) => type);

verifies('agent.rounds', 'an agent runs the tools that its model chose and returns their results to it', async () => {
  const provider = replyProvider([{ text: 'Let me add. ', calls: [['add', { a: 1, b: 2 }]] }, { text: 'It is 3.' }]);
  const host = hostOf([agentDef('agent', { tools: ['add'], instructions: 'Be brief.' }), ADD], {
    providers: [provider],
    tools: { add },
  });
  const result = await host.run({ loop: 'agent', input: { prompt: '1 + 2?' }, sessionId: 's' });
  expect(result).toMatchObject({ status: 'ok', output: { text: 'It is 3.' } });
  const [first, second] = provider.requests;
  expect(first?.prompt[0]).toEqual({ role: 'system', content: 'Be brief.' });
  expect(first?.tools?.map(({ name }) => name)).toEqual(['add']);
  expect(second?.prompt.map(({ role }) => role)).toEqual(['system', 'user', 'assistant', 'tool']);
  expect(second?.prompt.at(-1)).toMatchObject({
    content: [{ toolCallId: 'call-0', output: { type: 'json', value: 3 } }],
  });
  const types = ['user-message', 'assistant-message', 'tool-call', 'tool-result', 'assistant-message'];
  expect(await typesIn(host)).toEqual(types);
  expect(await host.replay(result.turnId)).toMatchObject({ matches: true });
});

verifies('agent.parallel', 'results of concurrent tool calls are in the order of the calls', async () => {
  const resolvers: (() => void)[] = [];
  const slow: ToolFunction = async (input) => {
    const { index } = input as { index: number };
    if (index < 2) await new Promise<void>((resolve) => resolvers.push(resolve));
    else for (const resolve of resolvers.reverse()) resolve();
    return index;
  };
  const calls = [0, 1, 2].map((index) => ['slow', { index }] as const);
  const provider = replyProvider([{ calls }, { text: 'done' }]);
  const host = hostOf([agentDef('agent', { tools: ['slow'] }), tool('slow', 'builtin:slow')], {
    providers: [provider],
    tools: { slow },
  });
  expect(await host.run({ loop: 'agent', input: { prompt: 'go' } })).toMatchObject({ status: 'ok' });
  const last = provider.requests[1]?.prompt.at(-1);
  const values =
    last?.role === 'tool' ? last.content.map(({ output }) => ('value' in output ? output.value : output)) : [];
  expect(values).toEqual([0, 1, 2]);
});

verifies(
  'agent.refused',
  'an invalid tool call becomes an error result for the model and does not end the agent',
  async () => {
    const boom: ToolFunction = () => {
      throw new Error('boom');
    };
    const provider = replyProvider([
      {
        calls: [
          ['missing', {}],
          ['add', '{"a":'],
          ['add', { a: 'x', b: 1 }],
          ['boom', {}],
          ['add', '{"__proto__":{}}'],
        ],
      },
      { text: 'sorry' },
    ]);
    const host = hostOf([agentDef('agent', { tools: ['add', 'boom'] }), ADD, tool('boom', 'builtin:boom')], {
      providers: [provider],
      tools: { add, boom },
    });
    const result = await host.run({ loop: 'agent', input: { prompt: 'go' }, sessionId: 's' });
    expect(result).toMatchObject({ status: 'ok', output: { text: 'sorry' } });
    const last = provider.requests[1]?.prompt.at(-1);
    const texts =
      last?.role === 'tool' ? last.content.map(({ output }) => ('value' in output ? String(output.value) : '')) : [];
    const codes = ['TOOL_NOT_FOUND', 'INPUT_VALIDATION_FAILED', 'INPUT_VALIDATION_FAILED', 'TOOL_FAILED'];
    expect(texts.slice(0, 4).map((text) => text.split(':', 1)[0])).toEqual(codes);
    expect(texts[0]).toContain('there are add, boom');
    expect(texts[3]).toContain('boom');
    expect(texts[4]).toContain('INPUT_VALIDATION_FAILED');
    expect((await typesIn(host)).filter((type) => type === 'tool-error')).toHaveLength(5);
    expect(await host.replay(result.turnId)).toMatchObject({ matches: true });
  },
);

verifies(
  'agent.output',
  'an invalid final answer is returned to the model once, and never becomes the output',
  async () => {
    const outputSchema = { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] } as const;
    const answer = async (texts: readonly string[]) => {
      const provider = replyProvider(texts.map((text) => ({ text })));
      const host = hostOf([agentDef('agent', {}, { outputSchema })], { providers: [provider] });
      return { result: await host.run({ loop: 'agent', input: { prompt: 'n?' } }), backend: provider };
    };
    const valid = await answer(['{"n": 1}']);
    expect(valid.result).toMatchObject({ status: 'ok', output: { n: 1 } });
    expect(valid.backend.requests[0]?.responseFormat).toMatchObject({ type: 'json', schema: outputSchema });
    const repaired = await answer(['one', '{"n": 1}']);
    expect(repaired.result).toMatchObject({ status: 'ok', output: { n: 1 } });
    expect(JSON.stringify(repaired.backend.requests[1]?.prompt.at(-1))).toContain('does not fit');
    expect((await answer(['one', 'two'])).result).toMatchObject({ error: { code: 'OUTPUT_VALIDATION_FAILED' } });
  },
);

verifies('agent.stop', 'an agent that reaches a limit stops with a reason: neither success nor error', async () => {
  const forever = Array.from({ length: 50 }, () => ({ text: 'again ', calls: [['add', { a: 1, b: 1 }]] as const }));
  const stopped = async (spec: object, replies: readonly object[] = forever) => {
    const host = hostOf([agentDef('agent', { tools: ['add'], ...spec }), ADD], {
      providers: [replyProvider(replies)],
      tools: { add },
    });
    const result = await host.run({ loop: 'agent', input: { prompt: 'go' } });
    const [status] = await host.archive.status(result.turnId);
    expect(status).toMatchObject({ status: result.status });
    expect(await host.replay(result.turnId)).toMatchObject({ matches: true });
    return result;
  };
  const rounds = await stopped({ maxRounds: 3 });
  expect(rounds).toMatchObject({ status: 'stopped', reason: expect.stringContaining('rounds') });
  expect(errorOf(rounds)).toBeUndefined();
  expect(rounds.trace.filter(({ type }) => /backend.requested$/.test(type))).toHaveLength(3);
  expect(await stopped({})).toMatchObject({ status: 'stopped', reason: expect.stringContaining('20 times') });
  const tokens = await stopped({ stop: { outputTokens: 7 } });
  expect(tokens).toMatchObject({ status: 'stopped', reason: expect.stringContaining('outputTokens') });
  expect(await stopped({ stop: { inputTokens: 7 } })).toMatchObject({ reason: expect.stringContaining('inputTokens') });
  const withoutUsage = forever.map((reply) => ({ ...reply, usage: [undefined, undefined] }));
  for (const name of ['inputTokens', 'outputTokens']) {
    const result = await stopped({ stop: { [name]: 60 } }, withoutUsage);
    const reason = expect.stringMatching(`^${name}: .*used up to \\d+ \\(not reported\\) of 60 ${name}`);
    expect(result, 'a count that is not reported was unlimited').toMatchObject({ status: 'stopped', reason });
  }
  const onlyOutput = forever.slice(0, 2).map((reply) => ({ ...reply, usage: [undefined, 3] }));
  const counted = await stopped({ stop: { outputTokens: 1000 } }, [
    ...onlyOutput,
    { text: 'Done.', usage: [undefined, 3] },
  ]);
  expect(counted, 'a count that has no limit stopped the agent').toMatchObject({ status: 'ok' });
});

verifies('agent.sub', 'a sub-agent has a conversation of its own, and a handoff answers for its agent', async () => {
  const outer = replyProvider([{ calls: [['inner', { prompt: 'look it up' }]] }, { text: 'It is blue.' }], 'outer');
  const inner = replyProvider([{ text: 'blue' }], 'inner');
  const agents = [
    agentDef('boss', { backend: { id: 'outer' }, tools: ['inner'] }),
    agentDef('inner', { backend: { id: 'inner' } }),
  ];
  const host = hostOf(agents, { providers: [outer, inner] });
  const result = await host.run({ loop: 'boss', input: { prompt: 'sky?' }, sessionId: 's' });
  expect(result).toMatchObject({ status: 'ok', output: { text: 'It is blue.' } });
  expect(inner.requests[0]?.prompt).toMatchObject([{ role: 'user', content: [{ text: 'look it up' }] }]);
  const types = [
    'user-message',
    'tool-call',
    'loop-triggered',
    'other-agent-message',
    'child-generation',
    'tool-result',
  ];
  expect(await typesIn(host)).toEqual([...types, 'assistant-message']);
  const withHandoff = hostOf(
    [agentDef('boss', { backend: { id: 'outer' }, tools: [], handoffs: ['inner'] }), agents[1]],
    {
      providers: [
        replyProvider([{ calls: [['inner', { prompt: 'take over' }]] }], 'outer'),
        replyProvider([{ text: 'mine now' }], 'inner'),
      ],
    },
  );
  expect(await withHandoff.run({ loop: 'boss', input: { prompt: 'x' } })).toMatchObject({
    output: { text: 'mine now' },
  });
});

verifies('agent.sub', 'an agent can be a step, and a composite can be a tool', async () => {
  const provider = replyProvider([{ calls: [['twice', { a: 1, b: 1 }]] }, { text: 'two' }]);
  const steps = [{ loopId: 'add', inputMapping: '$.input' }];
  const work = [{ loopId: 'agent', inputMapping: { prompt: '$.input.ask' } }];
  const host = hostOf(
    [agentDef('agent', { tools: ['twice'] }), composite('twice', steps), ADD, composite('work', work)],
    { providers: [provider], tools: { add } },
  );
  expect(await host.run({ loop: 'work', input: { ask: '1+1' } })).toMatchObject({ output: { text: 'two' } });
});

verifies('agent.history', 'a second turn continues the conversation of the first, including tool results', async () => {
  const store = memoryStore();
  const replies = [{ calls: [['add', { a: 2, b: 2 }]] as const }, { text: 'four' }, { text: 'as I texts, four' }];
  const provider = replyProvider(replies);
  const make = (seed: number) =>
    hostOf([agentDef('agent', { tools: ['add'] }), ADD], { store, providers: [provider], tools: { add }, seed });
  await make(1).run({ loop: 'agent', input: { prompt: '2+2?' }, sessionId: 's' });
  const host = make(2);
  const second = await host.run({ loop: 'agent', input: { prompt: 'sure?' }, sessionId: 's' });
  expect(second).toMatchObject({ status: 'ok', output: { text: 'as I texts, four' } });
  const roles = provider.requests[2]?.prompt.map(({ role }) => role);
  expect(roles).toEqual(['user', 'assistant', 'tool', 'assistant', 'user']);
  expect(await host.replay(second.turnId)).toMatchObject({ matches: true });
});

verifies('agent.refused', 'an approval policy for an unknown tool is DEFINITION_INVALID', async () => {
  const host = hostOf([agentDef('agent', { tools: ['add'], approvals: { ad: 'ask' } }), ADD], { tools: { add } });
  const result = await host.run({ loop: 'agent', input: { prompt: 'x' } });
  expect(result).toMatchObject({ status: 'error', error: { code: 'DEFINITION_INVALID' } });
});
