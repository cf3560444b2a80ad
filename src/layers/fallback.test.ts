import { expect } from 'vitest';
import { codeOf, type KernelFixture, kernelFixture, run, tick } from '../../spec/support/kernel-probe.js';
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

interface ModelFixture {
  readonly k: KernelFixture;
  readonly requests: Json[];
  body(scope: Scope): Promise<unknown>;
}

/** A model effect that fails on the given backends and succeeds on all others. */
function modelFixture(failures: Failures, k = kernelFixture()): ModelFixture {
  const requests: Json[] = [];
  const perform = (input: Json): Json => {
    requests.push(input);
    const { backendId } = input as { backendId: string };
    const failure = failures[backendId];
    if (failure !== undefined) throw failure;
    return { text: `from ${backendId}` };
  };
  return {
    k,
    requests,
    body: (scope) => scope.effect({ ...k.effect('a', 'idempotent', perform, REQUEST), kind: 'model' }),
  };
}

async function outcomeOf({ k, body }: ModelFixture, refs = REFS): Promise<RunOutcome> {
  return run(await k.open({ layers: [fallbackLayer(refs)] }), body);
}

verifies(
  'policy.fallback',
  'the next backend answers when one fails or times out, and each switch is journaled',
  async () => {
    const fixture = modelFixture({ a: failing('BACKEND_FAILED'), b: failing('TIMEOUT') });
    expect(await outcomeOf(fixture)).toEqual({ status: 'ok', output: { text: 'from c' } });
    const { options: _, ...rest } = REQUEST;
    expect(fixture.requests).toEqual([
      REQUEST,
      { ...rest, backendId: 'b', model: 'b-1' },
      { ...rest, backendId: 'c', model: 'c-1', options: { fast: true } },
    ]);
    const entries = await fixture.k.entries();
    expect(entries.filter(({ type }) => type === 'rondo.backend.fallback').map(({ value }) => value)).toEqual([
      { from: 'a', to: 'b', code: 'BACKEND_FAILED' },
      { from: 'b', to: 'c', code: 'TIMEOUT' },
    ]);
    expect(entries.filter(({ type }) => type === 'effect.requested').map(({ name }) => name)).toEqual(['a', 'b', 'c']);
    const twin = modelFixture({ a: failing('BACKEND_FAILED') });
    expect((await run(await twin.k.open(), twin.body)).status).toBe('error');
  },
);

verifies('policy.fallback', 'a refusal, a cancellation or an invalid reply causes no fallback', async () => {
  for (const code of ['CONTENT_REFUSED', 'CANCELLED', 'REPLY_INVALID', 'BUDGET_EXHAUSTED', 'EXECUTION_FAILED']) {
    const fixture = modelFixture({ a: failing(code) });
    expect(await outcomeOf(fixture)).toMatchObject({ status: 'error', error: { code } });
    expect(fixture.requests).toHaveLength(1);
  }
});

verifies('policy.fallback', 'the error of the last backend lists all failed attempts', async () => {
  const last = failing('BACKEND_FAILED', { status: 503, retryable: true });
  const outcome = await outcomeOf(
    modelFixture({ a: failing('TIMEOUT'), b: failing('BACKEND_FAILED', 'text'), c: last }),
  );
  const attempts = [
    { backend: 'a', code: 'TIMEOUT' },
    { backend: 'b', code: 'BACKEND_FAILED' },
    { backend: 'c', code: 'BACKEND_FAILED' },
  ];
  const data = { status: 503, retryable: true, attempts };
  expect(outcome).toMatchObject({ status: 'error', error: { code: last.code, message: last.message, data } });
});

verifies('policy.fallback', 'a fallback without a model is DEFINITION_INVALID and is not called', async () => {
  const fixture = modelFixture({ a: failing('TIMEOUT') });
  expect(await outcomeOf(fixture, [{ id: 'b' }])).toMatchObject({
    status: 'error',
    error: { code: 'DEFINITION_INVALID' },
  });
  expect(fixture.requests).toHaveLength(1);
});

verifies(
  'policy.fallback',
  'after a crash at any append, no backend is called again whose result is recorded',
  async () => {
    for (let append = 1; append < 10; append++) {
      for (const when of ['before', 'after'] as const) {
        const fixture = modelFixture({ a: failing('BACKEND_FAILED'), b: failing('TIMEOUT') });
        const store = crashingStore(fixture.k.store, { appendNumber: append, when });
        await codeOf(
          fixture.k.open({ store, layers: [fallbackLayer(REFS)] }).then((session) => run(session, fixture.body)),
        );
        await tick();
        const countEnded = async (): Promise<number> =>
          (await fixture.k.entries()).filter(({ type }) => /^effect\.(returned|failed)$/.test(type)).length;
        const [before, performed] = [await countEnded(), fixture.requests.length];
        expect(await outcomeOf(fixture)).toEqual({ status: 'ok', output: { text: 'from c' } });
        expect(fixture.requests.length - performed, `${when} append ${append}`).toBe((await countEnded()) - before);
      }
    }
  },
);
