// The cases of our agent loop and of the AI SDK's loop, by name, with the same mock model and tool. Run with a name, this
// file measures that case and prints its CPU microseconds per step.

import { fileURLToPath } from 'node:url';
import type { LanguageModelV3Prompt, LanguageModelV3ToolCall } from '@ai-sdk/provider';
import { generateText, stepCountIs, streamText } from 'ai';
import type { MockLanguageModelV3 } from 'ai/test';
import { z } from 'zod';
import { Host, memoryStore, Registry, type Store, systemClock, systemIds } from '../src/host-entry.js';
import { defineAgent } from '../src/index.js';
import { loopsTool } from '../src/protocol/tool.js';
import { answersInDeltas, callsAtOnce, callsInRounds, DELTA, DONE } from './agent-models.js';
import { type Case, pass, processorClock } from './measure.js';

const count = z.object({ n: z.number() });
let ran = 0;
const addOne = async ({ n }: { readonly n: number }) => {
  ran += 1;
  return { n: n + 1 };
};
const increment = loopsTool({ name: 'increment', description: 'Adds one.', inputSchema: count, execute: addOne });
const tools = { increment };

function assertResult(condition: boolean, result: unknown): void {
  if (!condition) throw new Error(`Unexpected result: ${JSON.stringify(result)?.slice(0, 500)}.`);
}

/** Wraps a run and asserts the number of tool calls, so that a loop that refuses its calls does not look fast. */
const withCalls = (calls: number, run: () => Promise<void>) => async (): Promise<void> => {
  const before = ran;
  await run();
  assertResult(ran - before === calls, { calls, ran: ran - before });
};

/** Runs the AI SDK's loop without streaming and asserts the number of model calls. */
const sdk = (model: MockLanguageModelV3, modelCalls: number) => async (): Promise<void> => {
  const result = await generateText({
    model,
    prompt: 'go',
    tools,
    stopWhen: stepCountIs(modelCalls + 1),
    maxRetries: 0,
  });
  assertResult(result.text === DONE && result.steps.length === modelCalls, result.steps);
};

const sdkStreamed = (model: MockLanguageModelV3, modelCalls: number) => async (): Promise<void> => {
  const result = streamText({ model, prompt: 'go', tools, stopWhen: stepCountIs(modelCalls + 1), maxRetries: 0 });
  await result.consumeStream();
  const steps = await result.steps;
  assertResult((await result.text) === DONE && steps.length === modelCalls, steps);
};

const sdkDeltas = (model: MockLanguageModelV3, deltaCount: number) => async (): Promise<void> => {
  const { fullStream } = streamText({ model, prompt: 'go', maxRetries: 0 });
  let deltas = 0;
  let text = '';
  for await (const part of fullStream) {
    if (part.type !== 'text-delta') continue;
    deltas += 1;
    text += part.text;
  }
  assertResult(deltas === deltaCount && text === DELTA.repeat(deltaCount), { deltas, text });
};

/** Creates an agent with the tool, and returns a function that runs a turn. */
export function agentOf(model: MockLanguageModelV3) {
  const registry = new Registry();
  const loop = defineAgent({ id: 'bench', model, tools: [increment], maxRounds: 1000 });
  return (prompt: string, store: Store, more: { sessionId?: string; onDelta?: (text: string) => void } = {}) => {
    const { sessionId, onDelta } = more;
    const host = new Host({ store, clock: systemClock, ids: systemIds, registry });
    const request = { loop, input: { prompt }, ...(sessionId !== undefined && { sessionId }) };
    return host.run(request, onDelta === undefined ? {} : { onDelta: ({ text }) => onDelta(text) });
  };
}

/** Runs each turn on a new host and store. The trace is folded only if it is read. */
const ours = (model: MockLanguageModelV3, trace: 'kept' | 'read' = 'kept') => {
  const turn = agentOf(model);
  return async (): Promise<void> => {
    const result = await turn('go', memoryStore());
    assertResult(result.status === 'ok' && result.output?.text === DONE, result);
    if (trace === 'read') assertResult(result.trace.length > 4, result.trace);
  };
};

