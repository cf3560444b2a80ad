import { expect } from 'vitest';
import { composite, hostOf, prompt, textProvider } from '../../spec/support/host-fixture.js';
import { partsOf, wholeOf } from '../../spec/support/scripted-agents.js';
import { errorOf } from '../../spec/support/turn-results.js';
import { verifies } from '../../spec/verifies.js';
import { memoryStore } from '../adapters/memory/index.js';
import type { Model } from '../protocol/model.js';
import { defineLoop } from './define.js';
import { defineAgent } from './define-agent.js';
import type { DefinedLoop } from './defined-loop.js';
import { type ModelOption, type PolicyOption, parseModelText } from './model-ref.js';
import { Registry } from './registry.js';

/** A model object that answers a text, or fails without one. All objects have the same provider and name. */
function modelObject(text?: string): Model {
  const reply = async (): Promise<ReturnType<typeof partsOf>> => {
    if (text === undefined) throw new Error('down');
    return partsOf({ text }, 0);
  };
  return {
    ...{ specificationVersion: 'v3', provider: 'lab', modelId: 'tiny', supportedUrls: {} },
    doGenerate: async () => wholeOf(await reply()),
    doStream: async () => ({ stream: ReadableStream.from(await reply()) }),
  } as unknown as Model;
}

const schemas = { input: true, output: { type: 'object', properties: { text: { type: 'string' } } } } as const;
const promptWith = (model: ModelOption, policy: PolicyOption = {}): DefinedLoop =>
  defineLoop({ id: 'p', ...schemas, prompt: 'Hi', model, policy }) as DefinedLoop;
const agentWith = (model: ModelOption, policy: PolicyOption = {}): DefinedLoop =>
  defineAgent({ id: 'a', input: true, model, policy }) as DefinedLoop;

verifies('model.option', 'a text is split at its first colon', () => {
  expect(parseModelText('anthropic')).toEqual({ id: 'anthropic' });
  expect(parseModelText('lab:qwen3:8b')).toEqual({ id: 'lab', model: 'qwen3:8b' });
  for (const text of ['', ' ', ':x', 'lab:', 'lab: ']) expect(parseModelText(text)).toBeUndefined();
});

for (const [form, make] of [
  ['a prompt', promptWith],
  ['an agent', agentWith],
] as const) {
  verifies('model.option', `${form} accepts a model object, a text and a reference`, async () => {
    const options: readonly ModelOption[] = [
      modelObject('well'),
      'replies',
      'replies:replies-1',
      { id: 'replies', model: 'replies-1' },
    ];
    for (const model of options) {
      const result = await hostOf([], { providers: [textProvider(['well'])] }).run({ loop: make(model), input: 'x' });
      expect(result).toMatchObject({ status: 'ok', output: { text: 'well' } });
    }
    for (const wrong of ['', 'lab:', 7, {}, null])
      expect(() => make(wrong as never)).toThrow(/model must be a model object of the AI SDK, "PROVIDER"/);
    expect(() => make('mock', { fallback: [7 as never] })).toThrow(/policy\.fallback\[0\] must be a model object/);
  });

  verifies('model.option', `each model object of ${form} is used as it was given`, async () => {
    const [first, second, third] = [modelObject(), modelObject(), modelObject('third')];
    const loop = make(first, { fallback: [second, 'lab:tiny', first, third] });
    const refs = [...new Set(loop.definition.policy?.fallback?.map(({ id }) => id))];
    expect(refs).toHaveLength(4);
    const named = { ...textProvider([]), id: 'lab' };
    const result = await hostOf([], { providers: [named] }).run({ loop, input: 'x' });
    expect(result).toMatchObject({ status: 'ok', output: { text: 'third' } });
    expect(named.requests).toHaveLength(1);
  });
}

