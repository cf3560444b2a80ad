import { expect } from 'vitest';
import { z } from 'zod';
import { ended, ways } from '../../spec/support/ai-sdk-tools.js';
import { onlyPending } from '../../spec/support/approval-fixture.js';
import { hostOf } from '../../spec/support/host-fixture.js';
import { modelOf } from '../../spec/support/scripted-agents.js';
import { verifies } from '../../spec/verifies.js';
import { defineAgent } from '../loops/define-agent.js';
import { ApprovalRequiredError, loopsTool, tool } from './tool.js';

const inputSchema = z.object({}).loose();
const base = { name: 'refund', inputSchema, execute: () => 'ran' };
const askingTools = {
  'approval: ask': () => tool({ ...base, approval: 'ask' }),
  requestApproval: () => tool({ ...base, requestApproval: () => 'Refund?' }),
  'approval: ask and requestApproval': () => tool({ ...base, approval: 'ask', requestApproval: () => 'Refund?' }),
  'loopsTool with approval: ask': () => loopsTool({ ...base, approval: 'ask' }),
};

verifies(
  'approval.option',
  'under the AI SDK, a tool that asks throws ApprovalRequiredError and does not run',
  async () => {
    for (const [name, make] of Object.entries(askingTools)) {
      const description = name.includes('requestApproval') ? 'Refund?' : 'Run refund?';
      expect(await ended(make(), {}), name).toMatchObject({ name: 'ApprovalRequiredError', description });
      expect(await ended(make().makeTool({}), {}), name).toBeInstanceOf(ApprovalRequiredError);
      for (const way of ways) expect((await way(make(), {})).parts, name).toMatchObject([['tool-error', {}]]);
      expect(await ended(make().withApproval('always_allow'), {}), name).toBe('ran');
      expect(await ended(make().withApproval('blocked'), {}), name).toMatchObject({ name: 'ToolBlockedError' });
    }
    expect(await ended(tool(base).withApproval('ask'), {})).toBeInstanceOf(ApprovalRequiredError);
    expect(await ended(tool({ ...base, approval: 'blocked' }), {})).toMatchObject({ name: 'ToolBlockedError' });
  },
);

verifies('approval.option', 'under the AI SDK, a tool that does not ask runs', async () => {
  const allowed = tool({ ...base, approval: 'always_allow', requestApproval: () => 'Refund?' });
  for (const one of [tool(base), allowed, tool({ ...base, requestApproval: () => null })])
    expect(await ended(one, {})).toBe('ran');
  // Without `approval`, loopsTool follows the protocol: `requestApproval` counts only under a policy `ask`.
  expect(await ended(loopsTool({ ...base, requestApproval: () => 'Refund?' }), {})).toBe('ran');
  expect(await ended(loopsTool(base).withApproval('ask'), {})).toBe('ran');
});

verifies('approval.option', 'the host asks without a further policy, and only a name switches it off', async () => {
  const statusWith = async (made: unknown, more: object = {}) => {
    const model = modelOf([{ calls: [['refund', {}]] }, { text: 'done' }]);
    const agent = defineAgent({ id: 'desk', model, tools: [made as never], ...more });
    const host = hostOf([agent]);
    const { status } = await host.run({ loop: agent, input: { prompt: 'go' } });
    if (status === 'paused') expect((await onlyPending(host)).tool).toBe('desk.refund');
    return status;
  };
  for (const [name, make] of Object.entries(askingTools)) {
    expect(await statusWith(make()), name).toBe('paused');
    expect(await statusWith(make(), { approvals: { '*': 'always_allow' } }), name).toBe('paused');
    expect(await statusWith(make(), { approvals: { refund: 'always_allow' } }), name).toBe('ok');
    expect(await statusWith(make().withApproval('always_allow')), name).toBe('ok');
  }
  const allowed = { ...base, approval: 'always_allow', requestApproval: () => 'Refund?' } as const;
  expect(await statusWith(tool(allowed))).toBe('ok');
  expect(await statusWith(tool(allowed), { approvals: { '*': 'ask' } })).toBe('paused');
});

verifies('approval.option', 'the definition of a tool states its approval, and an unknown one is refused', () => {
  const policyOf = (made: unknown) =>
    defineAgent({ id: 'a', model: 'm', tools: [made as never] }).innerLoops?.[0]?.definition.policy;
  expect(policyOf(tool({ ...base, approval: 'ask' }))).toEqual({ approval: 'ask' });
  expect(policyOf(tool({ ...base, approval: 'blocked' }))).toEqual({ approval: 'blocked' });
  expect(policyOf(tool(base))).toBeUndefined();
  for (const approval of ['Ask', '', null, true])
    expect(() => tool({ ...base, approval: approval as never })).toThrow(/approval must be one of/);
});
