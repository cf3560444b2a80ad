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

/** Returns the chunks that `write` produces. */
function chunksOf(write: (writer: UiChunks) => void, options: UiChunksOptions = {}): UiChunk[] {
  const emitted: UiChunk[] = [];
  write(new UiChunks((chunk) => emitted.push(chunk), options));
  return emitted;
}

const readMessage = (chunks: readonly UiChunk[]): Promise<UIMessage> => readWithAiSdk(readUIMessageStream, chunks);

/** Checks the types against the SDK at compile time. */
const asSdk = (chunk: UiChunk): UIMessageChunk => chunk;

const delta = (kind: LiveDelta['kind'], text: string, more: Partial<LiveDelta> = {}): LiveDelta => ({
  kind,
  text,
  generationId: TURN_ID,
  ...more,
});

/** Returns a round with reasoning, text and a tool call, and the round after it. */
function twoRoundsWithTool(): EventEnvelope[] {
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

verifies('aisdk.chat', 'every chunk is valid in the schema of the SDK', async () => {
  const chunks = chunksOf((writer) => {
    for (const envelope of twoRoundsWithTool()) writer.addEnvelope(envelope);
    writer.end(turnResultOf('ok', { output: { text: 'It is 21 degrees.' } }));
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

verifies('aisdk.chat', 'a loaded message equals the streamed one', async () => {
  const [prompt, thinking, text, call, end, answer] = twoRoundsWithTool() as [EventEnvelope, ...EventEnvelope[]];
  const streamed = chunksOf((writer) => {
    writer.addEnvelope(prompt);
    for (const piece of ['I must', ' look.']) writer.addDelta(delta('reasoning', piece));
    for (const piece of ['Let ', 'me ', 'look.']) writer.addDelta(delta('text', piece));
    for (const piece of ['{"city":', '"Bern"}']) {
      writer.addDelta(delta('tool-input', piece, { toolCallId: 'c1', toolName: 'weather' }));
    }
    for (const envelope of [thinking, text, call]) writer.addEnvelope(envelope as EventEnvelope);
    writer.addDelta(delta('tool-output', 'asking…', { toolCallId: 'c1' }));
    writer.addEnvelope(end as EventEnvelope);
    writer.addDelta(delta('text', 'It is 21'));
    writer.addEnvelope(answer as EventEnvelope);
    writer.end(turnResultOf('ok', { output: { text: 'It is 21 degrees.' } }));
  });
  const live = await readMessage(streamed);
  const [user, loaded] = uiMessages(twoRoundsWithTool());
  expect(user).toMatchObject({ role: 'user', parts: [{ type: 'text', text: 'How warm is it?' }] });
  expect(JSON.parse(JSON.stringify(live))).toMatchObject(JSON.parse(JSON.stringify(loaded)) as object);
  expect(live?.parts.length).toBe(loaded?.parts.length);
  expect(streamed.filter(({ type }) => type === 'data-rondo-tool-delta')).toHaveLength(1);
});

verifies('aisdk.chat', 'a reply that was retried is not emitted again', async () => {
  const make = new EnvelopeFactory();
  const live = await readMessage(
    chunksOf((writer) => {
      writer.addEnvelope(make.of('user-message', { text: 'hi' }));
      writer.addDelta(delta('text', 'Hel'));
      writer.addDelta(delta('text', 'Hello'));
      writer.addEnvelope(make.of('assistant-message', { text: 'Hello' }));
      writer.end(turnResultOf('ok'));
    }),
  );
  expect(live?.parts.filter(({ type }) => type === 'text')).toMatchObject([{ text: 'HelHello', state: 'done' }]);
  const other = await readMessage(
    chunksOf((writer) => {
      writer.addDelta(delta('text', 'Wrong'));
      writer.addEnvelope(make.of('assistant-message', { text: 'Right' }));
      writer.end(turnResultOf('ok'));
    }),
  );
  expect(other?.parts.filter(({ type }) => type === 'text')).toMatchObject([{ text: 'Wrong' }, { text: 'Right' }]);
});

verifies(
  'aisdk.chat',
  'an approval is requested once, and its outcome belongs to its own call when ids repeat',
  async () => {
    const make = new EnvelopeFactory();
    const first = make.of('tool-call', { toolCallId: 'c1', toolName: 'refund', args: { amount: 1 } });
    const pending = { approvalStatus: 'pending_approval', approvalId: 'a1', approvalDescription: 'Refund 1?' } as const;
    const requested = make.updated(first, pending);
    const envelopes = [
      make.of('user-message', { text: 'hi' }),
      first,
      requested,
      requested,
      make.updated(first, { approvalStatus: 'rejected' }),
      make.of('tool-error', { toolCallId: 'c1', toolName: 'refund', error: 'no', isUserRejection: true }),
      make.of('tool-call', { toolCallId: 'c1', toolName: 'refund', args: { amount: 2 } }),
      make.of('tool-result', { toolCallId: 'c1', toolName: 'refund', result: 'done' }),
    ];
    const chunks = chunksOf((writer) => {
      for (const envelope of envelopes) writer.addEnvelope(envelope);
      writer.end(turnResultOf('ok', { output: {} }));
    });
    expect(chunks.filter(({ type }) => type === 'tool-approval-request')).toEqual([
      {
        type: 'tool-approval-request',
        toolCallId: 'c1',
        approvalId: 'a1',
        approvalDescriptor: { description: 'Refund 1?' },
      },
    ]);
    const live = await readMessage(chunks);
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
  'an approval of a sub-agent is shown, and the call of the sub-agent does not block the answers',
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
    const chunks = chunksOf(
      (writer) => {
        for (const envelope of envelopes) writer.addEnvelope(envelope);
        writer.addDelta({ kind: 'text', text: 'I wi', generationId: below });
        writer.end(turnResultOf('paused', { pending: [{ kind: 'approval', key: `${below}/5/0/0/0/1`, id: 'a9' }] }));
      },
      { kindOf },
    );
    expect(chunks.at(-1)).toEqual({ type: 'finish', finishReason: 'tool-calls' });
    const live = await readMessage(chunks);
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

verifies('aisdk.chat', 'a call of an unknown tool is shown as failed', async () => {
  const make = new EnvelopeFactory();
  const live = await readMessage(
    chunksOf(
      (writer) => {
        writer.addEnvelope(make.of('user-message', { text: 'hi' }));
        writer.addDelta(delta('tool-input', '{}', { toolCallId: 'c1', toolName: 'nothing' }));
        writer.addEnvelope(make.of('tool-call', { toolCallId: 'c1', toolName: 'nothing', args: {} }));
        writer.addEnvelope(
          make.of('tool-error', { toolCallId: 'c1', toolName: 'nothing', error: 'There is no tool.' }),
        );
        writer.end(turnResultOf('error', { error: { code: 'BACKEND_FAILED', message: 'connect 10.0.0.7 refused' } }));
      },
      { kindOf: () => undefined },
    ),
  );
  expect(live?.parts.filter((part) => 'toolCallId' in part)).toMatchObject([
    { type: 'dynamic-tool', toolName: 'nothing', state: 'output-error', input: {} },
  ]);
});

verifies('aisdk.chat', 'error messages are not disclosed to users by default', () => {
  const secret = 'connect to 10.0.0.7 as admin failed';
  const failed = turnResultOf('error', { error: { code: 'BACKEND_FAILED', message: secret } });
  const chunks = chunksOf((writer) => {
    writer.addEnvelope(new EnvelopeFactory().of('generation-failure', { error: secret }));
    writer.end(failed);
  });
  expect(JSON.stringify(chunks)).not.toContain(secret);
  expect(chunks.at(-1)).toEqual({ type: 'error', errorText: errorCodes.BACKEND_FAILED.meaning });
  const disclosed = chunksOf((writer) => writer.end(failed), { errorText: ({ message }) => message });
  expect(disclosed.at(-1)).toEqual({ type: 'error', errorText: secret });
  const unknownCode = turnResultOf('error', { error: { code: 'toString', message: secret } });
  expect(chunksOf((writer) => writer.end(unknownCode)).at(-1)).toEqual({
    type: 'error',
    errorText: 'An error occurred.',
  });
});

verifies('aisdk.chat', 'the open tool calls of a stopped turn are settled', async () => {
  const make = new EnvelopeFactory();
  const chunks = chunksOf((writer) => {
    writer.addEnvelope(make.of('user-message', { text: 'hi' }));
    writer.addEnvelope(make.of('tool-call', { toolCallId: 'c1', toolName: 'slow', args: {} }));
    writer.addEnvelope(make.of('user-abort', { generationId: TURN_ID }));
    writer.end(turnResultOf('cancelled', { error: { code: 'CANCELLED', message: 'The user stopped it.' } }));
  });
  expect(chunks.at(-1)).toEqual({ type: 'abort' });
  expect((await readMessage(chunks))?.parts.at(-1)).toMatchObject({ type: 'tool-slow', state: 'output-error' });
});

verifies('aisdk.chat', 'the answer after a handoff and the reason of an early stop are emitted', async () => {
  const make = new EnvelopeFactory();
  const live = await readMessage(
    chunksOf(
      (writer) => {
        writer.addEnvelope(make.of('user-message', { text: 'hi' }));
        writer.addEnvelope(make.of('assistant-message', { text: 'I hand over.' }));
        writer.addEnvelope(make.of('tool-call', { toolCallId: 'c1', toolName: 'clerk', args: {} }));
        writer.addEnvelope(make.of('tool-result', { toolCallId: 'c1', toolName: 'clerk', result: { text: 'Done.' } }));
        writer.end(turnResultOf('ok', { output: { text: 'Done.' } }));
      },
      { kindOf: () => 'composite' },
    ),
  );
  expect(live?.parts.filter(({ type }) => type === 'text')).toMatchObject([
    { text: 'I hand over.' },
    { text: 'Done.' },
  ]);
  const stopped = chunksOf((writer) => {
    writer.addEnvelope(make.of('generation-failure', { error: 'BUDGET_EXHAUSTED: it called its model 20 times' }));
    writer.end(turnResultOf('stopped', { reason: 'rounds' }));
  });
  expect(stopped.at(-1)).toEqual({ type: 'finish', finishReason: 'other' });
  const failure = firstChunkOf(stopped, 'data-rondo-failure');
  expect(failure?.data).toEqual({ code: 'BUDGET_EXHAUSTED', errorText: errorCodes.BUDGET_EXHAUSTED.meaning });
});

verifies('aisdk.chat', 'envelopes and deltas of other turns are ignored', () => {
  const make = new EnvelopeFactory();
  const chunks = chunksOf((writer) => {
    writer.addEnvelope(make.of('user-message', { text: 'stray' }, ''));
    writer.addEnvelope(make.of('user-message', { text: 'hi' }));
    writer.addEnvelope(make.of('assistant-message', { text: 'elsewhere' }, 'chat.2'));
    writer.addDelta({ kind: 'text', text: 'elsewhere', generationId: 'chat.2/1/0/0' });
    writer.addEnvelope(make.of('user-message', { text: 'faster' }));
  });
  expect(chunks).toEqual([
    { type: 'start', messageId: TURN_ID },
    { type: 'data-rondo-user-message', id: '4.0', data: { text: 'faster' } },
  ]);
});
