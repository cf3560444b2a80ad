import { expect } from 'vitest';
import { textProvider } from '../../spec/support/host-fixture.js';
import { modelWithParts } from '../../spec/support/test-models.js';
import { verifies } from '../../spec/verifies.js';
import type { ModelProvider } from './model.js';
import { createProviders } from './model-providers.js';

const request = { origin: { directory: undefined, trusted: true }, turnId: 't', replyCount: 0 };

verifies('model.option', 'an id may stand for a provider, a model object or a model of another provider', async () => {
  const object = modelWithParts();
  const opened: unknown[] = [];
  const base: ModelProvider = {
    ...{ id: 'base', defaultModel: 'b-1' },
    open: async (ref) => {
      opened.push(ref);
      return object;
    },
  };
  const languageModel = (modelId: string) => ({ ...object, modelId });
  const models = {
    own: textProvider([], 'own'),
    sdk: { languageModel },
    object,
    fast: 'base:b-2',
    base: { id: 'base' },
  };
  const providers = createProviders(models, new Map([['base', base]]));
  expect([...providers.keys()].sort()).toEqual(['base', 'fast', 'object', 'own', 'sdk']);
  expect([...providers].every(([id, provider]) => provider.id === id)).toBe(true);
  const open = (id: string, model?: string) => {
    const provider = providers.get(id);
    return provider?.open({ id, model: model ?? provider.defaultModel }, request);
  };
  expect(await open('object')).toBe(object);
  expect(await open('sdk', 'x')).toMatchObject({ modelId: 'x' });
  await expect(open('sdk')).rejects.toThrow('name one as "sdk:MODEL"');
  await open('fast');
  await open('base');
  expect(opened).toEqual([
    { id: 'base', model: 'b-2' },
    { id: 'base', model: 'b-1' },
  ]);
  expect(() => createProviders({ x: 7 as never })).toThrow('models.x: must be a provider');
  expect(() => createProviders({ x: 'bas' }, providers)).toThrow('did you mean "base"?');
});
