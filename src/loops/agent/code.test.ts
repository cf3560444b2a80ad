import { jsonSchema, tool as sdkTool } from 'ai';
import { MockLanguageModelV3, simulateReadableStream } from 'ai/test';
import { expect } from 'vitest';
import { z } from 'zod';
import { hostOf, tool } from '../../../spec/support/host-fixture.js';
import { agentDef, modelOf, partsOf, replyProvider } from '../../../spec/support/scripted-agents.js';
import { outputOf } from '../../../spec/support/turn-results.js';
import { verifies } from '../../../spec/verifies.js';
import { parseToml } from '../../adapters/files/parse-toml.js';
import { memoryStore } from '../../adapters/memory/index.js';
import type { Host } from '../../host/host.js';
import { loopsTool } from '../../protocol/tool.js';
import type { TurnResult } from '../../protocol/trace.js';
import { crashingStore } from '../../testing/crashing-store.js';
import { ManualClock } from '../../testing/manual-clock.js';
import { defineLoop } from '../define.js';
import { defineAgent } from '../define-agent.js';

const CALL = { text: 'Adding. ', calls: [['add', { a: 1, b: 2 }]] as const };
const REPLIES = [CALL, { text: 'It is 3.' }];

const add = loopsTool({
  name: 'add',
  description: 'Adds two numbers',
  readOnly: true,
  inputSchema: z.object({ a: z.number(), b: z.number() }),
  execute: ({ a, b }, { onToolOutputDelta }) => {
    onToolOutputDelta('adding');
    return a + b;
  },
});

verifies('agent.document', 'the same agent in JSON, in TOML and in code behaves the same', async () => {
  const document = agentDef('agent', { tools: ['add'], maxRounds: 5, instructions: 'Add.' });
  const toml = parseToml(`
id = "agent"
name = "agent"
version = "1.0.0"
kind = "composite"
[inputSchema]
type = "object"
required = ["prompt"]
properties = { prompt = { type = "string" } }
[outputSchema]
type = "object"
required = ["text"]
properties = { text = { type = "string" } }
[composite.agent]
backend = { id = "replies" }
tools = ["add"]
maxRounds = 5
instructions = "Add."
`);
  const code = defineAgent({ id: 'agent', model: 'replies', tools: [add], maxRounds: 5, instructions: 'Add.' });
  const traces = await Promise.all(
    [document, toml, code].map(async (agent) => {
      const host = hostOf([agent, ...(agent === code ? [] : [tool('add', 'builtin:add')])], {
        providers: [replyProvider(REPLIES)],
        tools: { add: () => 3 },
      });
      const result = await host.run({ loop: 'agent', input: { prompt: '1+2' }, sessionId: 's' });
      expect(result).toMatchObject({ status: 'ok', output: { text: 'It is 3.' } });
      expect(await host.replay(result.turnId)).toMatchObject({ matches: true });
      return result.trace.map(({ type }) => type);
    }),
  );
  expect(traces[1]).toEqual(traces[0]);
  expect(traces[2]).toEqual(traces[0]);
  expect(code.definition.composite?.agent).toEqual({ ...document.composite?.agent, tools: ['agent.add'] });
});

verifies('looops.tool.factory', 'a tool gets an idempotency key: one per call, the same after a crash', async () => {
  const keys: (string | undefined)[] = [];
  const pay = loopsTool({
    name: 'pay',
    safety: 'keyed',
    inputSchema: z.object({ cents: z.number() }),
    execute: ({ cents }, { idempotencyKey }) => {
      keys.push(idempotencyKey);
      return cents;
    },
  });
  const payment = { calls: [['pay', { cents: 5 }]] as const };
  const agent = defineAgent({ id: 'agent', model: 'replies', tools: [pay] });
  const replies = () => ({ providers: [replyProvider([payment, payment, { text: 'Paid.' }])] });
  const request = { loop: 'agent', input: { prompt: 'Pay twice.' }, key: 'k' };
  let repeated = 0;
  for (let appendNumber = 1; appendNumber <= 12; appendNumber++) {
    const store = memoryStore();
    keys.length = 0;
    const crashing = hostOf([agent], { store: crashingStore(store, { appendNumber, when: 'before' }), ...replies() });
    await crashing.run(request).catch(() => undefined);
    expect(await hostOf([agent], { store, seed: 2, ...replies() }).run(request)).toMatchObject({ status: 'ok' });
    expect(new Set(keys).size, `crash before append ${appendNumber}`).toBe(2);
    expect(keys).not.toContain(undefined);
    repeated += keys.length - 2;
  }
  expect(repeated).toBeGreaterThan(0);
});

