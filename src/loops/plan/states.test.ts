import { expect } from 'vitest';
import { textProvider } from '../../../spec/support/host-fixture.js';
import { PlanFixture } from '../../../spec/support/plan-fixture.js';
import { errorOf, outputOf } from '../../../spec/support/turn-results.js';
import { verifies } from '../../../spec/verifies.js';
import type { Json } from '../../protocol/json.js';
import type { PlanState } from '../../protocol/plan.js';

/** Returns the arguments of the actions that ran, in order. */
const actionsOf = ({ calls }: PlanFixture): readonly string[] =>
  calls.map((input) => (input as { readonly args: readonly string[] }).args.join(' '));

const machine = (...states: readonly unknown[]): { readonly states: readonly PlanState[] } => ({
  states: states as readonly PlanState[],
});

verifies('plan.states', 'a state runs on_entry, its action, a transition and on_exit, in this order', async () => {
  const plan = new PlanFixture(
    machine(
      { name: 'a', on_entry: 'view in', action: 'view a', transitions: [{ next: 'b' }], on_exit: 'view out' },
      { name: 'b', on_entry: 'view in-b', action: 'view b', on_exit: 'view never' },
    ),
  );
  const result = await plan.run();
  expect(actionsOf(plan)).toEqual(['in', 'a', 'out', 'in-b', 'b']);
  expect(await plan.recorded('rondo.plan.chose')).toEqual([{ step: 'a', choice: 'b' }]);
  expect(result.status).toBe('ok');
});

verifies('plan.states', 'a state that follows itself runs neither on_exit nor on_entry in between', async () => {
  const act = (_input: Json, callCount: number): Json => ({ again: callCount < 4 });
  const transitions = [{ condition: 'result.output.again', next: 'a' }, { next: 'done' }];
  const state = { name: 'a', on_entry: 'view in', action: 'view a', transitions, on_exit: 'view out' };
  const plan = new PlanFixture(machine(state), { act });
  await plan.run();
  expect(actionsOf(plan)).toEqual(['in', 'a', 'a', 'a', 'out']);
});

verifies('plan.states', 'a plan starts at initial_state, or else at its first state', async () => {
  const states = machine({ name: 'a', action: 'view a' }, { name: 'b', action: 'view b' });
  const first = new PlanFixture(states);
  const other = new PlanFixture({ ...states, initial_state: 'b' });
  await first.run();
  await other.run();
  expect([actionsOf(first), actionsOf(other)]).toEqual([['a'], ['b']]);
});

verifies('plan.states', 'the states done and failed exist without a definition', async () => {
  const to = (next: string) => new PlanFixture(machine({ name: 'a', action: 'view a', transitions: [{ next }] }));
  expect(outputOf(await to('done').run())).toMatchObject({ args: ['a'] });
  expect(errorOf(await to('failed').run())).toMatchObject({ code: 'EXECUTION_FAILED', details: { state: 'failed' } });
});

verifies('plan.states', 'a defined state done replaces the implicit one', async () => {
  const plan = new PlanFixture(
    machine({ name: 'a', transitions: [{ next: 'done' }] }, { name: 'done', action: 'view end' }),
  );
  await plan.run();
  expect(actionsOf(plan)).toEqual(['end']);
});

verifies('plan.states', 'a state without transitions and a terminal state end the plan', async () => {
  const without = new PlanFixture(machine({ name: 'a', action: 'view a' }, { name: 'b', action: 'view b' }));
  const terminal = new PlanFixture(
    machine(
      { name: 'a', action: 'view a', terminal: true, transitions: [{ next: 'b' }] },
      { name: 'b', action: 'view b' },
    ),
  );
  await without.run();
  await terminal.run();
  expect([actionsOf(without), actionsOf(terminal)]).toEqual([['a'], ['a']]);
});

verifies('plan.states', 'the first transition that holds is taken', async () => {
  const transitions = [
    { condition: 'input.n > 2', next: 'failed' },
    { condition: 'input.n > 1', next: 'b' },
    { condition: 'input.n > 0', next: 'failed' },
  ];
  const plan = new PlanFixture(machine({ name: 'a', transitions }, { name: 'b', action: 'view b' }));
  expect((await plan.run({ n: 2 })).status).toBe('ok');
  expect(actionsOf(plan)).toEqual(['b']);
});

verifies('plan.states', 'a state without a transition that holds fails the plan', async () => {
  const plan = new PlanFixture(machine({ name: 'a', transitions: [{ condition: 'input.n > 1', next: 'done' }] }));
  expect(errorOf(await plan.run({ n: 1 }))).toMatchObject({ code: 'EXECUTION_FAILED', details: { state: 'a' } });
});

