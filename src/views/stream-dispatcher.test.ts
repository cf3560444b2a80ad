import fc from 'fast-check';
import { expect } from 'vitest';
import { SESSION, Stage } from '../../spec/support/conversation-fixture.mjs';
import { approvalId } from '../../spec/support/recorded-agents.mjs';
import { verifies } from '../../spec/verifies.js';
import { memoryStore } from '../adapters/memory/index.js';
import { LoopError } from '../base/errors.js';
import { Session } from '../kernel/session.js';
import type { Entry } from '../protocol/entry.js';
import type { EventContents, EventEnvelope, EventType } from '../protocol/events.js';
import type { StreamHandlers } from '../protocol/streaming.js';
import { Conversation, conversationOf } from './conversation.js';
import { StreamDispatcher } from './stream-dispatcher.js';

type Script = Parameters<Stage['run']>[1];
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

/** Handlers that write down what they hear. */
function noting(calls: Call[]): StreamHandlers {
  const entries = names.map((name) => [name, (info: Call[1]) => void calls.push([name, info])] as const);
  return Object.fromEntries(entries);
}

interface Heard {
  readonly streaming: StreamDispatcher;
  readonly calls: Call[];
}

function heard(): Heard {
  const calls: Call[] = [];
  const failed = (error: unknown): never => {
    throw error;
  };
  return { streaming: new StreamDispatcher(noting(calls), failed), calls };
}

let seq = 0;
function envelope<T extends EventType>(type: T, content: EventContents[T], generationId = 't'): EventEnvelope {
  seq += 1;
  return { id: `${seq}.0`, sessionId: 's', generationId, type, content, createdAt: '' } as EventEnvelope;
}

const text = (delta: string, generationId = 't') => ({ kind: 'text', text: delta, generationId }) as const;
const reasoning = (delta: string) => ({ kind: 'reasoning', text: delta, generationId: 't' }) as const;
const fail = (code: string, message: string, data?: Entry['value']) => new LoopError(code, message, data);

/** What handlers hear of a whole run. */
async function played(script: Script, manners: ConstructorParameters<typeof Stage>[1] = {}): Promise<readonly Call[]> {
  const stage = new Stage({ open: Session.open, store: memoryStore(), fail }, manners);
  await stage.run('t', script);
  const { streaming, calls } = heard();
  const conversation = new Conversation(SESSION, (one, refusal) => streaming.envelope(one, refusal));
  for (const entry of await stage.stored()) conversation.apply(entry);
  await streaming.settled();
  return calls;
}

const weather = { tool: 'weather', result: 'sun', said: 'hm' };

