import { readUIMessageStream } from 'ai';
import { expect } from 'vitest';
import {
  blockingTool,
  chatFixtures,
  chunksIn,
  firstChunkOf,
  postRequest,
  textIn,
  userMessage,
} from '../../../spec/support/chat-fixture.mjs';
import { readWithAiSdk } from '../../../spec/support/envelopes.mjs';
import { hostOf, tool } from '../../../spec/support/host-fixture.js';
import { agentDef, partsOf, replyProvider, wholeOf } from '../../../spec/support/scripted-agents.js';
import { verifies } from '../../../spec/verifies.js';
import type { ModelProvider } from '../../loops/model.js';
import type { ModelStreamPart } from '../../protocol/model.js';
import { ManualClock } from '../../testing/manual-clock.js';
import { type ChatOptions, chatHandler } from './chat.js';
import { ChunkLog } from './chunk-log.js';

const createChat = chatFixtures({ agentDef, replyProvider, hostOf, tool, chatHandler });
const SLOW = { text: 'I look it up. ', calls: [['slow', {}, 'c1'] as const] };
const BODY = { id: 'chat', messages: [userMessage('hi')] };
const streamRequest = (chat = 'chat'): Request => new Request(`http://localhost/api/chat/${chat}/stream`);

/** Creates a chat whose tool blocks until it is released. */
function createBlockingChat(options: Partial<ChatOptions> = {}) {
  const { slow, started, release } = blockingTool();
  const more = [tool('slow', 'builtin:slow')];
  const replies = [SLOW, { text: 'Here it is.' }];
  return { ...createChat(replies, { agent: { tools: ['slow'] }, more, tools: { slow }, options }), started, release };
}

/** Reads a response until it contains a text, and returns the open reader. */
async function readUntil(response: Response, part: string): Promise<ReadableStreamDefaultReader<Uint8Array>> {
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const decoder = new TextDecoder();
  for (let text = ''; !text.includes(part); ) {
    const { value, done } = await reader.read();
    if (done) throw new Error(`The stream ended without "${part}": ${text}`);
    text += decoder.decode(value);
  }
  return reader;
}

verifies('aisdk.chat', 'a client that reconnects receives the complete message exactly once', async () => {
  const { handler, started, release, host } = createBlockingChat();
  expect((await handler(streamRequest())).status).toBe(204);
  const reader = await readUntil(await handler(postRequest(BODY)), 'tool-input-available');
  await started;
  await reader.cancel();
  const chunks = chunksIn(await handler(streamRequest()));
  release();
  const message = await readWithAiSdk(readUIMessageStream, await chunks);
  expect(message.parts).toMatchObject([
    { type: 'step-start' },
    { type: 'text', text: 'I look it up. ' },
    { type: 'tool-slow', state: 'output-available', output: 'found' },
    { type: 'step-start' },
    { type: 'text', text: 'Here it is.' },
  ]);
  expect(await host.archive.turns('chat')).toMatchObject([{ status: 'ok', turnId: message.id }]);
  expect((await handler(streamRequest())).status).toBe(204);
});

verifies('aisdk.chat', 'a client can follow a turn that was started outside of the handler', async () => {
  const { handler, started, release, host } = createBlockingChat();
  const other = host.run({ loop: 'support', input: { prompt: 'hi' }, sessionId: 'chat' });
  await started;
  const followed = chunksIn(await handler(streamRequest()));
  release();
  const { turnId } = await other;
  const chunks = await followed;
  expect(firstChunkOf(chunks, 'start')).toEqual({ type: 'start', messageId: turnId });
  expect(textIn(chunks)).toBe('I look it up. Here it is.');
  expect(chunks.at(-1)).toEqual({ type: 'finish', finishReason: 'stop' });
});

verifies('aisdk.chat', 'a turn continues after its client disconnects', async () => {
  const { handler, started, release, host } = createBlockingChat();
  const reader = await readUntil(await handler(postRequest(BODY)), 'tool-input-available');
  await started;
  await reader.cancel();
  release();
  const [turn] = await host.archive.turns('chat');
  expect(await host.resume(turn?.turnId ?? '')).toMatchObject({ status: 'ok', output: { text: 'Here it is.' } });
});

verifies(
  'aisdk.chat',
  'with abortOnDisconnect, a turn is cancelled when its last reader disconnects, not before',
  async () => {
    const { handler, started, host } = createBlockingChat({ abortOnDisconnect: true });
    const one = await readUntil(await handler(postRequest(BODY)), 'tool-input-available');
    const other = (await handler(streamRequest())).body?.getReader();
    await started;
    await one.cancel();
    expect(await host.archive.turns('chat')).toMatchObject([{ status: 'running' }]);
    await other?.cancel();
    const [turn] = await host.archive.turns('chat');
    expect(await host.resume(turn?.turnId ?? '')).toMatchObject({ status: 'cancelled', error: { code: 'CANCELLED' } });
  },
);

