// Models that return arbitrary data, well-formed or not, and calls of them that either succeed or fail as a backend.

import { expect } from 'vitest';
import { LoopError } from '../../src/base/errors.js';
import type { ModelReply, ModelRequest } from '../../src/loops/model.js';
import { type CallModelOptions, callModel } from '../../src/loops/model-call.js';
import type { Model, ModelCallOptions, ModelStreamPart } from '../../src/protocol/model.js';

export const REQUEST: ModelRequest = { backendId: 'test', model: 'm-1', promptLength: 5, prompt: 'Hello' };

/** The last part of a stream. */
export const FINISH: ModelStreamPart = {
  type: 'finish',
  finishReason: { unified: 'stop', raw: undefined },
  usage: {
    inputTokens: { total: 3, noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
    outputTokens: { total: undefined, text: undefined, reasoning: undefined },
  },
};

export const textDelta = (delta: string): ModelStreamPart => ({ type: 'text-delta', id: '0', delta });

/** A model with this stream. Its calls are added to `calls`. */
export function modelWithStream(stream: () => ReadableStream<unknown>, calls: ModelCallOptions[] = []): Model {
  return {
    specificationVersion: 'v3',
    provider: 'test',
    modelId: 'm-1',
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error('must not be called')),
    doStream: async (call) => {
      calls.push(call);
      return { stream: stream() as ReadableStream<ModelStreamPart> };
    },
  };
}

/** A model whose stream consists of these parts, of any shape. */
export const modelWithParts = (...parts: unknown[]): Model =>
  modelWithStream(
    () =>
      new ReadableStream({
        start(controller) {
          for (const part of parts) controller.enqueue(part);
          controller.close();
        },
      }),
  );

/** A model whose calls reject with this value. */
export const rejectingModel = (thrown: unknown): Model => ({
  ...modelWithParts(),
  doStream: () => Promise.reject(thrown),
});

export function replyOf(
  model: Model,
  options: Partial<CallModelOptions> = {},
  request: ModelRequest = REQUEST,
): Promise<ModelReply> {
  return callModel(model, request, { signal: new AbortController().signal, ...options });
}

/** The error of a call that must fail with BACKEND_FAILED. */
export async function failureOf(
  model: Model,
  options: Partial<CallModelOptions> = {},
  request: ModelRequest = REQUEST,
): Promise<LoopError> {
  const thrown = await replyOf(model, options, request).catch((error: unknown) => error);
  expect(thrown).toBeInstanceOf(LoopError);
  expect(thrown).toMatchObject({ code: 'BACKEND_FAILED' });
  return thrown as LoopError;
}
