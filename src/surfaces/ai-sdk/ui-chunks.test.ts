import { readUIMessageStream, type UIMessage, type UIMessageChunk, uiMessageChunkSchema } from 'ai';
import { expect } from 'vitest';
import { firstChunkOf } from '../../../spec/support/chat-fixture.mjs';
import { EnvelopeFactory, readWithAiSdk, TURN_ID, turnResultOf } from '../../../spec/support/envelopes.mjs';
import { verifies } from '../../../spec/verifies.js';
import { errorCodes } from '../../base/errors.js';
import type { EventEnvelope } from '../../protocol/events.js';
import type { LiveDelta } from '../../protocol/live.js';
import type { UiChunk } from './chunk.js';
import { uiMessages } from './message.js';
import { UiChunks, type UiChunksOptions } from './ui-chunks.js';

/** The chunks that telling makes. */
function chunksOf(tell: (chunks: UiChunks) => void, options: UiChunksOptions = {}): UiChunk[] {
  const said: UiChunk[] = [];
  tell(new UiChunks((chunk) => said.push(chunk), options));
  return said;
}

const readBySdk = (chunks: readonly UiChunk[]): Promise<UIMessage> => readWithAiSdk(readUIMessageStream, chunks);

/** Holds our shapes to the SDK's: this line does not compile if they part. */
const asSdk = (chunk: UiChunk): UIMessageChunk => chunk;

const delta = (kind: LiveDelta['kind'], text: string, more: Partial<LiveDelta> = {}): LiveDelta => ({
  kind,
  text,
  generationId: TURN_ID,
  ...more,
});

/** A round with thinking, text and a tool, and the round after it. */
function twoRounds(): EventEnvelope[] {
  const make = new EnvelopeFactory();
  return [
    make.of('user-message', { text: 'How warm is it?' }),
    make.of('reasoning', { text: 'I must look.' }),
    make.of('assistant-message', { text: 'Let me look.' }),
    make.of('tool-call', { toolCallId: 'c1', toolName: 'weather', args: { city: 'Bern' } }),
    make.of('tool-result', { toolCallId: 'c1', toolName: 'weather', result: { celsius: 21 }, output: 'asking…' }),
    make.of('assistant-message', { text: 'It is 21 degrees.' }),
  ];
}

verifies('aisdk.chat', 'a chunk that the SDK does not know breaks every client', async () => {
  const chunks = chunksOf((told) => {
    for (const envelope of twoRounds()) told.addEnvelope(envelope);
    told.end(turnResultOf('ok', { output: { text: 'It is 21 degrees.' } }));
  });
  const { validate } = uiMessageChunkSchema();
  for (const chunk of chunks) expect((await validate?.(asSdk(chunk)))?.success, JSON.stringify(chunk)).toBe(true);
  expect(chunks.map(({ type }) => type)).toEqual([
    'start',
    'start-step',
    'reasoning-start',
    'reasoning-delta',
    'reasoning-end',
    'text-start',
    'text-delta',
    'text-end',
    'tool-input-available',
    'tool-output-available',
    'finish-step',
    'start-step',
    'text-start',
    'text-delta',
    'text-end',
    'finish-step',
    'finish',
  ]);
});

verifies('aisdk.chat', 'a page that is loaded shows another conversation than the one that was streamed', async () => {
  const [prompt, thinking, text, call, end, answer] = twoRounds() as [EventEnvelope, ...EventEnvelope[]];
  const streamed = chunksOf((told) => {
    told.addEnvelope(prompt);
    for (const piece of ['I must', ' look.']) told.addDelta(delta('reasoning', piece));
    for (const piece of ['Let ', 'me ', 'look.']) told.addDelta(delta('text', piece));
    for (const piece of ['{"city":', '"Bern"}']) {
      told.addDelta(delta('tool-input', piece, { toolCallId: 'c1', toolName: 'weather' }));
    }
    for (const envelope of [thinking, text, call]) told.addEnvelope(envelope as EventEnvelope);
    told.addDelta(delta('tool-output', 'asking…', { toolCallId: 'c1' }));
    told.addEnvelope(end as EventEnvelope);
    told.addDelta(delta('text', 'It is 21'));
    told.addEnvelope(answer as EventEnvelope);
    told.end(turnResultOf('ok', { output: { text: 'It is 21 degrees.' } }));
  });
  const live = await readBySdk(streamed);
  const [user, loaded] = uiMessages(twoRounds());
  expect(user).toMatchObject({ role: 'user', parts: [{ type: 'text', text: 'How warm is it?' }] });
  expect(JSON.parse(JSON.stringify(live))).toMatchObject(JSON.parse(JSON.stringify(loaded)) as object);
  expect(live?.parts.length).toBe(loaded?.parts.length);
  expect(streamed.filter(({ type }) => type === 'data-rondo-tool-delta')).toHaveLength(1);
});

