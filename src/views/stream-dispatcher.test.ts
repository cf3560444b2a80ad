import fc from 'fast-check';
import { expect } from 'vitest';
import { type Script, scriptedSession } from '../../spec/support/conversation-entries.js';
import { SESSION } from '../../spec/support/conversation-fixture.mjs';
import { approvalId } from '../../spec/support/recorded-agents.mjs';
import { verifies } from '../../spec/verifies.js';
import type { EventContents, EventEnvelope, EventType } from '../protocol/events.js';
import type { StreamHandlers } from '../protocol/streaming.js';
import { Conversation, conversationOf } from './conversation.js';
import { StreamDispatcher } from './stream-dispatcher.js';

type Call = readonly [name: string, info: { readonly [name: string]: unknown }];

const names = [
  'onAssistantMessage',
  'onAssistantMessageDelta',
  'onReasoningStart',
  'onReasoningDelta',
  'onToolCall',
  'onToolResult',
  'onToolNotFound',
  'onToolError',
  'onToolOutputDelta',
  'onToolApprovalRequired',
] as const satisfies readonly (keyof StreamHandlers)[];

/** Returns handlers that record their calls. */
function recordingHandlers(calls: Call[]): StreamHandlers {
  const entries = names.map((name) => [name, (info: Call[1]) => void calls.push([name, info])] as const);
  return Object.fromEntries(entries);
}

interface RecordingDispatcher {
  readonly dispatcher: StreamDispatcher;
  readonly calls: Call[];
}

function recordingDispatcher(): RecordingDispatcher {
  const calls: Call[] = [];
  const onError = (error: unknown): never => {
    throw error;
  };
  return { dispatcher: new StreamDispatcher(recordingHandlers(calls), onError), calls };
}

let seq = 0;
function envelope<T extends EventType>(type: T, content: EventContents[T], generationId = 't'): EventEnvelope {
  seq += 1;
  return { id: `${seq}.0`, sessionId: 's', generationId, type, content, createdAt: '' } as EventEnvelope;
}

const text = (delta: string, generationId = 't') => ({ kind: 'text', text: delta, generationId }) as const;
const reasoning = (delta: string) => ({ kind: 'reasoning', text: delta, generationId: 't' }) as const;

/** Runs a script and returns the calls of the handlers. */
async function callsOf(script: Script, options: Parameters<typeof scriptedSession>[0] = {}): Promise<readonly Call[]> {
  const scripted = scriptedSession(options);
  await scripted.run('t', script);
  const { dispatcher, calls } = recordingDispatcher();
  const conversation = new Conversation(SESSION, (one, refusal) => dispatcher.envelope(one, refusal));
  for (const entry of await scripted.stored()) conversation.apply(entry);
  await dispatcher.settled();
  return calls;
}

const weather = { tool: 'weather', result: 'sun', streams: 'hm' };

verifies('looops.handler.onAssistantMessage', 'a message starts once, streamed or not', async () => {
  const { dispatcher, calls } = recordingDispatcher();
  dispatcher.delta(text('a'));
  dispatcher.delta(text('b'));
  dispatcher.envelope(envelope('assistant-message', { text: 'ab' }));
  dispatcher.envelope(envelope('assistant-message', { text: 'whole' }));
  dispatcher.delta(text('c', 't/2/0/0'));
  dispatcher.envelope(envelope('other-agent-message', { text: 'c', agent: 'x' }, 't/2/0/0'));
  await dispatcher.settled();
  expect(calls).toEqual([
    ['onAssistantMessage', { generationId: 't' }],
    ['onAssistantMessageDelta', { generationId: 't', delta: 'a' }],
    ['onAssistantMessageDelta', { generationId: 't', delta: 'b' }],
    ['onAssistantMessage', { generationId: 't' }],
    ['onAssistantMessageDelta', { generationId: 't', delta: 'whole' }],
    ['onAssistantMessage', { generationId: 't/2/0/0' }],
    ['onAssistantMessageDelta', { generationId: 't/2/0/0', delta: 'c' }],
  ]);
});