verifies('looops.event.read-only', 'the tool-call event reports readOnly as the tool declares it', async () => {
  const cases: readonly [options: object, reported: boolean][] = [
    [{ readOnly: false }, false],
    [{ readOnly: true }, true],
    [{}, false],
    [{ safety: 'pure' }, true],
    [{ safety: 'pure', readOnly: false }, false],
    [{ safety: 'once', readOnly: true }, true],
  ];
  const inputSchema = z.object({});
  const tools = cases.map(([options], index) =>
    loopsTool({ name: `t${index}`, inputSchema, execute: () => index, ...options }),
  );
  expect(tools.map(({ readOnly }) => readOnly)).toEqual(cases.map(([, reported]) => reported));
  const documents = [{ readOnly: false }, { readOnly: true }].map((metadata, index) =>
    tool(`d${index}`, 'builtin:echo', { metadata, tool: { implementation: 'builtin:echo', safety: 'pure' } }),
  );
  const calls = [...tools.map(({ name }) => name), 'd0', 'd1'].map((name) => [name, {}] as const);
  const agent = defineAgent({ id: 'agent', model: 'replies', tools: [...tools, 'd0', 'd1'] });
  const host = hostOf([agent, ...documents], { providers: [replyProvider([{ text: '', calls }, { text: 'Done.' }])] });
  const streamed: (boolean | undefined)[] = [];
  const stream = { onToolCall: (info: { readonly readOnly?: boolean }) => void streamed.push(info.readOnly) };
  const { sessionId } = await host.run({ loop: 'agent', input: { prompt: 'go' } }, { stream });
  const inJournal = (await host.archive.events(sessionId)).flatMap(({ type, content }) =>
    type === 'tool-call' ? [content.readOnly] : [],
  );
  const expected = [...cases.map(([, reported]) => reported), false, true];
  expect(inJournal).toEqual(expected);
  expect(streamed).toEqual(expected);
});

verifies('looops.tool.factory', 'a tool of the AI SDK runs under its key, with validated input', async () => {
  const parts = REPLIES.map((reply, index) => partsOf(reply, index));
  let modelCalls = 0;
  const model = new MockLanguageModelV3({
    doStream: async () => ({ stream: simulateReadableStream({ chunks: parts[modelCalls++] ?? [] }) as never }),
  });
  const inputs: unknown[] = [];
  const agent = defineAgent({
    id: 'agent',
    model,
    tools: {
      add: sdkTool({
        inputSchema: jsonSchema<{ a: number }>({
          type: 'object',
          properties: { a: { type: 'number' } },
          required: ['a'],
        }),
        execute: (input) => inputs.push(input),
      }),
    },
  });
  const streaming = { onDelta: () => {} };
  const result = await hostOf([agent]).run({ loop: agent, input: { prompt: 'go' } }, streaming);
  expect(result).toMatchObject({ status: 'ok', output: { text: 'It is 3.' } });
  expect(inputs).toEqual([{ a: 1, b: 2 }]);
  const invalid = modelOf([{ calls: [['add', { a: 'x' }]] }, { text: 'no' }]);
  const strict = defineAgent({ id: 'strict', model: invalid, tools: { add: recordingTool(inputs) } });
  expect(await hostOf([strict]).run({ loop: strict, input: { prompt: 'go' } })).toMatchObject({
    status: 'ok',
  });
  expect(inputs, 'the tool ran with invalid input').toHaveLength(1);
});

