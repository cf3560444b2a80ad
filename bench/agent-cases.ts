/**
 * The cases of the agent loop and of the AI SDK's own, by name: one mock model and one tool for both. Started with a
 * name, this file measures that case and prints its microseconds of the processor per step.
 */
import { fileURLToPath } from 'node:url';
import type { LanguageModelV3Prompt, LanguageModelV3ToolCall } from '@ai-sdk/provider';
import { generateText, stepCountIs, streamText } from 'ai';
import type { MockLanguageModelV3 } from 'ai/test';
import { z } from 'zod';
import { defineAgent, Host, memoryStore, Registry, type Store, systemClock, systemIds } from '../src/index.js';
import { loopsTool } from '../src/protocol/tool.js';
import { answersInPieces, callsAtOnce, callsInRounds, DONE, PIECE } from './agent-models.js';
import type { Case } from './measure.js';

const count = z.object({ n: z.number() });
let ran = 0;
const addOne = async ({ n }: { readonly n: number }) => {
  ran += 1;
  return { n: n + 1 };
};
const increment = loopsTool({ name: 'increment', description: 'Adds one.', inputSchema: count, execute: addOne });
const tools = { increment };

function insist(holds: boolean, what: unknown): void {
  if (!holds) throw new Error(`It ended as ${JSON.stringify(what)?.slice(0, 500)}.`);
}

/** A run, and that the tool ran so many times in it: a loop that refuses its calls must not look fast. */
const running = (calls: number, run: () => Promise<void>) => async (): Promise<void> => {
  const before = ran;
  await run();
  insist(ran - before === calls, { calls, ran: ran - before });
};

/** Asks the model so many times with the AI SDK's loop, which does not stream. */
const sdk = (model: MockLanguageModelV3, asked: number) => async (): Promise<void> => {
  const result = await generateText({ model, prompt: 'go', tools, stopWhen: stepCountIs(asked + 1), maxRetries: 0 });
  insist(result.text === DONE && result.steps.length === asked, result.steps);
};

const sdkStreamed = (model: MockLanguageModelV3, asked: number) => async (): Promise<void> => {
  const result = streamText({ model, prompt: 'go', tools, stopWhen: stepCountIs(asked + 1), maxRetries: 0 });
  await result.consumeStream();
  const steps = await result.steps;
  insist((await result.text) === DONE && steps.length === asked, steps);
};

const sdkPieces = (model: MockLanguageModelV3, pieces: number) => async (): Promise<void> => {
  const { fullStream } = streamText({ model, prompt: 'go', maxRetries: 0 });
  let heard = 0;
  let text = '';
  for await (const part of fullStream) {
    if (part.type !== 'text-delta') continue;
    heard += 1;
    text += part.text;
  }
  insist(heard === pieces && text === PIECE.repeat(pieces), { heard, text });
};

/** An agent with the tool, ready to run turns. */
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

/** Each turn on a host and a store of its own, all entries kept; its trace is folded only if it is read. */
const ours = (model: MockLanguageModelV3, trace: 'kept' | 'read' = 'kept') => {
  const turn = agentOf(model);
  return async (): Promise<void> => {
    const result = await turn('go', memoryStore());
    insist(result.status === 'ok' && result.output?.text === DONE, result);
    if (trace === 'read') insist(result.trace.length > 4, result.trace);
  };
};

/** The same with a subscriber, so the model streams. */
const oursWatched = (model: MockLanguageModelV3) => {
  const turn = agentOf(model);
  return async (): Promise<void> => {
    let heard = 0;
    const result = await turn('go', memoryStore(), { onDelta: () => ++heard });
    insist(result.status === 'ok' && result.output?.text === DONE && heard > 0, result);
  };
};

const ourPieces = (model: MockLanguageModelV3, pieces: number) => {
  const turn = agentOf(model);
  return async (): Promise<void> => {
    let heard = 0;
    let text = '';
    const onDelta = (piece: string): void => {
      heard += 1;
      text += piece;
    };
    const { output } = await turn('go', memoryStore(), { onDelta });
    insist(heard === pieces && text === PIECE.repeat(pieces) && output?.text === text, { heard, text });
  };
};

/** A loop by hand over the same streams: what the model, its stream and the tool cost by themselves. */
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
    if (calls.length === 0) return insist(text === DONE, text);
    prompt.push({ role: 'assistant', content: calls.map((call) => ({ ...call, input: JSON.parse(call.input) })) });
    const content = calls.map(async ({ toolCallId, toolName, input }) => {
      const value = await addOne(count.parse(JSON.parse(input)));
      return { type: 'tool-result', toolCallId, toolName, output: { type: 'json', value } } as const;
    });
    prompt.push({ role: 'tool', content: await Promise.all(content) });
  }
};

export const agentCases = {
  '20 rounds': () => ({ steps: 20, run: running(20, ours(callsInRounds(20))) }),
  'AI SDK, 20 rounds': () => ({ steps: 20, run: running(20, sdk(callsInRounds(20), 21)) }),
  'by hand, 20 rounds': () => ({ steps: 20, run: running(20, byHand(callsInRounds(20))) }),
  '100 rounds': () => ({ steps: 100, run: running(100, ours(callsInRounds(100))) }),
  'AI SDK, 100 rounds': () => ({ steps: 100, run: running(100, sdk(callsInRounds(100), 101)) }),
  '20 rounds, watched': () => ({ steps: 20, run: running(20, oursWatched(callsInRounds(20))) }),
  '20 rounds, trace read': () => ({ steps: 20, run: running(20, ours(callsInRounds(20), 'read')) }),
  'AI SDK, 20 rounds, streamed': () => ({ steps: 20, run: running(20, sdkStreamed(callsInRounds(20), 21)) }),
  '10,000 deltas': () => ({ steps: 10_000, run: ourPieces(answersInPieces(10_000), 10_000) }),
  'AI SDK, 10,000 deltas': () => ({ steps: 10_000, run: sdkPieces(answersInPieces(10_000), 10_000) }),
  '1,000 calls': () => ({ steps: 1_000, run: running(1_000, ours(callsAtOnce(1_000))) }),
  'AI SDK, 1,000 calls': () => ({ steps: 1_000, run: running(1_000, sdk(callsAtOnce(1_000), 2)) }),
} as const satisfies Record<string, () => Case>;

export type AgentCase = keyof typeof agentCases;

/**
 * Runs for so many seconds of the processor, whatever the case costs. Not of the clock: that tells a busy machine's
 * neighbours too, and here they would be divided by each other.
 */
async function pass({ steps, run }: Case, seconds: number): Promise<number> {
  const start = process.cpuUsage();
  let runs = 0;
  let used = 0;
  for (; used < seconds * 1_000_000; runs++) {
    await run();
    const { user, system } = process.cpuUsage(start);
    used = user + system;
  }
  return used / (runs * steps);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const one = agentCases[process.argv[2] as AgentCase]();
  // A loop has many functions, and each becomes fast only after it ran often.
  await pass(one, 2);
  console.log(Math.min(await pass(one, 1), await pass(one, 1), await pass(one, 1)));
  process.exit();
}