verifies('looops.handler.onReasoningStart', 'the reasoning of each reply starts anew', async () => {
  const { dispatcher, calls } = recordingDispatcher();
  dispatcher.delta(reasoning('hm'));
  dispatcher.delta(text('a'));
  dispatcher.envelope(envelope('reasoning', { text: 'hm' }));
  dispatcher.envelope(envelope('assistant-message', { text: 'a' }));
  dispatcher.delta(reasoning('unfinished'));
  dispatcher.envelope(envelope('tool-call', { toolCallId: 'c', toolName: 'x', args: 1 }));
  dispatcher.envelope(envelope('reasoning', { text: 'whole' }));
  dispatcher.delta(reasoning('more'));
  await dispatcher.settled();
  expect(calls.map(([name, info]) => [name, info.delta])).toEqual([
    ['onReasoningStart', undefined],
    ['onReasoningDelta', 'hm'],
    ['onAssistantMessage', undefined],
    ['onAssistantMessageDelta', 'a'],
    ['onReasoningStart', undefined],
    ['onReasoningDelta', 'unfinished'],
    ['onToolCall', undefined],
    ['onReasoningStart', undefined],
    ['onReasoningDelta', 'whole'],
    ['onReasoningStart', undefined],
    ['onReasoningDelta', 'more'],
  ]);
});

/** Joins the deltas of each block. */
function joinDeltas(calls: readonly Call[]): readonly string[] {
  const blocks: string[] = [];
  for (const [name, { delta }] of calls) {
    if (typeof delta === 'string' && blocks.length > 0) blocks[blocks.length - 1] += delta;
    else blocks.push(`${name} `);
  }
  return blocks;
}

/** Splits a text into deltas. */
const deltasOf = (content: string, size: number): string[] => content.match(new RegExp(`.{1,${size}}`, 'gs')) ?? [];

const replies = fc.array(
  fc.record({
    reasoning: fc.string({ maxLength: 20 }),
    text: fc.string({ maxLength: 20 }),
    size: fc.integer({ min: 1, max: 9 }),
    tool: fc.boolean(),
  }),
  { maxLength: 5 },
);

/** Streams some replies, and compares the handler calls with those of the same replies without dispatcher. */
async function streamingMakesNoDifference(): Promise<void> {
  await fc.assert(
    fc.asyncProperty(replies, fc.infiniteStream(fc.boolean()), async (all, coins) => {
      const [streamed, unstreamed] = [recordingDispatcher(), recordingDispatcher()];
      for (const reply of all) {
        const [isStreamed] = coins.take(1);
        for (const delta of isStreamed ? deltasOf(reply.reasoning, reply.size) : [])
          streamed.dispatcher.delta(reasoning(delta));
        for (const delta of isStreamed ? deltasOf(reply.text, reply.size) : []) streamed.dispatcher.delta(text(delta));
        const envelopes: EventEnvelope[] = [];
        if (reply.reasoning !== '') envelopes.push(envelope('reasoning', { text: reply.reasoning }));
        if (reply.text !== '') envelopes.push(envelope('assistant-message', { text: reply.text }));
        if (reply.tool) envelopes.push(envelope('tool-call', { toolCallId: 'c', toolName: 'x', args: 1 }));
        for (const one of envelopes) for (const { dispatcher } of [streamed, unstreamed]) dispatcher.envelope(one);
      }
      await Promise.all([streamed.dispatcher.settled(), unstreamed.dispatcher.settled()]);
      expect(joinDeltas(streamed.calls)).toEqual(joinDeltas(unstreamed.calls));
    }),
    { numRuns: 200 },
  );
}

verifies(
  'looops.handler.onAssistantMessageDelta',
  'every delta of a message is delivered exactly once',
  streamingMakesNoDifference,
);
verifies(
  'looops.handler.onReasoningDelta',
  'every delta of the reasoning is delivered exactly once',
  streamingMakesNoDifference,
);
verifies('agent.stream', 'the streamed text equals the journaled text', streamingMakesNoDifference);

verifies('looops.handler.onToolCall', 'a tool call is reported once, however often its approval changes', async () => {
  const script: Script = {
    agent: 'a',
    rounds: [{ calls: [{ id: 'c', name: 'weather', args: { x: 1 }, runs: weather }] }],
  };
  const calls = await callsOf(script, { gated: ['weather'] });
  const tool = { generationId: 't', toolCallId: 'c', toolName: 'weather' };
  const info = { ...tool, args: { x: 1 }, readOnly: false };
  expect(calls.filter(([name]) => name === 'onToolCall')).toEqual([['onToolCall', info]]);
});

