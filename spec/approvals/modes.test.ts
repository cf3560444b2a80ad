import { expect } from 'vitest';
import { z } from 'zod';
import { defineLoop } from '../../src/loops/define.js';
import { defineAgent } from '../../src/loops/define-agent.js';
import type { DefinedLoop } from '../../src/loops/defined-loop.js';
import { loopFromTool } from '../../src/loops/tool-loop.js';
import type { Scope } from '../../src/protocol/body.js';
import type { AgentSpec, ApprovalPolicy } from '../../src/protocol/loop.js';
import { type LoopsTool, loopsTool } from '../../src/protocol/tool.js';
import { Deeds, onlyPending } from '../support/approval-fixture.js';
import { composite, hostOf } from '../support/host-fixture.js';
import { agentDef, told as telling } from '../support/scripted-agents.js';
import { verifies } from '../verifies.js';

const GO = { prompt: 'go' };
const calling = (name: string) => [{ calls: [[name, GO] as const] }, { text: 'done' }];

/** A tool that asks unless the mode is "unsupervised", and keeps the modes that it was asked in. */
function payTool(deeds: Deeds, modes: (string | undefined)[] = []): LoopsTool<unknown, unknown> {
  return loopsTool({
    name: 'pay',
    inputSchema: z.object({}).loose(),
    requestApproval: (_, { mode }) => {
      modes.push(mode);
      return mode === 'unsupervised' ? null : `Pay in mode ${mode ?? 'none'}?`;
    },
    execute: (input) => deeds.act(input as never, undefined as never),
  }) as LoopsTool<unknown, unknown>;
}

type Rules = Partial<Pick<AgentSpec, 'mode' | 'approvals'>>;

interface Level {
  readonly definitions: readonly unknown[];
  /** The tool of the outer agent that leads to `pay`, and how it is had. */
  readonly tool: string;
  readonly handoff?: boolean;
}

const helper = (rules: Rules, tools = ['pay']) => agentDef('helper', { backend: { id: 'help' }, tools, ...rules });
const code = (inner: DefinedLoop, id = 'code'): DefinedLoop =>
  defineLoop({
    id,
    input: true,
    output: true,
    body: (input: unknown, scope: Scope) => scope.call(inner, input) as never,
  } as never) as DefinedLoop;

/** Every way from an outer agent to a tool of an inner one. */
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

/** Runs `pay` below two agents and approves all that is asked; what the last question was, and in which modes. */
async function nested(way: string, outer: Rules, inner: Rules, policy?: ApprovalPolicy, baked?: string) {
  const deeds = new Deeds();
  const modes: (string | undefined)[] = [];
  const made = payTool(deeds, modes);
  const pay = loopFromTool(policy === undefined ? made : made.withApproval(policy, baked));
  const level = LEVELS[way]?.(inner, pay);
  if (level === undefined) throw new Error(`There is no way ${way}.`);
  const has = level.handoff === true ? { tools: [], handoffs: [level.tool] } : { tools: [level.tool] };
  const innerTool = way.endsWith('composite') ? 'pay-steps' : way.endsWith('code') ? 'pay-code' : 'pay';
  const backends = [telling(calling(level.tool)), telling(calling(innerTool), 'help')];
  const host = hostOf([pay, ...level.definitions, agentDef('boss', { ...has, ...outer })], { backends });
  const { status, turnId } = await host.run({ loop: 'boss', input: GO });
  const before = deeds.count;
  let description: string | undefined;
  let end = status;
  while (end === 'paused') {
    const approval = await onlyPending(host);
    description = approval.description;
    await host.answer({ id: approval.id, approved: true, by: 'ada' });
    end = (await host.resume(turnId)).status;
  }
  expect([end, await host.replay(turnId)]).toMatchObject(['ok', { matches: true }]);
  return { status, before, after: deeds.count, modes: [...new Set(modes)], description };
}

