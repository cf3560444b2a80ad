import { expect } from 'vitest';
import { act, fail, PlanFixture, planDefinition, valuesOf } from '../../../spec/support/plan-fixture.js';
import { errorOf, outputOf } from '../../../spec/support/turn-results.js';
import { verifies } from '../../../spec/verifies.js';
import type { PlanStep } from '../../protocol/plan.js';

const sequence = (...steps: readonly PlanStep[]): PlanStep => ({ type: 'sequence', sequence: { steps } });

verifies('plan.driver', 'the output of a plan is that of its last step', async () => {
  const plan = new PlanFixture({ steps: [act('literal:a'), act('literal:b')] });
  expect(outputOf(await plan.run())).toEqual({ value: 'b' });
});

verifies('plan.driver', 'a step without an input mapping gets the input of the plan', async () => {
  const plan = new PlanFixture({ steps: [{ loop: 'act' }] });
  await plan.run({ n: 1 });
  expect(plan.calls).toEqual([{ n: 1 }]);
});

verifies('plan.driver', 'a captured result is read by its name, and the last one as result', async () => {
  const steps = [act('literal:a', { capture: 'first' }), act('literal:b'), act('$.first.output.value')];
  const plan = new PlanFixture({ steps: [...steps, act('$.result.output.value')] });
  await plan.run();
  expect(valuesOf(plan)).toEqual(['a', 'b', 'a', 'a']);
});

verifies('plan.driver', 'a step runs only if its condition holds', async () => {
  const steps = [act('literal:a', { condition: 'input.n > 1' }), act('literal:b', { condition: 'input.n > 2' })];
  const plan = new PlanFixture({ steps });
  await plan.run({ n: 2 });
  expect(valuesOf(plan)).toEqual(['a']);
});

verifies('plan.driver', 'the iterations of a repetition are numbered from 0', async () => {
  const plan = new PlanFixture({ steps: [{ type: 'repeat', repeat: { steps: [act('$.iteration')], max: 3 } }] });
  await plan.run();
  expect(valuesOf(plan)).toEqual([0, 1, 2]);
});

verifies('plan.driver', 'a repetition ends when until holds after its steps', async () => {
  const repeat = { steps: [act('$.iteration')], until: 'result.output.value == 1', max: 9 };
  const plan = new PlanFixture({ steps: [{ type: 'repeat', repeat }] });
  await plan.run();
  expect(valuesOf(plan)).toEqual([0, 1]);
});

verifies('plan.driver', 'a repetition ends when while does not hold before its steps', async () => {
  const never = new PlanFixture({
    steps: [{ type: 'repeat', repeat: { steps: [act('$.iteration')], while: 'input.n > 9' } }],
  });
  await never.run({ n: 1 });
  expect(valuesOf(never)).toEqual([]);
  const twice = new PlanFixture({
    steps: [{ type: 'repeat', repeat: { steps: [act('$.iteration')], while: 'iteration < 2' } }],
  });
  await twice.run();
  expect(valuesOf(twice)).toEqual([0, 1]);
});

verifies('plan.driver', 'a repetition leaves its number to the enclosing one', async () => {
  const inner: PlanStep = { type: 'repeat', repeat: { steps: [act('$.iteration')], max: 2 } };
  const outer: PlanStep = { type: 'repeat', repeat: { steps: [inner, act('$.iteration')], max: 2 } };
  const plan = new PlanFixture({ steps: [outer] });
  await plan.run();
  expect(valuesOf(plan)).toEqual([0, 1, 0, 0, 1, 1]);
});

verifies(
  'plan.driver',
  'the first case of a branch whose condition holds runs, or else the steps of else',
  async () => {
    const cases = [1, 2].map((n) => ({ condition: `input.n >= ${3 - n}`, steps: [act(`literal:case ${n}`)] }));
    const branch: PlanStep = { type: 'branch', branch: { cases, else: [act('literal:else')] } };
    const chosen = async (n: number): Promise<unknown> => {
      const plan = new PlanFixture({ steps: [branch] });
      await plan.run({ n });
      return valuesOf(plan);
    };
    expect([await chosen(2), await chosen(1), await chosen(0)]).toEqual([['case 1'], ['case 2'], ['else']]);
  },
);

