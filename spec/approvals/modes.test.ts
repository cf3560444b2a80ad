import { expect } from 'vitest';
import { z } from 'zod';
import { defineLoop } from '../../src/loops/define.js';
import { defineAgent } from '../../src/loops/define-agent.js';
import type { DefinedLoop } from '../../src/loops/defined-loop.js';
import { loopFromTool } from '../../src/loops/tool-loop.js';
import type { Scope } from '../../src/protocol/body.js';
import type { AgentSpec, ApprovalPolicy } from '../../src/protocol/loop.js';
import { type LoopsTool, loopsTool } from '../../src/protocol/tool.js';
import { onlyPending, RecordedActions } from '../support/approval-fixture.js';
import { composite, hostOf } from '../support/host-fixture.js';
import { agentDef, replyProvider } from '../support/scripted-agents.js';
import { verifies } from '../verifies.js';

const GO = { prompt: 'go' };
const calling = (name: string) => [{ calls: [[name, GO] as const] }, { text: 'done' }];

/** A tool that requests an approval unless the mode is "unsupervised", and records the modes. */
function payTool(actions: RecordedActions, modes: (string | undefined)[] = []): LoopsTool<unknown, unknown> {
  return loopsTool({
    name: 'pay',
    inputSchema: z.object({}).loose(),
    requestApproval: (_, { mode }) => {
      modes.push(mode);
      return mode === 'unsupervised' ? null : `Pay in mode ${mode ?? 'none'}?`;
    },
    execute: (input) => actions.act(input as never, undefined as never),
  }) as LoopsTool<unknown, unknown>;
}

type Rules = Partial<Pick<AgentSpec, 'mode' | 'approvals'>>;

interface Level {
  readonly definitions: readonly unknown[];
  /** The tool of the outer agent that leads to `pay`. */
  readonly tool: string;
  /** True if the outer agent hands over to it. */
  readonly handoff?: boolean;
}

const helper = (rules: Rules, tools = ['pay']) => agentDef('helper', { backend: { id: 'help' }, tools, ...rules });
const code = (inner: DefinedLoop, id = 'code'): DefinedLoop =>
  defineLoop({
    id,
    input: true,
    output: true,
    run: (input: unknown, scope: Scope) => scope.call(inner, input) as never,
  } as never) as DefinedLoop;

/** The ways from an outer agent to a tool of an inner one. */
const LEVELS: { readonly [way: string]: (rules: Rules, pay: DefinedLoop) => Level } = {
  'a sub-agent': (rules) => ({ definitions: [helper(rules)], tool: 'helper' }),
  'a handoff': (rules) => ({ definitions: [helper(rules)], tool: 'helper', handoff: true }),
  'a composite around a sub-agent': (rules) => ({
    definitions: [helper(rules), composite('steps', [{ loopId: 'helper', inputMapping: '$.input' }])],
    tool: 'steps',
  }),
  'a sub-agent around a composite': (rules) => ({
    definitions: [helper(rules, ['pay-steps']), composite('pay-steps', [{ loopId: 'pay', inputMapping: '$.input' }])],
    tool: 'helper',
  }),
  'a sub-agent around code': (rules, pay) => ({
    definitions: [helper(rules, ['pay-code', 'pay']), code(pay, 'pay-code')],
    tool: 'helper',
  }),
};

/** Runs `pay` below two agents and approves every request. Returns the last description and all modes. */
async function nested(way: string, outer: Rules, inner: Rules, policy?: ApprovalPolicy, policyMode?: string) {
  const actions = new RecordedActions();
  const modes: (string | undefined)[] = [];
  const made = payTool(actions, modes);
  const pay = loopFromTool(policy === undefined ? made : made.withApproval(policy, policyMode));
  const level = LEVELS[way]?.(inner, pay);
  if (level === undefined) throw new Error(`Unknown way: ${way}.`);
  const access = level.handoff === true ? { tools: [], handoffs: [level.tool] } : { tools: [level.tool] };
  const innerTool = way.endsWith('composite') ? 'pay-steps' : way.endsWith('code') ? 'pay-code' : 'pay';
  const providers = [replyProvider(calling(level.tool)), replyProvider(calling(innerTool), 'help')];
  const host = hostOf([pay, ...level.definitions, agentDef('boss', { ...access, ...outer })], { providers });
  const { status, turnId } = await host.run({ loop: 'boss', input: GO });
  const before = actions.count;
  let description: string | undefined;
  let end = status;
  while (end === 'paused') {
    const approval = await onlyPending(host);
    description = approval.description;
    await host.answer({ id: approval.id, approved: true, by: 'ada' });
    end = (await host.resume(turnId)).status;
  }
  expect([end, await host.replay(turnId)]).toMatchObject(['ok', { matches: true }]);
  return { status, before, after: actions.count, modes: [...new Set(modes)], description };
}

