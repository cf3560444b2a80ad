import { expect } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import { LoopError } from '../base/errors.js';
import type { Model, ModelCallOptions, ModelStreamPart } from '../protocol/model.js';
import type { ModelReply, ModelRequest } from './model.js';
import { type CallModelOptions, callModel, type ModelDelta } from './model-call.js';

const request: ModelRequest = { backendId: 'test', model: 'm-1', promptLength: 5, prompt: 'Hello' };
const usage = {
  inputTokens: { total: 3, noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: undefined, text: undefined, reasoning: undefined },
};
const finish: ModelStreamPart = { type: 'finish', finishReason: { unified: 'stop', raw: undefined }, usage };
const words = (delta: string): ModelStreamPart => ({ type: 'text-delta', id: '0', delta });

/** A model that streams anything, of any shape. */
function streaming(stream: () => ReadableStream<unknown>, seen: ModelCallOptions[] = []): Model {
  return {
    specificationVersion: 'v3',
    provider: 'test',
    modelId: 'm-1',
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error('must not be called')),
    doStream: async (call) => {
      seen.push(call);
      return { stream: stream() as ReadableStream<ModelStreamPart> };
    },
  };
}

const saying = (...parts: unknown[]): Model =>
  streaming(
    () =>
      new ReadableStream({
        start(controller) {
          for (const part of parts) controller.enqueue(part);
          controller.close();
        },
      }),
  );

const throwing = (thrown: unknown): Model => ({ ...saying(), doStream: () => Promise.reject(thrown) });

function asked(model: Model, options: Partial<CallModelOptions> = {}, of: ModelRequest = request): Promise<ModelReply> {
  return callModel(model, of, { signal: new AbortController().signal, ...options });
}

async function failure(
  model: Model,
  options: Partial<CallModelOptions> = {},
  of: ModelRequest = request,
): Promise<LoopError> {
  const thrown = await asked(model, options, of).catch((error: unknown) => error);
  expect(thrown).toBeInstanceOf(LoopError);
  expect(thrown).toMatchObject({ code: 'BACKEND_FAILED' });
  return thrown as LoopError;
}

verifies('model.port', 'a reply loses what the model said, thought, called or used', async () => {
  const deltas: ModelDelta[] = [];
  const model = saying(
    { type: 'stream-start', warnings: [] },
    { type: 'response-metadata', modelId: 'm-1-2026' },
    { type: 'reasoning-delta', id: 'r', delta: 'hmm' },
    words('Hel'),
    words('lo'),
    { type: 'tool-call', toolCallId: 'c1', toolName: 'look', input: '{"a":1}' },
    { type: 'tool-call', toolCallId: 'c2', toolName: 'theirs', input: '{}', providerExecuted: true },
    finish,
  );
  const reply = await asked(model, { onDelta: (delta) => deltas.push(delta) });
  expect(reply).toEqual({
    text: 'Hello',
    model: 'm-1-2026',
    finish: 'stop',
    inputTokens: 3,
    reasoning: 'hmm',
    toolCalls: [{ id: 'c1', name: 'look', input: '{"a":1}' }],
  });
  expect(deltas).toEqual([
    { kind: 'reasoning', text: 'hmm' },
    { kind: 'text', text: 'Hel' },
    { kind: 'text', text: 'lo' },
  ]);
});

verifies('model.port', 'a model is asked something other than the request says', async () => {
  const seen: ModelCallOptions[] = [];
  const model = streaming(
    () =>
      new ReadableStream({
        start(controller) {
          controller.enqueue(words('x'));
          controller.enqueue(finish);
        },
      }),
    seen,
  );
  const schema = { type: 'object' };
  await asked(model, {}, { ...request, system: 'Be brief', maxTokens: 9, temperature: 0, schema });
  await asked(model, {}, { ...request, system: '', schema: true });
  expect(seen[0]).toEqual({
    prompt: [
      { role: 'system', content: 'Be brief' },
      { role: 'user', content: [{ type: 'text', text: 'Hello' }] },
    ],
    maxOutputTokens: 9,
    temperature: 0,
    responseFormat: { type: 'json', schema },
    abortSignal: expect.any(AbortSignal),
  });
  expect(seen[1]).toEqual({
    prompt: [{ role: 'user', content: [{ type: 'text', text: 'Hello' }] }],
    responseFormat: { type: 'json' },
    abortSignal: expect.any(AbortSignal),
  });
});