const recordingTool = (inputs: unknown[]) =>
  sdkTool({
    inputSchema: jsonSchema<{ a: number }>({ type: 'object', properties: { a: { type: 'number' } }, required: ['a'] }),
    execute: (input) => inputs.push(input),
  });

verifies(
  'definition.code',
  'an agent in code has typed input and output, and invalid options are refused',
  async () => {
    const agent = defineAgent({
      id: 'typed',
      model: modelOf([{ text: '{"n":1}' }]),
      output: z.object({ n: z.number() }),
    });
    const result = await hostOf([agent]).run({ loop: agent, input: { prompt: 'n' } });
    const n: number | undefined = outputOf(result)?.n;
    expect(n).toBe(1);
    const refusal = (more: object) => () => defineAgent({ id: 'x', model: 'mock', ...more } as never);
    expect(refusal({ aprovals: {} })).toThrow(
      'unknown option "aprovals" (did you mean "approvals"?); the options are ',
    );
    expect(refusal({ system: 'Help.' })).toThrow('unknown option "system" (did you mean "instructions"?)');
    expect(refusal({ tools: [{}] })).toThrow('made with tool()');
    expect(refusal({ model: 7 })).toThrow('model must be');
    expect(refusal({ tools: { a: {} } })).toThrow('inputSchema');
    const filters = { before: [{ pattern: 'a' }] };
    expect(refusal({ policy: { filters } })).toThrow('/policy/filters: has no effect on an agent');
  },
);

verifies('agent.stop', 'a deadline ends a tool that never returns', async () => {
  const clock = new ManualClock(1_000_000);
  const never = (): Promise<never> => new Promise(() => {});
  const agent = agentDef('agent', { tools: ['hang'], stop: { deadlineMs: 1000 } });
  const providers = [replyProvider([{ calls: [['hang', {}]] }, { text: 'never said' }])];
  const host = hostOf([agent, tool('hang', 'builtin:hang')], { providers, tools: { hang: never }, clock });
  const running = host.run({ loop: 'agent', input: { prompt: 'go' }, sessionId: 's' });
  for (let turns = 0; turns < 20; turns++) await new Promise((resolve) => setImmediate(resolve));
  await clock.advance(1001);
  const result = await running;
  expect(result).toMatchObject({ status: 'stopped', reason: expect.stringContaining('deadline') });
  const errors = (await host.archive.events('s')).flatMap((event) =>
    event.type === 'tool-error' ? [event.content.error] : [],
  );
  expect(errors[0]).toContain('did not end within');
  expect(await host.replay(result.turnId)).toMatchObject({ matches: true });
});

verifies('agent.abort', 'a cancelled turn ends even if its tool ignores the signal', async () => {
  const clock = new ManualClock(1_000_000);
  const hang = defineLoop({ id: 'hang', input: true, output: true, tool: () => new Promise<never>(() => {}) });
  const agent = agentDef('agent', { tools: ['hang'], toolTimeoutMs: 1000 });
  const host = hostOf([agent, hang], { providers: [replyProvider([{ calls: [['hang', {}]] }])], clock });
  const { turnId, running } = await startTurn(host);
  expect(await host.cancel(turnId, 'enough')).toBe(true);
  for (let turns = 0; turns < 20; turns++) await new Promise((resolve) => setImmediate(resolve));
  await clock.advance(1001);
  expect(await running).toMatchObject({ status: 'cancelled', error: { code: 'CANCELLED' } });
});