verifies('plan.driver', 'the steps of each run for one item after another, with its value and its index', async () => {
  const each = { items: '$.input.items', steps: [act('$.item'), act('$.index')] };
  const plan = new PlanFixture({ steps: [{ type: 'each', each }] });
  const result = await plan.run({ items: ['x', 'y'] });
  expect(valuesOf(plan)).toEqual(['x', 0, 'y', 1]);
  expect(outputOf(result)).toEqual({ value: 1 });
});

verifies('plan.driver', 'each collects the outputs of its items in their order', async () => {
  const each = { items: '$.input.items', steps: [act('$.item')], collect: true };
  const plan = new PlanFixture({ steps: [{ type: 'each', each, capture: 'all' }, act('$.all.output[*].value')] });
  expect(outputOf(await plan.run({ items: ['x', 'y', 'z'] }))).toEqual({ value: ['x', 'y', 'z'] });
});

verifies('plan.driver', 'a value that is no list is MAPPING_FAILED for each', async () => {
  const plan = new PlanFixture({ steps: [{ type: 'each', each: { items: '$.input.n', steps: [act('$.item')] } }] });
  expect(errorOf(await plan.run({ n: 1 }))?.code).toBe('MAPPING_FAILED');
});

verifies('plan.driver', 'captures inside of a sequence stay visible, those inside of a scope do not', async () => {
  const inner = act('literal:a', { capture: 'x' });
  const reading = act('optional:$.x.output.value');
  const visible = new PlanFixture({ steps: [sequence(inner), reading] });
  const hidden = new PlanFixture({ steps: [{ type: 'scope', scope: { steps: [inner] } }, reading] });
  await visible.run();
  await hidden.run();
  expect(valuesOf(visible)).toEqual(['a', 'a']);
  expect(valuesOf(hidden)).toEqual(['a', undefined]);
});

verifies('plan.driver', 'captures of a scope that failed are not visible after it', async () => {
  const steps = [act('literal:a', { capture: 'x' }), fail()];
  const plan = new PlanFixture({
    steps: [{ type: 'scope', scope: { steps }, on_error: 'skip' }, act('optional:$.x.output.value')],
  });
  await plan.run();
  expect(valuesOf(plan)).toEqual(['a', undefined]);
});

verifies('plan.driver', 'only steps and nested workflows are calls', async () => {
  const inner = planDefinition('inner', { steps: [act('literal:inner')] });
  const block: PlanStep = {
    type: 'scope',
    scope: {
      steps: [
        { type: 'repeat', repeat: { steps: [act('literal:a')], max: 2 } },
        { type: 'branch', branch: { cases: [{ condition: 'result.ok', steps: [act('literal:b')] }] } },
        { type: 'fanout', fanout: { items: '$.input.items', steps: [act('$.item')] } },
        { type: 'wait', wait: { for: 0 } },
        { workflow: 'inner' },
      ],
    },
  };
  const plan = new PlanFixture({ steps: [sequence(block)] }, { definitions: [inner] });
  const { trace } = await plan.runToEnd({ items: [1, 2] });
  const started = trace.flatMap(({ type, payload }) =>
    type === 'child.started' ? [(payload as { readonly loopId: string }).loopId] : [],
  );
  expect(started).toEqual(['act', 'act', 'act', 'act', 'act', 'inner', 'act']);
});

verifies('plan.driver', 'a loop that is not registered is reported before the first step', async () => {
  const plan = new PlanFixture({ steps: [act('literal:a'), { loop: 'gone' }] });
  expect(errorOf(await plan.run())).toMatchObject({ code: 'LOOP_NOT_FOUND' });
  expect(plan.calls).toEqual([]);
});