/** The same with a subscriber, so that the model streams. */
const oursStreamed = (model: MockLanguageModelV3) => {
  const turn = agentOf(model);
  return async (): Promise<void> => {
    let deltas = 0;
    const result = await turn('go', memoryStore(), { onDelta: () => ++deltas });
    assertResult(result.status === 'ok' && result.output?.text === DONE && deltas > 0, result);
  };
};

const ourDeltas = (model: MockLanguageModelV3, deltaCount: number) => {
  const turn = agentOf(model);
  return async (): Promise<void> => {
    let deltas = 0;
    let text = '';
    const onDelta = (delta: string): void => {
      deltas += 1;
      text += delta;
    };
    const result = await turn('go', memoryStore(), { onDelta });
    const answer = result.status === 'ok' ? result.output.text : undefined;
    assertResult(deltas === deltaCount && text === DELTA.repeat(deltaCount) && answer === text, { deltas, text });
  };
};

/** A minimal loop over the same streams: the cost of the model, its stream and the tool alone. */
const byHand = (model: MockLanguageModelV3) => async (): Promise<void> => {
  const prompt: LanguageModelV3Prompt = [{ role: 'user', content: [{ type: 'text', text: 'go' }] }];
  for (;;) {
    const { stream } = await model.doStream({ prompt });
    const calls: LanguageModelV3ToolCall[] = [];
    let text = '';
    for await (const part of stream) {
      if (part.type === 'text-delta') text += part.delta;
      else if (part.type === 'tool-call') calls.push(part);
    }
    if (calls.length === 0) return assertResult(text === DONE, text);
    prompt.push({ role: 'assistant', content: calls.map((call) => ({ ...call, input: JSON.parse(call.input) })) });
    const content = calls.map(async ({ toolCallId, toolName, input }) => {
      const value = await addOne(count.parse(JSON.parse(input)));
      return { type: 'tool-result', toolCallId, toolName, output: { type: 'json', value } } as const;
    });
    prompt.push({ role: 'tool', content: await Promise.all(content) });
  }
};

/** The cases by name. */
export const agentCases = {
  '20 rounds': () => ({ steps: 20, run: withCalls(20, ours(callsInRounds(20))) }),
  'AI SDK, 20 rounds': () => ({ steps: 20, run: withCalls(20, sdk(callsInRounds(20), 21)) }),
  'by hand, 20 rounds': () => ({ steps: 20, run: withCalls(20, byHand(callsInRounds(20))) }),
  '100 rounds': () => ({ steps: 100, run: withCalls(100, ours(callsInRounds(100))) }),
  'AI SDK, 100 rounds': () => ({ steps: 100, run: withCalls(100, sdk(callsInRounds(100), 101)) }),
  '20 rounds, watched': () => ({ steps: 20, run: withCalls(20, oursStreamed(callsInRounds(20))) }),
  '20 rounds, trace read': () => ({ steps: 20, run: withCalls(20, ours(callsInRounds(20), 'read')) }),
  'AI SDK, 20 rounds, streamed': () => ({ steps: 20, run: withCalls(20, sdkStreamed(callsInRounds(20), 21)) }),
  '10,000 deltas': () => ({ steps: 10_000, run: ourDeltas(answersInDeltas(10_000), 10_000) }),
  'AI SDK, 10,000 deltas': () => ({ steps: 10_000, run: sdkDeltas(answersInDeltas(10_000), 10_000) }),
  '1,000 calls': () => ({ steps: 1_000, run: withCalls(1_000, ours(callsAtOnce(1_000))) }),
  'AI SDK, 1,000 calls': () => ({ steps: 1_000, run: withCalls(1_000, sdk(callsAtOnce(1_000), 2)) }),
} as const satisfies Record<string, () => Case>;

/** The name of a case. */
export type AgentCase = keyof typeof agentCases;

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const selected = agentCases[process.argv[2] as AgentCase]();
  // Warms up: V8 optimises a function only after many calls.
  await pass(selected, 2, processorClock);
  const times = [await pass(selected, 1, processorClock), await pass(selected, 1, processorClock)];
  console.log(Math.min(...times, await pass(selected, 1, processorClock)));
  process.exit();
}
