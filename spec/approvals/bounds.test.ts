import { expect } from 'vitest';
import { z } from 'zod';
import { defineLoop } from '../../src/loops/define.js';
import { defineAgent } from '../../src/loops/define-agent.js';
import type { ModelProvider, ModelRequest } from '../../src/loops/model.js';
import { callModel } from '../../src/loops/model-call.js';
import type { Json } from '../../src/protocol/json.js';
import type { Model, ModelStreamPart } from '../../src/protocol/model.js';
import { loopsTool } from '../../src/protocol/tool.js';
import { ManualClock } from '../../src/testing/manual-clock.js';
import { RecordedActions, ticks, within } from '../support/approval-fixture.js';
import { codeOf } from '../support/code-of.js';
import { hostOf, tool } from '../support/host-fixture.js';
import { inProcessorTime } from '../support/processor-time.js';
import { agentDef, modelOf, replyProvider, wholeOf } from '../support/scripted-agents.js';
import { errorOf } from '../support/turn-results.js';
import { verifies } from '../verifies.js';

const REQUEST: ModelRequest = { backendId: 'x', model: 'x', promptLength: 1, prompt: 'x' };
const FINISH = { type: 'finish', finishReason: { unified: 'stop', raw: 'stop' }, usage: {} };

/** A model with this stream. `doGenerate` reads the stream to its end. */
function modelWith(stream: () => unknown): Model {
  const description = { specificationVersion: 'v3' as const, provider: 'x', modelId: 'x', supportedUrls: {} };
  const doStream = (async () => ({ stream: stream() })) as Model['doStream'];
  const doGenerate: Model['doGenerate'] = async ({ abortSignal }) => {
    const parts: ModelStreamPart[] = [];
    for await (const part of stream() as ReadableStream<ModelStreamPart>) {
      abortSignal?.throwIfAborted();
      parts.push(part);
    }
    return wholeOf(parts);
  };
  return { ...description, doStream, doGenerate };
}

const providerOf = (model: Model): ModelProvider => ({ id: 'replies', defaultModel: 'x', open: async () => model });
const codeOfCall = (stream: () => unknown, maxBytes: number): Promise<string> =>
  codeOf(callModel(modelWith(stream), REQUEST, { signal: new AbortController().signal, maxBytes }));

/** A stream that repeats one part forever. */
function endless(part: unknown): ReadableStream<unknown> {
  return new ReadableStream({ pull: (out) => out.enqueue(part) });
}

verifies('agent.hostile', 'a reply that is endless or exceeds its limit is aborted', async () => {
  const parts: readonly unknown[] = [
    ...[null, undefined, 0, '', {}, [], { type: 'nothing' }, { type: 'finish-step' }, { type: 'text-delta' }],
    ...['text-start', 'text-end', 'stream-start', 'raw', 'source', 'file', 'tool-result'].map((type) => ({
      type,
      id: '0',
    })),
    ...['text-delta', 'reasoning-delta', 'tool-input-delta'].map((type) => ({ type, id: '0', delta: '' })),
    ...['text-delta', 'reasoning-delta', 'tool-input-delta'].map((type) => ({ type, id: '0', delta: 'x'.repeat(100) })),
    { type: 'tool-input-start', id: '0', toolName: 'x' },
    { type: 'response-metadata', modelId: 'y' },
    { type: 'tool-call', toolCallId: 'c', toolName: 'pay', input: '{}' },
    { type: 'tool-call', toolCallId: '', toolName: '', input: '' },
  ];
  for (const part of parts) {
    const end = await within(
      20_000,
      codeOfCall(() => endless(part), 2000),
    );
    expect(end, JSON.stringify(part)).toBe('BACKEND_FAILED');
  }
  const big = (length: number) =>
    ReadableStream.from([{ type: 'text-delta', id: '0', delta: 'x'.repeat(length) }, FINISH]);
  expect([await codeOfCall(() => big(1000), 1000), await codeOfCall(() => big(1001), 1000)]).toEqual([
    'nothing',
    'BACKEND_FAILED',
  ]);
});