verifies('approval.modes', "a sub-agent's mode never cancels the ask of an enclosing agent", async () => {
  for (const way of Object.keys(LEVELS)) {
    for (const approvals of [{ pay: 'ask' }, { '*': 'ask' }] as const) {
      const on = await nested(way, { approvals }, { mode: 'unsupervised' }, 'always_allow');
      expect(on, way).toMatchObject({ status: 'paused', before: 0, after: 1, modes: [undefined] });
      expect(on.description, way).toBe('Pay in mode none?');
    }
  }
});

verifies('approval.modes', 'each agent that asks is asked for with its own mode', async () => {
  for (const way of Object.keys(LEVELS)) {
    const outer = { mode: 'day', approvals: { pay: 'ask' } } as const;
    const inner = { mode: 'unsupervised', approvals: { pay: 'ask' } } as const;
    const on = await nested(way, outer, inner, 'always_allow');
    expect(on, way).toMatchObject({ status: 'paused', before: 0, after: 1, description: 'Pay in mode day?' });
    expect([...on.modes].sort(), way).toEqual(['day', 'unsupervised']);
    // The other way round: the inner agent narrows what the outer one lets pass.
    const other = await nested(way, inner, outer, 'always_allow');
    expect(other, way).toMatchObject({ status: 'paused', before: 0, description: 'Pay in mode day?' });
    const both = await nested(way, inner, inner, 'always_allow');
    expect(both, way).toMatchObject({ status: 'ok', before: 1, modes: ['unsupervised'] });
  }
});

verifies('approval.modes', 'an agent that asks and sets no mode does not take the mode of another', async () => {
  const unsupervised = { mode: 'unsupervised' };
  const asking = { approvals: { pay: 'ask' } } as const;
  for (const [outer, inner] of [
    [unsupervised, asking],
    [asking, unsupervised],
  ] as const)
    expect(await nested('a sub-agent', outer, inner, 'always_allow')).toMatchObject({ status: 'paused', before: 0 });
});

verifies('approval.modes', "a tool's own ask is waived only if every enclosing agent's mode waives it", async () => {
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
});

verifies('approval.modes', "the mode of a tool's own policy never cancels the ask of an agent", async () => {
  const own = await nested('a sub-agent', {}, {}, 'ask', 'unsupervised');
  expect(own).toMatchObject({ status: 'ok', before: 1, modes: ['unsupervised'] });
  const asked = await nested('a sub-agent', { approvals: { pay: 'ask' } }, {}, 'ask', 'unsupervised');
  expect(asked).toMatchObject({ status: 'paused', before: 0, description: 'Pay in mode none?' });
});

verifies('approval.modes', 'ten agents deep, one ask on the way is enough', async () => {
  for (const asking of [0, 4, 9]) {
    const deeds = new Deeds();
    const definitions: unknown[] = [loopFromTool(payTool(deeds).withApproval('always_allow'))];
    const backends = [];
    let child = 'pay';
    for (let level = 9; level >= 0; level--) {
      const id = `agent-${level}`;
      const rules: Rules = level === asking ? { approvals: { pay: 'ask' } } : { mode: 'unsupervised' };
      definitions.push(agentDef(id, { backend: { id: `b${level}` }, tools: [child], ...rules }));
      backends.push(telling(calling(child), `b${level}`));
      child = id;
    }
    const host = hostOf(definitions, { backends });
    expect((await host.run({ loop: 'agent-0', input: GO })).status).toBe('paused');
    expect([deeds.count, (await onlyPending(host)).path.length]).toEqual([0, 11]);
  }
});

