import fc from 'fast-check';
import { expect } from 'vitest';
import { type KernelFixture, kernelFixture, run, ticks } from '../../spec/support/kernel-probe.js';
import { verifies } from '../../spec/verifies.js';
import { LoopError, NonRetryableError } from '../base/errors.js';
import type { Scope } from '../protocol/body.js';
import type { Safety } from '../protocol/entry.js';
import type { Json } from '../protocol/json.js';
import type { RetrySpec } from '../protocol/loop.js';
import type { RunOutcome } from '../protocol/session.js';
import { retryDelayMs, retryLayer } from './retry.js';

/** Performs an effect that fails with the given errors, one per attempt, and then succeeds. */
async function attempt(
  k: KernelFixture,
  spec: RetrySpec,
  failures: readonly (readonly [code: string, data?: Json])[],
  safety: Safety = 'keyed',
): Promise<RunOutcome> {
  const session = await k.open({ layers: [retryLayer(spec)] });
  const perform = (): string => {
    const failure = failures[k.performed.length - 1];
    if (failure === undefined) return 'done';
    throw new LoopError(failure[0], 'by design', failure[1]);
  };
  for (;;) {
    const outcome = await run(session, (scope) => scope.effect(k.effect('a', safety, perform)));
    if (outcome.status !== 'paused') return outcome;
    await k.clock.advanceTo(Math.max(...outcome.pending.map((step) => (step.kind === 'timer' ? step.until : 0))));
  }
}

const BUSY = ['BACKEND_FAILED', { retryable: true }] as const;
const retriesOf = async (k: KernelFixture): Promise<unknown[]> =>
  (await k.entries()).filter(({ type }) => type === 'rondo.retry').map(({ value }) => value);

verifies(
  'policy.retry',
  'a transient failure is retried with the same idempotency key and growing delays',
  async () => {
    const k = kernelFixture();
    const spec = { attempts: 3, jitter: 0 };
    expect(await attempt(k, spec, [BUSY, ['TIMEOUT']])).toEqual({ status: 'ok', output: 'done' });
    expect(new Set(k.keys).size).toBe(1);
    expect(await retriesOf(k)).toEqual([
      { attempt: 1, code: 'BACKEND_FAILED', delayMs: 200 },
      { attempt: 2, code: 'TIMEOUT', delayMs: 400 },
    ]);
    expect(k.clock.now()).toBe(1600);
    const twin = await attempt(kernelFixture(), { attempts: 1 }, [BUSY]);
    expect(twin.status).toBe('error');
  },
);

verifies(
  'policy.retry',
  'an effect is attempted at most as often as the policy allows, and the last error is reported',
  async () => {
    const k = kernelFixture();
    const outcome = await attempt(k, { attempts: 3, backoffMs: 0 }, [BUSY, BUSY, BUSY, BUSY]);
    expect(outcome).toMatchObject({ status: 'error', error: { code: 'BACKEND_FAILED', message: 'by design' } });
    expect(k.performed).toHaveLength(3);
  },
);

verifies('policy.retry', 'an effect with the safety once is never retried', async () => {
  const k = kernelFixture();
  expect((await attempt(k, { attempts: 5 }, [BUSY], 'once')).status).toBe('error');
  expect(k.performed).toHaveLength(1);
});

verifies('policy.retry', 'a failure that repeating cannot change is not retried', async () => {
  const permanent: readonly (readonly [string, Json?])[] = [
    ['BACKEND_FAILED', { retryable: false }],
    ['OUT_OF_STOCK', { retryable: false }],
    ['INPUT_VALIDATION_FAILED'],
    ['OUTPUT_VALIDATION_FAILED', { retryable: true }],
    ['APPROVAL_DENIED'],
    ['TOOL_NOT_ADMITTED'],
    ['BUDGET_EXHAUSTED'],
    ['CANCELLED'],
    ['CONTENT_REFUSED', null],
    ['DEFINITION_INVALID'],
    ['EFFECT_IN_DOUBT'],
  ];
  for (const failure of permanent) {
    const k = kernelFixture();
    expect((await attempt(k, { attempts: 5 }, [failure])).status).toBe('error');
    expect(k.performed, JSON.stringify(failure)).toHaveLength(1);
  }
});

verifies(
  'policy.retry',
  'any other error is retried, also an error without data and one with a code of its own',
  async () => {
    const failures: readonly (readonly [string, Json?])[] = [
      ['EXECUTION_FAILED'],
      ['TOOL_FAILED', { retryable: 'true' }],
      ['TOOL_FAILED', 'retryable'],
      ['BACKEND_FAILED', ['retryable']],
      ['TIMEOUT'],
      ['OUT_OF_STOCK'],
      ['constructor'],
    ];
    for (const failure of failures) {
      const k = kernelFixture();
      expect((await attempt(k, { attempts: 2 }, [failure])).status, JSON.stringify(failure)).toBe('ok');
      expect(k.performed, JSON.stringify(failure)).toHaveLength(2);
    }
  },
);

verifies('policy.retry', 'a NonRetryableError is not retried, in this process or after a restart', async () => {
  const k = kernelFixture();
  const layers = [retryLayer({ attempts: 3, jitter: 0 })];
  const effect = k.effect('charge', 'idempotent', () => {
    throw new NonRetryableError('The card was declined.', { reason: 'expired' });
  });
  const body = (scope: Scope): Promise<unknown> => scope.effect(effect);
  const failed = { code: 'EXECUTION_FAILED', data: { reason: 'expired', retryable: false } };
  expect(await run(await k.open({ layers }), body)).toMatchObject({ status: 'error', error: failed });
  expect(await run(await k.open({ layers }), body)).toMatchObject({ status: 'error', error: failed });
  expect(k.performed).toEqual(['charge']);
});

