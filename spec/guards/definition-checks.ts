// Checks of definitions: each holds on the intact library and fails when its guard is broken.

import { strictEqual, throws } from 'node:assert';
import type { Json } from '../../src/protocol/index.js';
import type { ApprovalPolicy } from '../../src/protocol/loop.js';
import { agentDef, replyProvider } from '../support/scripted-agents.js';
import type { HostLibrary } from './library.js';

export type DefinitionCheck = (library: HostLibrary) => Promise<void>;

const ID = 'pay/v1';
const NAME = 'pay_2F_v1';

const TOOL = {
  id: ID,
  name: 'Pays',
  version: '1.0.0',
  kind: 'prompt',
  inputSchema: true,
  outputSchema: true,
  prompt: { template: 'Pay.' },
  backend: { id: 'mock' },
};

/** Runs an agent whose model calls this tool name, and returns how often each tool ran. */
async function runsOf(
  library: HostLibrary,
  ids: readonly string[],
  approvals: { readonly [tool: string]: ApprovalPolicy },
  calledName: string,
): Promise<ReadonlyMap<string, number>> {
  const runs = new Map<string, number>();
  const registry = new library.Registry(new Map());
  const countRun = (id: string) => (): Json => {
    runs.set(id, (runs.get(id) ?? 0) + 1);
    return null;
  };
  for (const id of ids) {
    registry.add(library.defineLoop({ id, input: true, output: true, safety: 'idempotent', tool: countRun(id) }));
  }
  registry.add(agentDef('agent', { tools: [...ids], approvals }));
  const providers = new Map([['replies', replyProvider([{ calls: [[calledName, {}]] }, { text: 'Done.' }])]]);
  const clock = new library.ManualClock(1_000_000);
  const host = new library.Host({
    store: library.memoryStore(),
    clock,
    ids: library.seededIds(1),
    registry,
    providers,
  });
  await host.run({ loop: 'agent', input: { prompt: 'Pay.' }, sessionId: 's' });
  return runs;
}

export const definitionChecks = {
  'a misspelt policy member is refused': async ({ Registry }) => {
    for (const key of ['polcy', 'Policy', 'policies']) {
      throws(() => new Registry().add({ ...TOOL, [key]: { approval: 'ask' } }), /did you mean "policy"/, key);
    }
    new Registry().add({ ...TOOL, prompts: {} });
  },

  'two tools of one agent with the same name for models are refused': async ({ Registry }) => {
    const refusal = /"pay\/v1" and "pay_2F_v1", which a model would both see as "pay_2F_v1"/;
    throws(() => new Registry().add(agentDef('agent', { tools: [ID, NAME] })), refusal);
  },

  'a blocked tool does not run under its name for models': async (library) => {
    for (const calledName of [ID, NAME]) {
      const blocked = await runsOf(library, [ID], { [ID]: 'blocked' }, calledName);
      strictEqual(blocked.get(ID), undefined, calledName);
      const pending = await runsOf(library, [ID], { [ID]: 'ask' }, calledName);
      strictEqual(pending.get(ID), undefined, calledName);
      const allowed = await runsOf(library, [ID], { [ID]: 'always_allow', '*': 'blocked' }, calledName);
      strictEqual(allowed.get(ID), 1, calledName);
    }
  },

  'a tool whose id is the name of another tool for models does not run in its place': async (library) => {
    const approvals = { [ID]: 'blocked', [NAME]: 'always_allow' } as const;
    const runs = await runsOf(library, [ID, NAME], approvals, NAME).catch((): ReadonlyMap<string, number> => new Map());
    strictEqual(runs.size, 0);
  },
} satisfies Readonly<Record<string, DefinitionCheck>>;