verifies('agent.hostile', 'a provider that violates its interface ends in a typed error', async () => {
  const reading = (read: () => unknown) => () => ({ getReader: () => ({ read, cancel: async () => {} }) });
  const then = () => {};
  const streams: readonly (() => unknown)[] = [
    ...[reading(() => undefined), reading(async () => null), reading(async () => undefined), reading(async () => 5)],
    // Awaiting a thenable part never ends.
    () => endless({ type: 'text-delta', id: '0', delta: 'x', then }),
    () => endless(new Proxy({}, { get: () => then })),
  ];
  for (const [nth, stream] of streams.entries())
    expect(await within(2000, codeOfCall(stream, 2000)), `stream ${nth}`).toBe('BACKEND_FAILED');
});

verifies('agent.hostile', 'a reply with thousands of calls under one id is processed in linear time', async () => {
  const calls = Array.from({ length: 6000 }, () => ({ type: 'tool-call', toolCallId: 'c', toolName: 'x', input: '' }));
  const model = modelWith(() => ReadableStream.from([...calls, FINISH]));
  const signal = new AbortController().signal;
  const { toolCalls } = await inProcessorTime(1000, () => callModel(model, REQUEST, { signal }));
  expect(new Set(toolCalls?.map(({ id }) => id)).size).toBe(6000);
});

verifies('agent.hostile', 'all of five hundred calls in one reply are answered, in order', async () => {
  const actions = new RecordedActions();
  const names = ['pay', 'nope', 'free'];
  const calls = Array.from(
    { length: 500 },
    (_, nth) => [names[nth % 3] ?? '', { nth }, nth % 2 ? 'same' : `c${nth}`] as const,
  );
  const provider = replyProvider([{ calls }, { text: 'done' }]);
  const boss = agentDef('boss', { tools: ['pay', 'free'], approvals: { pay: 'blocked' } });
  const definitions = [boss, tool('pay', 'builtin:act'), tool('free', 'builtin:act')];
  const host = hostOf(definitions, { providers: [provider], tools: { act: actions.act } });
  const result = await host.run({ loop: 'boss', input: { prompt: 'go' } });
  expect(result).toMatchObject({ status: 'ok', output: { text: 'done' } });
  const message = provider.requests[1]?.prompt.at(-1);
  const answeredNames = message?.role === 'tool' ? message.content.map(({ toolName }) => toolName) : [];
  expect(answeredNames).toEqual(calls.map(([name]) => name));
  const free = calls.flatMap(([name, { nth }]) => (name === 'free' ? [nth] : []));
  expect(actions.performed.map((input) => (input as { readonly nth: number }).nth).sort((a, b) => a - b)).toEqual(free);
  expect(await host.replay(result.turnId)).toMatchObject({ matches: true });
});

verifies(
  'agent.hostile',
  'arguments nested deeper than the call stack end neither the agent nor its later turns',
  async () => {
    for (const depth of [257, 5000, 20_000, 200_000]) {
      const deep = '['.repeat(depth) + ']'.repeat(depth);
      for (const name of ['safe', 'nope']) {
        const provider = replyProvider([{ calls: [[name, deep]] }, { text: 'done' }, { text: 'still here' }]);
        const host = hostOf([agentDef('boss', { tools: ['safe'] }), tool('safe', 'builtin:echo')], {
          providers: [provider],
        });
        const result = await host.run({ loop: 'boss', input: { prompt: 'go' }, sessionId: 's' });
        const later = await host.run({ loop: 'boss', input: { prompt: 'and?' }, sessionId: 's' });
        expect([result.status, later.status, errorOf(later)?.code], `${name} ${depth}`).toEqual([
          'ok',
          'ok',
          undefined,
        ]);
        expect(await host.replay(result.turnId)).toMatchObject({ matches: true });
      }
    }
  },
);