verifies('looops.handler.onAssistantMessage', 'a message begins twice, or never', async () => {
  const { streaming, calls } = heard();
  streaming.delta(text('a'));
  streaming.delta(text('b'));
  streaming.envelope(envelope('assistant-message', { text: 'ab' }));
  streaming.envelope(envelope('assistant-message', { text: 'whole' }));
  streaming.delta(text('c', 't/2/0/0'));
  streaming.envelope(envelope('other-agent-message', { text: 'c', agent: 'x' }, 't/2/0/0'));
  await streaming.settled();
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

verifies('looops.handler.onReasoningStart', 'thoughts of the next reply run on into those of the last', async () => {
  const { streaming, calls } = heard();
  streaming.delta(reasoning('hm'));
  streaming.delta(text('a'));
  streaming.envelope(envelope('reasoning', { text: 'hm' }));
  streaming.envelope(envelope('assistant-message', { text: 'a' }));
  streaming.delta(reasoning('left half said'));
  streaming.envelope(envelope('tool-call', { toolCallId: 'c', toolName: 'x', args: 1 }));
  streaming.envelope(envelope('reasoning', { text: 'whole' }));
  streaming.delta(reasoning('more'));
  await streaming.settled();
  expect(calls.map(([name, info]) => [name, info.delta])).toEqual([
    ['onReasoningStart', undefined],
    ['onReasoningDelta', 'hm'],
    ['onAssistantMessage', undefined],
    ['onAssistantMessageDelta', 'a'],
    ['onReasoningStart', undefined],
    ['onReasoningDelta', 'left half said'],
    ['onToolCall', undefined],
    ['onReasoningStart', undefined],
    ['onReasoningDelta', 'whole'],
    ['onReasoningStart', undefined],
    ['onReasoningDelta', 'more'],
  ]);
});

/** Deltas of one block put together: what a reader has seen in the end. */
function joined(calls: readonly Call[]): readonly string[] {
  const seen: string[] = [];
  for (const [name, { delta }] of calls) {
    if (typeof delta === 'string' && seen.length > 0) seen[seen.length - 1] += delta;
    else seen.push(`${name} `);
  }
  return seen;
}

/** Cuts a text into pieces. */
const pieces = (whole: string, size: number): string[] => whole.match(new RegExp(`.{1,${size}}`, 'gs')) ?? [];

const replies = fc.array(
  fc.record({
    reasoning: fc.string({ maxLength: 20 }),
    text: fc.string({ maxLength: 20 }),
    size: fc.integer({ min: 1, max: 9 }),
    tool: fc.boolean(),
  }),
  { maxLength: 5 },
);

/** Streams some of the replies, and holds what is heard against the same replies that came whole. */
async function sameEitherWay(): Promise<void> {
  await fc.assert(
    fc.asyncProperty(replies, fc.infiniteStream(fc.boolean()), async (all, coins) => {
      const [streamed, whole] = [heard(), heard()];
      for (const reply of all) {
        const [live] = coins.take(1);
        for (const piece of live ? pieces(reply.reasoning, reply.size) : []) streamed.streaming.delta(reasoning(piece));
        for (const piece of live ? pieces(reply.text, reply.size) : []) streamed.streaming.delta(text(piece));
        const envelopes: EventEnvelope[] = [];
        if (reply.reasoning !== '') envelopes.push(envelope('reasoning', { text: reply.reasoning }));
        if (reply.text !== '') envelopes.push(envelope('assistant-message', { text: reply.text }));
        if (reply.tool) envelopes.push(envelope('tool-call', { toolCallId: 'c', toolName: 'x', args: 1 }));
        for (const one of envelopes) for (const { streaming } of [streamed, whole]) streaming.envelope(one);
      }
      await Promise.all([streamed.streaming.settled(), whole.streaming.settled()]);
      expect(joined(streamed.calls)).toEqual(joined(whole.calls));
    }),
    { numRuns: 200 },
  );
}

verifies('looops.handler.onAssistantMessageDelta', 'pieces of a message are lost or doubled', sameEitherWay);
verifies('looops.handler.onReasoningDelta', 'pieces of a thought are lost or doubled', sameEitherWay);
verifies('agent.stream', 'what is streamed differs from what is journaled', sameEitherWay);

verifies('looops.handler.onToolCall', 'a call of a tool is told once for every change of its approval', async () => {
  const script: Script = {
    agent: 'a',
    rounds: [{ calls: [{ id: 'c', name: 'weather', args: { x: 1 }, runs: weather }] }],
  };
  const calls = await played(script, { gated: ['weather'] });
  const tool = { generationId: 't', toolCallId: 'c', toolName: 'weather' };
  const info = { ...tool, args: { x: 1 }, readOnly: false };
  expect(calls.filter(([name]) => name === 'onToolCall')).toEqual([['onToolCall', info]]);
});

verifies('looops.handler.onToolCall', 'what a tool declares of itself does not reach its watchers', async () => {
  const { streaming, calls } = heard();
  streaming.envelope(envelope('tool-call', { toolCallId: 'c', toolName: 'x', args: 1, readOnly: true }));
  await streaming.settled();
  expect(calls).toEqual([
    ['onToolCall', { generationId: 't', toolCallId: 'c', toolName: 'x', args: 1, readOnly: true }],
  ]);
});

verifies(
  'looops.handler.onToolApprovalRequired',
  'a person is not asked, or asked without what is asked about',
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
    const calls = await played(script, { gated: ['weather'] });
    const asked = { generationId: 't', toolName: 'weather', description: 'Run weather?' };
    const required = calls.filter(([name]) => name === 'onToolApprovalRequired').map(([, info]) => info);
    expect(required).toHaveLength(2);
    expect(required).toContainEqual({ ...asked, toolCallId: 'c', args: { x: 1 }, approvalId: approvalId('t/2/0/0/0') });
    expect(required).toContainEqual({
      ...asked,
      toolCallId: 't/2/1/0/0',
      args: { step: 0 },
      approvalId: approvalId('t/2/1/0/0/0'),
    });
    const begun = calls.findIndex(([name, { toolCallId }]) => name === 'onToolCall' && toolCallId === 't/2/1/0/0');
    expect(calls[begun + 1]?.[0]).toBe('onToolApprovalRequired');
  },
);

verifies(
  'looops.handler.onToolApprovalRequired',
  'a client that comes back while a person is asked does not hear of it',
  async () => {
    const stage = new Stage({ open: Session.open, store: memoryStore(), fail }, { gated: ['weather'] });
    await stage.step('t', { agent: 'a', rounds: [{ calls: [{ id: 'c', name: 'weather', runs: weather }] }] });
    const { streaming, calls } = heard();
    for (const one of conversationOf(SESSION, await stage.stored())) streaming.envelope(one);
    await streaming.settled();
    expect(calls.map(([name]) => name)).toEqual(['onToolCall', 'onToolApprovalRequired']);
  },
);

verifies('looops.handler.onToolResult', 'what a tool gave back, or what it streamed, does not arrive', async () => {
  const script: Script = { agent: 'a', rounds: [{ calls: [{ id: 'c', name: 'weather', runs: weather }] }] };
  const tool = { generationId: 't', toolCallId: 'c', toolName: 'weather' };
  expect((await played(script)).at(-1)).toEqual(['onToolResult', { ...tool, result: 'sun', output: 'hm' }]);
});

verifies('looops.handler.onToolError', 'a rejection by a person looks like a failure of the tool', async () => {
  const broken: Script = { tool: 'broken', fails: { code: 'TOOL_FAILED', message: 'no disk' } };
  const bad = { id: 'e', name: 'weather', input: '{', refused: 'INPUT_VALIDATION_FAILED' };
  const rounds = [
    { calls: [{ id: 'c', name: 'weather', runs: weather }, { id: 'd', name: 'broken', runs: broken }, bad] },
  ];
  const calls = await played(
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

verifies('looops.handler.onToolNotFound', 'a tool that there is not looks like one that failed', async () => {
  const calls = await played({ agent: 'a', rounds: [{ calls: [{ id: 'c', name: 'nope', args: { x: 1 } }] }] });
  expect(calls.slice(1)).toEqual([
    ['onToolNotFound', { generationId: 't', toolCallId: 'c', toolName: 'nope', args: { x: 1 } }],
  ]);
});

verifies(
  'looops.handler.onToolOutputDelta',
  'what a tool says while it works goes to nobody, or to another call',
  async () => {
    const { streaming, calls } = heard();
    const tool = { generationId: 't', toolCallId: 'c', toolName: 'x' };
    streaming.delta({ kind: 'tool-output', text: 'line 1', ...tool });
    streaming.delta({ kind: 'tool-input', text: '{"a":', ...tool });
    await streaming.settled();
    expect(calls).toEqual([['onToolOutputDelta', { ...tool, delta: 'line 1' }]]);
  },
);

verifies('agent.stream', 'a slow handler is overtaken, or one that throws takes the rest with it', async () => {
  const order: string[] = [];
  const errors: unknown[] = [];
  const late = async (delta: string, ms: number): Promise<void> => {
    order.push(`begin ${delta}`);
    await new Promise((resolve) => setTimeout(resolve, ms));
    order.push(`end ${delta}`);
  };
  class Watcher {
    readonly own = 'own';
    onAssistantMessage(): void {
      order.push(this.own);
    }
    async onAssistantMessageDelta({ delta }: { delta: string }): Promise<void> {
      if (delta === 'bad') throw new Error('asynchronous');
      await late(delta, delta === 'slow' ? 20 : 0);
    }
    onToolCall(): never {
      throw new Error('at once');
    }
  }
  const streaming = new StreamDispatcher(new Watcher(), (error) => errors.push(error));
  streaming.delta(text('slow'));
  streaming.delta(text('bad'));
  expect(order).toEqual([]);
  streaming.envelope(envelope('tool-call', { toolCallId: 'c', toolName: 'x', args: 1 }));
  streaming.delta(reasoning('nobody listens'));
  setTimeout(() => streaming.delta(text('quick')), 5);
  await streaming.settled();
  expect(order).toEqual(['own', 'begin slow', 'end slow', 'own', 'begin quick', 'end quick']);
  expect(errors).toEqual([new Error('asynchronous'), new Error('at once')]);
  await streaming.settled();
});

verifies('agent.reconnect', 'an envelope that is delivered again is told again', async () => {
  const { streaming, calls } = heard();
  const all = [
    envelope('reasoning', { text: 'a' }),
    envelope('assistant-message', { text: 'b' }),
    envelope('tool-call', { toolCallId: 'c', toolName: 'x', args: 1 }),
    envelope('tool-result', { toolCallId: 'c', toolName: 'x', result: 1 }),
  ];
  for (const one of [...all, ...all]) streaming.envelope(one);
  await streaming.settled();
  expect(calls).toHaveLength(6);
});

verifies('agent.stream', 'generations that were stopped in the middle of a word are remembered for ever', async () => {
  const { streaming, calls } = heard();
  const begun = (): number => calls.filter(([name]) => name === 'onAssistantMessage').length;
  streaming.delta(text('half', 't'));
  streaming.delta(text('half', 't/2/0/0'));
  streaming.delta(text('half', 'tt'));
  streaming.envelope(envelope('user-abort', { generationId: 't' }, 't'));
  for (const generation of ['t', 't/2/0/0', 'tt']) streaming.delta(text('more', generation));
  await streaming.settled();
  expect(begun()).toBe(5);
  const child = { item: 'x', index: 0, total: 1, durationMs: 1, parentGenerationId: 't', status: 'error' } as const;
  streaming.envelope(envelope('child-generation', { ...child, childGenerationId: 't/2/0/0' }));
  for (const generation of ['t', 't/2/0/0']) streaming.delta(text('more', generation));
  await streaming.settled();
  expect(begun()).toBe(6);
  for (let i = 0; i < 3000; i++) streaming.delta(text('half', `g${i}`));
  await streaming.settled();
  streaming.delta(text('more', 'g2999'));
  streaming.delta(text('more', 'g0'));
  await streaming.settled();
  expect(begun()).toBe(6 + 3000 + 1);
});
