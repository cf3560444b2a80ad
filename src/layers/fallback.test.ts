import { expect } from 'vitest';
import { codeOf, type KernelFixture as Kit, kernelFixture as kit, run, tick } from '../../spec/support/kernel-probe.js';
import { verifies } from '../../spec/verifies.js';
import { LoopError } from '../base/errors.js';
import type { Scope } from '../protocol/body.js';
import type { Json } from '../protocol/json.js';
import type { BackendRef } from '../protocol/loop.js';
import type { RunOutcome } from '../protocol/session.js';
import { crashingStore } from '../testing/crashing-store.js';
import { fallbackLayer } from './fallback.js';

const REQUEST = { backendId: 'a', model: 'a-1', options: { region: 'x' }, promptLength: 2, prompt: 'hi', maxTokens: 5 };
const REFS: BackendRef[] = [
  { id: 'b', model: 'b-1' },
  { id: 'c', model: 'c-1', options: { fast: true } },
];

type Failures = { readonly [backend: string]: LoopError };

const failing = (code: string, data?: Json): LoopError => new LoopError(code, `${code} by design`, data);

interface World {
  readonly k: Kit;
  readonly asked: Json[];
  body(scope: Scope): Promise<unknown>;
}

/** A model effect that fails at the backends named, and answers at the others. */
function world(failures: Failures, k = kit()): World {
  const asked: Json[] = [];
  const perform = (input: Json): Json => {
    asked.push(input);
    const { backendId } = input as { backendId: string };
    const failure = failures[backendId];
    if (failure !== undefined) throw failure;
    return { text: `from ${backendId}` };
  };
  return {
    k,
    asked,
    body: (scope) => scope.effect({ ...k.effect('a', 'idempotent', perform, REQUEST), kind: 'model' }),
  };
}

async function outcomeOf({ k, body }: World, refs = REFS): Promise<RunOutcome> {
  return run(await k.open({ layers: [fallbackLayer(refs)] }), body);
}

verifies('policy.fallback', 'one backend is down, and so is everything', async () => {
  const w = world({ a: failing('BACKEND_FAILED'), b: failing('TIMEOUT') });
  expect(await outcomeOf(w)).toEqual({ status: 'ok', output: { text: 'from c' } });
  const { options: _, ...rest } = REQUEST;
  expect(w.asked).toEqual([
    REQUEST,
    { ...rest, backendId: 'b', model: 'b-1' },
    { ...rest, backendId: 'c', model: 'c-1', options: { fast: true } },
  ]);
  const entries = await w.k.entries();
  expect(entries.filter(({ type }) => type === 'rondo.backend.fallback').map(({ value }) => value)).toEqual([
    { from: 'a', to: 'b', code: 'BACKEND_FAILED' },
    { from: 'b', to: 'c', code: 'TIMEOUT' },
  ]);
  expect(entries.filter(({ type }) => type === 'effect.requested').map(({ name }) => name)).toEqual(['a', 'b', 'c']);
  const twin = world({ a: failing('BACKEND_FAILED') });
  expect((await run(await twin.k.open(), twin.body)).status).toBe('error');
});

verifies(
  'policy.fallback',
  'a refusal, a cancel or an unusable reply is not passed on to the next backend',
  async () => {
    for (const code of ['CONTENT_REFUSED', 'CANCELLED', 'REPLY_INVALID', 'BUDGET_EXHAUSTED', 'EXECUTION_FAILED']) {
      const w = world({ a: failing(code) });
      expect(await outcomeOf(w)).toMatchObject({ status: 'error', error: { code } });
      expect(w.asked).toHaveLength(1);
    }
  },
);

verifies('policy.fallback', 'all backends failed, and nobody can tell which and how', async () => {
  const last = failing('BACKEND_FAILED', { status: 503, retryable: true });
  const outcome = await outcomeOf(world({ a: failing('TIMEOUT'), b: failing('BACKEND_FAILED', 'text'), c: last }));
  const attempts = [
    { backend: 'a', code: 'TIMEOUT' },
    { backend: 'b', code: 'BACKEND_FAILED' },
    { backend: 'c', code: 'BACKEND_FAILED' },
  ];
  const data = { status: 503, retryable: true, attempts };
  expect(outcome).toEqual({ status: 'error', error: { code: last.code, message: last.message, data } });
});

verifies('policy.fallback', 'a backend without a model is asked for nothing in particular', async () => {
  const w = world({ a: failing('TIMEOUT') });
  expect(await outcomeOf(w, [{ id: 'b' }])).toMatchObject({ status: 'error', error: { code: 'DEFINITION_INVALID' } });
  expect(w.asked).toHaveLength(1);
});

verifies(
  'policy.fallback',
  'after a crash the backend that was down is asked again, or another one answers',
  async () => {
    for (let append = 1; append < 10; append++) {
      for (const when of ['before', 'after'] as const) {
        const w = world({ a: failing('BACKEND_FAILED'), b: failing('TIMEOUT') });
        const store = crashingStore(w.k.store, { appendNumber: append, when });
        await codeOf(w.k.open({ store, layers: [fallbackLayer(REFS)] }).then((session) => run(session, w.body)));
        await tick();
        const ends = async (): Promise<number> =>
          (await w.k.entries()).filter(({ type }) => /^effect\.(returned|failed)$/.test(type)).length;
        const [before, performed] = [await ends(), w.asked.length];
        expect(await outcomeOf(w)).toEqual({ status: 'ok', output: { text: 'from c' } });
        expect(w.asked.length - performed, `${when} append ${append}`).toBe((await ends()) - before);
      }
    }
  },
);
