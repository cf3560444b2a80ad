import { expect } from 'vitest';
import {
  FINISH,
  failureOf,
  modelWithParts,
  modelWithStream,
  REQUEST,
  rejectingModel,
  replyOf,
  textDelta,
} from '../../../spec/support/test-models.js';
import { verifies } from '../../../spec/verifies.js';
import { LoopError } from '../../base/errors.js';
import type { Model } from '../../protocol/model.js';
import type { ModelDelta } from '../model-call.js';

/** Stream parts of wrong shapes. All of them are ignored. */
const malformedParts: readonly unknown[] = [
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

verifies('model.failure', 'a malformed stream part is ignored', async () => {
  const reply = await replyOf(
    modelWithParts(...malformedParts, textDelta('fine'), { type: 'finish', finishReason: 'stop', usage: 0 }),
  );
  expect(reply).toEqual({ text: 'fine', model: 'm-1', finish: 'other' });
});

verifies('model.failure', 'an incomplete reply is a retryable failure', async () => {
  const { message, data } = await failureOf(modelWithParts(textDelta('Hel')));
  expect(message).toBe("test 'm-1' stopped before its reply was complete");
  expect(data).toEqual({ retryable: true });
  const broken = modelWithStream(
    () => new ReadableStream({ pull: (controller) => controller.error(new Error('reset')) }),
  );
  expect((await failureOf(broken)).data).toEqual({ retryable: true });
  const overloaded = { type: 'error', error: { message: 'overloaded' } };
  const error = await failureOf(modelWithParts(textDelta('Hel'), overloaded, FINISH));
  expect(error.message).toBe("test 'm-1' failed: overloaded");
  expect(error.data).toEqual({ retryable: true });
  const failed = modelWithParts(textDelta('Hel'), { ...FINISH, finishReason: { unified: 'error' } });
  expect((await failureOf(failed)).data).toEqual({ retryable: true });
});

verifies('model.failure', 'an empty reply is a failure, retryable unless it was truncated', async () => {
  expect((await failureOf(modelWithParts(FINISH))).data).toEqual({ retryable: true });
  const truncated = { ...FINISH, finishReason: { unified: 'length', raw: undefined } };
  const { message, data } = await failureOf(
    modelWithParts({ type: 'reasoning-delta', id: 'r', delta: 'long thoughts' }, truncated),
  );
  expect(message).toContain('length');
  expect(data).toEqual({ retryable: false });
});

verifies('model.failure', 'a result without a readable stream is a failure', async () => {
  for (const result of [undefined, null, {}, { stream: 'text' }, { stream: { getReader: () => 5 } }]) {
    const model = { ...modelWithParts(), doStream: () => Promise.resolve(result) } as unknown as Model;
    expect((await failureOf(model)).message).toContain("test 'm-1' failed");
  }
});

/** An error with the fields of the AI SDK's APICallError. */
function callError(fields: object): Error {
  return Object.assign(new Error('The server says no'), { name: 'AI_APICallError', ...fields });
}

verifies('model.failure', 'transient failures are retryable, permanent ones are not', async () => {
  for (const statusCode of [408, 409, 429, 500, 503, 529]) {
    const { data } = await failureOf(rejectingModel(callError({ statusCode, isRetryable: false })));
    expect(data).toEqual({ retryable: true, status: statusCode });
  }
  for (const statusCode of [400, 401, 403, 404, 413, 422]) {
    const { data } = await failureOf(rejectingModel(callError({ statusCode, isRetryable: true })));
    expect(data).toEqual({ retryable: false, status: statusCode });
  }
  const reset = new TypeError('fetch failed', { cause: Object.assign(new Error('no'), { code: 'ECONNREFUSED' }) });
  for (const other of [reset, callError({ isRetryable: true }), new DOMException('slow', 'TimeoutError'), 'no', null]) {
    expect((await failureOf(rejectingModel(other))).data).toEqual({ retryable: true });
  }
  for (const permanent of [callError({ isRetryable: false })]) {
    expect((await failureOf(rejectingModel(permanent))).data).toEqual({ retryable: false });
  }
});

verifies('turn.errors', 'the error of a model has the stack of what was thrown, without its message', async () => {
  const thrown = new Error('the key is sk-live-0123456789abcdef');
  const error = await failureOf(rejectingModel(thrown));
  expect(error.cause).toBeUndefined();
  expect(error.toErrorRecord().stack).toContain('backend-error.test.ts');
  expect(error.toErrorRecord().stack).not.toContain('sk-live');
});

verifies('model.failure', 'a Retry-After header in seconds is reported, and any other value is ignored', async () => {
  const dataWithHeader = async (value: unknown): Promise<unknown> =>
    (await failureOf(rejectingModel(callError({ statusCode: 429, responseHeaders: { 'retry-after': value } })))).data;
  expect(await dataWithHeader('7')).toEqual({ retryable: true, status: 429, retryAfterMs: 7000 });
  expect(await dataWithHeader('0.5')).toEqual({ retryable: true, status: 429, retryAfterMs: 500 });
  for (const invalid of ['Wed, 21 Oct 2026 07:28:00 GMT', '-1', '1e99', '', 7, null]) {
    expect(await dataWithHeader(invalid)).toEqual({ retryable: true, status: 429 });
  }
});

verifies('model.failure', 'a LoopError of a provider is passed on unchanged', async () => {
  const error = new LoopError('BACKEND_FAILED', 'The script is at its end.', { retryable: false });
  expect(await failureOf(rejectingModel(error))).toBe(error);
});

verifies('model.failure', 'an endless stream is cancelled at the size limit', async () => {
  const endless = (part: unknown): [Model, () => boolean] => {
    const events: string[] = [];
    const stream = (): ReadableStream<unknown> =>
      new ReadableStream({
        pull: (controller) => controller.enqueue(part),
        cancel: () => void events.push('cancelled'),
      });
    return [modelWithStream(stream), () => events.length === 1];
  };
  const call = { type: 'tool-call', toolCallId: 'c', toolName: 't', input: '' };
  for (const part of [
    textDelta('é'),
    { type: 'raw', rawValue: 0 },
    { type: 'tool-input-delta', delta: 'x' },
    textDelta(''),
    call,
  ]) {
    const [model, isCancelled] = endless(part);
    const { message, data } = await failureOf(model, { maxBytes: 1000 });
    expect(message).toContain('more than 1000 bytes');
    expect(data).toEqual({ retryable: false });
    expect(isCancelled(), 'the stream keeps running').toBe(true);
  }
  expect((await replyOf(modelWithParts(textDelta('é'.repeat(500)), FINISH), { maxBytes: 1000 })).text).toHaveLength(
    500,
  );
});

verifies('model.secret', 'an error message contains no key, no header and no part of the prompt', async () => {
  const key = 'sk-proj-aB3dE5gH7jK9';
  const prompt = 'My diagnosis is acute lymphoma.\nTell "nobody"  about it, please.';
  const request = { ...REQUEST, prompt, system: 'The launch code is 00000000.' };
  const messages = [
    `Incorrect API key provided: ${key}. See the docs.`,
    `bad header Authorization: Bearer ${key}`,
    `{"x-api-key":"${key}"}`,
    `token=abc123 password: hunter2`,
    `Invalid body: ${JSON.stringify({ messages: [{ role: 'user', content: prompt }] })}`,
    `Invalid body: ${prompt}`,
    `Invalid body: The launch code is 00000000.`,
    `key 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08`,
  ];
  for (const message of messages) {
    const thrown = callError({ statusCode: 400, message, requestBodyValues: { prompt }, responseBody: message });
    for (const model of [
      rejectingModel(thrown),
      modelWithParts({ type: 'error', error: thrown }),
      modelWithParts({ type: 'error', error: message }),
    ]) {
      const error = await failureOf(model, {}, request);
      const exposed = `${error.message} ${JSON.stringify(error.data)} ${String(error.cause)}`;
      expect(exposed).not.toMatch(/aB3dE5|lymphoma|nobody|launch|abc123|hunter2|9f86d081884c/);
      expect(error.message).toMatch(/Incorrect|header|secret|Invalid body|key/);
    }
  }
});

verifies(
  'model.secret',
  'an error message contains no short prompt and no run of 20 characters of a long one',
  async () => {
    const text = `Refused: ${'x'.repeat(7)}My PIN is 1234 and then ${'y'.repeat(20)}`;
    const request = { ...REQUEST, prompt: 'My PIN is 1234' };
    expect((await failureOf(rejectingModel(new Error(text)), {}, request)).message).toBe(
      `test 'm-1' failed: Refused: xxxxxxx[…] and then ${'y'.repeat(20)}`,
    );
    const long = 'The quick brown fox jumps over the lazy dog at noon.';
    for (let shift = 0; shift < 20; shift++) {
      const echo = `${'#'.repeat(shift)}${long.slice(shift, shift + 20)}${'#'.repeat(9)}`;
      const { message } = await failureOf(rejectingModel(new Error(echo)), {}, { ...REQUEST, prompt: long });
      expect(message).toBe(`test 'm-1' failed: ${'#'.repeat(shift)}[…]${'#'.repeat(9)}`);
    }
  },
);

verifies('model.secret', 'an error message has at most 500 characters and no control characters', async () => {
  const { message } = await failureOf(
    rejectingModel(callError({ statusCode: 500, message: `\u001b[2J\r\n${'no '.repeat(9000)}` })),
  );
  expect(message.length).toBeLessThanOrEqual(500);
  expect(message).not.toMatch(/\p{Cc}/u);
  const truncated = await failureOf(rejectingModel(callError({ message: '😀'.repeat(400) })));
  expect(truncated.message.length).toBeLessThanOrEqual(500);
  expect(truncated.message).not.toMatch(/\p{Cs}/u);
});

verifies(
  'model.failure',
  'a stream part whose getter changes its value is read once, so that its size is counted',
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
    const error = await failureOf(modelWithParts(start, ...many, FINISH), options);
    expect(error.message).toContain('returned more than 4096 bytes');
    expect(deltas.map(({ text }) => text).join('').length).toBeLessThan(8192);
  },
);
