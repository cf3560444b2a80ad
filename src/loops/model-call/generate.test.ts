import { getEventListeners } from 'node:events';
import fc from 'fast-check';
import { expect } from 'vitest';
import { inProcessorTime } from '../../../spec/support/processor-time.js';
import { verifies } from '../../../spec/verifies.js';
import { abortListenersOf } from '../../base/abort-listeners.js';
import { LoopError } from '../../base/errors.js';
import type { Model, ModelCallOptions } from '../../protocol/model.js';
import type { ModelReply, ModelRequest } from '../model.js';
import { type CallModelOptions, callModel } from '../model-call.js';

const request: ModelRequest = { backendId: 'test', model: 'm-1', promptLength: 2 };
const conversation = {
  messages: [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'Hi' }] }],
  tools: [],
};
const finish = { type: 'finish', finishReason: { unified: 'stop' } };

type ModelFunction = (call: ModelCallOptions) => unknown;

/** A model whose functions return anything, of any shape. */
function modelOf(doGenerate: ModelFunction, doStream: ModelFunction = () => undefined): Model {
  const members = { specificationVersion: 'v3', provider: 'test', modelId: 'm-1', supportedUrls: {} };
  return { ...members, doGenerate, doStream } as unknown as Model;
}

const generating = (result: unknown): Model => modelOf(async () => result);
const streaming = (...parts: unknown[]): Model => modelOf(generating(undefined).doGenerate, streamOf(parts));
const streamOf = (parts: unknown[]) => async () => ({ stream: ReadableStream.from(parts) });
const reading = (read: () => unknown): Model =>
  modelOf(generating(undefined).doGenerate, async () => ({ stream: { getReader: () => ({ read }) } }));

/** With a subscriber, the model is called with `doStream`. */
const SUBSCRIBED = { onDelta: () => {} };

/** Calls the model with `doGenerate`, unless the options have a subscriber. */
function replyOf(model: Model, options: Partial<CallModelOptions> = {}): Promise<ModelReply> {
  return callModel(model, request, { signal: new AbortController().signal, conversation, ...options });
}

async function failureOf(model: Model, options: Partial<CallModelOptions> = {}): Promise<LoopError> {
  const thrown = await replyOf(model, options).catch((error: unknown) => error);
  expect(thrown).toBeInstanceOf(LoopError);
  expect(thrown).toMatchObject({ code: 'BACKEND_FAILED' });
  return thrown as LoopError;
}

/** A revoked proxy, which throws on every access. */
function revoked(target: object): unknown {
  const { proxy, revoke } = Proxy.revocable(target, {});
  revoke();
  return proxy;
}

const MALFORMED: readonly unknown[] = [
  null,
  undefined,
  7,
  'text',
  [],
  {},
  { type: 'text' },
  { type: 'file' },
  { type: null },
];

verifies('model.port', 'a generated reply contains text, reasoning, tool calls and usage', async () => {
  const calls: ModelCallOptions[] = [];
  const content = [
    { type: 'reasoning', text: 'hmm' },
    { type: 'text', text: 'Hel' },
    { type: 'text', text: 'lo' },
    { type: 'tool-call', toolCallId: 'c1', toolName: 'look', input: '{"a":1}' },
    { type: 'tool-call', toolCallId: 'c1', toolName: 'look', input: '{"a":2}' },
    { type: 'tool-call', toolCallId: 'c2', toolName: 'theirs', input: '{}', providerExecuted: true },
  ];
  const usage = { inputTokens: { total: 3 }, outputTokens: {} };
  const model = modelOf(async (call) => {
    calls.push(call);
    return { content, finishReason: { unified: 'tool-calls' }, usage, response: { modelId: 'm-1-2026' } };
  });
  const { signal } = new AbortController();
  expect(await replyOf(model, { signal })).toEqual({
    text: 'Hello',
    model: 'm-1-2026',
    finish: 'tool-calls',
    inputTokens: 3,
    reasoning: 'hmm',
    toolCalls: [
      { id: 'c1', name: 'look', input: '{"a":1}' },
      { id: 'c1-2', name: 'look', input: '{"a":2}' },
    ],
  });
  expect(calls).toEqual([{ prompt: conversation.messages, abortSignal: expect.any(AbortSignal) }]);
});

