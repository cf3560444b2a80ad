import { getEventListeners } from 'node:events';
import fc from 'fast-check';
import { expect } from 'vitest';
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

type Given = (call: ModelCallOptions) => unknown;

/** A model of two functions that give anything, of any shape: a whole answer, and what has a stream. */
function modelOf(doGenerate: Given, doStream: Given = () => undefined): Model {
  const about = { specificationVersion: 'v3', provider: 'test', modelId: 'm-1', supportedUrls: {} };
  return { ...about, doGenerate, doStream } as unknown as Model;
}

const giving = (result: unknown): Model => modelOf(async () => result);
const saying = (...parts: unknown[]): Model => modelOf(giving(undefined).doGenerate, streamOf(parts));
const streamOf = (parts: unknown[]) => async () => ({ stream: ReadableStream.from(parts) });
const reading = (read: () => unknown): Model =>
  modelOf(giving(undefined).doGenerate, async () => ({ stream: { getReader: () => ({ read }) } }));

const WATCHED = { onDelta: () => {} };

/** Asks for the whole; who is watched streams. */
function asked(model: Model, options: Partial<CallModelOptions> = {}): Promise<ModelReply> {
  return callModel(model, request, { signal: new AbortController().signal, conversation, ...options });
}

async function failure(model: Model, options: Partial<CallModelOptions> = {}): Promise<LoopError> {
  const thrown = await asked(model, options).catch((error: unknown) => error);
  expect(thrown).toBeInstanceOf(LoopError);
  expect(thrown).toMatchObject({ code: 'BACKEND_FAILED' });
  return thrown as LoopError;
}

function revoked(of: object): unknown {
  const { proxy, revoke } = Proxy.revocable(of, {});
  revoke();
  return proxy;
}