verifies('policy.retry', 'the delay that a backend requests is respected up to a maximum', async () => {
  const delayFor = async (retryAfterMs: Json, maxBackoffMs?: number): Promise<unknown> => {
    const k = kernelFixture();
    const spec = { attempts: 2, jitter: 0, ...(maxBackoffMs === undefined ? {} : { maxBackoffMs }) };
    await attempt(k, spec, [['BACKEND_FAILED', { retryable: true, retryAfterMs }]]);
    return ((await retriesOf(k))[0] as { delayMs: number }).delayMs;
  };
  expect(await delayFor(3000.5)).toBe(3001);
  expect(await delayFor(50)).toBe(200);
  expect(await delayFor(1e300)).toBe(60_000);
  expect(await delayFor(5000, 1000)).toBe(1000);
  for (const invalid of [-5, '3000', null, [3000]]) expect(await delayFor(invalid)).toBe(200);
});

verifies('policy.retry', 'a cancelled turn ends during its backoff', async () => {
  const k = kernelFixture();
  const session = await k.open({ layers: [retryLayer({ attempts: 3, backoffMs: 10_000 })] });
  const busy = (): never => {
    throw new LoopError('BACKEND_FAILED', 'busy', { retryable: true });
  };
  const running = run(session, (scope) => scope.effect(k.effect('a', 'idempotent', busy)), 't1', 'hold');
  await ticks();
  expect(k.clock.nextWakeAt).toBeGreaterThan(k.clock.now());
  await session.cancel('t1', 'enough');
  expect(await running).toMatchObject({ status: 'error', error: { code: 'CANCELLED' } });
  expect([k.performed.length, k.clock.nextWakeAt]).toEqual([1, undefined]);
});

verifies('policy.retry', 'a turn that resumes in another process keeps its recorded delay', async () => {
  const k = kernelFixture();
  const layers = [retryLayer({ attempts: 3, backoffMs: 10_000 })];
  const perform = (): string => {
    if (k.performed.length > 1) return 'done';
    throw new LoopError('BACKEND_FAILED', 'busy', { retryable: true });
  };
  const body = (scope: Parameters<Parameters<typeof run>[1]>[0]) => scope.effect(k.effect('a', 'idempotent', perform));
  const first = await run(await k.open({ layers }), body);
  const second = await run(await k.open({ layers }), body);
  expect(first.status).toBe('paused');
  expect(second).toEqual(first);
  const until = first.status === 'paused' && first.pending[0]?.kind === 'timer' ? first.pending[0].until : 0;
  await k.clock.advanceTo(until);
  expect(await run(await k.open({ layers }), body)).toEqual({ status: 'ok', output: 'done' });
  expect([k.performed.length, (await retriesOf(k)).length]).toEqual([2, 1]);
});

verifies('policy.retry', 'an invalid number in a retry policy is DEFINITION_INVALID', async () => {
  const invalid: RetrySpec[] = [
    { attempts: 0 },
    { attempts: Number.NaN },
    { attempts: '3' as unknown as number },
    { attempts: 2, backoffMs: -1 },
    { attempts: 2, factor: 0.5 },
    { attempts: 2, maxBackoffMs: Number.POSITIVE_INFINITY },
    { attempts: 2, jitter: 2 },
  ];
  for (const spec of invalid) {
    const outcome = await attempt(kernelFixture(), spec, [BUSY]);
    expect(outcome, JSON.stringify(spec)).toMatchObject({ status: 'error', error: { code: 'DEFINITION_INVALID' } });
  }
});

verifies('policy.retry', 'a delay is an integer within the bounds of the policy', () => {
  const spec = fc.record(
    {
      attempts: fc.constant(2),
      backoffMs: fc.nat(86_400_000),
      factor: fc.double({ min: 1, max: 1e9, noNaN: true }),
      maxBackoffMs: fc.nat(86_400_000),
      jitter: fc.double({ min: 0, max: 1, noNaN: true }),
    },
    { requiredKeys: ['attempts'] },
  );
  const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
  const retryAfterMs = fc.option(fc.oneof(fc.double(), fc.integer()), { nil: undefined });
  fc.assert(
    fc.property(spec, fc.integer({ min: 1, max: 5000 }), random, retryAfterMs, (s, attempt, drawn, requested) => {
      const delay = retryDelayMs(s, attempt, drawn, requested);
      const maxBackoff = s.maxBackoffMs ?? 10_000;
      const base = Math.min((s.backoffMs ?? 200) * (s.factor ?? 2) ** (attempt - 1) || 0, maxBackoff);
      const minDelay = Math.floor(base * (1 - (s.jitter ?? 0.5)));
      expect(Number.isSafeInteger(delay)).toBe(true);
      expect(delay).toBeGreaterThanOrEqual(minDelay);
      expect(delay).toBeLessThanOrEqual(
        Math.max(Math.ceil(base), s.maxBackoffMs ?? (requested === undefined ? 0 : 60_000)),
      );
      if (requested !== undefined && requested > 0)
        expect(delay).toBeGreaterThanOrEqual(Math.min(requested, s.maxBackoffMs ?? 60_000));
    }),
    { numRuns: 2000 },
  );
});
