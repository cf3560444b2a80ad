import { expect } from 'vitest';
import {
  deferred,
  duplicates,
  type KernelFixture as Kit,
  kernelFixture as kit,
  run,
  ticks,
  unhandled,
  within,
} from '../../spec/support/kernel-probe.js';
import { verifies } from '../../spec/verifies.js';
import type { Session } from '../kernel/session.js';
import type { Effect } from '../protocol/body.js';
import type { RunOutcome } from '../protocol/session.js';
import { timeoutLayer } from './timeout.js';

const MS = 500;

/** Starts a run of one effect under a timeout, as far as it gets by itself. */
async function begin(k: Kit, perform: Effect['perform'], ms = MS): Promise<[Session, Promise<RunOutcome>]> {
  const session = await k.open({ layers: [timeoutLayer(ms, k.clock)] });
  const running = run(session, (scope) => scope.effect(k.effect('slow', 'idempotent', perform)), 't1', 'hold');
  await ticks();
  return [session, running];
}

verifies('policy.timeout', 'an effect that never ends and hears nothing holds the run for ever', async () => {
  const k = kit();
  const late = deferred();
  let heard: AbortSignal | undefined;
  const [session, running] = await begin(k, (_, { signal }) => {
    heard = signal;
    return late.promise;
  });
  await k.clock.advance(MS - 1);
  expect(heard?.aborted).toBe(false);
  await k.clock.advance(1);
  const error = { code: 'TIMEOUT', data: { retryable: true, timeoutMs: MS } };
  expect(await running).toMatchObject({ status: 'error', error });
  expect([heard?.aborted, heard?.reason]).toMatchObject([true, error]);
  late.reject(new Error('too late'));
  await ticks();
  await session.close();
  expect([duplicates(await k.entries()), unhandled]).toEqual([[], []]);
});

verifies('policy.timeout', 'a run holds for ever in a test that would also pass without the layer', async () => {
  const k = kit();
  const late = deferred();
  const running = run(await k.open(), (scope) => scope.effect(k.effect('slow', 'idempotent', () => late.promise)));
  await expect(within(50, running)).rejects.toThrow('HANG');
  late.resolve(null);
  expect((await running).status).toBe('ok');
});

verifies('policy.timeout', 'effects that end in time leave their timers behind', async () => {
  const ends: Effect['perform'][] = [
    () => 'done',
    async () => 'done',
    () => {
      throw new Error('at once');
    },
    () => Promise.reject(new Error('later')),
  ];
  for (const perform of ends) {
    const k = kit();
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
  'a cancel does not reach an effect under a timeout, or a deaf one then holds the session open',
  async () => {
    const k = kit();
    let heard: AbortSignal | undefined;
    const [session, running] = await begin(k, (_, { signal }) => {
      heard = signal;
      return new Promise(() => {});
    });
    await session.cancel('t1', 'enough');
    expect(await running).toMatchObject({ status: 'error', error: { code: 'CANCELLED' } });
    expect(heard?.reason).toMatchObject({ code: 'CANCELLED' });
    const closing = session.close();
    await k.clock.advance(MS);
    await within(1000, closing);
    const ended = (await k.entries()).find(({ type }) => type === 'effect.failed');
    expect(ended?.error?.code).toBe('TIMEOUT');
  },
);

verifies('policy.timeout', 'a replay waits again for an attempt that was recorded as late', async () => {
  const k = kit();
  const [first, running] = await begin(k, () => new Promise(() => {}));
  await k.clock.advance(MS);
  const outcome = await running;
  await first.close();
  const [, again] = await begin(k, () => new Promise(() => {}));
  expect(await within(1000, again)).toEqual(outcome);
  expect(k.performed).toHaveLength(1);
});

verifies('policy.timeout', 'a timeout out of a definition is no time at all, and switches itself off', async () => {
  for (const ms of [0, -1, Number.NaN, Number.POSITIVE_INFINITY, '5' as unknown as number]) {
    const k = kit();
    const [, running] = await begin(k, () => 'done', ms);
    expect(await running).toMatchObject({ status: 'error', error: { code: 'DEFINITION_INVALID' } });
    expect(k.performed).toEqual([]);
  }
});
