/** The backend `mock`: needs no key and no network, and gives the same answer to the same request, one that fits its schema. */
import type { Backend } from '../../loops/model.js';
import { type Answer, answering, split, wordsOf } from './answering.js';
import { sample } from './sample.js';
import { delayOf, optionsOf } from './settings.js';

const CHUNKS = 4;

/** A backend that answers from the schema of the request, in the words of the prompt. */
export function mockBackend(): Backend {
  return {
    id: 'mock',
    defaultModel: 'mock-1',
    async open(ref) {
      const options = optionsOf(ref, ['delayMs']);
      const delayMs = delayOf(options.delayMs, "The option 'delayMs' of the backend 'mock'");
      return answering('mock', ref.model, ({ prompt, responseFormat }): Answer => {
        const asked = wordsOf(prompt);
        const text = textFor(wordsOf(prompt, ['user']), responseFormat);
        const tokens = (length: number): number => Math.ceil(length / 4);
        const counts = { inputTokens: tokens(asked.length), outputTokens: tokens(text.length) };
        return { chunks: split(text, CHUNKS), delayMs, ...counts };
      });
    },
  };
}

function textFor(prompt: string, format: { type: string; schema?: object } | undefined): string {
  if (format?.type !== 'json') return String(sample({ type: 'string' }, prompt));
  return JSON.stringify(sample(format.schema ?? { type: 'object', required: ['answer'] }, prompt));
}