verifies('looops.handler.onToolCall', 'a tool call has the declarations of its tool', async () => {
  const { dispatcher, calls } = recordingDispatcher();
  dispatcher.envelope(envelope('tool-call', { toolCallId: 'c', toolName: 'x', args: 1, readOnly: true }));
  await dispatcher.settled();
  expect(calls).toEqual([
    ['onToolCall', { generationId: 't', toolCallId: 'c', toolName: 'x', args: 1, readOnly: true }],
  ]);
});

verifies(
  'looops.handler.onToolApprovalRequired',
  'an approval request has the tool, its arguments and the approval id, at any depth',
  async () => {
    const inFlow: Script = { composite: 'flow', steps: [weather] };
    const script: Script = {
      agent: 'a',
      rounds: [
        {
          calls: [
            { id: 'c', name: 'weather', args: { x: 1 }, runs: weather },
            { id: 'f', name: 'flow', runs: inFlow },
          ],
        },
      ],
    };
    const calls = await callsOf(script, { gated: ['weather'] });
    const request = { generationId: 't', toolName: 'weather', description: 'Run weather?' };
    const required = calls.filter(([name]) => name === 'onToolApprovalRequired').map(([, info]) => info);
    expect(required).toHaveLength(2);
    expect(required).toContainEqual({
      ...request,
      toolCallId: 'c',
      args: { x: 1 },
      approvalId: approvalId('t/2/0/0/0'),
    });
    expect(required).toContainEqual({
      ...request,
      toolCallId: 't/2/1/0/0',
      args: { step: 0 },
      approvalId: approvalId('t/2/1/0/0/0'),
    });
    const callIndex = calls.findIndex(([name, { toolCallId }]) => name === 'onToolCall' && toolCallId === 't/2/1/0/0');
    expect(calls[callIndex + 1]?.[0]).toBe('onToolApprovalRequired');
  },
);

verifies(
  'looops.handler.onToolApprovalRequired',
  'a client that reconnects receives a pending approval request',
  async () => {
    const scripted = scriptedSession({ gated: ['weather'] });
    await scripted.runUntilPause('t', {
      agent: 'a',
      rounds: [{ calls: [{ id: 'c', name: 'weather', runs: weather }] }],
    });
    const { dispatcher, calls } = recordingDispatcher();
    for (const one of conversationOf(SESSION, await scripted.stored())) dispatcher.envelope(one);
    await dispatcher.settled();
    expect(calls.map(([name]) => name)).toEqual(['onToolCall', 'onToolApprovalRequired']);
  },
);

verifies('looops.handler.onToolResult', 'a tool result has the result and the streamed output', async () => {
  const script: Script = { agent: 'a', rounds: [{ calls: [{ id: 'c', name: 'weather', runs: weather }] }] };
  const tool = { generationId: 't', toolCallId: 'c', toolName: 'weather' };
  expect((await callsOf(script)).at(-1)).toEqual(['onToolResult', { ...tool, result: 'sun', output: 'hm' }]);
});

verifies('looops.handler.onToolError', 'a tool error tells a rejection by a person from a failure', async () => {
  const broken: Script = { tool: 'broken', fails: { code: 'TOOL_FAILED', message: 'no disk' } };
  const bad = { id: 'e', name: 'weather', input: '{', refused: 'INPUT_VALIDATION_FAILED' };
  const rounds = [
    { calls: [{ id: 'c', name: 'weather', runs: weather }, { id: 'd', name: 'broken', runs: broken }, bad] },
  ];
  const calls = await callsOf(
    { agent: 'a', rounds },
    { gated: ['weather'], answer: () => ({ approved: false, by: 'bob' }) },
  );
  const errors = calls.filter(([name]) => name === 'onToolError').map(([, info]) => info);
  const sorted = errors.toSorted((a, b) => (String(a.toolCallId) < String(b.toolCallId) ? -1 : 1));
  expect(sorted).toEqual([
    { generationId: 't', toolCallId: 'c', toolName: 'weather', error: 'bob did not approve.', isUserRejection: true },
    { generationId: 't', toolCallId: 'd', toolName: 'broken', error: 'no disk' },
    { generationId: 't', toolCallId: 'e', toolName: 'weather', error: 'There is no weather.' },
  ]);
});

