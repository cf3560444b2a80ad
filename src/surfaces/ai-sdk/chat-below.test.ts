import { readUIMessageStream, type UIMessage } from 'ai';
import { expect } from 'vitest';
import {
  chatFixtures,
  chunksIn,
  postRequest,
  REFUND,
  textIn,
  userMessage,
  withAnswers,
} from '../../../spec/support/chat-fixture.mjs';
import { readWithAiSdk } from '../../../spec/support/envelopes.mjs';
import { composite, hostOf, tool } from '../../../spec/support/host-fixture.js';
import { agentDef, replyProvider } from '../../../spec/support/scripted-agents.js';
import { verifies } from '../../../spec/verifies.js';
import { memoryStore } from '../../adapters/memory/index.js';
import { chatHandler } from './chat.js';
import type { UiChunk } from './chunk.js';
import { uiMessages } from './message.js';
import { toolKinds } from './tool-kinds.js';

const createChat = chatFixtures({ agentDef, replyProvider, hostOf, tool, chatHandler });
const readMessage = (chunks: readonly UiChunk[], message?: UIMessage): Promise<UIMessage> =>
  readWithAiSdk(readUIMessageStream, chunks, message);

/** Creates a chat with a pending refund approval. `message` is the client's copy of the assistant message. */
async function openChatWithRefund(
  replies: Parameters<typeof createChat>[0],
  options: Parameters<typeof createChat>[1],
) {
  const chat = createChat(replies, options);
  const chunks = await chunksIn(await chat.handler(postRequest({ id: 'chat', messages: [userMessage('my money')] })));
  return { ...chat, message: await readMessage(chunks) };
}

verifies(
  'aisdk.chat',
  'an approval of a sub-agent is shown as its own tool call, and its answer reaches it',
  async () => {
    const clerk = agentDef('clerk', { tools: ['refund'], backend: { id: 'replies' } });
    const { message, handler, refunds } = await openChatWithRefund(
      [
        { calls: [['clerk', { prompt: 'pay them' }, 'c1']] },
        { text: 'Paying. ', calls: [['refund', { amount: 7 }, 'c1']] },
        { text: 'Paid.' },
        { text: 'All is done.' },
      ],
      { agent: { tools: ['clerk'], approvals: { refund: 'ask' } }, more: [clerk] },
    );
    expect(message.parts.filter((part) => 'toolCallId' in part)).toMatchObject([
      { type: 'dynamic-tool', toolName: 'refund', input: { amount: 7 }, state: 'approval-requested' },
    ]);
    const rest = await chunksIn(await handler(postRequest({ id: 'chat', messages: [withAnswers(message, true)] })));
    expect(refunds).toEqual([7]);
    const updated = await readMessage(rest, withAnswers(message, true));
    expect(updated?.parts.filter((part) => 'toolCallId' in part)).toMatchObject([{ state: 'output-available' }]);
    expect(updated?.parts.filter(({ type }) => type === 'data-rondo-call')).toMatchObject([{ data: { status: 'ok' } }]);
    expect(updated?.parts.filter(({ type }) => type === 'data-rondo-agent')).toMatchObject([
      { data: { agent: 'clerk', status: 'ok', text: 'Paying. \n\nPaid.' } },
    ]);
    expect(updated?.parts.at(-1)).toMatchObject({ type: 'text', text: 'All is done.' });
  },
);

verifies('aisdk.chat', 'the answer of an agent that took over is streamed, and equals the loaded message', async () => {
  const { host, handler } = createChat(
    [{ text: 'I hand over. ', calls: [['clerk', { prompt: 'go' }, 'c1']] }, { text: 'I am the clerk.' }],
    { agent: { tools: ['refund'], handoffs: ['clerk'] }, more: [agentDef('clerk', { tools: ['refund'] })] },
  );
  const chunks = await chunksIn(await handler(postRequest({ id: 'chat', messages: [userMessage('hi')] })));
  expect(textIn(chunks)).toBe('I hand over. I am the clerk.');
  const live = await readMessage(chunks);
  const [, loaded] = uiMessages(await host.archive.events('chat'), { kindOf: toolKinds(host, 'support') });
  expect(JSON.parse(JSON.stringify(live))).toEqual(JSON.parse(JSON.stringify(loaded)));
});

verifies('aisdk.chat', 'an approval inside a workflow is shown as the tool call, not as the workflow', async () => {
  const steps = [{ loopId: 'refund', inputMapping: '$.input' }];
  const { message, handler, refunds } = await openChatWithRefund(
    [{ calls: [['workflow', { amount: 3 }, 'c1']] }, { text: 'It is done.' }],
    { agent: { tools: ['workflow'], approvals: { refund: 'ask' } }, more: [composite('workflow', steps)] },
  );
  expect(message.parts.filter((part) => 'toolCallId' in part)).toMatchObject([
    { type: 'dynamic-tool', toolName: 'refund', input: { amount: 3 }, state: 'approval-requested' },
  ]);
  const rest = await chunksIn(await handler(postRequest({ id: 'chat', messages: [withAnswers(message, true)] })));
  expect(refunds).toEqual([3]);
  const updated = await readMessage(rest, withAnswers(message, true));
  expect(updated?.parts.map((part) => ('state' in part ? part.state : part.type))).toEqual([
    'step-start',
    'data-rondo-call',
    'output-available',
    'step-start',
    'done',
  ]);
});

verifies('aisdk.chat', 'an answer that another process receives later is applied exactly once', async () => {
  const store = memoryStore();
  const replies = [REFUND, { text: 'It is done.' }];
  const first = await openChatWithRefund(replies, { store });
  const second = createChat(replies, { store });
  const answerRequest = () => postRequest({ id: 'chat', messages: [withAnswers(first.message, true)] });
  const both = await Promise.all([0, 1].map(async () => chunksIn(await second.handler(answerRequest()))));
  expect([first.refunds, second.refunds]).toEqual([[], [5]]);
  for (const rest of both) {
    const updated = await readMessage(rest, withAnswers(first.message, true));
    expect(updated?.parts.at(-1)).toMatchObject({ type: 'text', text: 'It is done.' });
    expect(updated?.parts).toHaveLength(first.message.parts.length + 2);
  }
});
