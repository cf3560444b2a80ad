import { expect } from 'vitest';
import { z } from 'zod';
import { hostOf, tool } from '../../../spec/support/host-fixture.js';
import { agentDef, replyProvider } from '../../../spec/support/scripted-agents.js';
import { errorOf } from '../../../spec/support/turn-results.js';
import { verifies } from '../../../spec/verifies.js';
import { memoryStore } from '../../adapters/memory/index.js';
import type { LoopError } from '../../base/errors.js';
import type { ApprovalPolicy, LoopDef } from '../../protocol/loop.js';
import type { ModelCallOptions } from '../../protocol/model.js';
import { loopsTool } from '../../protocol/tool.js';
import { defineAgent } from '../define-agent.js';

const PROVIDER_NAME = /^[A-Za-z0-9_-]{1,64}$/;
const IDS = ['summarize/v1', '_x', 'fs.read', 'größe', `long/${'x'.repeat(200)}`];
const NAME = 'summarize_2F_v1';

/** All tool names in the request to a model. */
function namesIn({ tools = [], prompt }: ModelCallOptions): string[] {
  const parts = prompt.flatMap(({ content }): readonly object[] => (typeof content === 'string' ? [] : content));
  return [
    ...tools.map(({ name }) => name),
    ...parts.flatMap((part) => ('toolName' in part ? [String(part.toolName)] : [])),
  ];
}

verifies(
  'agent.names',
  'a provider gets only names that it accepts; journal and envelopes contain the loop ids',
  async () => {
    const inputs: unknown[] = [];
    const store = memoryStore();
    const callAll = ({ tools = [] }: ModelCallOptions): object => ({
      text: 'Go. ',
      calls: tools.map(({ name }) => [name, { by: name }] as const),
    });
    const provider = replyProvider([callAll, { text: 'Done.' }, { text: 'Again.' }]);
    const host = hostOf([agentDef('agent', { tools: IDS }), ...IDS.map((id) => tool(id, 'builtin:note'))], {
      store,
      providers: [provider],
      tools: { note: (input) => inputs.push(input) },
    });
    const live: (string | undefined)[] = [];
    const options = { onDelta: ({ toolName }: { readonly toolName?: string }) => void live.push(toolName) };
    const first = await host.run({ loop: 'agent', input: { prompt: 'go' }, sessionId: 's' }, options);
    expect(first).toMatchObject({ status: 'ok', output: { text: 'Done.' } });
    expect(inputs).toHaveLength(IDS.length);
    await host.run({ loop: 'agent', input: { prompt: 'again' }, sessionId: 's' });
    expect(provider.requests.map((call) => namesIn(call).length)).toEqual([5, 15, 15]);
    expect(provider.requests.flatMap(namesIn).filter((name) => !PROVIDER_NAME.test(name))).toEqual([]);
    const events = await host.archive.events('s');
    const toolNames = events.flatMap(({ content }) => ('toolName' in content ? [content.toolName] : []));
    expect(toolNames).toHaveLength(10);
    expect(new Set(toolNames)).toEqual(new Set(IDS));
    expect(new Set(live.filter((name) => name !== undefined))).toEqual(new Set(IDS));
    const started = first.trace.flatMap(({ type, payload }) =>
      type === 'call.tool.invoked' ? [(payload as { toolName: string }).toolName] : [],
    );
    expect(new Set(started)).toEqual(new Set(IDS));
    expect(await host.replay(first.turnId)).toMatchObject({ matches: true });
  },
);

verifies('agent.names', 'a model that uses the loop id itself calls the same tool', async () => {
  const host = hostOf([agentDef('agent', { tools: ['summarize/v1'] }), tool('summarize/v1')], {
    providers: [replyProvider([{ calls: [['summarize/v1', { a: 1 }]] }, { text: 'ok' }])],
  });
  await host.run({ loop: 'agent', input: { prompt: 'go' }, sessionId: 's' });
  expect((await host.archive.events('s')).map(({ type }) => type)).toContain('tool-result');
});