verifies('looops.handler.onToolNotFound', 'an unknown tool is reported as not found', async () => {
  const calls = await callsOf({ agent: 'a', rounds: [{ calls: [{ id: 'c', name: 'nope', args: { x: 1 } }] }] });
  expect(calls.slice(1)).toEqual([
    ['onToolNotFound', { generationId: 't', toolCallId: 'c', toolName: 'nope', args: { x: 1 } }],
  ]);
});

verifies('looops.handler.onToolOutputDelta', 'output that a tool streams is delivered with its call', async () => {
  const { dispatcher, calls } = recordingDispatcher();
  const tool = { generationId: 't', toolCallId: 'c', toolName: 'x' };
  dispatcher.delta({ kind: 'tool-output', text: 'line 1', ...tool });
  dispatcher.delta({ kind: 'tool-input', text: '{"a":', ...tool });
  await dispatcher.settled();
  expect(calls).toEqual([['onToolOutputDelta', { ...tool, delta: 'line 1' }]]);
});

verifies('agent.stream', 'handlers run one after another, and an error of one does not stop the others', async () => {
  const order: string[] = [];
  const errors: unknown[] = [];
  const delayed = async (delta: string, ms: number): Promise<void> => {
    order.push(`begin ${delta}`);
    await new Promise((resolve) => setTimeout(resolve, ms));
    order.push(`end ${delta}`);
  };
  class Handlers {
    readonly label = 'own';
    onAssistantMessage(): void {
      order.push(this.label);
    }
    async onAssistantMessageDelta({ delta }: { delta: string }): Promise<void> {
      if (delta === 'bad') throw new Error('asynchronous');
      await delayed(delta, delta === 'slow' ? 20 : 0);
    }
    onToolCall(): never {
      throw new Error('at once');
    }
  }
  const dispatcher = new StreamDispatcher(new Handlers(), (error) => errors.push(error));
  dispatcher.delta(text('slow'));
  dispatcher.delta(text('bad'));
  expect(order).toEqual([]);
  dispatcher.envelope(envelope('tool-call', { toolCallId: 'c', toolName: 'x', args: 1 }));
  dispatcher.delta(reasoning('without a handler'));
  setTimeout(() => dispatcher.delta(text('quick')), 5);
  await dispatcher.settled();
  expect(order).toEqual(['own', 'begin slow', 'end slow', 'own', 'begin quick', 'end quick']);
  expect(errors).toEqual([new Error('asynchronous'), new Error('at once')]);
  await dispatcher.settled();
});

verifies('agent.reconnect', 'an envelope that is delivered again calls no handler', async () => {
  const { dispatcher, calls } = recordingDispatcher();
  const all = [
    envelope('reasoning', { text: 'a' }),
    envelope('assistant-message', { text: 'b' }),
    envelope('tool-call', { toolCallId: 'c', toolName: 'x', args: 1 }),
    envelope('tool-result', { toolCallId: 'c', toolName: 'x', result: 1 }),
  ];
  for (const one of [...all, ...all]) dispatcher.envelope(one);
  await dispatcher.settled();
  expect(calls).toHaveLength(6);
});

verifies('agent.stream', 'the unfinished blocks of ended generations are released', async () => {
  const { dispatcher, calls } = recordingDispatcher();
  const startedMessages = (): number => calls.filter(([name]) => name === 'onAssistantMessage').length;
  dispatcher.delta(text('half', 't'));
  dispatcher.delta(text('half', 't/2/0/0'));
  dispatcher.delta(text('half', 'tt'));
  dispatcher.envelope(envelope('user-abort', { generationId: 't' }, 't'));
  for (const generation of ['t', 't/2/0/0', 'tt']) dispatcher.delta(text('more', generation));
  await dispatcher.settled();
  expect(startedMessages()).toBe(5);
  const child = { item: 'x', index: 0, total: 1, durationMs: 1, parentGenerationId: 't', status: 'error' } as const;
  dispatcher.envelope(envelope('child-generation', { ...child, childGenerationId: 't/2/0/0' }));
  for (const generation of ['t', 't/2/0/0']) dispatcher.delta(text('more', generation));
  await dispatcher.settled();
  expect(startedMessages()).toBe(6);
  for (let i = 0; i < 3000; i++) dispatcher.delta(text('half', `g${i}`));
  await dispatcher.settled();
  dispatcher.delta(text('more', 'g2999'));
  dispatcher.delta(text('more', 'g0'));
  await dispatcher.settled();
  expect(startedMessages()).toBe(6 + 3000 + 1);
});
