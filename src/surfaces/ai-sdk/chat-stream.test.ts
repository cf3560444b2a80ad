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
import { agentDef, partsOf, told, wholeOf } from '../../../spec/support/scripted-agents.js';
import { verifies } from '../../../spec/verifies.js';
import type { ModelProvider } from '../../loops/model.js';
import type { ModelStreamPart } from '../../protocol/model.js';
import { ManualClock } from '../../testing/manual-clock.js';
import { type ChatOptions, chatHandler } from './chat.js';
import { ChunkLog } from './chunk-log.js';

const stage = chatFixtures({ agentDef, told, hostOf, tool, chatHandler });
const SLOW = { text: 'I look it up. ', calls: [['slow', {}, 'c1'] as const] };
const BODY = { id: 'chat', messages: [userMessage('hi')] };
const stream = (chat = 'chat'): Request => new Request(`http://localhost/api/chat/${chat}/stream`);

/** A chat whose tool waits until it is let go. */
function held(options: Partial<ChatOptions> = {}) {
  const { slow, started, release } = blockingTool();
  const more = [tool('slow', 'builtin:slow')];
  const replies = [SLOW, { text: 'Here it is.' }];
  return { ...stage(replies, { agent: { tools: ['slow'] }, more, tools: { slow }, options }), started, release };
}

/** Reads until what was read holds a text, and keeps the stream. */
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

verifies('aisdk.chat', 'a client that comes back misses what was said, or hears it twice', async () => {
  const { handler, started, release, host } = held();
  expect((await handler(stream())).status).toBe(204);
  const reader = await readUntil(await handler(postRequest(BODY)), 'tool-input-available');
  await started;
  await reader.cancel();
  const back = await handler(stream());
  const whole = chunksIn(back);
  release();
  const message = await readWithAiSdk(readUIMessageStream, await whole);
  expect(message.parts).toMatchObject([
    { type: 'step-start' },
    { type: 'text', text: 'I look it up. ' },
    { type: 'tool-slow', state: 'output-available', output: 'found' },
    { type: 'step-start' },
    { type: 'text', text: 'Here it is.' },
  ]);
  expect(await host.archive.turns('chat')).toMatchObject([{ status: 'ok', turnId: message.id }]);
  expect((await handler(stream())).status).toBe(204);
});

verifies('aisdk.chat', 'a turn that somebody else drives cannot be watched', async () => {
  const { handler, started, release, host } = held();
  const other = host.run({ loop: 'support', input: { prompt: 'hi' }, sessionId: 'chat' });
  await started;
  const watched = chunksIn(await handler(stream()));
  release();
  const { turnId } = await other;
  const chunks = await watched;
  expect(firstChunkOf(chunks, 'start')).toEqual({ type: 'start', messageId: turnId });
  expect(textIn(chunks)).toBe('I look it up. Here it is.');
  expect(chunks.at(-1)).toEqual({ type: 'finish', finishReason: 'stop' });
});

verifies('aisdk.chat', 'a client that goes away takes the turn with it', async () => {
  const { handler, started, release, host } = held();
  const reader = await readUntil(await handler(postRequest(BODY)), 'tool-input-available');
  await started;
  await reader.cancel();
  release();
  const [turn] = await host.archive.turns('chat');
  expect(await host.resume(turn?.turnId ?? '')).toMatchObject({ status: 'ok', output: { text: 'Here it is.' } });
});

verifies(
  'aisdk.chat',
  'a turn that goes away with its client goes on, or goes while another client reads',
  async () => {
    const { handler, started, host } = held({ abortOnDisconnect: true });
    const one = await readUntil(await handler(postRequest(BODY)), 'tool-input-available');
    const other = (await handler(stream())).body?.getReader();
    await started;
    await one.cancel();
    expect(await host.archive.turns('chat')).toMatchObject([{ status: 'running' }]);
    await other?.cancel();
    const [turn] = await host.archive.turns('chat');
    expect(await host.resume(turn?.turnId ?? '')).toMatchObject({ status: 'error', error: { code: 'CANCELLED' } });
  },
);

