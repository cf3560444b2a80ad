/** The provider `mock`: deterministic sample replies for the schema of a request, without a key or network access. */
import type { ModelProvider } from '../../loops/model.js';
import { knownOptionsOf, parseDelayMs } from './backend-options.js';
import { type CannedReply, createCannedModel, promptTextOf, splitIntoChunks } from './canned-model.js';
import { sampleValue } from './sample.js';

const CHUNK_COUNT = 4;

/**
 * Creates the provider `mock`. It replies with a sample value of the output schema, or with a text if JSON is not
 * requested. Both quote words of the user's messages. It calls no tools. Its option `delayMs` delays every reply.
 */
export function mockProvider(): ModelProvider {
  return {
    id: 'mock',
    defaultModel: 'mock-1',
    repliesLocally: true,
    async open(ref) {
      const options = knownOptionsOf(ref, ['delayMs']);
      const delayMs = parseDelayMs(options.delayMs, "The option 'delayMs' of the backend 'mock'");
      return createCannedModel('mock', ref.model, ({ prompt, responseFormat }): CannedReply => {
        const promptText = promptTextOf(prompt);
        const text = replyTextFor(promptTextOf(prompt, ['user']), responseFormat);
        const estimateTokens = (chars: number): number => Math.ceil(chars / 4);
        const counts = { inputTokens: estimateTokens(promptText.length), outputTokens: estimateTokens(text.length) };
        return { chunks: splitIntoChunks(text, CHUNK_COUNT), delayMs, ...counts };
      });
    },
  };
}

function replyTextFor(prompt: string, format: { type: string; schema?: object } | undefined): string {
  if (format?.type !== 'json') return String(sampleValue({ type: 'string' }, prompt));
  return JSON.stringify(sampleValue(format.schema ?? { type: 'object', required: ['answer'] }, prompt));
}
