import { expect } from 'vitest';
import { act, PlanFixture } from '../../../spec/support/plan-fixture.js';
import { errorOf, outputOf, pendingOf } from '../../../spec/support/turn-results.js';
import { verifies } from '../../../spec/verifies.js';
import type { PlanStep, WaitStep } from '../../protocol/plan.js';

const wait = (waited: WaitStep['wait'], more: object = {}): PlanStep => ({ type: 'wait', wait: waited, ...more });

for (const [duration, ms] of [
  [1500, 1500],
  ['90s', 90_000],
] as const) {
  verifies('plan.wait', `a wait for ${JSON.stringify(duration)} takes ${ms} ms`, async () => {
    const plan = new PlanFixture({ steps: [wait({ for: duration }), act('literal:after')] });
    const paused = await plan.run();
    expect(pendingOf(paused)).toMatchObject([{ kind: 'timer', until: new Date(1_000_000 + ms).toISOString() }]);
    expect(plan.calls).toEqual([]);
    expect(outputOf(await plan.runToEnd())).toEqual({ value: 'after' });
    expect(plan.clock.now()).toBe(1_000_000 + ms);
  });
}

verifies('plan.wait', 'a wait until a time ends at this time, and at once if it has passed', async () => {
  const until = (time: string) => new PlanFixture({ steps: [wait({ until: time })] });
  const later = until('1970-01-01T01:20:00+01:00');
  await later.runToEnd();
  expect(later.clock.now()).toBe(1_200_000);
  expect((await until('1970-01-01T00:00:01Z').run()).status).toBe('ok');
});

verifies('plan.wait', 'the payload of a signal is the output of its wait', async () => {
  const plan = new PlanFixture({ steps: [wait({ signal: 'go' }, { capture: 'got' }), act('$.got.output.n')] });
  const { turnId } = await plan.run();
  await plan.host.signal({ turnId, name: 'go', payload: { n: 3 } });
  expect(outputOf(await plan.run())).toEqual({ value: 3 });
});

verifies('plan.wait', 'a signal that arrived before its wait is received', async () => {
  const plan = new PlanFixture({ steps: [wait({ signal: 'go' })] });
  await plan.host.run({ loop: 'act', input: {}, sessionId: 's' });
  await plan.host.signal({ sessionId: 's', name: 'go', payload: 'early' });
  expect(outputOf(await plan.run())).toBe('early');
});

verifies('plan.wait', 'a signal that does not arrive in time is TIMEOUT, which on_error can handle', async () => {
  const late = wait({ signal: 'go', timeout: '5s' });
  expect(errorOf(await new PlanFixture({ steps: [late] }).runToEnd())).toMatchObject({ code: 'TIMEOUT' });
  const handled = new PlanFixture({ steps: [{ ...late, on_error: { value: 'late' } }] });
  const paused = await handled.run();
  await handled.clock.advance(5000);
  expect(outputOf(await handled.host.resume(paused.turnId))).toBe('late');
});

verifies('plan.wait', 'a signal in time ends a wait with a timeout', async () => {
  const plan = new PlanFixture({ steps: [wait({ signal: 'go', timeout: '5s' })] });
  const { turnId } = await plan.run();
  await plan.host.signal({ turnId, name: 'go', payload: 'in time' });
  expect(outputOf(await plan.run())).toBe('in time');
});

verifies('plan.wait', 'a payload that does not fit the schema is discarded, and the wait continues', async () => {
  const plan = new PlanFixture({ steps: [wait({ signal: 'go', schema: { type: 'number' } })] });
  const { turnId } = await plan.run();
  await plan.host.signal({ turnId, name: 'go', payload: 'text', id: 'first' });
  expect((await plan.run()).status).toBe('paused');
  await plan.host.signal({ turnId, name: 'go', payload: 4, id: 'second' });
  expect(outputOf(await plan.run())).toBe(4);
});
