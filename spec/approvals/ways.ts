// Every way to start a tool, each with a guard in front of it and a record of the calls that passed.

import { tool as aiTool, jsonSchema } from 'ai';
import { z } from 'zod';
import { LoopError } from '../../src/base/errors.js';
import type { Host, TurnRequest } from '../../src/host/host.js';
import type { Store } from '../../src/journal/store.js';
import { defineLoop } from '../../src/loops/define.js';
import { defineAgent } from '../../src/loops/define-agent.js';
import type { DefinedLoop } from '../../src/loops/defined-loop.js';
import { loopFromTool } from '../../src/loops/tool-loop.js';
import type { Scope } from '../../src/protocol/body.js';
import type { ApprovalPolicy, LoopDef } from '../../src/protocol/loop.js';
import { loopsTool } from '../../src/protocol/tool.js';
import type { RecordedActions } from '../support/approval-fixture.js';
import { composite, hostOf, prompt, tool } from '../support/host-fixture.js';
import { agentDef, replyProvider, type Scripted } from '../support/scripted-agents.js';

/** The source of the guard: the tool's own policy, or a rule of the agent above it, for its name or for all tools. */
type Gating = 'own' | 'named' | 'all';

/** One way to start a tool. */
export interface Way {
  readonly name: string;
  readonly gatings: readonly Gating[];
  /** Returns the definitions, with the tool behind the guard. */
  setUp(actions: RecordedActions, guard: Guard): WaySetup;
}

/** A guard in front of a tool. */
export interface Guard {
  readonly policy: ApprovalPolicy;
  readonly gating: Gating;
  /** Members of the tool's own definition. */
  readonly own: Partial<LoopDef>;
  /** Returns the members of an agent above a loop with this id. */
  approvals(id: string): { readonly approvals?: { readonly [tool: string]: ApprovalPolicy } };
}

interface WaySetup {
  readonly definitions: readonly unknown[];
  /** The loop to run. */
  readonly root: string;
  /** The replies of the outer agent's model. */
  readonly replies?: readonly Scripted[];
  /** The replies of the inner agent's model. */
  readonly helper?: readonly Scripted[];
}

/** Creates a guard. */
export function guardOf(gating: Gating, policy: ApprovalPolicy): Guard {
  const own = gating === 'own' ? { policy: { approval: policy } } : {};
  const approvals = (id: string) => (gating === 'own' ? {} : { approvals: { [gating === 'all' ? '*' : id]: policy } });
  return { gating, policy, own, approvals };
}

const ALL: readonly Gating[] = ['own', 'named', 'all'];
const INPUT = { prompt: 'go' };
const calling = (name: string): readonly Scripted[] => [{ calls: [[name, INPUT]] }, { text: 'done' }];
const step = (loopId: string): object => ({ loopId, inputMapping: '$.input' });
const pay = ({ own }: Guard): object => tool('pay', 'builtin:act', own);
const policyOf = ({ own }: Guard): object => (own.policy === undefined ? {} : { policy: own.policy });

/** A loop in code with the id `pay`. Its body records the call in an effect, because a replay runs bodies again. */
function inCode(actions: RecordedActions, guard: Guard, kind: 'tool' | 'body'): DefinedLoop {
  const perform = (input: unknown): unknown => actions.act(input as never, undefined as never);
  const body = (input: unknown, scope: Scope): unknown =>
    scope.effect({ kind: 'wire', name: 'wire', input, safety: 'idempotent', perform });
  const implementation = kind === 'tool' ? { tool: perform } : { run: body };
  return defineLoop({ id: 'pay', input: true, output: true, ...policyOf(guard), ...implementation } as never);
}

function protocolTool(actions: RecordedActions, { gating, policy }: Guard, described: boolean): DefinedLoop {
  const made = loopsTool({
    name: 'pay',
    inputSchema: z.object({}).loose(),
    ...(described && { requestApproval: () => 'Shall it pay?' }),
    execute: (input) => actions.act(input as never, undefined as never),
  });
  return loopFromTool(gating === 'own' ? made.withApproval(policy) : made);
}

/** A tool of the AI SDK, which requires approvals through `needsApproval`. */
function aiSdkTool(
  actions: RecordedActions,
  { gating, policy }: Guard,
  needsApproval: boolean | (() => Promise<boolean>),
) {
  const own = gating === 'own' && policy === 'ask' ? { needsApproval } : {};
  const inputSchema = jsonSchema<object>({ type: 'object' });
  return aiTool({
    inputSchema,
    ...own,
    execute: async (input: object) => actions.act(input as never, undefined as never),
  });
}

const boss = (guard: Guard, tools: readonly string[], guarded = 'pay', more: object = {}): LoopDef =>
  agentDef('boss', { tools, ...guard.approvals(guarded), ...more });

