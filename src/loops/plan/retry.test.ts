import { expect } from 'vitest';
import { act, fail, PlanFixture, planDefinition, valuesOf } from '../../../spec/support/plan-fixture.js';
import { errorOf, outputOf, pendingOf } from '../../../spec/support/turn-results.js';
import { verifies } from '../../../spec/verifies.js';
import { LoopError } from '../../base/errors.js';
import type { Json } from '../../protocol/json.js';
import type { PlanRetry, PlanStep } from '../../protocol/plan.js';

/** A tool that fails in its first `times` calls. */
const failingTimes =
  (times: number, retryable = true) =>
  (input: Json, callCount: number): Json => {
    if (callCount <= times) throw new LoopError('TOOL_FAILED', `failure ${callCount}`, { retryable });
    return input;
  };

const retried = (retry: PlanRetry, times = 99, more: object = {}): PlanFixture =>
  new PlanFixture({ steps: [act('literal:a', { retry, ...more })] }, { act: failingTimes(times) });

const delaysOf = async (plan: PlanFixture): Promise<readonly unknown[]> =>
  (await plan.recorded('rondo.retry')).map((value) => (value as { readonly delayMs: number }).delayMs);

verifies('plan.retry', 'three attempts are three calls, also by default', async () => {
  const given = retried({ strategy: 'immediate', max_attempts: 3 });
  const byDefault = retried({ strategy: 'immediate' });
  expect(errorOf(await given.runToEnd())?.message).toContain('failure 3');
  await byDefault.runToEnd();
  expect([given.calls.length, byDefault.calls.length]).toEqual([3, 3]);
});

verifies('plan.retry', 'an attempt that succeeds is the last one', async () => {
  const plan = retried({ strategy: 'immediate', max_attempts: 5 }, 1);
  expect(outputOf(await plan.runToEnd())).toEqual({ value: 'a' });
  expect(plan.calls).toHaveLength(2);
});

verifies('plan.retry', 'an error that is not retryable is not repeated', async () => {
  const steps = [act('literal:a', { retry: { strategy: 'immediate' } })];
  const plan = new PlanFixture({ steps }, { act: failingTimes(9, false) });
  await plan.runToEnd();
  expect(plan.calls).toHaveLength(1);
});

verifies('plan.retry', 'without a strategy, or with none, a step is attempted once', async () => {
  const none = retried({ strategy: 'none', max_attempts: 3 });
  const without = new PlanFixture({ steps: [act('literal:a')] }, { act: failingTimes(9) });
  await none.runToEnd();
  await without.runToEnd();
  expect([none.calls.length, without.calls.length]).toEqual([1, 1]);
});

verifies('plan.retry', 'fixed delays are equal, immediate ones are 0', async () => {
  const fixed = retried({ strategy: 'fixed', delay_ms: 70 });
  const immediate = retried({ strategy: 'immediate', delay_ms: 70 });
  await fixed.runToEnd();
  await immediate.runToEnd();
  expect([await delaysOf(fixed), await delaysOf(immediate)]).toEqual([
    [70, 70],
    [0, 0],
  ]);
  expect(fixed.clock.now() - immediate.clock.now()).toBe(140);
});

verifies('plan.retry', 'exponential delays double, have a random part and a maximum', async () => {
  const retry: PlanRetry = { strategy: 'exponential', delay_ms: 100, max_delay_ms: 300, max_attempts: 5 };
  const plan = retried(retry);
  await plan.runToEnd();
  const delays = (await delaysOf(plan)) as readonly number[];
  expect(delays).toHaveLength(4);
  for (const [index, bound] of [100, 200, 300, 300].entries()) {
    expect(delays[index]).toBeLessThanOrEqual(bound);
    expect(delays[index]).toBeGreaterThanOrEqual(bound / 2);
  }
});