verifies('approval.modes', "a sub-agent's mode never waives an approval that an enclosing agent requires", async () => {
  for (const way of Object.keys(LEVELS)) {
    for (const approvals of [{ pay: 'ask' }, { '*': 'ask' }] as const) {
      const result = await nested(way, { approvals }, { mode: 'unsupervised' }, 'always_allow');
      expect(result, way).toMatchObject({ status: 'paused', before: 0, after: 1, modes: [undefined] });
      expect(result.description, way).toBe('Pay in mode none?');
    }
  }
});

verifies('approval.modes', 'each agent that requires an approval applies its own mode', async () => {
  for (const way of Object.keys(LEVELS)) {
    const outer = { mode: 'day', approvals: { pay: 'ask' } } as const;
    const inner = { mode: 'unsupervised', approvals: { pay: 'ask' } } as const;
    const result = await nested(way, outer, inner, 'always_allow');
    expect(result, way).toMatchObject({ status: 'paused', before: 0, after: 1, description: 'Pay in mode day?' });
    expect([...result.modes].sort(), way).toEqual(['day', 'unsupervised']);
    // Reversed: the inner agent requires an approval that the outer one waives.
    const reversed = await nested(way, inner, outer, 'always_allow');
    expect(reversed, way).toMatchObject({ status: 'paused', before: 0, description: 'Pay in mode day?' });
    const both = await nested(way, inner, inner, 'always_allow');
    expect(both, way).toMatchObject({ status: 'ok', before: 1, modes: ['unsupervised'] });
  }
});

verifies('approval.modes', 'an agent without a mode does not inherit the mode of another', async () => {
  const unsupervised = { mode: 'unsupervised' };
  const asking = { approvals: { pay: 'ask' } } as const;
  for (const [outer, inner] of [
    [unsupervised, asking],
    [asking, unsupervised],
  ] as const)
    expect(await nested('a sub-agent', outer, inner, 'always_allow')).toMatchObject({ status: 'paused', before: 0 });
});

verifies(
  'approval.modes',
  "a tool's own approval is waived only if the mode of every enclosing agent waives it",
  async () => {
    const run = (outer: string | undefined, inner: string | undefined) =>
      nested(
        'a sub-agent',
        outer === undefined ? {} : { mode: outer },
        inner === undefined ? {} : { mode: inner },
        'ask',
      );
    expect(await run('day', 'unsupervised')).toMatchObject({ status: 'paused', before: 0 });
    expect(await run('unsupervised', 'day')).toMatchObject({ status: 'paused', before: 0 });
    expect(await run(undefined, undefined)).toMatchObject({ status: 'paused', before: 0, modes: [undefined] });
    expect(await run('unsupervised', 'unsupervised')).toMatchObject({ status: 'ok', before: 1 });
    expect(await run(undefined, 'unsupervised')).toMatchObject({ status: 'ok', before: 1 });
    expect(await run('unsupervised', undefined)).toMatchObject({ status: 'ok', before: 1 });
  },
);

verifies(
  'approval.modes',
  "the mode of a tool's own policy never waives an approval that an agent requires",
  async () => {
    const toolOnly = await nested('a sub-agent', {}, {}, 'ask', 'unsupervised');
    expect(toolOnly).toMatchObject({ status: 'ok', before: 1, modes: ['unsupervised'] });
    const withAgent = await nested('a sub-agent', { approvals: { pay: 'ask' } }, {}, 'ask', 'unsupervised');
    expect(withAgent).toMatchObject({ status: 'paused', before: 0, description: 'Pay in mode none?' });
  },
);

verifies('approval.modes', 'one of ten nested agents is enough to require an approval', async () => {
  for (const asking of [0, 4, 9]) {
    const actions = new RecordedActions();
    const definitions: unknown[] = [loopFromTool(payTool(actions).withApproval('always_allow'))];
    const providers = [];
    let child = 'pay';
    for (let level = 9; level >= 0; level--) {
      const id = `agent-${level}`;
      const rules: Rules = level === asking ? { approvals: { pay: 'ask' } } : { mode: 'unsupervised' };
      definitions.push(agentDef(id, { backend: { id: `b${level}` }, tools: [child], ...rules }));
      providers.push(replyProvider(calling(child), `b${level}`));
      child = id;
    }
    const host = hostOf(definitions, { providers });
    expect((await host.run({ loop: 'agent-0', input: GO })).status).toBe('paused');
    expect([actions.count, (await onlyPending(host)).path.length]).toEqual([0, 11]);
  }
});