/** All ways to start a tool. */
export const WAYS: readonly Way[] = [
  {
    name: 'a turn of the tool itself',
    gatings: ['own'],
    setUp: (_, guard) => ({ definitions: [pay(guard)], root: 'pay' }),
  },
  {
    name: 'a step of a composite',
    gatings: ['own'],
    setUp: (_, guard) => ({ definitions: [pay(guard), composite('root', [step('pay')])], root: 'root' }),
  },
  {
    name: 'a tool of an agent',
    gatings: ALL,
    setUp: (_, guard) => ({ definitions: [pay(guard), boss(guard, ['pay'])], root: 'boss', replies: calling('pay') }),
  },
  {
    name: 'a tool of a sub-agent',
    gatings: ALL,
    setUp: (_, guard) => ({
      definitions: [
        pay(guard),
        boss(guard, ['helper']),
        agentDef('helper', { backend: { id: 'help' }, tools: ['pay'] }),
      ],
      root: 'boss',
      replies: calling('helper'),
      helper: calling('pay'),
    }),
  },
  {
    name: 'a tool of an agent after a handoff',
    gatings: ALL,
    setUp: (_, guard) => ({
      definitions: [
        pay(guard),
        boss(guard, [], 'pay', { handoffs: ['helper'] }),
        agentDef('helper', { backend: { id: 'help' }, tools: ['pay'] }),
      ],
      root: 'boss',
      replies: calling('helper'),
      helper: calling('pay'),
    }),
  },
  {
    name: 'a composite inside an agent inside a composite',
    gatings: ALL,
    setUp: (_, guard) => ({
      definitions: [
        pay(guard),
        composite('inner', [step('pay')]),
        boss(guard, ['inner']),
        composite('root', [step('boss')]),
      ],
      root: 'root',
      replies: calling('inner'),
    }),
  },
  {
    name: 'an agent inside a composite inside an agent',
    gatings: ALL,
    setUp: (_, guard) => ({
      definitions: [
        pay(guard),
        agentDef('helper', { backend: { id: 'help' }, tools: ['pay'] }),
        composite('inner', [step('helper')]),
        boss(guard, ['inner']),
      ],
      root: 'boss',
      replies: calling('inner'),
      helper: calling('pay'),
    }),
  },
  ...[true, false].map((described) => ({
    name: `a tool of the protocol ${described ? 'with' : 'without'} a description`,
    gatings: ALL,
    setUp: (actions: RecordedActions, guard: Guard) => ({
      definitions: [protocolTool(actions, guard, described), boss(guard, ['pay'])],
      root: 'boss',
      replies: calling('pay'),
    }),
  })),
  ...(['tool', 'body'] as const).map((kind) => ({
    name: `a ${kind} in code as a tool of an agent`,
    gatings: ALL,
    setUp: (actions: RecordedActions, guard: Guard) => ({
      definitions: [inCode(actions, guard, kind), boss(guard, ['pay'])],
      root: 'boss',
      replies: calling('pay'),
    }),
  })),
  ...(['tool', 'body'] as const).map((kind) => ({
    name: `a turn of a ${kind} in code`,
    gatings: ['own'] as const,
    setUp: (actions: RecordedActions, guard: Guard) => ({ definitions: [inCode(actions, guard, kind)], root: 'pay' }),
  })),
  {
    name: 'code that calls the tool',
    gatings: ['own'],
    setUp: (actions, guard) => {
      const inner = inCode(actions, guard, 'tool');
      const body = (input: unknown, scope: Scope) => scope.call(inner, input);
      return { definitions: [defineLoop({ id: 'root', input: true, output: true, run: body } as never)], root: 'root' };
    },
  },
  ...(['tool', 'body'] as const).map((kind) => ({
    name: `code that calls a ${kind} in code, below an agent`,
    gatings: kind === 'tool' ? ALL : (['named', 'all'] as const),
    setUp: (actions: RecordedActions, guard: Guard) => {
      const inner = inCode(actions, guard, kind);
      const body = (input: unknown, scope: Scope) => scope.call(inner, input);
      const code = defineLoop({ id: 'code', input: true, output: true, run: body } as never);
      return { definitions: [code, inner, boss(guard, ['code', 'pay'])], root: 'boss', replies: calling('code') };
    },
  })),
  {
    name: 'a tool of the AI SDK, of an agent in code',
    gatings: ['own', 'named', 'all'],
    setUp: (actions, guard) => ({
      definitions: [
        defineAgent({
          id: 'boss',
          model: 'replies',
          tools: { pay: aiSdkTool(actions, guard, true) },
          ...guard.approvals('pay'),
        }),
      ],
      root: 'boss',
      replies: calling('pay'),
    }),
  },
  {
    name: 'a tool of the AI SDK with a needsApproval function',
    gatings: ['own'],
    setUp: (actions, guard) => ({
      definitions: [
        defineAgent({ id: 'boss', model: 'replies', tools: { pay: aiSdkTool(actions, guard, async () => true) } }),
      ],
      root: 'boss',
      replies: calling('pay'),
    }),
  },
  {
    name: 'an agent in code below an agent in code',
    gatings: ['named', 'all'],
    setUp: (actions, guard) => {
      const inner = defineAgent({ id: 'helper', model: 'help', tools: [inCode(actions, guard, 'tool')] });
      const outer = defineAgent({
        id: 'boss',
        model: 'replies',
        tools: [inner as DefinedLoop],
        ...guard.approvals('pay'),
      });
      return { definitions: [outer], root: 'boss', replies: calling('helper'), helper: calling('pay') };
    },
  },
  {
    name: 'a composite with its own policy',
    gatings: ['own'],
    setUp: (_, guard) => ({
      definitions: [tool('leaf', 'builtin:act'), composite('pay', [step('leaf')], guard.own)],
      root: 'pay',
    }),
  },
  {
    name: 'a composite, guarded by its name',
    gatings: ['named', 'all'],
    setUp: (_, guard) => ({
      definitions: [tool('leaf', 'builtin:act'), composite('pay', [step('leaf')]), boss(guard, ['pay'])],
      root: 'boss',
      replies: calling('pay'),
    }),
  },
  {
    name: 'a composite below a composite, guarded by its name',
    gatings: ['named', 'all'],
    setUp: (_, guard) => ({
      definitions: [
        tool('leaf', 'builtin:act'),
        composite('pay', [step('leaf')]),
        composite('outer', [step('pay')]),
        boss(guard, ['outer']),
      ],
      root: 'boss',
      replies: calling('outer'),
    }),
  },
  {
    name: 'an agent below a composite, guarded by its name',
    gatings: ['named', 'all'],
    setUp: (_, guard) => ({
      definitions: [
        tool('leaf', 'builtin:act'),
        agentDef('pay', { backend: { id: 'help' }, tools: ['leaf'] }),
        composite('outer', [step('pay')]),
        boss(guard, ['outer']),
      ],
      root: 'boss',
      replies: calling('outer'),
      helper: calling('leaf'),
    }),
  },
  {
    name: 'a prompt as a tool of an agent',
    gatings: ALL,
    setUp: (_, guard) => ({
      definitions: [prompt('pay', 'Pay.', { ...guard.own, backend: { id: 'acting' } }), boss(guard, ['pay'])],
      root: 'boss',
      replies: calling('pay'),
    }),
  },
  {
    name: 'a tool that an agent calls through its fallback model',
    gatings: ALL,
    setUp: (_, guard) => {
      const policy = { fallback: [{ id: 'replies' }] };
      const agent = { ...boss(guard, ['pay'], 'pay', { backend: { id: 'broken' } }), policy };
      return { definitions: [pay(guard), agent], root: 'boss', replies: calling('pay') };
    },
  },
  {
    name: 'a tool with retries',
    gatings: ALL,
    setUp: (_, guard) => {
      const policy = { ...guard.own.policy, retry: { attempts: 3, backoffMs: 0, jitter: 0 }, cache: {} };
      return {
        definitions: [tool('pay', 'builtin:act', { policy }), boss(guard, ['pay'])],
        root: 'boss',
        replies: calling('pay'),
      };
    },
  },
];

/** A provider whose calls count as actions. */
function actingProvider(actions: RecordedActions) {
  const provider = replyProvider([{ text: 'paid' }, { text: 'paid' }, { text: 'paid' }], 'acting');
  const open: typeof provider.open = async (ref, options) => {
    const model = await provider.open(ref, options);
    return {
      ...model,
      doStream: (call) => {
        actions.performed.push('called');
        return model.doStream(call);
      },
    };
  };
  return { ...provider, open };
}

const BROKEN = {
  id: 'broken',
  defaultModel: 'b',
  open: async () => {
    throw new LoopError('BACKEND_FAILED', 'It is broken.', { retryable: false });
  },
};

/** Creates a host for one way and the request to run. */
export function hostFor(way: Way, actions: RecordedActions, guard: Guard, store: Store, seed = 1): [Host, TurnRequest] {
  const { definitions, root, replies = [], helper = [] } = way.setUp(actions, guard);
  const providers = [replyProvider(replies), replyProvider(helper, 'help'), actingProvider(actions), BROKEN];
  const host = hostOf(definitions, { store, providers, tools: { act: actions.act }, seed });
  return [host, { loop: root, input: INPUT, sessionId: 's' }];
}