verifies('plan.retry', 'the delays of one seed are equal, and a resumed turn keeps the recorded ones', async () => {
  const retry: PlanRetry = { strategy: 'exponential', delay_ms: 100_000 };
  const [one, same] = [retried(retry), retried(retry)];
  await one.runToEnd();
  await same.runToEnd();
  expect(await delaysOf(same)).toEqual(await delaysOf(one));
  const first = retried(retry);
  const paused = await first.run();
  const [recorded] = await delaysOf(first);
  const { store, clock } = first;
  const steps = [act('literal:a', { retry })];
  const resumed = new PlanFixture({ steps }, { store, clock, seed: 99, act: failingTimes(9) });
  await resumed.runToEnd();
  expect(await delaysOf(resumed)).toHaveLength(2);
  expect((await delaysOf(resumed))[0]).toBe(recorded);
  expect(pendingOf(paused)[0]?.until).toBe(new Date(1_000_000 + (recorded as number)).toISOString());
});

verifies('plan.retry', 'a scope gives its retries to the steps inside that have none', async () => {
  const scope: PlanStep = {
    type: 'scope',
    retry: { strategy: 'immediate', max_attempts: 2 },
    scope: { steps: [fail({ on_error: 'skip' }), act('literal:a', { on_error: 'skip' })] },
  };
  const plan = new PlanFixture(
    { steps: [scope, act('literal:b', { on_error: 'skip' })], retry: { strategy: 'immediate', max_attempts: 4 } },
    { act: failingTimes(99) },
  );
  await plan.runToEnd();
  expect(valuesOf(plan)).toEqual(['a', 'a', 'b', 'b', 'b', 'b']);
});

verifies('plan.retry', 'a fallback replaces the result after the last attempt', async () => {
  const value = retried({ strategy: 'immediate', fallback: { value: 5 } });
  expect(outputOf(await value.runToEnd())).toBe(5);
  expect(value.calls).toHaveLength(3);
  const loop = retried({ strategy: 'none', fallback: { loop: 'act', input: { other: 'literal:x' } } }, 1);
  expect(outputOf(await loop.runToEnd())).toEqual({ other: 'x' });
});

verifies('plan.retry', 'a skipped step leaves its error as the result', async () => {
  const steps = [act('literal:a', { retry: { strategy: 'none', fallback: 'skip' } }), act('$.result.error.code')];
  const plan = new PlanFixture({ steps }, { act: failingTimes(1) });
  expect(outputOf(await plan.runToEnd())).toEqual({ value: 'TOOL_FAILED' });
});

verifies('plan.retry', 'a fallback that fails is a failure of the step', async () => {
  const plan = retried({ strategy: 'none', fallback: { loop: 'fail' } }, 99, { on_error: { value: 'handled' } });
  expect(outputOf(await plan.runToEnd())).toBe('handled');
});

verifies('plan.retry', 'escalate asks a person, and an approval starts another series of attempts', async () => {
  const plan = retried({ strategy: 'immediate', max_attempts: 2, fallback: 'escalate' }, 3);
  const paused = await plan.runToEnd();
  expect(pendingOf(paused)).toMatchObject([{ kind: 'approval' }]);
  expect(outputOf(await plan.answer(paused, true))).toEqual({ value: 'a' });
  expect(plan.calls).toHaveLength(4);
});

verifies('plan.retry', 'escalate fails with the error of the last attempt if a person denies', async () => {
  const plan = retried({ strategy: 'none', fallback: 'escalate' });
  const result = await plan.answer(await plan.runToEnd(), false);
  expect(errorOf(result)).toMatchObject({ code: 'TOOL_FAILED' });
  expect(plan.calls).toHaveLength(1);
});

verifies('plan.retry', 'an attempt that takes longer than its time limit is TIMEOUT, and is repeated', async () => {
  const slow = planDefinition('slow', { steps: [{ type: 'wait', wait: { for: 5000 } }] });
  const step: PlanStep = { loop: 'slow', timeout_ms: 100, retry: { strategy: 'immediate', max_attempts: 2 } };
  const plan = new PlanFixture({ steps: [step] }, { definitions: [slow] });
  expect(errorOf(await plan.runToEnd())).toMatchObject({ code: 'TIMEOUT' });
  expect(plan.clock.now()).toBe(1_000_200);
});