verifies('aisdk.chat', 'the user cannot stop what runs', async () => {
  const { handler, started, host } = held();
  const told = chunksIn(await handler(postRequest(BODY)));
  await started;
  const stopped = await handler(postRequest({ id: 'chat', abort: true }));
  expect(stopped.status).toBe(204);
  const chunks = await told;
  expect(chunks.at(-1)).toEqual({ type: 'abort' });
  expect(firstChunkOf(chunks, 'tool-output-error')).toMatchObject({ toolCallId: 'c1' });
  expect(await host.archive.turns('chat')).toMatchObject([{ status: 'error', error: { code: 'CANCELLED' } }]);
});

verifies('aisdk.chat', 'a reader that is slow makes the server keep every piece, or loses some', async () => {
  const pieces = 10_000;
  const words = Array.from({ length: pieces }, (_, index) => `w${index} `).join('');
  let pulled = 0;
  const backend: ModelProvider = {
    id: 'told',
    defaultModel: 'told-1',
    open: async () => ({
      specificationVersion: 'v3',
      provider: 'told',
      modelId: 'told-1',
      supportedUrls: {},
      doGenerate: async () => wholeOf(partsOf({ text: words }, 0)),
      doStream: async () => {
        const parts = partsOf({ text: words }, 0).values();
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
  const { handler, host } = stage([], { backends: [backend] });
  const reader = (await handler(postRequest(BODY))).body?.getReader();
  while ((await host.archive.turns('chat'))[0]?.status !== 'ok') await new Promise((resolve) => setImmediate(resolve));
  expect(pulled).toBeGreaterThan(pieces);
  const decoder = new TextDecoder();
  const reads: string[] = [];
  for (let read = await reader?.read(); read?.done === false; read = await reader?.read()) {
    reads.push(decoder.decode(read.value));
  }
  const chunks = await chunksIn(new Response(reads.join('')));
  expect(textIn(chunks)).toBe(words);
  expect(chunks.length).toBeLessThan(60);
  expect(Math.max(...reads.map(({ length }) => length))).toBeLessThan(40_000);
});

verifies('aisdk.chat', 'a line that is quiet is cut by whatever stands between', async () => {
  const clock = new ManualClock(0);
  const log = new ChunkLog();
  const reader = log.stream({ clock }).getReader();
  const decoder = new TextDecoder();
  const next = async (): Promise<string> => decoder.decode((await reader.read()).value);
  const quiet = next();
  while (clock.nextWakeAt === undefined) await Promise.resolve();
  await clock.advance(15_000);
  expect(await quiet).toBe(': \n\n');
  const news = next();
  log.add({ type: 'start', messageId: 't' }, 0);
  expect(await news).toBe('data: {"type":"start","messageId":"t"}\n\n');
  const last = next();
  log.end();
  expect(await last).toBe('data: [DONE]\n\n');
  expect((await reader.read()).done).toBe(true);
  expect(clock.nextWakeAt).toBeUndefined();
});

verifies('aisdk.chat', 'an answer whose tool never ended is sent for ever', async () => {
  const log = new ChunkLog();
  log.add({ type: 'start', messageId: 't' }, 0);
  log.add({ type: 'finish', finishReason: 'other' }, 0);
  log.end();
  const known = {
    stepCount: 1,
    toolCallIds: new Set(['c1']),
    approvalIds: new Set(['a1']),
    unsettledToolCallIds: new Set(['c1']),
  };
  const chunks = await chunksIn(new Response(log.stream({ progress: known })));
  expect(chunks.at(-1)).toMatchObject({ type: 'error' });
});

verifies('aisdk.chat', 'a store that fails is told as an answer', async () => {
  const heard: unknown[] = [];
  const { host, handler } = stage([{ text: 'Hello.' }], { options: { onError: (thrown) => heard.push(thrown) } });
  const gone = new Error('disk of server 7 is gone');
  host.run = () => Promise.reject(gone);
  const chunks = await chunksIn(await handler(postRequest(BODY)));
  expect(chunks).toEqual([{ type: 'error', errorText: 'The store failed for another reason.' }]);
  host.archive.turns = () => Promise.reject(gone);
  const response = await handler(stream());
  expect(response.status).toBe(500);
  expect(await response.text()).not.toContain('server 7');
  expect(heard).toEqual([gone, gone]);
});