verifies('agent.names', 'the error for an unknown tool lists the names that the model can use', async () => {
  const provider = replyProvider([{ calls: [['no such/tool', {}]] }, { text: 'ok' }]);
  const host = hostOf([agentDef('agent', { tools: ['summarize/v1'] }), tool('summarize/v1')], {
    providers: [provider],
  });
  await host.run({ loop: 'agent', input: { prompt: 'go' }, sessionId: 's' });
  const { requests } = provider;
  expect(JSON.stringify(requests[1]?.prompt.at(-1))).toContain(`there are ${NAME}.`);
  expect(requests.flatMap(namesIn).filter((name) => !PROVIDER_NAME.test(name))).toEqual([]);
});

verifies('agent.names', 'approval policies apply by loop id, whichever name the model uses', async () => {
  for (const name of [NAME, 'summarize/v1']) {
    for (const [approvals, status] of [
      [{ 'summarize/v1': 'ask' }, 'paused'],
      [{ '*': 'ask' }, 'paused'],
      [{ 'summarize/v1': 'blocked', '*': 'always_allow' }, 'ok'],
      [{ 'summarize/v1': 'always_allow', '*': 'blocked' }, 'ok'],
    ] as const) {
      let runs = 0;
      const host = hostOf(
        [agentDef('agent', { tools: ['summarize/v1'], approvals }), tool('summarize/v1', 'builtin:count')],
        {
          providers: [replyProvider([{ calls: [[name, {}]] }, { text: 'ok' }])],
          tools: { count: () => ++runs },
        },
      );
      const policy: ApprovalPolicy = 'summarize/v1' in approvals ? approvals['summarize/v1'] : approvals['*'];
      const result = await host.run({ loop: 'agent', input: { prompt: 'go' }, sessionId: 's' });
      expect(result.status, `${name} ${JSON.stringify(approvals)}`).toBe(status);
      expect(runs).toBe(policy === 'always_allow' ? 1 : 0);
      if (policy !== 'ask') continue;
      const [approval] = await host.archive.approvals('s');
      expect(approval?.tool).toBe('summarize/v1');
      await host.answer({ id: approval?.id ?? '', approved: true, by: 'ada' });
      expect((await host.resume(result.turnId)).status).toBe('ok');
      expect(runs).toBe(1);
    }
  }
});

function refusalOf(definition: unknown): LoopError {
  try {
    hostOf([definition]);
  } catch (thrown) {
    return thrown as LoopError;
  }
  throw new Error('it was registered');
}

verifies(
  'agent.names',
  'two tools with the same name for the model are refused when registered, with both ids named',
  () => {
    const lists: readonly Partial<NonNullable<NonNullable<LoopDef['composite']>['agent']>>[] = [
      { tools: ['summarize/v1', NAME] },
      { tools: [NAME, 'summarize/v1'] },
      { tools: ['summarize/v1'], handoffs: [NAME] },
      { tools: ['summarize/v1', NAME], approvals: { 'summarize/v1': 'blocked', [NAME]: 'always_allow' } },
    ];
    for (const spec of lists) {
      const error = refusalOf(agentDef('agent', spec));
      expect(error).toMatchObject({ code: 'DEFINITION_INVALID', data: { path: '/composite/agent/tools' } });
      expect(error.message).toContain('"summarize/v1"');
      expect(error.message).toContain(`"${NAME}"`);
    }
    const inputSchema = z.object({});
    const tools = ['summarize/v1', NAME].map((name) => loopsTool({ name, inputSchema, execute: () => 1 }));
    expect(() => defineAgent({ id: 'agent', model: 'replies', tools })).toThrow(/would both see as "summarize_2F_v1"/);
    expect(refusalOf(agentDef('agent', { tools: ['a', 'a'] })).message).toContain('names "a" twice');
  },
);

verifies(
  'agent.names',
  'an approval policy under the name of a tool instead of its id is refused, because it would have no effect',
  async () => {
    const host = hostOf(
      [agentDef('agent', { tools: ['summarize/v1'], approvals: { [NAME]: 'blocked' } }), tool('summarize/v1')],
      { providers: [replyProvider([{ text: 'ok' }])] },
    );
    const result = await host.run({ loop: 'agent', input: { prompt: 'go' } });
    expect(errorOf(result)).toMatchObject({
      code: 'DEFINITION_INVALID',
      details: { path: `/composite/agent/approvals/${NAME}` },
    });
  },
);
