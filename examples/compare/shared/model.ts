// A scripted model, so that the programs run without a key: it calls the tool `refund` and, after its result, answers.
// In a real program, an import such as `anthropic('claude-sonnet-4-5')` takes its place.
import type { LanguageModelV3, LanguageModelV3CallOptions } from '@ai-sdk/provider';

const toolCall = { type: 'tool-call', toolCallId: 'call-1', toolName: 'refund', input: '{"order":"A-1"}' } as const;
const text = 'Your refund is on its way.';
const usage = { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0, text: 1, reasoning: 0 };

const isDone = ({ prompt }: Pick<LanguageModelV3CallOptions, 'prompt'>) => prompt.some(({ role }) => role === 'tool');

/** A stream of the given parts. */
export const streamOf = <T>(parts: readonly T[]) =>
  new ReadableStream<T>({
    start(controller) {
      for (const part of parts) controller.enqueue(part);
      controller.close();
    },
  });

/** The parts that both interfaces of a model have in common. */
export const streamParts = (done: boolean) =>
  done
    ? ([
        { type: 'text-start', id: '1' },
        { type: 'text-delta', id: '1', delta: text },
        { type: 'text-end', id: '1' },
      ] as const)
    : ([toolCall] as const);

const end = (done: boolean) => ({
  finishReason: { unified: done ? ('stop' as const) : ('tool-calls' as const), raw: undefined },
  usage: { inputTokens: usage, outputTokens: usage },
});

export const names = { provider: 'scripted', modelId: 'scripted', supportedUrls: {} };

/** The model for Rondo and the AI SDK 6. */
export const model: LanguageModelV3 = {
  ...names,
  specificationVersion: 'v3',
  doGenerate: async (options) => ({
    content: [isDone(options) ? { type: 'text', text } : toolCall],
    ...end(isDone(options)),
    warnings: [],
  }),
  doStream: async (options) => {
    const done = isDone(options);
    return { stream: streamOf([...streamParts(done), { type: 'finish', ...end(done) }]) };
  },
};