verifies(
  'approval.default',
  'a tool with requestApproval requires an approval without a policy, on every path',
  async () => {
    for (const way of Object.keys(LEVELS)) {
      const result = await nested(way, {}, {});
      expect(result, way).toMatchObject({ status: 'paused', before: 0, after: 1, description: 'Pay in mode none?' });
      for (const star of [{ approvals: { '*': 'always_allow' } }] as const)
        expect(await nested(way, star, star), way).toMatchObject({ status: 'paused', before: 0 });
      expect(await nested(way, {}, {}, 'always_allow'), way).toMatchObject({ status: 'ok', before: 1 });
      expect(await nested(way, {}, { mode: 'unsupervised' }), way).toMatchObject({ status: 'ok', before: 1 });
    }
  },
);

verifies('approval.default', 'only the agent that owns the tool can allow it, and only by name', async () => {
  const allow = { approvals: { pay: 'always_allow' } } as const;
  const ask = { approvals: { pay: 'ask' } } as const;
  expect(await nested('a sub-agent', {}, allow)).toMatchObject({ status: 'ok', before: 1, modes: [] });
  expect(await nested('a handoff', {}, allow)).toMatchObject({ status: 'ok', before: 1 });
  expect(await nested('a sub-agent', allow, {})).toMatchObject({ status: 'paused', before: 0 });
  // The agent does not own the tool; its composite calls it.
  expect(await nested('a sub-agent around a composite', {}, allow)).toMatchObject({ status: 'paused', before: 0 });
  expect(await nested('a sub-agent around code', {}, allow)).toMatchObject({ status: 'ok', before: 1 });
  // An agent can only narrow.
  expect(await nested('a sub-agent', ask, allow)).toMatchObject({ status: 'paused', before: 0 });
  expect(await nested('a sub-agent', {}, allow, 'ask')).toMatchObject({ status: 'paused', before: 0 });
  expect(await nested('a sub-agent', { approvals: { '*': 'blocked' } }, allow)).toMatchObject({
    status: 'ok',
    after: 0,
  });
});

verifies('approval.default', 'a tool with requestApproval requires an approval outside of agents', async () => {
  const actions = new RecordedActions();
  const pay = loopFromTool(payTool(actions));
  const steps = composite('steps', [{ loopId: 'pay', inputMapping: '$.input' }]);
  const host = hostOf([pay, steps, code(pay)]);
  for (const loop of ['pay', 'steps', 'code']) {
    expect((await host.run({ loop, input: GO })).status, loop).toBe('paused');
    expect(actions.count, loop).toBe(0);
  }
});

verifies('approval.default', 'in an agent in code, only a tool with requestApproval requires an approval', async () => {
  const actions = new RecordedActions();
  const plain = loopsTool({
    name: 'pay',
    inputSchema: z.object({}).loose(),
    execute: (input) => actions.act(input as never, undefined as never),
  });
  const statusWith = async (agentTool: unknown, more: object = {}) => {
    const boss = defineAgent({ id: 'boss', model: 'replies', tools: [agentTool as never], ...more });
    const host = hostOf([boss], { providers: [replyProvider(calling('pay'))] });
    return (await host.run({ loop: 'boss', input: GO })).status;
  };
  expect(await statusWith(plain)).toBe('ok');
  expect(await statusWith(payTool(actions))).toBe('paused');
  expect(await statusWith(payTool(actions), { approvals: { '*': 'always_allow' } })).toBe('paused');
  expect(await statusWith(payTool(actions), { approvals: { pay: 'always_allow' } })).toBe('ok');
  expect(await statusWith(payTool(actions).withApproval('always_allow'))).toBe('ok');
  expect(await statusWith(payTool(actions).withApproval('blocked').withApproval('always_allow'))).toBe('ok');
  expect(actions.count).toBe(4);
});

verifies('approval.default', 'outside of a host a tool follows the policy table of the protocol', async () => {
  const actions = new RecordedActions();
  const pay = payTool(actions);
  expect([pay.policy, pay.hasExplicitPolicy]).toEqual(['always_allow', false]);
  expect(pay.withApproval('always_allow')).toMatchObject({ policy: 'always_allow', hasExplicitPolicy: true });
  await pay.execute(GO, { toolCallId: 'c', messages: [] });
  expect(actions.count).toBe(1);
});