verifies('aisdk.chat', 'the user can stop a running turn', async () => {
  const { handler, started, host } = createBlockingChat();
  const streamed = chunksIn(await handler(postRequest(BODY)));
  await started;
  const stopped = await handler(postRequest({ id: 'chat', abort: true }));
  expect(stopped.status).toBe(204);
  const chunks = await streamed;
  expect(chunks.at(-1)).toEqual({ type: 'abort' });
  expect(firstChunkOf(chunks, 'tool-output-error')).toMatchObject({ toolCallId: 'c1' });
  expect(await host.archive.turns('chat')).toMatchObject([{ status: 'cancelled', error: { code: 'CANCELLED' } }]);
});

verifies('aisdk.chat', 'a slow reader receives the whole text in a bounded number of chunks', async () => {
  const pieceCount = 10_000;
  const longText = Array.from({ length: pieceCount }, (_, index) => `w${index} `).join('');
  let pulled = 0;
  const provider: ModelProvider = {
    id: 'replies',
    defaultModel: 'replies-1',
    open: async () => ({
      specificationVersion: 'v3',
      provider: 'replies',
      modelId: 'replies-1',
      supportedUrls: {},
      doGenerate: async () => wholeOf(partsOf({ text: longText }, 0)),
      doStream: async () => {
        const parts = partsOf({ text: longText }, 0).values();
        const pull = (out: ReadableStreamDefaultController<ModelStreamPart>): void => {
          const { value } = parts.next();
          pulled += 1;
          if (value === undefined) out.close();
          else out.enqueue(value);
        };
        return { stream: new ReadableStream<ModelStreamPart>({ pull }) };
      },
    }),
  };
  const { handler, host } = createChat([], { providers: [provider] });
  const reader = (await handler(postRequest(BODY))).body?.getReader();
  while ((await host.archive.turns('chat'))[0]?.status !== 'ok') await new Promise((resolve) => setImmediate(resolve));
  expect(pulled).toBeGreaterThan(pieceCount);
  const decoder = new TextDecoder();
  const reads: string[] = [];
  for (let read = await reader?.read(); read?.done === false; read = await reader?.read()) {
    reads.push(decoder.decode(read.value));
  }
  const chunks = await chunksIn(new Response(reads.join('')));
  expect(textIn(chunks)).toBe(longText);
  expect(chunks.length).toBeLessThan(60);
  expect(Math.max(...reads.map(({ length }) => length))).toBeLessThan(40_000);
});

verifies('aisdk.chat', 'an idle stream sends keep-alive comments', async () => {
  const clock = new ManualClock(0);
  const log = new ChunkLog();
  const reader = log.stream({ clock }).getReader();
  const decoder = new TextDecoder();
  const next = async (): Promise<string> => decoder.decode((await reader.read()).value);
  const keepAlive = next();
  while (clock.nextWakeAt === undefined) await Promise.resolve();
  await clock.advance(15_000);
  expect(await keepAlive).toBe(': \n\n');
  const first = next();
  log.add({ type: 'start', messageId: 't' }, 0);
  expect(await first).toBe('data: {"type":"start","messageId":"t"}\n\n');
  const last = next();
  log.end();
  expect(await last).toBe('data: [DONE]\n\n');
  expect((await reader.read()).done).toBe(true);
  expect(clock.nextWakeAt).toBeUndefined();
});

verifies(
  'aisdk.chat',
  'a message with an unsettled answer ends with an error, so the client stops sending',
  async () => {
    const log = new ChunkLog();
    log.add({ type: 'start', messageId: 't' }, 0);
    log.add({ type: 'finish', finishReason: 'other' }, 0);
    log.end();
    const progress = {
      stepCount: 1,
      toolCallIds: new Set(['c1']),
      approvalIds: new Set(['a1']),
      unsettledToolCallIds: new Set(['c1']),
    };
    const chunks = await chunksIn(new Response(log.stream({ progress })));
    expect(chunks.at(-1)).toMatchObject({ type: 'error' });
  },
);

verifies('aisdk.chat', 'a store failure is reported without internal details', async () => {
  const reported: unknown[] = [];
  const { host, handler } = createChat([{ text: 'Hello.' }], {
    options: { onError: (thrown) => reported.push(thrown) },
  });
  const failure = new Error('disk of server 7 is gone');
  host.run = () => Promise.reject(failure);
  const chunks = await chunksIn(await handler(postRequest(BODY)));
  expect(chunks).toEqual([{ type: 'error', errorText: expect.stringContaining('cannot continue at the moment') }]);
  host.archive.turns = () => Promise.reject(failure);
  const response = await handler(streamRequest());
  expect(response.status).toBe(500);
  expect(await response.text()).not.toContain('server 7');
  expect(reported).toEqual([failure, failure]);
});