verifies('model.port', 'a count that the provider did not tell is taken for zero', async () => {
  for (const odd of [
    undefined,
    null,
    'many',
    { inputTokens: 3 },
    { inputTokens: { total: -1 }, outputTokens: { total: 0.5 } },
  ]) {
    const reply = await asked(saying(words('x'), { ...finish, usage: odd }));
    expect(reply).toEqual({ text: 'x', model: 'm-1', finish: 'stop' });
  }
});

verifies('model.port', 'a model of another interface fails in a riddle', async () => {
  for (const [version, named] of [
    ['v2', 'V2'],
    ['v4', 'V4'],
    [undefined, 'no known version'],
  ] as const) {
    const { message, data } = await failure({ ...saying(finish), specificationVersion: version } as unknown as Model);
    expect(message).toContain(named);
    expect(message).toContain('V3');
    expect(data).toEqual({ retryable: false });
  }
});

const odd: readonly unknown[] = [
  null,
  undefined,
  7,
  'text-delta',
  [],
  {},
  { type: 'text-delta' },
  { type: 'text-delta', delta: 5 },
  { type: 'reasoning-delta', delta: null },
  { type: 'tool-call', toolCallId: 1, toolName: 'x', input: {} },
  { type: 'response-metadata', modelId: { toString: () => 'x' } },
  { type: '__proto__' },
  { type: 'ping' },
  {
    get type(): string {
      throw new Error('a trap');
    },
  },
];

verifies('model.failure', 'a part of a wrong shape takes the process with it', async () => {
  const reply = await asked(saying(...odd, words('fine'), { type: 'finish', finishReason: 'stop', usage: 0 }));
  expect(reply).toEqual({ text: 'fine', model: 'm-1', finish: 'other' });
});

verifies('model.failure', 'half an answer is taken for a whole one', async () => {
  const { message, data } = await failure(saying(words('Hel')));
  expect(message).toBe("test 'm-1' stopped before its reply was complete");
  expect(data).toEqual({ retryable: true });
  const broken = streaming(() => new ReadableStream({ pull: (controller) => controller.error(new Error('reset')) }));
  expect((await failure(broken)).data).toEqual({ retryable: true });
  const told = await failure(saying(words('Hel'), { type: 'error', error: { message: 'overloaded' } }, finish));
  expect(told.message).toBe("test 'm-1' failed: overloaded");
  expect(told.data).toEqual({ retryable: true });
  const failed = saying(words('Hel'), { ...finish, finishReason: { unified: 'error' } });
  expect((await failure(failed)).data).toEqual({ retryable: true });
});

verifies('model.failure', 'no answer is taken for an answer', async () => {
  expect((await failure(saying(finish))).data).toEqual({ retryable: true });
  const cut = { ...finish, finishReason: { unified: 'length', raw: undefined } };
  const { message, data } = await failure(saying({ type: 'reasoning-delta', id: 'r', delta: 'long thoughts' }, cut));
  expect(message).toContain('length');
  expect(data).toEqual({ retryable: false });
});

verifies('model.failure', 'a stream that is no stream hangs the loop', async () => {
  for (const result of [undefined, null, {}, { stream: 'text' }, { stream: { getReader: () => 5 } }]) {
    const model = { ...saying(), doStream: () => Promise.resolve(result) } as unknown as Model;
    expect((await failure(model)).message).toContain("test 'm-1' failed");
  }
});

/** The fields of the AI SDK's APICallError, by which it is known. */
function callError(fields: object): Error {
  return Object.assign(new Error('The server says no'), { name: 'AI_APICallError', ...fields });
}

verifies('model.failure', 'a failure that passes is given up, or one that stays is tried again', async () => {
  for (const statusCode of [408, 409, 429, 500, 503, 529]) {
    const { data } = await failure(throwing(callError({ statusCode, isRetryable: false })));
    expect(data).toEqual({ retryable: true, status: statusCode });
  }
  for (const statusCode of [400, 401, 403, 404, 413, 422]) {
    const { data } = await failure(throwing(callError({ statusCode, isRetryable: true })));
    expect(data).toEqual({ retryable: false, status: statusCode });
  }
  const reset = new TypeError('fetch failed', { cause: Object.assign(new Error('no'), { code: 'ECONNREFUSED' }) });
  for (const passing of [reset, callError({ isRetryable: true }), new DOMException('slow', 'TimeoutError')]) {
    expect((await failure(throwing(passing))).data).toEqual({ retryable: true });
  }
  for (const lasting of [new TypeError('x is not a function'), callError({ isRetryable: false }), 'no', null]) {
    expect((await failure(throwing(lasting))).data).toEqual({ retryable: false });
  }
});

