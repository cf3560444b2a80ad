/** A budget is settled at the larger of what a provider reports and what was counted. */
import { expect } from 'vitest';
import { hostOf, prompt, tool } from '../../../spec/support/host-fixture.js';
import { agentDef, partsOf, type Reply, replyProvider } from '../../../spec/support/scripted-agents.js';
import { verifies } from '../../../spec/verifies.js';
import { memoryStore } from '../../adapters/memory/index.js';
import type { ModelProvider } from '../../loops/model.js';
import type { GrantLimits } from '../../protocol/grant.js';
import type { ModelStreamPart } from '../../protocol/model.js';
import { ManualClock } from '../../testing/manual-clock.js';
import { Ledger } from './ledger.js';

const WORDS = 'word '.repeat(95);

/** Runs an agent whose model calls the tool `act` in each reply, under limits. Returns the result and what was charged. */
async function run(provider: ModelProvider, limits: GrantLimits, input = 'go') {
  const store = memoryStore();
  const grant = { id: 'g', allowedTools: ['*'], limits };
  const definitions = [agentDef('agent', { tools: ['act'], maxRounds: 50 }), tool('act', 'builtin:act')];
  const host = hostOf(definitions, { store, tools: { act: () => 'done' }, providers: [provider] });
  const result = await host.run({ loop: 'agent', input: { prompt: input }, grant });
  const { budget } = await Ledger.open({ store, clock: new ManualClock(1) }, 'g', grant);
  return { result, charged: budget.totals() };
}

/** A provider that repeats a reply, and counts the pieces of its streams that were read. */
function countingProvider(reply: Reply, toParts = partsOf) {
  const streamed = { pieces: 0 };
  const provider = replyProvider([]);
  let calls = 0;
  const doStream = async () => {
    const parts = toParts(reply, calls++).values();
    const pull = (controller: ReadableStreamDefaultController<ModelStreamPart>) => {
      const { value } = parts.next();
      if (value === undefined) return controller.close();
      streamed.pieces += value.type.endsWith('-delta') ? 1 : 0;
      controller.enqueue(value);
    };
    return { stream: new ReadableStream<ModelStreamPart>({ pull }, { highWaterMark: 0 }) };
  };
  const open: ModelProvider['open'] = async () => ({
    ...{ specificationVersion: 'v3', provider: 'replies', modelId: 'replies-1', supportedUrls: {} },
    ...{ doGenerate: () => Promise.reject(new Error('must be streamed')), doStream },
  });
  return { provider: { ...provider, open }, streamed };
}

verifies(
  'grant.reported',
  'a provider that reports one token for each reply writes no more pieces than the limit',
  async () => {
    const { provider, streamed } = countingProvider({ text: WORDS, calls: [['act', {}]], usage: [1, 1] });
    const { result, charged } = await run(provider, { outputTokens: 100 });
    expect(result).toMatchObject({ status: 'stopped', reason: expect.stringMatching(/^outputTokens/) });
    expect(streamed.pieces, 'the limit was passed').toBeLessThanOrEqual(101);
    expect(charged.outputTokens).toBeGreaterThanOrEqual(100);
  },
);

verifies('grant.reported', 'pieces that are no part of the reply are counted too', async () => {
  const { provider, streamed } = countingProvider({ text: 'ok', usage: [1, 1] }, (reply, index) => [
    ...Array.from({ length: 500 }, () => ({ type: 'tool-input-delta' as const, id: 'unknown', delta: '{' })),
    ...partsOf(reply, index),
  ]);
  expect((await run(provider, { outputTokens: 100 })).result).toMatchObject({ status: 'stopped' });
  expect(streamed.pieces).toBeLessThanOrEqual(101);
});

verifies('grant.reported', 'a long text in one piece, and long arguments of a tool, count by their words', async () => {
  const onePiece = ({ text = '' }: Reply, index: number): ModelStreamPart[] => {
    const [start, , ...rest] = partsOf({ text: 'x', usage: [1, 1] }, index);
    return [start as ModelStreamPart, { type: 'text-delta', id: 'text', delta: text }, ...rest];
  };
  const long = await run(countingProvider({ text: WORDS }, onePiece).provider, { outputTokens: 50 });
  expect(long.result).toMatchObject({ status: 'stopped' });
  expect(long.charged.outputTokens).toBe(95);
  const call: Reply = { calls: [['act', { text: WORDS }]], usage: [1, 1] };
  expect((await run(replyProvider([call, call]), { outputTokens: 50 })).result).toMatchObject({ status: 'stopped' });
});

verifies('grant.reported', 'a provider that reports no input passes no limit of input tokens', async () => {
  const replies = Array.from({ length: 9 }, () => ({ calls: [['act', {}]] as const, usage: [0, 3] as const }));
  const { result, charged } = await run(replyProvider(replies), { inputTokens: 2000 }, WORDS);
  expect(result).toMatchObject({ status: 'stopped', reason: expect.stringMatching(/^inputTokens/) });
  expect(charged.inputTokens).toBeGreaterThan(400);
});

verifies('grant.reported', 'what an honest provider reports is what is charged', async () => {
  const reply = { text: 'The answer is forty-two.', usage: [12, 7] } as const;
  const { result, charged } = await run(replyProvider([reply]), { outputTokens: 50, inputTokens: 500 });
  expect(result).toMatchObject({ status: 'ok' });
  expect(charged).toMatchObject({ inputTokens: 12, outputTokens: 7 });
});

verifies('grant.reported', 'the stop condition of an agent counts at least the words of its replies', async () => {
  const replies = Array.from({ length: 9 }, () => ({
    text: WORDS,
    calls: [['act', {}]] as const,
    usage: [1, 1] as const,
  }));
  const agent = agentDef('agent', { tools: ['act'], stop: { outputTokens: 100 } });
  const host = hostOf([agent, tool('act', 'builtin:act'), prompt('unused', 'x')], {
    tools: { act: () => 'done' },
    providers: [replyProvider(replies)],
  });
  const result = await host.run({ loop: 'agent', input: { prompt: 'go' } });
  expect(result).toMatchObject({ status: 'stopped', reason: expect.stringContaining('194 of 100 outputTokens') });
});
