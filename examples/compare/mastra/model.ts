// The model of ../shared/model.ts for Mastra 0.24, which expects the model interface of the AI SDK 5.
import type { MastraLanguageModel } from '@mastra/core/agent';
import { names, streamOf, streamParts } from '../shared/model.js';

export const model: MastraLanguageModel = {
  ...names,
  specificationVersion: 'v2',
  doGenerate: async () => {
    throw new Error('The program streams.');
  },
  doStream: async ({ prompt }) => {
    const done = prompt.some(({ role }) => role === 'tool');
    const finishReason = done ? ('stop' as const) : ('tool-calls' as const);
    const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2 };
    return { stream: streamOf([...streamParts(done), { type: 'finish', finishReason, usage }]) };
  },
};