verifies(
  'model.failure',
  'a provider that asks for patience is not heard, or a date is taken for seconds',
  async () => {
    const after = async (value: unknown): Promise<unknown> =>
      (await failure(throwing(callError({ statusCode: 429, responseHeaders: { 'retry-after': value } })))).data;
    expect(await after('7')).toEqual({ retryable: true, status: 429, retryAfterMs: 7000 });
    expect(await after('0.5')).toEqual({ retryable: true, status: 429, retryAfterMs: 500 });
    for (const untold of ['Wed, 21 Oct 2026 07:28:00 GMT', '-1', '1e99', '', 7, null]) {
      expect(await after(untold)).toEqual({ retryable: true, status: 429 });
    }
  },
);

verifies('model.failure', 'an outcome that a backend of ours decided is told as something else', async () => {
  const own = new LoopError('BACKEND_FAILED', 'The script is at its end.', { retryable: false });
  expect(await failure(throwing(own))).toBe(own);
});

verifies('model.failure', 'a reply without end fills the memory', async () => {
  const endless = (part: unknown): [Model, () => boolean] => {
    const ends: string[] = [];
    const stream = (): ReadableStream<unknown> =>
      new ReadableStream({ pull: (controller) => controller.enqueue(part), cancel: () => void ends.push('cancelled') });
    return [streaming(stream), () => ends.length === 1];
  };
  const call = { type: 'tool-call', toolCallId: 'c', toolName: 't', input: '' };
  for (const part of [
    words('é'),
    { type: 'raw', rawValue: 0 },
    { type: 'tool-input-delta', delta: 'x' },
    words(''),
    call,
  ]) {
    const [model, cancelled] = endless(part);
    const { message, data } = await failure(model, { maxBytes: 1000 });
    expect(message).toContain('more than 1000 bytes');
    expect(data).toEqual({ retryable: false });
    expect(cancelled()).toBe(true);
  }
  expect((await asked(saying(words('é'.repeat(500)), finish), { maxBytes: 1000 })).text).toHaveLength(500);
});

verifies('model.port', 'an abort waits for a model that does not listen', async () => {
  const reason = new Error('enough');
  const deaf: Model = { ...saying(), doStream: () => new Promise(() => {}) };
  const ends: string[] = [];
  const stuck = streaming(() => new ReadableStream({ cancel: () => void ends.push('cancelled') }));
  const busy = streaming(() => new ReadableStream({ pull: (controller) => controller.enqueue({ type: 'raw' }) }));
  for (const model of [deaf, stuck, busy]) {
    const controller = new AbortController();
    setTimeout(() => controller.abort(reason), 5);
    await expect(asked(model, { signal: controller.signal })).rejects.toBe(reason);
  }
  expect(ends).toEqual(['cancelled']);
});

verifies('model.port', 'a stream that opens after the abort is left running', async () => {
  const controller = new AbortController();
  let cancelled: () => void = () => {};
  const stopped = new Promise<void>((resolve) => {
    cancelled = resolve;
  });
  let open: () => void = () => {};
  const gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  const late: Model = {
    ...saying(),
    doStream: async () => {
      await gate;
      return { stream: new ReadableStream<ModelStreamPart>({ cancel: () => cancelled() }) };
    },
  };
  const answer = asked(late, { signal: controller.signal });
  controller.abort(new Error('enough'));
  await expect(answer).rejects.toThrow('enough');
  open();
  await expect(stopped).resolves.toBeUndefined();
});

verifies('model.port', 'an aborted call asks the model all the same', async () => {
  const seen: ModelCallOptions[] = [];
  const signal = AbortSignal.abort(new Error('before'));
  await expect(
    asked(
      streaming(() => new ReadableStream(), seen),
      { signal },
    ),
  ).rejects.toThrow('before');
  expect(seen).toEqual([]);
});

