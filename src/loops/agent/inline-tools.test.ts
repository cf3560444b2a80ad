import { jsonSchema, tool as sdkTool } from 'ai';
import { expect } from 'vitest';
import { z } from 'zod';
import { onlyPending } from '../../../spec/support/approval-fixture.js';
import { hostOf } from '../../../spec/support/host-fixture.js';
import { agentDef, modelOf, replyProvider } from '../../../spec/support/scripted-agents.js';
import { verifies } from '../../../spec/verifies.js';
import { tool } from '../../protocol/tool.js';
import { toolKinds } from '../../surfaces/ai-sdk/tool-kinds.js';
import { defineLoop } from '../define.js';
import { defineAgent } from '../define-agent.js';

const INPUT = { prompt: 'go' };
const inputSchema = z.object({}).loose();
const weather = (report: string, options: object = {}) =>
  tool({ name: 'weather', inputSchema, execute: () => report, ...options });
const callWeather = () => modelOf([{ calls: [['weather', {}]] }, { text: 'done' }]);

verifies('agent.inline', 'two agents may each have their own tool of one name', async () => {
  const agents = ['north', 'south'].map((id) =>
    defineAgent({ id, model: callWeather(), tools: { weather: weather(`${id} wind`) } }),
  );
  const host = hostOf(agents);
  for (const [index, id] of ['north', 'south'].entries()) {
    expect(agents[index]?.definition.composite?.agent?.tools).toEqual([`${id}.weather`]);
    const result = await host.run({ loop: id, input: INPUT });
    expect(result.trace.filter(({ type }) => type === 'child.started').map(({ payload }) => payload)).toMatchObject([
      { loopId: `${id}.model` },
      { loopId: `${id}.weather` },
      { loopId: `${id}.model` },
    ]);
    const events = await host.archive.events(result.sessionId);
    expect(events.filter(({ type }) => type.startsWith('tool-'))).toMatchObject([
      { type: 'tool-call', content: { toolName: 'weather' } },
      { type: 'tool-result', content: { toolName: 'weather', result: `${id} wind` } },
    ]);
    expect(await host.replay(result.turnId)).toMatchObject({ matches: true });
    expect(toolKinds(host, id)('weather')).toBe('tool');
  }
});

verifies('agent.inline', 'the model sees the name, for tools of the AI SDK too', async () => {
  const seen: unknown[] = [];
  const record = (call: {
    readonly tools?: readonly { readonly name: string }[] | undefined;
    readonly prompt: unknown;
  }) => {
    seen.push(
      call.tools?.map(({ name }) => name),
      JSON.stringify(call.prompt).includes('"toolName":"weather"'),
    );
  };
  const model = modelOf([
    (call) => {
      record(call as never);
      return { calls: [['weather', {}]] };
    },
    (call) => {
      record(call as never);
      return { text: 'done' };
    },
  ]);
  const sdk = sdkTool({ inputSchema: jsonSchema<object>({ type: 'object' }), execute: () => 'sun' });
  const lookup = defineLoop({ id: 'look/up', input: true, output: true, tool: () => 1 });
  const agent = defineAgent({ id: 'a.b', model, tools: { weather: sdk, lookup } });
  expect(agent.definition.composite?.agent?.tools).toEqual(['a.b.weather', 'look/up']);
  expect((await hostOf([agent]).run({ loop: 'a.b', input: INPUT })).status).toBe('ok');
  expect(seen).toEqual([['weather', 'look_2F_up'], false, ['weather', 'look_2F_up'], true]);
});

verifies('agent.inline', 'an approval names the loop id, and the tool call of the model shows it', async () => {
  const agent = defineAgent({ id: 'north', model: callWeather(), tools: [weather('wind', { approval: 'ask' })] });
  const host = hostOf([agent]);
  const { sessionId } = await host.run({ loop: agent, input: INPUT });
  expect(await onlyPending(host)).toMatchObject({ tool: 'north.weather', path: ['north', 'north.weather'] });
  const calls = (await host.archive.events(sessionId)).filter(({ type }) => type === 'tool-call');
  expect(calls).toMatchObject([{ content: { toolName: 'weather', approvalStatus: 'pending_approval' } }]);
});

verifies('agent.inline', 'policies of every enclosing agent accept the name and the id', async () => {
  const statusWith = async (approvals: object, options: object) => {
    const inner = defineAgent({ id: 'north', model: callWeather(), tools: [weather('wind', options)], ...approvals });
    return (await hostOf([inner]).run({ loop: inner, input: INPUT })).status;
  };
  for (const name of ['weather', 'north.weather']) {
    expect(await statusWith({ approvals: { [name]: 'ask' } }, {}), name).toBe('paused');
    expect(await statusWith({ approvals: { [name]: 'always_allow' } }, { approval: 'ask' }), name).toBe('ok');
  }
  const mixed = { approvals: { weather: 'always_allow', 'north.weather': 'ask' } };
  expect(await statusWith(mixed, {})).toBe('paused');
  const north = () => defineAgent({ id: 'north', model: callWeather(), tools: [weather('wind')] });
  const providers = [replyProvider([{ calls: [['north', INPUT]] }, { text: 'done' }])];
  const outer = (approvals: object) => agentDef('boss', { tools: ['north'], ...approvals });
  const run = (approvals: object) =>
    hostOf([north(), outer(approvals)], { providers }).run({ loop: 'boss', input: INPUT });
  for (const name of ['weather', 'north.weather', '*'])
    expect((await run({ approvals: { [name]: 'ask' } })).status, name).toBe('paused');
  expect(await run({ approvals: { rain: 'ask' } })).toMatchObject({ error: { code: 'DEFINITION_INVALID' } });
});

verifies('agent.inline', 'a reserved or ambiguous name of an inline tool is refused', () => {
  const named = (name: string) => tool({ name, inputSchema, execute: () => 1 });
  const loop = (id: string) => defineLoop({ id, input: true, output: true, tool: () => 1 });
  const define = (tools: readonly unknown[]) => () => defineAgent({ id: 'a', model: 'm', tools: tools as never });
  expect(define([named('model')])).toThrow(/"model" is reserved \("a\.model"/);
  expect(define([named('x'), loop('x')])).toThrow(/"a\.x" and "x", which a model would both see as "x"/);
  expect(define([named('x_2F_y'), 'x/y'])).toThrow(/would both see as/);
  expect(define([named('x'), named('x')])).toThrow(/twice/);
  expect(define([named('x'), loop('a.x')])).toThrow(/twice/);
  expect(define([named('x'), named('a.x')])).toThrow(/would both see as/);
  expect(define([named('x'), loop('model')])).not.toThrow();
});

verifies('agent.inline', 'the policy of a tool call does not loosen what runs inside of it', async () => {
  const pay = defineLoop({ id: 'pay', input: true, output: true, tool: () => 'paid' });
  const work = defineLoop({
    id: 'work',
    input: true,
    output: true,
    run: async (input, scope) => (await scope.call(pay, input)) as never,
  });
  const model = modelOf([{ calls: [['work', {}]] }, { text: 'done' }]);
  const agent = defineAgent({ id: 'boss', model, tools: [work], approvals: { work: 'always_allow', '*': 'ask' } });
  const host = hostOf([agent]);
  await host.run({ loop: agent, input: INPUT });
  expect((await onlyPending(host)).tool).toBe('pay');
});
