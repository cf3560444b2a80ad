import { describe, expect } from 'vitest';
import { composite, hostOf, tool } from '../../spec/support/host-fixture.js';
import { agentDef, replyProvider } from '../../spec/support/scripted-agents.js';
import { verifies } from '../../spec/verifies.js';
import { memoryStore } from '../adapters/memory/index.js';
import { defineLoop } from '../loops/define.js';
import type { ToolFunction } from '../loops/tool-implementation.js';
import type { Grant } from '../protocol/grant.js';

const grant = (more: Partial<Grant> = {}): Grant => ({ allowedTools: ['*'], limits: {}, ...more });
const STEP = { loopId: 'act', inputMapping: '$.input' } as const;

/** The loops that are tools of a model and no effect themselves. Each performs `act` or acts itself. */
const BODIES = ['steps', 'code', 'helper', 'plan'] as const;

/** A host whose agent calls one of the loops `count` times. */
function hostCalling(name: string, count = 1, store = memoryStore()) {
  const performed: string[] = [];
  const act: ToolFunction = () => {
    performed.push('act');
    return 'done';
  };
  const code = defineLoop({
    id: 'code',
    input: true,
    output: true,
    run: () => {
      performed.push('code');
      return 'done';
    },
  });
  const call = { calls: [[name, { prompt: 'x' }]] as const };
  const inner = Array.from({ length: count }, () => [{ calls: [['act', {}]] as const }, { text: 'ok' }]).flat();
  const definitions = [
    agentDef('agent', { tools: [...BODIES, 'act'] }),
    agentDef('helper', { backend: { id: 'inner' }, tools: ['act'] }),
    composite('steps', [STEP]),
    { ...composite('plan', []), composite: { plan: { steps: [{ loop: 'act' }] } } },
    tool('act', 'builtin:act'),
    code,
  ];
  const outer = [...Array.from({ length: count }, () => call), { text: 'finished' }];
  const providers = [replyProvider(outer), replyProvider(inner, 'inner')];
  return { host: hostOf(definitions, { store, tools: { act }, providers }), performed, store };
}

const run = (host: ReturnType<typeof hostOf>, given: Grant) =>
  host.run({ loop: 'agent', input: { prompt: 'go' }, grant: given });

describe.each(BODIES)('the tool "%s", which is no effect', (name) => {
  verifies('grant.review', 'is refused if its review is blocked, by its name or a pattern', async () => {
    const { host, performed } = hostCalling(name);
    expect(await run(host, grant({ review: { [name]: 'blocked' } }))).toMatchObject({ status: 'ok' });
    expect(performed).toEqual([]);
  });

  verifies('grant.review', 'asks a person if its review is ask, and a replay repeats that', async () => {
    const { host, performed } = hostCalling(name);
    const paused = await run(host, grant({ review: { [name]: 'ask' } }));
    expect(paused).toMatchObject({ status: 'paused' });
    expect(performed).toEqual([]);
    const pending = await host.archive.approvals();
    expect(pending.map(({ tool: asked }) => asked)).toEqual([name]);
    await host.answer({ id: pending[0]?.id ?? '', approved: true, by: 'ada' });
    expect(await host.resume(paused.turnId)).toMatchObject({ status: 'ok' });
    expect(performed).toHaveLength(1);
    expect(await host.replay(paused.turnId)).toMatchObject({ matches: true });
  });

  verifies('grant.tools', 'runs only with arguments that satisfy the grant', async () => {
    const schema = (prompt: string) => ({ properties: { prompt: { const: prompt } }, required: ['prompt'] });
    for (const pattern of [name, '*']) {
      const refused = hostCalling(name);
      await run(refused.host, grant({ arguments: { [pattern]: schema('y') } }));
      expect(refused.performed, pattern).toEqual([]);
    }
    const { host, performed } = hostCalling(name);
    await run(host, grant({ arguments: { [name]: schema('x') } }));
    expect(performed).toHaveLength(1);
  });

  verifies('grant.budget', 'is called at most as often as the grant says', async () => {
    for (const limit of [0, 2]) {
      const { host, performed } = hostCalling(name, 4);
      const stopped = await run(host, grant({ limits: { effects: { [name]: limit } } }));
      expect(stopped).toMatchObject({ status: 'stopped', reason: expect.stringContaining(`effects:${name}`) });
      expect(performed).toHaveLength(limit);
      expect(await host.resume(stopped.turnId)).toMatchObject({ status: 'stopped' });
      const finished = await host.resume(stopped.turnId, { grant: grant() });
      expect(finished, 'a turn that was counted continues without the limit').toMatchObject({ status: 'ok' });
      expect(performed).toHaveLength(4);
    }
  });
});

verifies('grant.review', 'a review of all tools asks for the effects inside of composites and agents', async () => {
  for (const name of ['steps', 'helper', 'plan']) {
    const { host } = hostCalling(name);
    expect(await run(host, grant({ review: { '*': 'ask' } }))).toMatchObject({ status: 'paused' });
    expect((await host.archive.approvals()).map(({ tool: asked }) => asked)).toEqual(['act']);
  }
});

verifies('grant.review', 'a review of all tools covers code, but neither models nor the loop of the turn', async () => {
  for (const review of ['ask', 'blocked'] as const) {
    const { host, performed } = hostCalling('code');
    expect(await run(host, grant({ review: { '*': review } }))).toMatchObject({
      status: review === 'ask' ? 'paused' : 'ok',
    });
    expect(performed).toEqual([]);
  }
  const { host, performed } = hostCalling('code');
  const own = await host.run({ loop: 'code', input: {}, grant: grant({ review: { '*': 'blocked' } }) });
  expect(own).toMatchObject({ status: 'ok' });
  expect(performed).toEqual(['code']);
});

verifies('grant.review', 'a body that has begun continues under a grant with another review', async () => {
  const { host, performed } = hostCalling('helper', 2);
  const stopped = await run(host, grant({ limits: { effects: 0 } }));
  expect(stopped).toMatchObject({ status: 'stopped' });
  const asked = await host.resume(stopped.turnId, { grant: grant({ review: { helper: 'ask' } }) });
  expect(asked, 'the second call is asked for').toMatchObject({ status: 'paused' });
  expect(performed).toHaveLength(1);
});