verifies('model.option', 'a route in code names a model of any form', async () => {
  const routing = [
    { when: { input: { '$.tier': 'gold' } }, model: modelObject('gold') },
    { when: { input: { '$.tier': 'silver' } }, model: 'replies:replies-1' },
  ];
  const loop = promptWith('mock', { routing });
  const host = hostOf([], { providers: [textProvider(['silver'])] });
  for (const tier of ['gold', 'silver'])
    expect(await host.run({ loop, input: { tier } })).toMatchObject({ status: 'ok', output: { text: tier } });
  const wrong = { routing: [{ when: {}, backend: { id: 'mock' } }] as never };
  expect(() => promptWith('mock', wrong)).toThrow('policy.routing[0] must be { when, model } in code');
});

verifies('model.required', 'a prompt without a model is refused, and the options are listed', async () => {
  const { backend: _, ...bare } = prompt('p', 'Hi');
  expect(() => hostOf([bare])).toThrow(/\/backend: is required: a prompt needs a model.*anthropic.*mock/);
  expect(() => defineLoop({ id: 'p', ...schemas, prompt: 'Hi' } as never)).toThrow(/needs a model.*anthropic.*mock/);
  expect(() => defineAgent({ id: 'a' } as never)).toThrow(/needs a model.*anthropic.*mock/);
  const registry = new Registry(new Map(), { defaultModel: { id: 'replies' } });
  expect(registry.add(bare).definition.backend).toEqual({ id: 'replies' });
});

verifies('model.required', 'a turn of an earlier version whose prompt names no model continues with mock', async () => {
  const store = memoryStore();
  const { backend: _, ...bare } = prompt('p', 'Hi', { policy: { approval: 'ask' } });
  const earlier = hostOf([], { store });
  Object.assign(earlier.registry, { options: { areRecorded: true } });
  earlier.registry.add(bare);
  const { status, turnId } = await earlier.run({ loop: 'p', input: {} });
  expect(status).toBe('paused');
  const later = hostOf([], { store });
  const [approval] = await later.archive.approvals();
  await later.answer({ id: approval?.id ?? '', approved: true, by: 'ada' });
  expect(await later.resume(turnId)).toMatchObject({ status: 'ok' });
});

verifies('policy.backend', 'a host refuses a loop in code whose model is not configured', async () => {
  const host = hostOf([], { providers: [textProvider([], 'anthropic')] });
  const reason = '"antropic" is not configured; did you mean "anthropic"? Configured: mock, anthropic';
  const inner = defineAgent({ id: 'boss', model: 'mock', tools: [promptWith('antropic')] });
  for (const loop of [promptWith('antropic:x'), agentWith({ id: 'antropic' }), inner]) {
    await expect(host.run({ loop: loop as DefinedLoop, input: {} })).rejects.toMatchObject({
      ...{ code: 'DEFINITION_INVALID', message: expect.stringContaining(reason) },
      data: { path: expect.stringContaining('backend/id'), reason },
    });
  }
  expect(host.registry.list()).toEqual([]);
  expect(await host.run({ loop: promptWith(modelObject('well')), input: {} })).toMatchObject({ status: 'ok' });
  await expect(host.run({ loop: agentWith('mock', { fallback: ['x'] }), input: {} })).rejects.toThrow(
    '"x" is not configured. Configured: mock, anthropic',
  );
});

verifies('policy.backend', 'a run is refused if something that the loop calls names an unknown model', async () => {
  const unknown = prompt('p', 'Hi', { backend: { id: 'mock:mock-1' } });
  const host = hostOf([unknown, composite('c', [{ loopId: 'p', inputMapping: '$.input' }])]);
  for (const loop of ['p', 'c']) {
    const result = await host.run({ loop, input: {} });
    const error = errorOf(result);
    expect(error).toMatchObject({ code: 'DEFINITION_INVALID', details: { path: '/backend/id' } });
    expect(error?.message).toContain('did you mean the id "mock" with the model "mock-1"?');
    expect(result.trace).toEqual([]);
  }
});
