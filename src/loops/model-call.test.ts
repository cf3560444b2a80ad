import { expect } from 'vitest';
import {
  FINISH,
  failureOf,
  modelWithParts,
  modelWithStream,
  REQUEST,
  replyOf,
  textDelta,
} from '../../spec/support/test-models.js';
import { verifies } from '../../spec/verifies.js';
import type { Model, ModelCallOptions, ModelStreamPart } from '../protocol/model.js';
import type { ModelDelta } from './model-call.js';

verifies('model.port', 'a streamed reply contains text, reasoning, tool calls and usage', async () => {
  const deltas: ModelDelta[] = [];
  const model = modelWithParts(
    { type: 'stream-start', warnings: [] },
    { type: 'response-metadata', modelId: 'm-1-2026' },
    { type: 'reasoning-delta', id: 'r', delta: 'hmm' },
    textDelta('Hel'),
    textDelta('lo'),
    { type: 'tool-call', toolCallId: 'c1', toolName: 'look', input: '{"a":1}' },
    { type: 'tool-call', toolCallId: 'c2', toolName: 'theirs', input: '{}', providerExecuted: true },
    FINISH,
  );
  const reply = await replyOf(model, { onDelta: (delta) => deltas.push(delta) });
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

verifies('model.port', 'a model is called with exactly the prompt and the settings of the request', async () => {
  const calls: ModelCallOptions[] = [];
  const model = modelWithStream(
    () =>
      new ReadableStream({
        start(controller) {
          controller.enqueue(textDelta('x'));
          controller.enqueue(FINISH);
        },
      }),
    calls,
  );
  const schema = { type: 'object' };
  await replyOf(model, {}, { ...REQUEST, system: 'Be brief', maxTokens: 9, temperature: 0, schema });
  await replyOf(model, {}, { ...REQUEST, system: '', schema: true });
  expect(calls[0]).toEqual({
    prompt: [
      { role: 'system', content: 'Be brief' },
      { role: 'user', content: [{ type: 'text', text: 'Hello' }] },
    ],
    maxOutputTokens: 9,
    temperature: 0,
    responseFormat: { type: 'json', schema },
    abortSignal: expect.any(AbortSignal),
  });
  expect(calls[1]).toEqual({
    prompt: [{ role: 'user', content: [{ type: 'text', text: 'Hello' }] }],
    responseFormat: { type: 'json' },
    abortSignal: expect.any(AbortSignal),
  });
});

verifies('model.port', 'a token count that the provider does not report is absent, not zero', async () => {
  for (const usage of [
    undefined,
    null,
    'many',
    { inputTokens: 3 },
    { inputTokens: { total: -1 }, outputTokens: { total: 0.5 } },
  ]) {
    const reply = await replyOf(modelWithParts(textDelta('x'), { ...FINISH, usage }));
    expect(reply).toEqual({ text: 'x', model: 'm-1', finish: 'stop' });
  }
});

verifies('model.port', 'a model of another interface version is refused with both versions named', async () => {
  for (const [version, name] of [
    ['v2', 'V2'],
    ['v4', 'V4'],
    [undefined, 'no known version'],
  ] as const) {
    const { message, data } = await failureOf({
      ...modelWithParts(FINISH),
      specificationVersion: version,
    } as unknown as Model);
    expect(message).toContain(name);
    expect(message).toContain('V3');
    expect(data).toEqual({ retryable: false });
  }
});

verifies('model.port', 'an abort rejects at once, even if the model ignores the signal', async () => {
  const reason = new Error('enough');
  const pending: Model = { ...modelWithParts(), doStream: () => new Promise(() => {}) };
  const events: string[] = [];
  const silent = modelWithStream(() => new ReadableStream({ cancel: () => void events.push('cancelled') }));
  const busy = modelWithStream(() => new ReadableStream({ pull: (controller) => controller.enqueue({ type: 'raw' }) }));
  for (const model of [pending, silent, busy]) {
    const controller = new AbortController();
    setTimeout(() => controller.abort(reason), 5);
    await expect(replyOf(model, { signal: controller.signal })).rejects.toBe(reason);
  }
  expect(events).toEqual(['cancelled']);
});

verifies('model.port', 'a stream that opens after the abort is cancelled', async () => {
  const controller = new AbortController();
  let onCancel: () => void = () => {};
  const cancelled = new Promise<void>((resolve) => {
    onCancel = resolve;
  });
  let open: () => void = () => {};
  const gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  const late: Model = {
    ...modelWithParts(),
    doStream: async () => {
      await gate;
      return { stream: new ReadableStream<ModelStreamPart>({ cancel: () => onCancel() }) };
    },
  };
  const reply = replyOf(late, { signal: controller.signal });
  controller.abort(new Error('enough'));
  await expect(reply).rejects.toThrow('enough');
  open();
  await expect(cancelled).resolves.toBeUndefined();
});

verifies('model.port', 'a call with an aborted signal does not call the model', async () => {
  const calls: ModelCallOptions[] = [];
  const signal = AbortSignal.abort(new Error('before'));
  await expect(
    replyOf(
      modelWithStream(() => new ReadableStream(), calls),
      { signal },
    ),
  ).rejects.toThrow('before');
  expect(calls).toEqual([]);
});

verifies('model.port', 'an error of a delta subscriber cancels the stream', async () => {
  const events: string[] = [];
  const model = modelWithStream(
    () =>
      new ReadableStream({
        start: (controller) => controller.enqueue(textDelta('x')),
        cancel: () => void events.push('cancelled'),
      }),
  );
  const onDelta = (): never => {
    throw new Error('the subscriber failed');
  };
  await expect(replyOf(model, { onDelta })).rejects.toThrow('the subscriber failed');
  expect(events).toEqual(['cancelled']);
});