verifies('model.port', 'someone who watches and fails lets the stream run on', async () => {
  const ends: string[] = [];
  const model = streaming(
    () =>
      new ReadableStream({
        start: (controller) => controller.enqueue(words('x')),
        cancel: () => void ends.push('cancelled'),
      }),
  );
  const onDelta = (): never => {
    throw new Error('the watcher fell');
  };
  await expect(asked(model, { onDelta })).rejects.toThrow('the watcher fell');
  expect(ends).toEqual(['cancelled']);
});

verifies('model.secret', 'a message tells a key, a header or the prompt', async () => {
  const key = 'sk-proj-aB3dE5gH7jK9';
  const prompt = 'My diagnosis is acute lymphoma.\nTell "nobody"  about it, please.';
  const of = { ...request, prompt, system: 'The launch code is 00000000.' };
  const said = [
    `Incorrect API key provided: ${key}. See the docs.`,
    `bad header Authorization: Bearer ${key}`,
    `{"x-api-key":"${key}"}`,
    `token=abc123 password: hunter2`,
    `Invalid body: ${JSON.stringify({ messages: [{ role: 'user', content: prompt }] })}`,
    `Invalid body: ${prompt}`,
    `Invalid body: The launch code is 00000000.`,
    `key 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08`,
  ];
  for (const message of said) {
    const thrown = callError({ statusCode: 400, message, requestBodyValues: { prompt }, responseBody: message });
    for (const model of [
      throwing(thrown),
      saying({ type: 'error', error: thrown }),
      saying({ type: 'error', error: message }),
    ]) {
      const error = await failure(model, {}, of);
      const told = `${error.message} ${JSON.stringify(error.data)} ${String(error.cause)}`;
      expect(told).not.toMatch(/aB3dE5|lymphoma|nobody|launch|abc123|hunter2|9f86d081884c/);
      expect(error.message).toMatch(/Incorrect|header|secret|Invalid body|key/);
    }
  }
});

verifies('model.secret', 'a message tells a prompt that is short, wherever it stands', async () => {
  const said = `Refused: ${'x'.repeat(7)}My PIN is 1234 and then ${'y'.repeat(20)}`;
  const of = { ...request, prompt: 'My PIN is 1234' };
  expect((await failure(throwing(new Error(said)), {}, of)).message).toBe(
    `test 'm-1' failed: Refused: xxxxxxx[…] and then ${'y'.repeat(20)}`,
  );
  const long = 'The quick brown fox jumps over the lazy dog at noon.';
  for (let shift = 0; shift < 20; shift++) {
    const echo = `${'#'.repeat(shift)}${long.slice(shift, shift + 20)}${'#'.repeat(9)}`;
    const { message } = await failure(throwing(new Error(echo)), {}, { ...request, prompt: long });
    expect(message).toBe(`test 'm-1' failed: ${'#'.repeat(shift)}[…]${'#'.repeat(9)}`);
  }
});

verifies('model.secret', 'a message is as long as the server likes, or moves the cursor of a terminal', async () => {
  const { message } = await failure(
    throwing(callError({ statusCode: 500, message: `\u001b[2J\r\n${'no '.repeat(9000)}` })),
  );
  expect(message.length).toBeLessThanOrEqual(500);
  expect(message).not.toMatch(/\p{Cc}/u);
  const cut = await failure(throwing(callError({ message: '😀'.repeat(400) })));
  expect(cut.message.length).toBeLessThanOrEqual(500);
  expect(cut.message).not.toMatch(/\p{Cs}/u);
});

verifies(
  'model.failure',
  'a part that says something else each time it is read is told to others and not counted',
  async () => {
    let reads = 0;
    const part = () => ({
      type: 'tool-input-delta',
      id: 'c',
      get delta(): string {
        reads += 1;
        return reads % 2 === 1 ? 'x'.repeat(1024) : '';
      },
    });
    const start = { type: 'tool-input-start', id: 'c', toolName: 'add' };
    const many = Array.from({ length: 40 }, part);
    const deltas: ModelDelta[] = [];
    const options = { onDelta: (delta: ModelDelta) => deltas.push(delta), maxBytes: 4096 };
    const told = await failure(saying(start, ...many, finish), options);
    expect(told.message).toContain('returned more than 4096 bytes');
    expect(deltas.map(({ text }) => text).join('').length).toBeLessThan(8192);
  },
);