const ODD: readonly unknown[] = [
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

verifies('model.port', 'a whole answer loses what the model said, thought, called or used', async () => {
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
  expect(await asked(model, { signal })).toEqual({
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
  expect(calls).toEqual([{ prompt: conversation.messages, abortSignal: signal }]);
  expect(calls[0]?.abortSignal).toBe(signal);
});

verifies('model.port', 'an abort waits for a whole answer', async () => {
  const reason = new Error('enough');
  for (const model of [modelOf(() => new Promise(() => {})), giving({ content: new Array(2 ** 32 - 1) })]) {
    const controller = new AbortController();
    setTimeout(() => controller.abort(reason), 5);
    await expect(asked(model, { signal: controller.signal })).rejects.toBe(reason);
  }
});

const thrower = (): never => {
  throw new Error('at once');
};

verifies('model.port', 'every question leaves an ear at the signal of the turn', async () => {
  const { signal } = new AbortController();
  await asked(giving({ content: [{ type: 'text', text: 'x' }] }), { signal });
  await asked(saying({ type: 'text-delta', delta: 'x' }, finish), { signal, ...WATCHED });
  await failure(giving({}), { signal });
  await failure(modelOf(thrower), { signal });
  await failure(saying(finish), { signal, ...WATCHED });
  expect(abortListenersOf(signal)).toEqual(new Set());
  expect(getEventListeners(signal, 'abort')).toHaveLength(1);
});

verifies('model.failure', 'what a reader gives in place of a part is taken for one, or waited for', async () => {
  for (const read of [() => undefined, async () => undefined, async () => null, async () => 5, async () => 'done']) {
    expect((await failure(reading(read), WATCHED)).data).toEqual({ retryable: false });
  }
  const ran: string[] = [];
  const then = (): void => void ran.push('then');
  const trap = new Proxy({}, { get: () => then });
  const parts = [{ type: 'raw', then }, trap, { type: 'text-delta', delta: 'x', then }, { ...finish, then }];
  const stream = (): ReadableStream<unknown> =>
    new ReadableStream({ pull: (out) => (parts.length > 0 ? out.enqueue(parts.shift()) : out.close()) });
  const streaming = modelOf(giving(undefined).doGenerate, async () => ({ stream: stream() }));
  expect((await asked(streaming, WATCHED)).text).toBe('x');
  expect((await asked(giving({ content: [{ type: 'text', text: 'x', then }, trap] }))).text).toBe('x');
  expect(ran).toEqual([]);
});

verifies('model.failure', 'a whole answer of a wrong shape fails in a riddle', async () => {
  const list = { length: 1, 0: { type: 'text', text: 'x' } };
  for (const content of [undefined, null, 'text', 5, {}, list, new Set(), revoked([])]) {
    const { message, data } = await failure(giving({ content }));
    expect(message).toBe("test 'm-1' failed: its result has no list of content");
    expect(data).toEqual({ retryable: false });
  }
  for (const none of [undefined, null, 5, 'text', [], revoked({})]) await failure(giving(none));
  expect((await failure({ ...giving({}), doGenerate: 5 } as never)).data).toEqual({ retryable: false });
});

verifies(
  'model.failure',
  'a piece of a whole answer of a wrong shape takes the process with it, or ends it',
  async () => {
    const early = { type: 'finish', finishReason: { unified: 'error' } };
    const delta = { type: 'text-delta', delta: 'not content' };
    const content = [...ODD, revoked({}), early, delta, { type: 'error', error: 'no' }, { type: 'text', text: 'fine' }];
    for (const rest of [{}, { finishReason: null, usage: 7, response: 5 }, { finishReason: 'stop', response: [] }]) {
      expect(await asked(giving({ content, ...rest }))).toEqual({ text: 'fine', model: 'm-1', finish: 'other' });
    }
  },
);

verifies('model.failure', 'a failure that cannot be looked at is told as something else', async () => {
  const trap = Object.defineProperty(new Error('no'), 'message', {
    get() {
      throw new Error('a trap');
    },
  });
  for (const thrown of [revoked(new Error('no')), trap]) {
    expect((await failure(modelOf(() => Promise.reject(thrown)))).data).toEqual({ retryable: false });
    expect((await failure(saying({ type: 'error', error: thrown }), WATCHED)).data).toEqual({ retryable: true });
  }
});

verifies('model.failure', 'a reply of many calls keeps the process busy for a minute, or has no end', async () => {
  const call = (id: string): object => ({ type: 'tool-call', toolCallId: id, toolName: 't', input: '' });
  const ids = Array.from({ length: 10_000 }, (_, nth) => (nth < 5000 ? `c-${nth}` : 'c'));
  const start = process.cpuUsage();
  const { toolCalls = [] } = await asked(giving({ content: ids.map(call) }));
  const tooMany = [...ids, 'x'].map(call);
  for (const { message, data } of [
    await failure(giving({ content: tooMany })),
    await failure(saying(...tooMany, finish), WATCHED),
  ]) {
    expect(message).toContain('more than 10000 tool calls');
    expect(data).toEqual({ retryable: false });
  }
  const { user, system } = process.cpuUsage(start);
  expect(new Set(toolCalls.map(({ id }) => id)).size).toBe(10_000);
  expect(toolCalls.slice(5000, 5002).map(({ id }) => id)).toEqual(['c', 'c-5000']);
  expect((user + system) / 1000).toBeLessThan(3000);
});

verifies('model.failure', 'a whole answer is larger than all bounds', async () => {
  const text = (length: number): Model => giving({ content: [{ type: 'text', text: 'é'.repeat(length) }] });
  expect((await asked(text(500), { maxBytes: 1000 })).text).toHaveLength(500);
  for (const model of [text(501), giving({ content: new Array(1002) })]) {
    const { message, data } = await failure(model, { maxBytes: 1000 });
    expect(message).toContain('more than 1000 bytes');
    expect(data).toEqual({ retryable: false });
  }
});

const FINISHES = ['stop', 'length', 'content-filter', 'tool-calls', 'error', 'other', 'approved', null];
const usage = { inputTokens: { total: 3 }, outputTokens: { total: undefined } };
const few = fc.constantFrom('', 'a', 'b', 'a-2', 'é');
const anyPiece = fc.oneof(
  fc.record({ type: fc.constantFrom('text', 'reasoning'), text: fc.oneof(few, fc.constantFrom(5, null, undefined)) }),
  fc.record({
    type: fc.constant('tool-call'),
    toolCallId: few,
    toolName: few,
    input: fc.oneof(few, fc.constantFrom({}, null)),
    providerExecuted: fc.constantFrom(undefined, false, true),
  }),
  fc.constantFrom(...ODD),
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

/** One piece of a whole answer as a stream has it. */
function streamedPiece(piece: unknown): unknown {
  const { type, text } = Object(piece) as { type?: unknown; text?: unknown };
  return type === 'text' || type === 'reasoning' ? { type: `${type}-delta`, id: '0', delta: text } : piece;
}

verifies('model.port', 'whether somebody watches changes what a model is taken to have said', async () => {
  const kinds = new Set<string>();
  const outcome = (model: Model, options: Partial<CallModelOptions>): Promise<object> =>
    asked(model, { clock: { elapsed: () => 7 }, ...options }).then(
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
      fc.array(anyPiece, { maxLength: 8 }),
      anyEnd,
      anyThrown,
      fc.constantFrom(8, 1000),
      async (content, { response, ...end }, thrown, maxBytes) => {
        const metadata =
          response === undefined ? [] : [{ type: 'response-metadata', modelId: Object(response).modelId }];
        const failing = thrown === undefined ? [] : [{ type: 'error', error: thrown }];
        const parts = [...metadata, ...failing, ...content.map(streamedPiece), { type: 'finish', ...end }];
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