verifies('approval.default', 'a tool with requestApproval is asked about without a policy, in every way', async () => {
  for (const way of Object.keys(LEVELS)) {
    const on = await nested(way, {}, {});
    expect(on, way).toMatchObject({ status: 'paused', before: 0, after: 1, description: 'Pay in mode none?' });
    for (const star of [{ approvals: { '*': 'always_allow' } }] as const)
      expect(await nested(way, star, star), way).toMatchObject({ status: 'paused', before: 0 });
    expect(await nested(way, {}, {}, 'always_allow'), way).toMatchObject({ status: 'ok', before: 1 });
    expect(await nested(way, {}, { mode: 'unsupervised' }), way).toMatchObject({ status: 'ok', before: 1 });
  }
});

verifies('approval.default', 'only the agent that has the tool allows it, and by its name', async () => {
  const allow = { approvals: { pay: 'always_allow' } } as const;
  const ask = { approvals: { pay: 'ask' } } as const;
  expect(await nested('a sub-agent', {}, allow)).toMatchObject({ status: 'ok', before: 1, modes: [] });
  expect(await nested('a handoff', {}, allow)).toMatchObject({ status: 'ok', before: 1 });
  expect(await nested('a sub-agent', allow, {})).toMatchObject({ status: 'paused', before: 0 });
  // The agent does not have the tool: a composite that it has calls it.
  expect(await nested('a sub-agent around a composite', {}, allow)).toMatchObject({ status: 'paused', before: 0 });
  expect(await nested('a sub-agent around code', {}, allow)).toMatchObject({ status: 'ok', before: 1 });
  // Agents only narrow.
  expect(await nested('a sub-agent', ask, allow)).toMatchObject({ status: 'paused', before: 0 });
  expect(await nested('a sub-agent', {}, allow, 'ask')).toMatchObject({ status: 'paused', before: 0 });
  expect(await nested('a sub-agent', { approvals: { '*': 'blocked' } }, allow)).toMatchObject({
    status: 'ok',
    after: 0,
  });
});

verifies('approval.default', 'a tool with requestApproval is asked about where no agent is', async () => {
  const deeds = new Deeds();
  const pay = loopFromTool(payTool(deeds));
  const steps = composite('steps', [{ loopId: 'pay', inputMapping: '$.input' }]);
  const host = hostOf([pay, steps, code(pay)]);
  for (const loop of ['pay', 'steps', 'code']) {
    expect((await host.run({ loop, input: GO })).status, loop).toBe('paused');
    expect(deeds.count, loop).toBe(0);
  }
});

verifies('approval.default', 'in an agent in code, and without requestApproval nothing is asked', async () => {
  const deeds = new Deeds();
  const plain = loopsTool({
    name: 'pay',
    inputSchema: z.object({}).loose(),
    execute: (input) => deeds.act(input as never, undefined as never),
  });
  const statusWith = async (given: unknown, more: object = {}) => {
    const boss = defineAgent({ id: 'boss', model: 'told', tools: [given as never], ...more });
    const host = hostOf([boss], { backends: [telling(calling('pay'))] });
    return (await host.run({ loop: 'boss', input: GO })).status;
  };
  expect(await statusWith(plain)).toBe('ok');
  expect(await statusWith(payTool(deeds))).toBe('paused');
  expect(await statusWith(payTool(deeds), { approvals: { '*': 'always_allow' } })).toBe('paused');
  expect(await statusWith(payTool(deeds), { approvals: { pay: 'always_allow' } })).toBe('ok');
  expect(await statusWith(payTool(deeds).withApproval('always_allow'))).toBe('ok');
  expect(await statusWith(payTool(deeds).withApproval('blocked').withApproval('always_allow'))).toBe('ok');
  expect(deeds.count).toBe(4);
});

verifies('approval.default', 'on its own a tool follows the table of the protocol', async () => {
  const deeds = new Deeds();
  const pay = payTool(deeds);
  expect([pay.policy, pay.hasExplicitPolicy]).toEqual(['always_allow', false]);
  expect(pay.withApproval('always_allow')).toMatchObject({ policy: 'always_allow', hasExplicitPolicy: true });
  await pay.execute(GO, { toolCallId: 'c', messages: [] });
  expect(deeds.count).toBe(1);
});