verifies('aisdk.chat', 'a reply that broke off and was asked for again is told a third time', async () => {
  const make = new EnvelopeFactory();
  const live = await readBySdk(
    chunksOf((told) => {
      told.addEnvelope(make.of('user-message', { text: 'hi' }));
      told.addDelta(delta('text', 'Hel'));
      told.addDelta(delta('text', 'Hello'));
      told.addEnvelope(make.of('assistant-message', { text: 'Hello' }));
      told.end(turnResultOf('ok'));
    }),
  );
  expect(live?.parts.filter(({ type }) => type === 'text')).toMatchObject([{ text: 'HelHello', state: 'done' }]);
  const other = await readBySdk(
    chunksOf((told) => {
      told.addDelta(delta('text', 'Wrong'));
      told.addEnvelope(make.of('assistant-message', { text: 'Right' }));
      told.end(turnResultOf('ok'));
    }),
  );
  expect(other?.parts.filter(({ type }) => type === 'text')).toMatchObject([{ text: 'Wrong' }, { text: 'Right' }]);
});

verifies(
  'aisdk.chat',
  'an approval is asked for twice, or its outcome lands on another call of the same id',
  async () => {
    const make = new EnvelopeFactory();
    const first = make.of('tool-call', { toolCallId: 'c1', toolName: 'refund', args: { amount: 1 } });
    const pending = { approvalStatus: 'pending_approval', approvalId: 'a1', approvalDescription: 'Refund 1?' } as const;
    const asked = make.updated(first, pending);
    const envelopes = [
      make.of('user-message', { text: 'hi' }),
      first,
      asked,
      asked,
      make.updated(first, { approvalStatus: 'rejected' }),
      make.of('tool-error', { toolCallId: 'c1', toolName: 'refund', error: 'no', isUserRejection: true }),
      make.of('tool-call', { toolCallId: 'c1', toolName: 'refund', args: { amount: 2 } }),
      make.of('tool-result', { toolCallId: 'c1', toolName: 'refund', result: 'done' }),
    ];
    const chunks = chunksOf((told) => {
      for (const envelope of envelopes) told.addEnvelope(envelope);
      told.end(turnResultOf('ok', { output: {} }));
    });
    expect(chunks.filter(({ type }) => type === 'tool-approval-request')).toEqual([
      {
        type: 'tool-approval-request',
        toolCallId: 'c1',
        approvalId: 'a1',
        approvalDescriptor: { description: 'Refund 1?' },
      },
    ]);
    const live = await readBySdk(chunks);
    const tools = live?.parts.filter(({ type }) => type === 'tool-refund');
    expect(tools).toMatchObject([
      { toolCallId: 'c1', state: 'output-denied', input: { amount: 1 }, approval: { id: 'a1' } },
      { toolCallId: 'c1#2', state: 'output-available', input: { amount: 2 }, output: 'done' },
    ]);
    const [, loaded] = uiMessages(envelopes);
    expect(loaded?.parts.find((part) => part.type === 'tool-refund')).toMatchObject({
      state: 'output-denied',
      approval: { id: 'a1', approved: false },
    });
  },
);

verifies(
  'aisdk.chat',
  'a sub-agent hides what it asks for, or keeps the answers of the user from being sent',
  async () => {
    const make = new EnvelopeFactory();
    const below = `${TURN_ID}/3/0/0`;
    const pending = { approvalStatus: 'pending_approval', approvalId: 'a9' } as const;
    const envelopes = [
      make.of('user-message', { text: 'hi' }),
      make.of('tool-call', { toolCallId: 'c1', toolName: 'clerk', args: { prompt: 'go' } }),
      make.of('loop-triggered', { triggeredBy: 'agent', parentGenerationId: TURN_ID, instructions: 'go' }, below),
      make.of('other-agent-message', { text: 'I will pay.', agent: 'clerk' }, below),
      make.of('tool-call', { toolCallId: 'c1', toolName: 'pay', args: { amount: 5 }, ...pending }, below),
    ];
    const kindOf = (name: string) => (name === 'clerk' ? ('composite' as const) : undefined);
    const said: UiChunk[] = [];
    const told = new UiChunks((chunk) => said.push(chunk), { kindOf });
    for (const envelope of envelopes) told.addEnvelope(envelope);
    told.addDelta({ kind: 'text', text: 'I wi', generationId: below });
    told.end(turnResultOf('paused', { pending: [{ kind: 'approval', key: `${below}/5/0/0/0/1`, id: 'a9' }] }));
    expect(said.at(-1)).toEqual({ type: 'finish', finishReason: 'tool-calls' });
    const live = await readBySdk(said);
    const tools = live?.parts.filter((part) => 'toolCallId' in part);
    expect(tools).toMatchObject([
      {
        type: 'dynamic-tool',
        toolName: 'pay',
        state: 'approval-requested',
        input: { amount: 5 },
        approval: { id: 'a9' },
      },
    ]);
    expect(live?.parts.filter(({ type }) => type.startsWith('data-'))).toMatchObject([
      { type: 'data-rondo-call', data: { name: 'clerk', status: 'running' } },
      { type: 'data-rondo-agent', data: { generationId: below, agent: 'clerk', text: 'I will pay.' } },
    ]);
  },
);