verifies('model.port', 'an abort rejects at once while a reply is generated or read', async () => {
  const reason = new Error('enough');
  for (const model of [modelOf(() => new Promise(() => {})), generating({ content: new Array(2 ** 32 - 1) })]) {
    const controller = new AbortController();
    setTimeout(() => controller.abort(reason), 5);
    await expect(replyOf(model, { signal: controller.signal })).rejects.toBe(reason);
  }
});

const thrower = (): never => {
  throw new Error('at once');
};

verifies('model.port', 'no call leaves a listener on the signal of the turn', async () => {
  const { signal } = new AbortController();
  await replyOf(generating({ content: [{ type: 'text', text: 'x' }] }), { signal });
  await replyOf(streaming({ type: 'text-delta', delta: 'x' }, finish), { signal, ...SUBSCRIBED });
  await failureOf(generating({}), { signal });
  await failureOf(modelOf(thrower), { signal });
  await failureOf(streaming(finish), { signal, ...SUBSCRIBED });
  expect(abortListenersOf(signal)).toEqual(new Set());
  expect(getEventListeners(signal, 'abort')).toHaveLength(1);
});

verifies(
  'model.failure',
  'an invalid read result is a failure, and a part with a then method is not awaited',
  async () => {
    for (const read of [() => undefined, async () => undefined, async () => null, async () => 5, async () => 'done']) {
      expect((await failureOf(reading(read), SUBSCRIBED)).data).toEqual({ retryable: false });
    }
    const calls: string[] = [];
    const then = (): void => void calls.push('then');
    const trap = new Proxy({}, { get: () => then });
    const parts = [{ type: 'raw', then }, trap, { type: 'text-delta', delta: 'x', then }, { ...finish, then }];
    const stream = (): ReadableStream<unknown> =>
      new ReadableStream({ pull: (out) => (parts.length > 0 ? out.enqueue(parts.shift()) : out.close()) });
    const model = modelOf(generating(undefined).doGenerate, async () => ({ stream: stream() }));
    expect((await replyOf(model, SUBSCRIBED)).text).toBe('x');
    expect((await replyOf(generating({ content: [{ type: 'text', text: 'x', then }, trap] }))).text).toBe('x');
    expect(calls).toEqual([]);
  },
);

verifies('model.failure', 'a generated result without a content list fails with a clear message', async () => {
  const list = { length: 1, 0: { type: 'text', text: 'x' } };
  for (const content of [undefined, null, 'text', 5, {}, list, new Set(), revoked([])]) {
    const { message, data } = await failureOf(generating({ content }));
    expect(message).toBe("test 'm-1' failed: its result has no list of content");
    expect(data).toEqual({ retryable: false });
  }
  for (const result of [undefined, null, 5, 'text', [], revoked({})]) await failureOf(generating(result));
  expect((await failureOf({ ...generating({}), doGenerate: 5 } as never)).data).toEqual({ retryable: true });
});

verifies('model.failure', 'a malformed content part of a generated reply is ignored', async () => {
  const early = { type: 'finish', finishReason: { unified: 'error' } };
  const delta = { type: 'text-delta', delta: 'not content' };
  const content = [
    ...MALFORMED,
    revoked({}),
    early,
    delta,
    { type: 'error', error: 'no' },
    { type: 'text', text: 'fine' },
  ];
  for (const rest of [{}, { finishReason: null, usage: 7, response: 5 }, { finishReason: 'stop', response: [] }]) {
    expect(await replyOf(generating({ content, ...rest }))).toEqual({ text: 'fine', model: 'm-1', finish: 'other' });
  }
});

verifies('model.failure', 'an error whose properties cannot be read is reported as BACKEND_FAILED', async () => {
  const trap = Object.defineProperty(new Error('no'), 'message', {
    get() {
      throw new Error('a trap');
    },
  });
  for (const thrown of [revoked(new Error('no')), trap]) {
    expect((await failureOf(modelOf(() => Promise.reject(thrown)))).data).toEqual({ retryable: true });
    expect((await failureOf(streaming({ type: 'error', error: thrown }), SUBSCRIBED)).data).toEqual({
      retryable: true,
    });
  }
});

