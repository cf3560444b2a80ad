import { expect } from 'vitest';
import { act, fail, PlanFixture, valuesOf } from '../../../spec/support/plan-fixture.js';
import { errorOf, outputOf, pendingOf } from '../../../spec/support/turn-results.js';
import { verifies } from '../../../spec/verifies.js';
import type { Json } from '../../protocol/json.js';
import type { FanOutStep, PlanStep } from '../../protocol/plan.js';

const fanOut = (fanout: FanOutStep['fanout'], more: object = {}): PlanStep => ({ type: 'fanout', fanout, ...more });
const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** A tool that notes how many of its calls run at the same time. */
class Concurrency {
  max = 0;
  private active = 0;

  readonly act = async (input: Json): Promise<Json> => {
    this.active += 1;
    this.max = Math.max(this.max, this.active);
    // Later items end earlier.
    for (let rounds = 10 - Number((input as { readonly value: number }).value); rounds > 0; rounds--) await tick();
    this.active -= 1;
    return input;
  };
}

for (const [limit, expected] of [
  [1, 1],
  [3, 3],
  [undefined, 8],
] as const) {
  verifies('plan.fanout', `with the limit ${limit ?? 'of the default'}, ${expected} items run at a time`, async () => {
    const concurrency = new Concurrency();
    const items = Array.from({ length: 10 }, (_, index) => index);
    const step = fanOut({ items: '$.input.items', steps: [act('$.item')], ...(limit !== undefined && { limit }) });
    const plan = new PlanFixture({ steps: [step] }, { act: concurrency.act });
    const result = await plan.run({ items });
    expect(concurrency.max).toBe(expected);
    expect(outputOf(result)).toEqual(items.map((value) => ({ value })));
  });
}

verifies('plan.fanout', 'each of the given branches runs, and the results have their order', async () => {
  const branches = ['a', 'b', 'c'].map((name) => ({ name, steps: [act(`literal:${name}`)] }));
  const plan = new PlanFixture({ steps: [fanOut({ branches }, { capture: 'all' }), act('$.all.output[*].value')] });
  expect(outputOf(await plan.run())).toEqual({ value: ['a', 'b', 'c'] });
});

verifies('plan.fanout', 'branches see earlier captures, and their own ones are not visible elsewhere', async () => {
  const branch = { steps: [act('$.before.output.value', { capture: 'inside' })] };
  const plan = new PlanFixture({
    steps: [act('literal:x', { capture: 'before' }), fanOut({ branches: [branch] }), act('optional:$.inside.output')],
  });
  await plan.run();
  expect(valuesOf(plan)).toEqual(['x', 'x', undefined]);
});

verifies('plan.fanout', 'an empty list has an empty result', async () => {
  const plan = new PlanFixture({ steps: [fanOut({ items: '$.input.items', steps: [act('$.item')] })] });
  expect(outputOf(await plan.run({ items: [] }))).toEqual([]);
});

const one = { steps: [act('literal:a')] };
const other = { steps: [act('literal:b')] };
const bad = { steps: [fail()] };

verifies(
  'plan.fanout',
  'all branches must succeed by default, and the error names the first that did not',
  async () => {
    const plan = new PlanFixture({ steps: [fanOut({ branches: [one, bad, other] }, { name: 'three' })] });
    expect(errorOf(await plan.run())).toMatchObject({
      code: 'TOOL_FAILED',
      message: expect.stringContaining('2 of 3 branches succeeded, 3 are needed'),
    });
    expect(plan.calls).toHaveLength(2);
  },
);

verifies('plan.fanout', 'any needs one branch, and the output of a failed one is null', async () => {
  const some = new PlanFixture({ steps: [fanOut({ branches: [bad, one], join: 'any' })] });
  const none = new PlanFixture({ steps: [fanOut({ branches: [bad, bad], join: 'any' })] });
  expect(outputOf(await some.run())).toEqual([null, { value: 'a' }]);
  expect(errorOf(await none.run())?.code).toBe('TOOL_FAILED');
});

verifies('plan.fanout', 'a quorum needs that many branches', async () => {
  const enough = new PlanFixture({ steps: [fanOut({ branches: [bad, one, other], join: { quorum: 2 } })] });
  const tooFew = new PlanFixture({ steps: [fanOut({ branches: [bad, bad, one], join: { quorum: 2 } })] });
  expect((await enough.run()).status).toBe('ok');
  expect(errorOf(await tooFew.run())?.message).toContain('1 of 3 branches succeeded, 2 are needed');
});

verifies('plan.fanout', 'a limit that a branch reaches ends the plan, whatever the join says', async () => {
  const repeating = { steps: [{ type: 'repeat', repeat: { steps: [act('literal:a')], until: 'input.n > 1' } }] };
  const plan = new PlanFixture({ steps: [fanOut({ branches: [one, repeating as never], join: 'any' })] });
  expect(await plan.run({ n: 1 })).toMatchObject({ status: 'stopped' });
});

const gated = (
  gate: object,
  values: readonly unknown[],
): Promise<readonly [PlanFixture, Awaited<ReturnType<PlanFixture['run']>>]> => {
  const steps = [fanOut({ items: '$.input.items', steps: [act('$.item')], gates: [{ path: '$.value', ...gate }] })];
  const plan = new PlanFixture({ steps: [...steps, act('literal:after')] });
  return plan.run({ items: values as Json }).then((result) => [plan, result] as const);
};

for (const [promise, gate, passing, closed] of [
  ['a threshold passes if the average reaches it', { threshold: 3 }, [2, 4], [2, 3]],
  ['a conflict gate passes if all values are equal', { conflict: true }, ['x', 'x'], ['x', 'y']],
] as const) {
  verifies('plan.fanout', `${promise}; otherwise the plan pauses for an approval`, async () => {
    const [, passed] = await gated(gate, passing);
    expect(passed.status).toBe('ok');
    const [plan, paused] = await gated(gate, closed);
    expect(paused.status).toBe('paused');
    expect(pendingOf(paused)).toMatchObject([{ kind: 'approval' }]);
    expect(valuesOf(plan)).toEqual(closed);
    expect(outputOf(await plan.answer(paused, true))).toEqual({ value: 'after' });
  });

  verifies('plan.fanout', `${promise}; the plan fails if a person denies`, async () => {
    const [plan, paused] = await gated(gate, closed);
    expect(errorOf(await plan.answer(paused, false))).toMatchObject({ code: 'APPROVAL_DENIED' });
    expect(valuesOf(plan)).toEqual(closed);
  });
}