verifies('plan.errors', 'a failed step fails the plan, and the error names the step', async () => {
  const plan = new PlanFixture({ steps: [fail({ name: 'second' }), act('literal:b')] });
  expect(errorOf(await plan.run())).toMatchObject({
    code: 'TOOL_FAILED',
    message: 'Step "second" (fail) failed: no luck',
    details: { failedStep: { step: 'second', loopId: 'fail' } },
  });
  expect(plan.calls).toEqual([]);
});

verifies(
  'plan.errors',
  'the error of a failed step has the key of its call, also after retries and a timeout',
  async () => {
    const failedStepOf = async (steps: readonly PlanStep[]): Promise<object> => {
      const result = await new PlanFixture({ steps }).run();
      const { failedStep } = (errorOf(result)?.details ?? {}) as { failedStep?: { callId?: string; loopId: string } };
      const { callId, loopId } = failedStep ?? {};
      const call = result.trace.find((event) => event.callId === callId && event.type === 'call.started');
      if (callId !== undefined) expect(call, 'the key is that of no call').toBeDefined();
      return { loopId, callId: callId?.slice(result.turnId.length) };
    };
    expect(await failedStepOf([act('literal:a'), fail()])).toEqual({ loopId: 'fail', callId: '/1' });
    const retry = { strategy: 'immediate', max_attempts: 2, fallback: { loop: 'fail' } } as const;
    const retried = await failedStepOf([{ loop: 'fail', retry, timeout_ms: 1000 }]);
    expect(retried).toEqual({ loopId: 'fail', callId: expect.stringMatching(/^\/\d+$/) });
    const timed = await failedStepOf([{ loop: 'fail', timeout_ms: 1000 }]);
    expect(timed).toEqual({ loopId: 'fail', callId: '/0/0/0' });
    expect(await failedStepOf([{ loop: 'act', input: '$.input.gone' }])).toEqual({ loopId: 'act', callId: undefined });
  },
);

verifies('plan.errors', 'after a skipped failure the next step reads it as the result', async () => {
  const plan = new PlanFixture({ steps: [fail({ on_error: 'skip' }), act('$.result.error.code')] });
  expect(outputOf(await plan.run())).toEqual({ value: 'TOOL_FAILED' });
});

verifies('plan.errors', 'a failed step is replaced by a value', async () => {
  const plan = new PlanFixture({ steps: [fail({ on_error: { value: 7 }, capture: 'x' }), act('$.x.output')] });
  expect(outputOf(await plan.run())).toEqual({ value: 7 });
});

verifies('plan.errors', 'a failed step continues at the step that goto names', async () => {
  const steps = [fail({ on_error: { goto: 'last' } }), act('literal:passed over'), act('literal:b', { name: 'last' })];
  const plan = new PlanFixture({ steps });
  await plan.run();
  expect(valuesOf(plan)).toEqual(['b']);
});

verifies('plan.errors', 'a failure inside of a block is handled by the on_error of the block', async () => {
  const each = { items: '$.input.items', steps: [sequence(fail())] };
  const plan = new PlanFixture({
    steps: [{ type: 'each', each, on_error: { value: 'replaced' } }, act('$.result.output'), act('optional:$.item')],
  });
  await plan.run({ items: [1, 2] });
  expect(valuesOf(plan)).toEqual(['replaced', undefined]);
});

verifies('plan.errors', 'a failed block continues at the step that its goto names', async () => {
  const steps = [sequence(fail()), act('literal:passed over'), act('literal:b', { name: 'last' })];
  const plan = new PlanFixture({ steps: [{ ...steps[0], on_error: { goto: 'last' } } as PlanStep, ...steps.slice(1)] });
  await plan.run();
  expect(valuesOf(plan)).toEqual(['b']);
});

