import { expect } from 'vitest';
import { hostOf, prompt, textProvider, tool } from '../../spec/support/host-fixture.js';
import { agentDef, replyProvider } from '../../spec/support/scripted-agents.js';
import { verifies } from '../../spec/verifies.js';
import type { ModelProvider } from '../loops/model.js';
import { usageOf } from './call-details.js';

verifies('turn.details', 'a prompt has its input, rendered prompt, reply, output and tokens', async () => {
  const host = hostOf([
    prompt('greet', 'Greet {{name}}.', {
      prompt: { template: 'Greet {{name}}.', systemPrompt: 'Be brief.' },
      outputSchema: { type: 'string' },
      backend: { id: 'mock' },
    }),
  ]);
  const { turnId } = await host.run({ loop: 'greet', input: { name: 'Ada' } });
  const calls = await host.archive.calls(turnId);
  expect(calls).toMatchObject([
    {
      callId: turnId,
      loopId: 'greet',
      loopVersion: '1.0.0',
      status: 'ok',
      input: { name: 'Ada' },
      output: expect.stringContaining('Ada'),
      effects: [],
      modelCalls: [
        {
          provider: 'mock',
          model: 'mock-1',
          system: 'Be brief.',
          prompt: 'Greet Ada.',
          reply: { text: expect.stringContaining('Ada') },
        },
      ],
    },
  ]);
  expect(usageOf(calls)).toEqual({ modelCalls: 1, inputTokens: expect.any(Number), outputTokens: expect.any(Number) });
});

verifies('turn.details', 'an agent has its replies, and its tools are calls below it', async () => {
  const replies = [
    { text: 'Looking.', calls: [['t', { n: 1 }]] as const, usage: [3, 4] as const },
    { text: 'Done.', usage: [5, 6] as const },
  ];
  const host = hostOf([agentDef('agent', { tools: ['t'] }), tool('t')], { providers: [replyProvider(replies)] });
  const { turnId } = await host.run({ loop: 'agent', input: { prompt: 'Go' } });
  const [agent, called] = await host.archive.calls(turnId);
  expect(agent?.modelCalls).toMatchObject([
    { messages: 1, reply: { text: 'Looking.', toolCalls: [{ name: 't' }] } },
    { messages: 3, reply: { text: 'Done.' } },
  ]);
  expect(called).toMatchObject({ loopId: 't', parentCallId: turnId, input: { n: 1 }, output: { n: 1 }, effects: [] });
  expect(usageOf(agent === undefined ? [] : [agent])).toEqual({ modelCalls: 2, inputTokens: 8, outputTokens: 10 });
});

verifies('turn.details', 'failed attempts and replies from the cache are distinguished', async () => {
  const policy = { cache: {}, fallback: [{ id: 'replies' }] };
  const loop = prompt('ask', 'Q {{q}}', { backend: { id: 'closed' }, outputSchema: { type: 'string' }, policy });
  const closed: ModelProvider = { id: 'closed', defaultModel: 'm', open: () => Promise.reject(new Error('no key')) };
  const host = hostOf([loop], { providers: [closed, textProvider(['first'])] });
  const first = await host.run({ loop: 'ask', input: { q: 1 } });
  const second = await host.run({ loop: 'ask', input: { q: 1 } });
  const [asked] = await host.archive.calls(first.turnId);
  expect(asked?.modelCalls).toMatchObject([
    { provider: 'closed', error: { code: 'BACKEND_FAILED' } },
    { provider: 'replies', prompt: 'Q 1', reply: { text: 'first' } },
  ]);
  const cached = await host.archive.calls(second.turnId);
  expect(cached[0]?.modelCalls).toMatchObject([{ prompt: 'Q 1', reply: { text: 'first' }, isCached: true }]);
  expect(usageOf(cached)).toBeUndefined();
});

verifies('turn.details', 'estimated tokens are marked', async () => {
  const withoutUsage = replyProvider([{ text: 'x'.repeat(40), usage: [undefined, undefined] }]);
  const host = hostOf([agentDef('agent', { stop: { outputTokens: 1000 } })], { providers: [withoutUsage] });
  const { turnId } = await host.run({ loop: 'agent', input: { prompt: 'Go' } });
  const usage = usageOf(await host.archive.calls(turnId));
  expect(usage).toEqual({ modelCalls: 1, inputTokens: 0, outputTokens: 40, isEstimated: true });
});
