// Every way in which a tool can start: each with a gate before it, and a count of what got through.

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
import type { Deeds } from '../support/approval-fixture.js';
import { composite, hostOf, prompt, tool } from '../support/host-fixture.js';
import { agentDef, type Scripted, told } from '../support/scripted-agents.js';

/** What holds before the tool: a policy of its own, or of the agent above it, by its name or for all. */
export type Gating = 'own' | 'named' | 'all';

export interface Way {
  readonly name: string;
  readonly gatings: readonly Gating[];
  /** Definitions of which `root` is run; `gated` says what guards the tool. */
  stage(deeds: Deeds, gated: Guard): Staged;
}

export interface Guard {
  readonly policy: ApprovalPolicy;
  readonly gating: Gating;
  /** For the tool's own definition. */
  readonly own: Partial<LoopDef>;
  /** For an agent above a loop of this id. */
  approvals(id: string): { readonly approvals?: { readonly [tool: string]: ApprovalPolicy } };
}

interface Staged {
  readonly definitions: readonly unknown[];
  readonly root: string;
  readonly replies?: readonly Scripted[];
  readonly helper?: readonly Scripted[];
}

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

/** A loop in code of the id `pay`. What a body does is an effect of a kind of its own: a replay runs bodies again. */
function inCode(deeds: Deeds, guard: Guard, kind: 'tool' | 'body'): DefinedLoop {
  const perform = (input: unknown): unknown => deeds.act(input as never, undefined as never);
  const body = (input: unknown, scope: Scope): unknown =>
    scope.effect({ kind: 'wire', name: 'wire', input, safety: 'idempotent', perform });
  const does = kind === 'tool' ? { tool: perform } : { body };
  return defineLoop({ id: 'pay', input: true, output: true, ...policyOf(guard), ...does } as never);
}

function protocolTool(deeds: Deeds, { gating, policy }: Guard, described: boolean): DefinedLoop {
  const made = loopsTool({
    name: 'pay',
    inputSchema: z.object({}).loose(),
    ...(described && { requestApproval: () => 'Shall it pay?' }),
    execute: (input) => deeds.act(input as never, undefined as never),
  });
  return loopFromTool(gating === 'own' ? made.withApproval(policy) : made);
}

/** A tool as the AI SDK makes it, which has a word of its own for asking. */
function aiSdkTool(deeds: Deeds, { gating, policy }: Guard, needsApproval: boolean | (() => Promise<boolean>)) {
  const own = gating === 'own' && policy === 'ask' ? { needsApproval } : {};
  const inputSchema = jsonSchema<object>({ type: 'object' });
  return aiTool({
    inputSchema,
    ...own,
    execute: async (input: object) => deeds.act(input as never, undefined as never),
  });
}

const boss = (guard: Guard, tools: readonly string[], guarded = 'pay', more: object = {}): LoopDef =>
  agentDef('boss', { tools, ...guard.approvals(guarded), ...more });

