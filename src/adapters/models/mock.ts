/** The backend `mock`: needs no key and no network, and gives the same answer to the same request, one that fits its schema. */
import type { ModelProvider } from '../../loops/model.js';
import { knownOptionsOf, parseDelayMs } from './backend-options.js';
import { type CannedReply, createCannedModel, promptTextOf, splitIntoChunks } from './canned-model.js';
import { sampleValue } from './sample.js';

const CHUNK_COUNT = 4;

/** A backend that answers from the schema of the request, in the words of the prompt. */
export function mockProvider(): ModelProvider {
  return {
    id: 'mock',
    defaultModel: 'mock-1',
    async open(ref) {
      const options = knownOptionsOf(ref, ['delayMs']);
      const delayMs = parseDelayMs(options.delayMs, "The option 'delayMs' of the backend 'mock'");
      return createCannedModel('mock', ref.model, ({ prompt, responseFormat }): CannedReply => {
        const asked = promptTextOf(prompt);
        const text = replyTextFor(promptTextOf(prompt, ['user']), responseFormat);
        const tokens = (length: number): number => Math.ceil(length / 4);
        const counts = { inputTokens: tokens(asked.length), outputTokens: tokens(text.length) };
        return { chunks: splitIntoChunks(text, CHUNK_COUNT), delayMs, ...counts };
      });
    },
  };
}

function replyTextFor(prompt: string, format: { type: string; schema?: object } | undefined): string {
  if (format?.type !== 'json') return String(sampleValue({ type: 'string' }, prompt));
  return JSON.stringify(sampleValue(format.schema ?? { type: 'object', required: ['answer'] }, prompt));
}