verifies('plan.states', 'a failed action needs a transition with a condition that holds', async () => {
  const failing = { name: 'a', loop: 'fail', input: { message: 'literal:no luck' } };
  const handled = new PlanFixture(
    machine(
      { ...failing, transitions: [{ next: 'done' }, { condition: 'has_errors', next: 'b' }] },
      { name: 'b', action: 'view b' },
    ),
  );
  const unhandled = new PlanFixture(machine({ ...failing, transitions: [{ next: 'done' }] }));
  await handled.run();
  expect(actionsOf(handled)).toEqual(['b']);
  expect(errorOf(await unhandled.run())).toMatchObject({ code: 'TOOL_FAILED' });
});

verifies('plan.states', 'parallel states run once each without their transitions, and then the join', async () => {
  const plan = new PlanFixture(
    machine(
      { name: 'both', parallel: ['x', 'y'], join: 'end' },
      { name: 'x', action: 'view x', transitions: [{ next: 'failed' }] },
      { name: 'y', action: 'view y', transitions: [{ next: 'failed' }] },
      { name: 'end', loop: 'act', input: { of: '$.result.output' } },
    ),
  );
  const result = await plan.run();
  expect(outputOf(result)).toMatchObject({ of: { x: { args: ['x'] }, y: { args: ['y'] } } });
  expect(plan.calls).toHaveLength(3);
});

verifies('plan.states', 'a captured result of a state is read by later states', async () => {
  const plan = new PlanFixture(
    machine(
      { name: 'a', action: 'view first', capture: 'seen', transitions: [{ next: 'b' }] },
      { name: 'b', loop: 'act', input: { of: '$.seen.output.args[0]' } },
    ),
  );
  expect(outputOf(await plan.run())).toEqual({ of: 'first' });
});

const decision = (reply: string, transitions?: readonly { readonly next: string }[]) => {
  const provider = textProvider([reply]);
  const decide = { name: 'decide', plugin: 'llm-decide', prompt: 'Where to?', ...(transitions && { transitions }) };
  const states = machine(decide, { name: 'a', action: 'view a' }, { name: 'b', action: 'view b' });
  const plan = new PlanFixture({ ...states, backend: { id: 'replies' } }, { providers: [provider] });
  return { plan, provider };
};

for (const [reply, actions, status] of [
  ['a', ['a'], 'ok'],
  [' b\n', ['b'], 'ok'],
  ['done', [], 'ok'],
  ['failed', [], 'error'],
] as const) {
  verifies('plan.states', `a model that decides can name any state, such as ${JSON.stringify(reply)}`, async () => {
    const { plan, provider } = decision(reply);
    expect((await plan.run()).status).toBe(status);
    expect(actionsOf(plan)).toEqual(actions);
    for (const name of ['decide', 'a', 'b', 'done', 'failed']) expect(provider.requests[0]?.prompt).toContain(name);
  });
}

for (const reply of ['I choose a', 'A', 'a b', 'toString']) {
  verifies('plan.states', `the reply ${JSON.stringify(reply)} of a model that decides is an error`, async () => {
    const { plan } = decision(reply);
    expect(errorOf(await plan.run())).toMatchObject({ code: 'EXECUTION_FAILED', details: { state: 'decide' } });
    expect(plan.calls).toEqual([]);
  });
}

verifies('plan.states', 'with transitions, a model that decides can name only their states', async () => {
  const { plan } = decision('b', [{ next: 'a' }]);
  expect(errorOf(await plan.run())).toMatchObject({ code: 'EXECUTION_FAILED', details: { reply: 'b' } });
});

verifies('plan.bounds', 'a machine stops after 50 transitions, with this reason', async () => {
  const plan = new PlanFixture(
    machine({ name: 'a', transitions: [{ next: 'b' }] }, { name: 'b', transitions: [{ next: 'a' }] }),
  );
  expect(await plan.run()).toMatchObject({ status: 'stopped', reason: expect.stringContaining('transition') });
  expect(await plan.recorded('rondo.plan.chose')).toHaveLength(51);
});

verifies('plan.bounds', 'a plan stops when it would call a model a 21st time', async () => {
  const provider = textProvider(Array.from({ length: 30 }, () => 'a reply'));
  const repeat = { steps: [{ prompt: 'Number {iteration}' }], max: 30 };
  const plan = new PlanFixture(
    { steps: [{ type: 'repeat', repeat }], backend: { id: 'replies' } },
    { providers: [provider] },
  );
  expect(await plan.run()).toMatchObject({ status: 'stopped', reason: expect.stringContaining('turn') });
  expect(provider.requests).toHaveLength(20);
});