verifies('model.failure', '10,000 tool calls in one reply are read in linear time, and more are refused', async () => {
  const call = (id: string): object => ({ type: 'tool-call', toolCallId: id, toolName: 't', input: '' });
  const ids = Array.from({ length: 10_000 }, (_, index) => (index < 5000 ? `c-${index}` : 'c'));
  const tooMany = [...ids, 'x'].map(call);
  const toolCalls = await inProcessorTime(3000, async () => {
    for (const { message, data } of [
      await failureOf(generating({ content: tooMany })),
      await failureOf(streaming(...tooMany, finish), SUBSCRIBED),
    ]) {
      expect(message).toContain('more than 10000 tool calls');
      expect(data).toEqual({ retryable: false });
    }
    return (await replyOf(generating({ content: ids.map(call) }))).toolCalls ?? [];
  });
  expect(new Set(toolCalls.map(({ id }) => id)).size).toBe(10_000);
  expect(toolCalls.slice(5000, 5002).map(({ id }) => id)).toEqual(['c', 'c-5000']);
});

verifies('model.failure', 'a generated reply over the size limit is refused', async () => {
  const text = (length: number): Model => generating({ content: [{ type: 'text', text: 'é'.repeat(length) }] });
  expect((await replyOf(text(500), { maxBytes: 1000 })).text).toHaveLength(500);
  for (const model of [text(501), generating({ content: new Array(1002) })]) {
    const { message, data } = await failureOf(model, { maxBytes: 1000 });
    expect(message).toContain('more than 1000 bytes');
    expect(data).toEqual({ retryable: false });
  }
});

const FINISHES = ['stop', 'length', 'content-filter', 'tool-calls', 'error', 'other', 'approved', null];
const usage = { inputTokens: { total: 3 }, outputTokens: { total: undefined } };
const shortText = fc.constantFrom('', 'a', 'b', 'a-2', 'é');
const anyPart = fc.oneof(
  fc.record({
    type: fc.constantFrom('text', 'reasoning'),
    text: fc.oneof(shortText, fc.constantFrom(5, null, undefined)),
  }),
  fc.record({
    type: fc.constant('tool-call'),
    toolCallId: shortText,
    toolName: shortText,
    input: fc.oneof(shortText, fc.constantFrom({}, null)),
    providerExecuted: fc.constantFrom(undefined, false, true),
  }),
  fc.constantFrom(...MALFORMED),
);
const anyEnd = fc.record({
  finishReason: fc.constantFrom('stop', undefined, null, ...FINISHES.map((unified) => ({ unified, raw: 'x' }))),
  usage: fc.constantFrom(undefined, null, 5, usage, { inputTokens: { total: -1 }, outputTokens: { total: 4 } }),
  response: fc.constantFrom(undefined, null, {}, { modelId: 'm-2' }, { modelId: 7 }),
});
const anyThrown = fc.constantFrom<unknown>(
  undefined,
  ...[400, 429, 503].map((statusCode) => Object.assign(new Error('no'), { statusCode })),
  ...[true, false].map((isRetryable) => ({ message: 'no', isRetryable })),
  new LoopError('BACKEND_FAILED', 'The script is at its end.', { retryable: false }),
);

/** The stream part that corresponds to a content part. */
function streamPartOf(part: unknown): unknown {
  const { type, text } = Object(part) as { type?: unknown; text?: unknown };
  return type === 'text' || type === 'reasoning' ? { type: `${type}-delta`, id: '0', delta: text } : part;
}

verifies('model.port', 'a streamed and a generated reply with the same parts have the same outcome', async () => {
  const kinds = new Set<string>();
  const outcome = (model: Model, options: Partial<CallModelOptions>): Promise<object> =>
    replyOf(model, { clock: { elapsed: () => 7 }, ...options }).then(
      (reply) => {
        kinds.add('reply');
        return reply;
      },
      (error: LoopError) => {
        kinds.add('failure');
        return error.toErrorRecord();
      },
    );
  await fc.assert(
    fc.asyncProperty(
      fc.array(anyPart, { maxLength: 8 }),
      anyEnd,
      anyThrown,
      fc.constantFrom(8, 1000),
      async (content, { response, ...end }, thrown, maxBytes) => {
        const metadata =
          response === undefined ? [] : [{ type: 'response-metadata', modelId: Object(response).modelId }];
        const failing = thrown === undefined ? [] : [{ type: 'error', error: thrown }];
        const parts = [...metadata, ...failing, ...content.map(streamPartOf), { type: 'finish', ...end }];
        const doGenerate = async () => {
          if (thrown !== undefined) throw thrown;
          return { content, response, ...end };
        };
        const model = modelOf(doGenerate, streamOf(parts));
        expect(await outcome(model, { maxBytes })).toEqual(await outcome(model, { maxBytes, onDelta: () => {} }));
      },
    ),
    { numRuns: 1000, seed: 7 },
  );
  expect([...kinds].sort()).toEqual(['failure', 'reply']);
});
