/** Redaction of a key that a provider repeats, in any encoding, in errors, replies and streams. */
import { expect } from 'vitest';
import { verifies } from '../../../spec/verifies.js';
import type { Model, ModelCallOptions, ModelStreamPart } from '../../protocol/model.js';
import { redactModel } from './redact-model.js';

const KEY = 'sk-l1ve/8a7f+"3c5e9b';
const call: ModelCallOptions = { prompt: [] };
const echoes = [
  KEY,
  encodeURIComponent(KEY),
  JSON.stringify({ key: KEY }),
  JSON.stringify(JSON.stringify({ key: KEY })),
  Buffer.from(`Bearer ${KEY}`).toString('base64'),
  Buffer.from(KEY).toString('hex'),
];
const TRACE = /l1ve|3c5e9b|c2stbDF2ZS84YTdm|c2st|736b2d6c/i;

/** Returns a redacting model with the given methods. */
function modelOf(methods: Partial<Pick<Model, 'doGenerate' | 'doStream'>>): Model {
  const fail = (): never => {
    throw new Error('unexpected call');
  };
  const base = { specificationVersion: 'v3', provider: 'p', modelId: 'm', supportedUrls: {} } as const;
  return redactModel({ ...base, doGenerate: fail, doStream: fail, ...methods }, KEY);
}

/** Returns all texts of an error, including its causes. */
function textsOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return JSON.stringify(thrown) ?? '';
  const { message, stack = '', cause } = thrown;
  return [message, stack, JSON.stringify(thrown), cause === undefined ? '' : textsOf(cause)].join(' ');
}

const usage = { inputTokens: {}, outputTokens: {} } as never;
const finishReason = { unified: 'stop', raw: 'stop' } as const;

verifies('secret.echo', 'no member or cause of an error of a provider contains its key', async () => {
  for (const echo of echoes) {
    const members = [
      { responseBody: echo },
      { data: { error: { text: [echo] } } },
      { requestBodyValues: { echo } },
      { responseHeaders: { 'x-echo': echo, 'retry-after': '7' } },
      { cause: new Error(echo) },
      { cause: Object.assign(new Error('x'), { cause: { echo } }) },
    ];
    const errors = [new Error(`bad: ${echo}`), ...members.map((member) => Object.assign(new Error('bad'), member))];
    for (const error of errors) {
      const failing = modelOf({
        doGenerate: () => Promise.reject(Object.assign(error, { statusCode: 429, isRetryable: true })),
      });
      const thrown = await Promise.resolve(failing.doGenerate(call)).catch((reason: unknown) => reason);
      expect(textsOf(thrown)).not.toMatch(TRACE);
      expect(thrown).toMatchObject({ statusCode: 429, isRetryable: true });
    }
  }
  const harmless = new Error('overloaded');
  await expect(modelOf({ doGenerate: () => Promise.reject(harmless) }).doGenerate(call)).rejects.toBe(harmless);
});

verifies('secret.echo', 'a reply that repeats the key is redacted', async () => {
  for (const echo of echoes) {
    const content = [{ type: 'text', text: `You are ${echo}` } as const];
    const answering = modelOf({ doGenerate: async () => ({ content, finishReason, usage, warnings: [] }) });
    const answer = JSON.stringify(await answering.doGenerate(call));
    expect(answer).not.toMatch(TRACE);
    expect(answer).toContain('You are ');
  }
});

/** Streams a text in deltas of this size and returns the redacted parts. */
async function streamInChunks(text: string, size: number): Promise<readonly ModelStreamPart[]> {
  const parts: ModelStreamPart[] = [{ type: 'text-start', id: '1' }];
  for (let start = 0; start < text.length; start += size) {
    parts.push({ type: 'text-delta', id: '1', delta: text.slice(start, start + size) });
  }
  parts.push({ type: 'text-end', id: '1' }, { type: 'finish', usage, finishReason });
  const source = new ReadableStream<ModelStreamPart>({
    start(controller) {
      for (const part of parts) controller.enqueue(part);
      controller.close();
    },
  });
  const { stream } = await modelOf({ doStream: async () => ({ stream: source }) }).doStream(call);
  const redacted: ModelStreamPart[] = [];
  for await (const part of stream) redacted.push(part);
  return redacted;
}

verifies('secret.echo', 'a key that spans several deltas is redacted', async () => {
  for (const echo of echoes) {
    for (const size of [1, 3, 7, 1000]) {
      const parts = await streamInChunks(`You are ${echo}.`, size);
      const text = parts.map((part) => ('delta' in part ? part.delta : '')).join('');
      expect(text).not.toMatch(TRACE);
      expect(text).toMatch(/^You are .*\.$/);
      expect(parts.slice(-2).map(({ type }) => type)).toEqual(['text-end', 'finish']);
    }
  }
  const plain = await streamInChunks('Hello, world & all.', 5);
  expect(plain.map((part) => ('delta' in part ? part.delta : '')).join('')).toBe('Hello, world & all.');
});