verifies('plan.bounds', 'a plan stops after 50 transitions, with this reason', async () => {
  const plan = new PlanFixture({
    steps: [{ type: 'repeat', repeat: { steps: [act('$.iteration')], until: 'input.n > 9' } }],
  });
  const result = await plan.run({ n: 1 });
  expect(result).toMatchObject({ status: 'stopped', reason: expect.stringContaining('transition') });
  expect(plan.calls).toHaveLength(51);
});

verifies('plan.bounds', 'a repetition with a maximum is bounded by its maximum alone', async () => {
  const plan = new PlanFixture({ steps: [{ type: 'repeat', repeat: { steps: [act('$.iteration')], max: 200 } }] });
  expect(await plan.run()).toMatchObject({ status: 'ok' });
  expect(plan.calls).toHaveLength(200);
});

verifies('plan.bounds', 'goto counts as a transition, so a plan that always fails stops', async () => {
  const plan = new PlanFixture({ steps: [act('literal:a', { name: 'again' }), fail({ on_error: { goto: 'again' } })] });
  const result = await plan.run();
  expect(result).toMatchObject({ status: 'stopped', reason: expect.stringContaining('transition') });
  expect(plan.calls).toHaveLength(51);
});

verifies('plan.bounds', 'a plan stops when the same action would run a sixth time in a row', async () => {
  const plan = new PlanFixture({ steps: [{ type: 'repeat', repeat: { steps: [{ action: 'view x' }], max: 10 } }] });
  const result = await plan.run();
  expect(result).toMatchObject({ status: 'stopped', reason: expect.stringContaining('stall') });
  expect(plan.calls).toHaveLength(5);
});

verifies('plan.bounds', 'a different action in between starts the count of identical ones again', async () => {
  const steps = [{ action: 'view x' }, { action: 'view {iteration}' }];
  const plan = new PlanFixture({ steps: [{ type: 'repeat', repeat: { steps, max: 10 } }] });
  expect(await plan.run()).toMatchObject({ status: 'ok' });
});

verifies('plan.bounds', 'reaching a limit ends the plan whatever on_error says', async () => {
  const repeat = { steps: [{ action: 'view x', on_error: 'skip' as const }], max: 10 };
  const plan = new PlanFixture({ steps: [{ type: 'repeat', repeat, on_error: 'skip' }] });
  expect(await plan.run()).toMatchObject({ status: 'stopped' });
});

verifies('plan.choice', 'a choice is recorded with its step', async () => {
  const plan = new PlanFixture({ steps: [act('literal:a', { name: 'maybe', condition: 'input.n > 1' })] });
  await plan.run({ n: 1 });
  expect(await plan.recorded('rondo.plan.chose')).toEqual([{ step: 'maybe', choice: 'skip' }]);
});

for (const [condition, promise] of [
  ['input.n < 1', 'says otherwise'],
  ['input.gone.n > 1', 'fails'],
] as const) {
  verifies('plan.choice', `a replay follows the recorded choice, even if the condition now ${promise}`, async () => {
    const stepIf = (text: string): PlanStep => act('literal:a', { condition: text });
    const before = new PlanFixture({ steps: [stepIf('input.n > 1')] });
    const { turnId } = await before.run({ n: 2 });
    const { store, clock } = before;
    const now = new PlanFixture({ steps: [stepIf(condition)] }, { store, clock });
    expect(await now.host.replay(turnId, 'now')).toMatchObject({ matches: true });
  });
}

verifies('plan.words', 'a verb may have the name of a key of steps', async () => {
  const verbs = { action: 'act', prompt: 'act', capture: 'act' };
  const plan = new PlanFixture({ steps: [{ action: 'action x' }, { action: 'prompt {capture}' }], verbs });
  await plan.run({ capture: 'y' });
  expect(plan.calls).toEqual([
    { verb: 'action', args: ['x'], raw: 'action x' },
    { verb: 'prompt', args: ['y'], raw: 'prompt {capture}' },
  ]);
});
