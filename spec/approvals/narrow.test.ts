import { expect } from 'vitest';
import { z } from 'zod';
import { defineLoop } from '../../src/loops/define.js';
import { defineAgent } from '../../src/loops/define-agent.js';
import type { ApprovalPolicy } from '../../src/protocol/loop.js';
import { loopsTool } from '../../src/protocol/tool.js';
import { answerOutcome, onlyPending, RecordedActions } from '../support/approval-fixture.js';
import { hostOf, tool } from '../support/host-fixture.js';
import { agentDef, replyProvider } from '../support/scripted-agents.js';
import { verifies } from '../verifies.js';

const POLICIES: readonly (ApprovalPolicy | undefined)[] = [undefined, 'always_allow', 'ask', 'blocked'];
const STRICTNESS = ['always_allow', 'ask', 'blocked'];

const strictest = (policies: readonly (ApprovalPolicy | undefined)[]): string =>
  STRICTNESS[Math.max(...policies.map((policy) => STRICTNESS.indexOf(policy ?? 'always_allow')))] ?? '';

verifies('approval.gate', 'the strictest policy of tool and agents applies', async () => {
  const calling = (name: string) => [{ calls: [[name, { prompt: 'go' }] as const] }, { text: 'done' }];
  for (const own of POLICIES) {
    for (const inner of POLICIES) {
      for (const outer of POLICIES) {
        for (const [innerName, outerName] of [
          ['*', 'pay'],
          ['pay', '*'],
        ] as const) {
          const where = [own, innerName, inner, outerName, outer].join(' ');
          const actions = new RecordedActions();
          const guard = (name: string, policy?: ApprovalPolicy) => (policy ? { approvals: { [name]: policy } } : {});
          const definitions = [
            tool('pay', 'builtin:act', own === undefined ? {} : { policy: { approval: own } }),
            agentDef('helper', { backend: { id: 'help' }, tools: ['pay'], ...guard(innerName, inner) }),
            agentDef('boss', { tools: ['helper'], ...guard(outerName, outer) }),
          ];
          const providers = [replyProvider(calling('helper')), replyProvider(calling('pay'), 'help')];
          const host = hostOf(definitions, { providers, tools: { act: actions.act } });
          const { status } = await host.run({ loop: 'boss', input: { prompt: 'go' } });
          const expected = { always_allow: ['ok', 1], ask: ['paused', 0], blocked: ['ok', 0] }[
            strictest([own, inner, outer])
          ];
          expect([status, actions.count], where).toEqual(expected);
        }
      }
    }
  }
});

verifies('approval.gate', 'an unknown approval policy is rejected', () => {
  for (const approval of ['Ask', 'ASK', 'allow', 'always', '', true, null, 1, ['ask']]) {
    const policy = { approval } as never;
    const agent = { tools: ['pay'], approvals: { pay: approval } } as never;
    expect(() => hostOf([tool('pay', 'builtin:echo', { policy })]), String(approval)).toThrow(/approval/);
    expect(() => hostOf([agentDef('boss', agent)]), String(approval)).toThrow(/approvals/);
    expect(() => defineLoop({ id: 'pay', input: true, output: true, policy, tool: () => 1 })).toThrow(/approval/);
    expect(() => defineAgent({ id: 'boss', model: 'replies', ...(agent as object) })).toThrow(/approvals/);
    const made = loopsTool({ name: 'pay', inputSchema: z.object({}), execute: () => 1 });
    expect(() => made.withApproval(approval as never)).toThrow(TypeError);
  }
});

verifies('approval.gate', 'a tool whose description fails or is empty never runs without an approval', async () => {
  const descriptions: readonly (() => unknown)[] = [
    ...[undefined, '', '  ', 5, {}, [], true, false, 0, Number.NaN].map((text) => () => text),
    ...[undefined, '', {}].map((text) => async () => text),
    () => {
      throw new Error('no description');
    },
    () => Promise.reject(new Error('no description')),
  ];
  for (const [nth, requestApproval] of descriptions.entries()) {
    const actions = new RecordedActions();
    const pay = loopsTool({
      name: 'pay',
      inputSchema: z.object({}),
      requestApproval: requestApproval as () => string,
      execute: (input) => actions.act(input as never, undefined as never),
    }).withApproval('ask');
    const boss = defineAgent({ id: 'boss', model: 'replies', tools: [pay] });
    const host = hostOf([boss], { providers: [replyProvider([{ calls: [['pay', {}]] }, { text: 'done' }])] });
    const { status, turnId } = await host.run({ loop: 'boss', input: { prompt: 'go' } });
    expect(actions.count, `${nth} ${status}`).toBe(0);
    if (status !== 'paused') continue;
    const { id, description } = await onlyPending(host);
    expect(description, `${nth}`).not.toBe('');
    expect(await answerOutcome(host, { id, approved: true, by: 'ada' })).toBe('accepted');
    expect(await host.resume(turnId)).toMatchObject({ status: 'ok' });
    expect(actions.count).toBe(1);
  }
});

verifies('approval.gate', 'requestApproval can waive an approval for one call and mode, not for another', async () => {
  const actions = new RecordedActions();
  const pay = loopsTool({
    name: 'pay',
    inputSchema: z.object({ amount: z.number() }),
    requestApproval: ({ amount }, { mode }) => (amount < 10 || mode === 'night' ? null : `Pay ${amount}?`),
    execute: (input) => actions.act(input as never, undefined as never),
  }).withApproval('ask');
  const replies = [5, 50].map((amount) => ({ calls: [['pay', { amount }] as const] }));
  const run = async (mode?: string) => {
    const boss = defineAgent({ id: 'boss', model: 'replies', tools: [pay], ...(mode !== undefined && { mode }) });
    const host = hostOf([boss], { providers: [replyProvider([...replies, { text: 'done' }])] });
    const result = await host.run({ loop: 'boss', input: { prompt: 'go' } });
    expect(await host.replay(result.turnId)).toMatchObject({ matches: true });
    return [result.status, actions.performed.splice(0).length];
  };
  expect(await run()).toEqual(['paused', 1]);
  expect(await run('day')).toEqual(['paused', 1]);
  expect(await run('night')).toEqual(['ok', 2]);
});