export const WAYS: readonly Way[] = [
  {
    name: 'a turn of the tool itself',
    gatings: ['own'],
    stage: (_, guard) => ({ definitions: [pay(guard)], root: 'pay' }),
  },
  {
    name: 'a step of a composite',
    gatings: ['own'],
    stage: (_, guard) => ({ definitions: [pay(guard), composite('root', [step('pay')])], root: 'root' }),
  },
  {
    name: 'a tool of an agent',
    gatings: ALL,
    stage: (_, guard) => ({ definitions: [pay(guard), boss(guard, ['pay'])], root: 'boss', replies: calling('pay') }),
  },
  {
    name: 'a tool of a sub-agent',
    gatings: ALL,
    stage: (_, guard) => ({
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
    name: 'a tool of the agent that took over',
    gatings: ALL,
    stage: (_, guard) => ({
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
    stage: (_, guard) => ({
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
    stage: (_, guard) => ({
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
    name: `a tool of the protocol ${described ? 'with' : 'without'} words of its own`,
    gatings: ALL,
    stage: (deeds: Deeds, guard: Guard) => ({
      definitions: [protocolTool(deeds, guard, described), boss(guard, ['pay'])],
      root: 'boss',
      replies: calling('pay'),
    }),
  })),
  ...(['tool', 'body'] as const).map((kind) => ({
    name: `a ${kind} in code as a tool of an agent`,
    gatings: ALL,
    stage: (deeds: Deeds, guard: Guard) => ({
      definitions: [inCode(deeds, guard, kind), boss(guard, ['pay'])],
      root: 'boss',
      replies: calling('pay'),
    }),
  })),
  ...(['tool', 'body'] as const).map((kind) => ({
    name: `a turn of a ${kind} in code`,
    gatings: ['own'] as const,
    stage: (deeds: Deeds, guard: Guard) => ({ definitions: [inCode(deeds, guard, kind)], root: 'pay' }),
  })),
  {
    name: 'code that calls the tool',
    gatings: ['own'],
    stage: (deeds, guard) => {
      const inner = inCode(deeds, guard, 'tool');
      const body = (input: unknown, scope: Scope) => scope.call(inner, input);
      return { definitions: [defineLoop({ id: 'root', input: true, output: true, body } as never)], root: 'root' };
    },
  },
  ...(['tool', 'body'] as const).map((kind) => ({
    name: `code that calls a ${kind} in code, below an agent`,
    gatings: kind === 'tool' ? ALL : (['named', 'all'] as const),
    stage: (deeds: Deeds, guard: Guard) => {
      const inner = inCode(deeds, guard, kind);
      const body = (input: unknown, scope: Scope) => scope.call(inner, input);
      const code = defineLoop({ id: 'code', input: true, output: true, body } as never);
      return { definitions: [code, inner, boss(guard, ['code', 'pay'])], root: 'boss', replies: calling('code') };
    },
  })),
  {
    name: 'a tool of the AI SDK, of an agent in code',
    gatings: ['own', 'named', 'all'],
    stage: (deeds, guard) => ({
      definitions: [
        defineAgent({
          id: 'boss',
          model: 'told',
          tools: { pay: aiSdkTool(deeds, guard, true) },
          ...guard.approvals('pay'),
        }),
      ],
      root: 'boss',
      replies: calling('pay'),
    }),
  },
  {
    name: 'a tool of the AI SDK that says when to ask',
    gatings: ['own'],
    stage: (deeds, guard) => ({
      definitions: [
        defineAgent({ id: 'boss', model: 'told', tools: { pay: aiSdkTool(deeds, guard, async () => true) } }),
      ],
      root: 'boss',
      replies: calling('pay'),
    }),
  },
  {
    name: 'an agent in code below an agent in code',
    gatings: ['named', 'all'],
    stage: (deeds, guard) => {
      const inner = defineAgent({ id: 'helper', model: 'help', tools: [inCode(deeds, guard, 'tool')] });
      const outer = defineAgent({
        id: 'boss',
        model: 'told',
        tools: [inner as DefinedLoop],
        ...guard.approvals('pay'),
      });
      return { definitions: [outer], root: 'boss', replies: calling('helper'), helper: calling('pay') };
    },
  },
  {
    name: 'a composite that guards itself',
    gatings: ['own'],
    stage: (_, guard) => ({
      definitions: [tool('leaf', 'builtin:act'), composite('pay', [step('leaf')], guard.own)],
      root: 'pay',
    }),
  },
  {
    name: 'a composite, guarded by its name',
    gatings: ['named', 'all'],
    stage: (_, guard) => ({
      definitions: [tool('leaf', 'builtin:act'), composite('pay', [step('leaf')]), boss(guard, ['pay'])],
      root: 'boss',
      replies: calling('pay'),
    }),
  },
  {
    name: 'a composite below a composite, guarded by its name',
    gatings: ['named', 'all'],
    stage: (_, guard) => ({
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
    stage: (_, guard) => ({
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
    stage: (_, guard) => ({
      definitions: [prompt('pay', 'Pay.', { ...guard.own, backend: { id: 'acting' } }), boss(guard, ['pay'])],
      root: 'boss',
      replies: calling('pay'),
    }),
  },
  {
    name: 'a tool that an agent asks for through its second backend',
    gatings: ALL,
    stage: (_, guard) => {
      const policy = { fallback: [{ id: 'told' }] };
      const agent = { ...boss(guard, ['pay'], 'pay', { backend: { id: 'broken' } }), policy };
      return { definitions: [pay(guard), agent], root: 'boss', replies: calling('pay') };
    },
  },
  {
    name: 'a tool that is tried again',
    gatings: ALL,
    stage: (_, guard) => {
      const policy = { ...guard.own.policy, retry: { attempts: 3, backoffMs: 0, jitter: 0 }, cache: {} };
      return {
        definitions: [tool('pay', 'builtin:act', { policy }), boss(guard, ['pay'])],
        root: 'boss',
        replies: calling('pay'),
      };
    },
  },
];

/** A backend whose answers are deeds: what it is asked went out. */
function acting(deeds: Deeds) {
  const backend = told([{ text: 'paid' }, { text: 'paid' }, { text: 'paid' }], 'acting');
  const open: typeof backend.open = async (ref, asking) => {
    const model = await backend.open(ref, asking);
    return {
      ...model,
      doStream: (call) => {
        deeds.done.push('asked');
        return model.doStream(call);
      },
    };
  };
  return { ...backend, open };
}

const BROKEN = {
  id: 'broken',
  defaultModel: 'b',
  open: async () => {
    throw new LoopError('BACKEND_FAILED', 'It is broken.', { retryable: false });
  },
};

/** A host for one way, and what is to be run. */
export function hostFor(way: Way, deeds: Deeds, guard: Guard, store: Store, seed = 1): [Host, TurnRequest] {
  const { definitions, root, replies = [], helper = [] } = way.stage(deeds, guard);
  const backends = [told(replies), told(helper, 'help'), acting(deeds), BROKEN];
  const host = hostOf(definitions, { store, backends, tools: { act: deeds.act }, seed });
  return [host, { loop: root, input: INPUT, sessionId: 's' }];
}