verifies('aisdk.chat', 'a tool that is not there looks like one that ran', async () => {
  const make = new EnvelopeFactory();
  const live = await readBySdk(
    chunksOf(
      (told) => {
        told.addEnvelope(make.of('user-message', { text: 'hi' }));
        told.addDelta(delta('tool-input', '{}', { toolCallId: 'c1', toolName: 'nothing' }));
        told.addEnvelope(make.of('tool-call', { toolCallId: 'c1', toolName: 'nothing', args: {} }));
        told.addEnvelope(make.of('tool-error', { toolCallId: 'c1', toolName: 'nothing', error: 'There is no tool.' }));
        told.end(turnResultOf('error', { error: { code: 'BACKEND_FAILED', message: 'connect 10.0.0.7 refused' } }));
      },
      { kindOf: () => undefined },
    ),
  );
  expect(live?.parts.filter((part) => 'toolCallId' in part)).toMatchObject([
    { type: 'dynamic-tool', toolName: 'nothing', state: 'output-error', input: {} },
  ]);
});

verifies('aisdk.chat', 'an error tells the user what only the operator should know', () => {
  const secret = 'connect to 10.0.0.7 as admin failed';
  const failed = turnResultOf('error', { error: { code: 'BACKEND_FAILED', message: secret } });
  const told = chunksOf((chunks) => {
    chunks.addEnvelope(new EnvelopeFactory().of('generation-failure', { error: secret }));
    chunks.end(failed);
  });
  expect(JSON.stringify(told)).not.toContain(secret);
  expect(told.at(-1)).toEqual({ type: 'error', errorText: 'A model did not answer.' });
  const open = chunksOf((chunks) => chunks.end(failed), { errorText: ({ message }) => message });
  expect(open.at(-1)).toEqual({ type: 'error', errorText: secret });
  const strange = turnResultOf('error', { error: { code: 'toString', message: secret } });
  expect(chunksOf((chunks) => chunks.end(strange)).at(-1)).toEqual({ type: 'error', errorText: 'An error occurred.' });
});

verifies('aisdk.chat', 'a tool spins for ever in a turn that was stopped', async () => {
  const make = new EnvelopeFactory();
  const chunks = chunksOf((told) => {
    told.addEnvelope(make.of('user-message', { text: 'hi' }));
    told.addEnvelope(make.of('tool-call', { toolCallId: 'c1', toolName: 'slow', args: {} }));
    told.addEnvelope(make.of('user-abort', { generationId: TURN_ID }));
    told.end(turnResultOf('error', { error: { code: 'CANCELLED', message: 'The user stopped it.' } }));
  });
  expect(chunks.at(-1)).toEqual({ type: 'abort' });
  expect((await readBySdk(chunks))?.parts.at(-1)).toMatchObject({ type: 'tool-slow', state: 'output-error' });
});

verifies(
  'aisdk.chat',
  'the answer of an agent that was handed over to, or that stopped short, is nowhere',
  async () => {
    const make = new EnvelopeFactory();
    const live = await readBySdk(
      chunksOf(
        (told) => {
          told.addEnvelope(make.of('user-message', { text: 'hi' }));
          told.addEnvelope(make.of('assistant-message', { text: 'I hand over.' }));
          told.addEnvelope(make.of('tool-call', { toolCallId: 'c1', toolName: 'clerk', args: {} }));
          told.addEnvelope(make.of('tool-result', { toolCallId: 'c1', toolName: 'clerk', result: { text: 'Done.' } }));
          told.end(turnResultOf('ok', { output: { text: 'Done.' } }));
        },
        { kindOf: () => 'composite' },
      ),
    );
    expect(live?.parts.filter(({ type }) => type === 'text')).toMatchObject([
      { text: 'I hand over.' },
      { text: 'Done.' },
    ]);
    const stopped = chunksOf((told) => {
      told.addEnvelope(make.of('generation-failure', { error: 'BUDGET_EXHAUSTED: it called its model 20 times' }));
      told.end(turnResultOf('stopped', { reason: 'rounds' }));
    });
    expect(stopped.at(-1)).toEqual({ type: 'finish', finishReason: 'other' });
    const why = firstChunkOf(stopped, 'data-rondo-failure');
    expect(why?.data).toEqual({ code: 'BUDGET_EXHAUSTED', errorText: errorCodes.BUDGET_EXHAUSTED.meaning });
  },
);

verifies('aisdk.chat', 'what is told of one turn holds pieces of another', () => {
  const make = new EnvelopeFactory();
  const told = chunksOf((chunks) => {
    chunks.addEnvelope(make.of('user-message', { text: 'stray' }, ''));
    chunks.addEnvelope(make.of('user-message', { text: 'hi' }));
    chunks.addEnvelope(make.of('assistant-message', { text: 'elsewhere' }, 'chat.2'));
    chunks.addDelta({ kind: 'text', text: 'elsewhere', generationId: 'chat.2/1/0/0' });
    chunks.addEnvelope(make.of('user-message', { text: 'faster' }));
  });
  expect(told).toEqual([
    { type: 'start', messageId: TURN_ID },
    { type: 'data-rondo-heard', id: '4.0', data: { text: 'faster' } },
  ]);
});
