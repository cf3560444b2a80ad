import { expect } from 'vitest';
import {
  deferred,
  duplicates,
  type KernelFixture,
  kernelFixture,
  run,
  ticks,
  unhandled,
  within,
} from '../../spec/support/kernel-probe.js';
import { verifies } from '../../spec/verifies.js';
import type { Session } from '../kernel/session.js';
import type { Effect, EffectContext, OutputMeter } from '../protocol/body.js';
import type { RunOutcome } from '../protocol/session.js';
import { deadlineLayer, timeoutLayer } from './timeout.js';

const MS = 500;

/** Starts a turn with one effect under a timeout and waits until it makes no further progress. */
async function begin(k: KernelFixture, perform: Effect['perform'], ms = MS): Promise<[Session, Promise<RunOutcome>]> {
  const session = await k.open({ layers: [timeoutLayer(ms, k.clock)] });
  const running = run(session, (scope) => scope.effect(k.effect('slow', 'idempotent', perform)), 't1', 'hold');
  await ticks();
  return [session, running];
}

verifies('policy.timeout', 'an effect that never ends fails with TIMEOUT, even if it ignores its signal', async () => {
  const k = kernelFixture();
  const work = deferred();
  let received: AbortSignal | undefined;
  const [session, running] = await begin(k, (_, { signal }) => {
    received = signal;
    return work.promise;
  });
  await k.clock.advance(MS - 1);
  expect(received?.aborted).toBe(false);
  await k.clock.advance(1);
  const error = { code: 'TIMEOUT', data: { retryable: true, timeoutMs: MS } };
  expect(await running).toMatchObject({ status: 'error', error });
  expect([received?.aborted, received?.reason]).toMatchObject([true, error]);
  work.reject(new Error('too late'));
  await ticks();
  await session.close();
  expect([duplicates(await k.entries()), unhandled]).toEqual([[], []]);
});

verifies('policy.timeout', 'without the layer, an effect that never ends keeps its turn waiting', async () => {
  const k = kernelFixture();
  const work = deferred();
  const running = run(await k.open(), (scope) => scope.effect(k.effect('slow', 'idempotent', () => work.promise)));
  await expect(within(50, running)).rejects.toThrow('HANG');
  work.resolve(null);
  expect((await running).status).toBe('ok');
});

verifies('policy.timeout', 'an effect that ends in time leaves no timer behind', async () => {
  const performs: Effect['perform'][] = [
    () => 'done',
    async () => 'done',
    () => {
      throw new Error('at once');
    },
    () => Promise.reject(new Error('later')),
  ];
  for (const perform of performs) {
    const k = kernelFixture();
    const [, running] = await begin(k, perform);
    const outcome = await running;
    expect(outcome.status === 'error' ? outcome.error.code : outcome.status).toMatch(/^(ok|EXECUTION_FAILED)$/);
    expect(k.clock.nextWakeAt).toBeUndefined();
  }
  await ticks();
  expect(unhandled).toEqual([]);
});

verifies(
  'policy.timeout',
  'a cancellation aborts an effect under a timeout, and an effect that ignores it still times out',
  async () => {
    const k = kernelFixture();
    let received: AbortSignal | undefined;
    const [session, running] = await begin(k, (_, { signal }) => {
      received = signal;
      return new Promise(() => {});
    });
    await session.cancel('t1', 'enough');
    expect(await running).toMatchObject({ status: 'error', error: { code: 'CANCELLED' } });
    expect(received?.reason).toMatchObject({ code: 'CANCELLED' });
    const closing = session.close();
    await k.clock.advance(MS);
    await within(1000, closing);
    const failed = (await k.entries()).find(({ type }) => type === 'effect.failed');
    expect(failed?.error?.code).toBe('TIMEOUT');
  },
);

verifies('policy.timeout', 'a replay does not wait again for an attempt that timed out', async () => {
  const k = kernelFixture();
  const [first, running] = await begin(k, () => new Promise(() => {}));
  await k.clock.advance(MS);
  const outcome = await running;
  await first.close();
  const [, again] = await begin(k, () => new Promise(() => {}));
  expect(await within(1000, again)).toEqual(outcome);
  expect(k.performed).toHaveLength(1);
});

verifies('policy.timeout', 'an invalid timeout is DEFINITION_INVALID and never means unlimited', async () => {
  for (const ms of [0, -1, Number.NaN, Number.POSITIVE_INFINITY, '5' as unknown as number]) {
    const k = kernelFixture();
    const [, running] = await begin(k, () => 'done', ms);
    expect(await running).toMatchObject({ status: 'error', error: { code: 'DEFINITION_INVALID' } });
    expect(k.performed).toEqual([]);
  }
});

verifies('grant.confined', 'an effect under a timeout stays confined, and its output stays limited', async () => {
  const { clock, effect } = kernelFixture();
  const confinement = { roots: ['/data'] };
  const outputMeter = { maxTokens: 5 } as OutputMeter;
  const context = { idempotencyKey: 'k', signal: new AbortController().signal, confinement, outputMeter };
  for (const layer of [timeoutLayer(MS, clock), deadlineLayer(MS, clock)]) {
    let received: EffectContext | undefined;
    const perform: Effect['perform'] = (_, given) => {
      received = given;
      return null;
    };
    await layer(effect('act', 'once', perform), undefined as never, async (timed) => timed?.perform(null, context));
    expect(received, 'a tool with a timeout left its directories').toMatchObject({ idempotencyKey: 'k', confinement });
    expect(received?.outputMeter, 'a model with a timeout has no limit of its output').toBe(outputMeter);
  }
});