verifies('agent.abort', 'the abort signal of a model call that has ended is never aborted', async () => {
  const aborted: number[] = [];
  let modelCalls = 0;
  const model = new MockLanguageModelV3({
    doGenerate: async ({ abortSignal }) => {
      const index = modelCalls++;
      abortSignal?.addEventListener('abort', () => aborted.push(index));
      if (index === 15) return new Promise<never>(() => {});
      const input = '{"a":1,"b":2}';
      const content = [{ type: 'tool-call' as const, toolCallId: `c${index}`, toolName: 'add', input }];
      return { content, finishReason: { unified: 'tool-calls', raw: undefined }, usage: NO_USAGE, warnings: [] };
    },
  });
  const host = hostOf([defineAgent({ id: 'agent', model, tools: [add] })]);
  const { turnId, running } = await startTurn(host);
  expect(modelCalls).toBe(16);
  await host.cancel(turnId, 'enough');
  expect(await running).toMatchObject({ error: { code: 'CANCELLED' } });
  expect(aborted).toEqual([15]);
});

const NO_USAGE = {
  inputTokens: { total: 0, noCache: 0, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 0, text: 0, reasoning: 0 },
};

const THEN = 'then';

verifies(
  'looops.tool.factory',
  'the result of a tool that yields several values is the last one, also behind a promise',
  async () => {
    async function* values() {
      yield 'one';
      yield 'two';
    }
    const thenable = { [THEN]: (resolve: (values: unknown) => void) => resolve(values()) };
    for (const execute of [values, async () => values(), () => thenable]) {
      const several = loopsTool({ name: 'several', inputSchema: z.object({}), execute: execute as never });
      const agent = defineAgent({
        id: 'agent',
        model: modelOf([{ calls: [['several', {}]] }, { text: 'x' }]),
        tools: [several],
      });
      const host = hostOf([agent]);
      await host.run({ loop: agent, input: { prompt: 'go' }, sessionId: 's' });
      const results = (await host.archive.events('s')).flatMap(({ type, content }) =>
        type === 'tool-result' ? [content] : [],
      );
      expect(results).toMatchObject([{ result: 'two' }]);
    }
  },
);

/** Starts a turn and waits until its tool or its model is running. */
async function startTurn(host: Host): Promise<{ turnId: string; running: Promise<TurnResult> }> {
  const running = host.run({ loop: 'agent', input: { prompt: 'go' }, sessionId: 's' });
  for (let turns = 0; turns < 20; turns++) await new Promise((resolve) => setImmediate(resolve));
  const [turn] = await host.archive.turns('s');
  return { turnId: turn?.turnId ?? '', running };
}

verifies(
  'agent.crash',
  'an agent that crashed at any append resumes with the same conversation and repeats at most one tool call',
  async () => {
    let runs = 0;
    const count = defineLoop({ id: 'add', input: true, output: true, safety: 'idempotent', tool: () => ++runs && 3 });
    const agent = agentDef('agent', { tools: ['add'] });
    const request = { loop: 'agent', input: { prompt: '1+2' }, sessionId: 's', key: 'k' } as const;
    const replies = (): ReturnType<typeof replyProvider>[] => [replyProvider([CALL, CALL, { text: 'It is 3.' }])];
    const counting = crashingStore(memoryStore());
    const clean = await hostOf([agent, count], { store: counting, providers: replies() }).run(request);
    expect(clean).toMatchObject({ status: 'ok', output: { text: 'It is 3.' } });
    expect(counting.appendCount).toBeGreaterThan(4);
    for (let append = 1; append <= counting.appendCount; append++) {
      for (const when of ['before', 'after'] as const) {
        const store = memoryStore();
        runs = 0;
        const crashing = hostOf([agent, count], {
          store: crashingStore(store, { appendNumber: append, when }),
          providers: replies(),
        });
        await crashing.run(request).catch(() => undefined);
        const second = hostOf([agent, count], { store, providers: replies(), seed: 2 });
        const result = await second.run(request);
        expect(result, `crash ${when} ${append}`).toMatchObject({ status: 'ok', output: outputOf(clean) });
        expect(await second.archive.events('s')).toHaveLength(8);
        expect(runs).toBeLessThanOrEqual(3);
        expect(await second.replay(result.turnId)).toMatchObject({ matches: true });
      }
    }
  },
);