/** Runs an agent while the clock advances. Returns its status or error code, or 'timed out' if it does not end. */
async function inTime(definitions: readonly unknown[], providers: readonly ModelProvider[], tools = {}, options = {}) {
  const clock = new ManualClock(1_000_000);
  const host = hostOf(definitions, { clock, providers, tools });
  const running = host.run({ loop: 'boss', input: { prompt: 'go' } }, options);
  for (let step = 0; step < 20; step++) {
    await ticks(3);
    await clock.advance(100);
  }
  const result = await within(1000, running);
  if (result === 'timed out') return result;
  expect(await host.replay(result.turnId)).toMatchObject({ matches: true });
  return errorOf(result)?.code ?? result.status;
}

const silentProvider = (): ModelProvider => providerOf(modelWith(() => new ReadableStream({})));
const calling = (name: string): ModelProvider => replyProvider([{ calls: [[name, {}]] }, { text: 'done' }]);
const forever = (): Promise<Json> => new Promise(() => {});

verifies('agent.hostile', 'a model that never answers is abandoned at the deadline', async () => {
  const trickle = (): ModelProvider =>
    providerOf(
      modelWith(
        () =>
          new ReadableStream({
            pull: async (out) => {
              await ticks(1);
              out.enqueue({ type: 'text-start', id: '0' });
            },
          }),
      ),
    );
  const late = agentDef('boss', { stop: { deadlineMs: 500 } });
  const slow = agentDef('boss', {}, { policy: { timeoutMs: 500 } });
  // With a subscriber the model streams; without one it generates.
  for (const options of [{}, { onDelta: () => {} }]) {
    expect(await inTime([late], [silentProvider()], {}, options)).toMatch(/TIMEOUT|stopped/);
    expect(await inTime([slow], [silentProvider()], {}, options)).toBe('TIMEOUT');
    expect(await inTime([slow], [trickle()], {}, options)).toBe('TIMEOUT');
  }
});

verifies('agent.hostile', 'a tool that never returns ends at its timeout or at the deadline', async () => {
  const boss = agentDef('boss', { tools: ['stuck'], toolTimeoutMs: 300 });
  expect(await inTime([boss, tool('stuck', 'builtin:stuck')], [calling('stuck')], { stuck: forever })).toBe('ok');
  const late = agentDef('boss', { tools: ['stuck'], stop: { deadlineMs: 300 } });
  expect(await inTime([late, tool('stuck', 'builtin:stuck')], [calling('stuck')], { stuck: forever })).toBe('stopped');
  const inCode = defineLoop({ id: 'stuck', input: true, output: true, tool: forever as never });
  expect(await inTime([boss, inCode], [calling('stuck')])).toBe('ok');
});

verifies('agent.hostile', 'an approval description that never resolves does not block the agent forever', async () => {
  const stuck = loopsTool({
    name: 'stuck',
    inputSchema: z.object({}),
    requestApproval: () => new Promise<string>(() => {}),
    execute: () => 1,
  }).withApproval('ask');
  const model = modelOf([{ calls: [['stuck', {}]] }, { text: 'done' }]);
  const boss = defineAgent({ id: 'boss', model, tools: [stuck], toolTimeoutMs: 300, stop: { deadlineMs: 1500 } });
  expect(await inTime([boss], [])).toMatch(/^(ok|paused|stopped)$/);
});

verifies('agent.hostile', 'a tool that is approved after the deadline of its agent does not start', async () => {
  const clock = new ManualClock(1_000_000);
  const actions = new RecordedActions();
  const boss = agentDef('boss', { tools: ['pay'], approvals: { pay: 'ask' }, stop: { deadlineMs: 1000 } });
  const host = hostOf([boss, tool('pay', 'builtin:act')], {
    clock,
    providers: [calling('pay')],
    tools: { act: actions.act },
  });
  const { turnId } = await host.run({ loop: 'boss', input: { prompt: 'go' } });
  await clock.advance(5000);
  const [waiting] = await host.archive.approvals();
  await host.answer({ id: waiting?.id ?? '', approved: true, by: 'ada' });
  const result = await host.resume(turnId);
  expect([result.status, actions.count]).toEqual(['stopped', 0]);
  expect(await host.replay(turnId)).toMatchObject({ matches: true });
});
