import { expect } from 'vitest';
import { hostOf, prompt, textProvider } from '../../../spec/support/host-fixture.js';
import { errorOf } from '../../../spec/support/turn-results.js';
import { verifies } from '../../../spec/verifies.js';
import { memoryStore } from '../../adapters/memory/index.js';
import { LoopError } from '../../base/errors.js';
import { ManualClock } from '../../testing/manual-clock.js';
import { defineAgent } from '../define-agent.js';
import type { ModelProvider } from '../model.js';

const opening = (open: () => unknown): ModelProvider => ({
  id: 'bad',
  defaultModel: 'b',
  open: open as ModelProvider['open'],
});
const throwing = (thrown: unknown): ModelProvider =>
  opening(() => {
    throw thrown;
  });

const hostile = new Proxy(
  {},
  {
    get: () => {
      throw new Error('must not be read');
    },
  },
);

const thenable = Object.fromEntries([
  [
    'then',
    () => {
      throw new Error('no');
    },
  ],
]);

/** Backends that cannot be opened, with a description for the test titles. */
const broken: readonly [description: string, backend: ModelProvider][] = [
  ['an open that throws an error', throwing(new Error('no package'))],
  ['an open that throws a LoopError with another code', throwing(new LoopError('DEFINITION_INVALID', 'bad options'))],
  ['an open that throws BACKEND_FAILED', throwing(new LoopError('BACKEND_FAILED', 'no key', { retryable: false }))],
  ['an open that throws a text', throwing('no')],
  ['an open that throws undefined', throwing(undefined)],
  ['an open that throws an unreadable object', throwing(hostile)],
  ['an open that rejects', opening(() => Promise.reject(new Error('no network')))],
  ['an open that rejects with null', opening(() => Promise.reject(null))],
  ['an open that returns undefined', opening(() => undefined)],
  ['an open that returns an empty object', opening(async () => ({}))],
  ['an open that returns an unreadable object', opening(() => hostile)],
  ['an open whose thenable throws', opening(() => thenable)],
];

for (const [description, backend] of broken) {
  const providers = [backend];
  for (const ref of [{ id: 'bad' }, { id: 'bad', model: 'named' }]) {
    const named = 'model' in ref ? ' (explicit model)' : '';

    verifies('policy.backend', `${description} is BACKEND_FAILED and causes a fallback${named}`, async () => {
      const policy = { fallback: [{ id: 'replies' }] };
      const fallback = textProvider(['well', 'well']);
      const host = hostOf(
        [prompt('p', 'hi', { backend: ref, policy }), defineAgent({ id: 'agent', model: ref, policy })],
        { providers: [...providers, fallback] },
      );
      expect(await host.run({ loop: 'p', input: {} })).toMatchObject({ status: 'ok', output: { text: 'well' } });
      const agent = await host.run({ loop: 'agent', input: { prompt: 'hi' } });
      expect(agent).toMatchObject({ status: 'ok', output: { text: 'well' } });
    });

    verifies('policy.backend', `${description} is BACKEND_FAILED without a fallback${named}`, async () => {
      const agent = defineAgent({ id: 'agent', model: ref });
      const host = hostOf([prompt('p', 'hi', { backend: ref }), agent], { providers });
      expect(errorOf(await host.run({ loop: 'p', input: {} }))).toMatchObject({ code: 'BACKEND_FAILED' });
      const result = await host.run({ loop: 'agent', input: { prompt: 'hi' } });
      expect(errorOf(result)).toMatchObject({ code: 'BACKEND_FAILED' });
    });

    verifies('policy.backend', `${description} among the fallbacks is skipped${named}`, async () => {
      const first = { ...throwing(new Error('down')), id: 'first' };
      const policy = { fallback: [ref, { id: 'replies' }] };
      const host = hostOf([prompt('p', 'hi', { backend: { id: 'first' }, policy })], {
        providers: [...providers, first, textProvider(['well'])],
      });
      expect(await host.run({ loop: 'p', input: {} })).toMatchObject({ status: 'ok', output: { text: 'well' } });
    });
  }
}

verifies('policy.backend', 'a turn that began with a backend which is no longer configured falls back', async () => {
  const store = memoryStore();
  const policy = { approval: 'ask', fallback: [{ id: 'replies' }] } as const;
  const definition = prompt('p', 'hi', { backend: { id: 'bad', model: 'b' }, policy });
  const providers = [textProvider(['well'])];
  const first = hostOf([definition], { store, providers: [throwing('no'), ...providers] });
  const { status, turnId } = await first.run({ loop: 'p', input: {} });
  expect(status).toBe('paused');
  const second = hostOf([], { store, providers });
  const [approval] = await second.archive.approvals();
  await second.answer({ id: approval?.id ?? '', approved: true, by: 'ada' });
  expect(await second.resume(turnId)).toMatchObject({ status: 'ok', output: { text: 'well' } });
});

verifies('policy.backend', 'an open that never settles times out and causes a fallback', async () => {
  const clock = new ManualClock(0);
  const hangs = opening(() => new Promise(() => {}));
  const policy = { timeoutMs: 500, fallback: [{ id: 'replies' }] };
  const host = hostOf([prompt('p', 'hi', { backend: { id: 'bad' }, policy })], {
    providers: [hangs, textProvider(['well'])],
    clock,
  });
  const running = host.run({ loop: 'p', input: {} });
  while (clock.nextWakeAt === undefined) await new Promise((resolve) => setImmediate(resolve));
  await clock.advance(500);
  expect(await running).toMatchObject({ status: 'ok', output: { text: 'well' } });
});

verifies('policy.backend', 'the error of a backend that cannot be opened contains no secrets', async () => {
  const providers = [throwing(new Error('cannot log in with api_key=sk-abcdefghijklmnop'))];
  const host = hostOf([prompt('p', 'hi', { backend: { id: 'bad' } })], { providers });
  const error = errorOf(await host.run({ loop: 'p', input: {} }));
  expect(error?.message).toContain('cannot log in');
  expect(error?.message).not.toContain('abcdefgh');
});
