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
import { agentDef, told } from '../../../spec/support/scripted-agents.js';
import { verifies } from '../../../spec/verifies.js';
import { memoryStore } from '../../adapters/memory/index.js';
import { chatHandler, toolKinds } from './chat.js';
import type { UiChunk } from './chunk.js';
import { uiMessages } from './message.js';

const stage = chatFixtures({ agentDef, told, hostOf, tool, chatHandler });
const readBySdk = (chunks: readonly UiChunk[], message?: UIMessage): Promise<UIMessage> =>
  readWithAiSdk(readUIMessageStream, chunks, message);

/** A chat in which a refund waits, and the message that the client has of it. */
async function waiting(replies: Parameters<typeof stage>[0], more: Parameters<typeof stage>[1]) {
  const chat = stage(replies, more);
  const chunks = await chunksIn(await chat.handler(postRequest({ id: 'chat', messages: [userMessage('my money')] })));
  return { ...chat, message: await readBySdk(chunks) };
}

verifies('aisdk.chat', 'what a sub-agent asks for is shown as something else, or its answer goes astray', async () => {
  const clerk = agentDef('clerk', { tools: ['refund'], backend: { id: 'told' } });
  const { message, handler, refunds } = await waiting(
    [
      { calls: [['clerk', { prompt: 'pay them' }, 'c1']] },
      { text: 'Paying. ', calls: [['refund', { amount: 7 }, 'c1']] },
      { text: 'Paid.' },
      { text: 'All is done.' },
    ],
    { agent: { tools: ['clerk'], approvals: { refund: 'ask' } }, more: [clerk] },
  );
  const asks = message.parts.filter((part) => 'toolCallId' in part);
  expect(asks).toMatchObject([
    { type: 'dynamic-tool', toolName: 'refund', input: { amount: 7 }, state: 'approval-requested' },
  ]);
  const rest = await chunksIn(await handler(postRequest({ id: 'chat', messages: [withAnswers(message, true)] })));
  expect(refunds).toEqual([7]);
  const now = await readBySdk(rest, withAnswers(message, true));
  expect(now?.parts.filter((part) => 'toolCallId' in part)).toMatchObject([{ state: 'output-available' }]);
  expect(now?.parts.filter(({ type }) => type === 'data-rondo-call')).toMatchObject([{ data: { status: 'ok' } }]);
  expect(now?.parts.filter(({ type }) => type === 'data-rondo-agent')).toMatchObject([
    { data: { agent: 'clerk', status: 'ok', text: 'Paying. \n\nPaid.' } },
  ]);
  expect(now?.parts.at(-1)).toMatchObject({ type: 'text', text: 'All is done.' });
});

verifies(
  'aisdk.chat',
  'the answer of an agent that took over is missing, live or on a page that is loaded',
  async () => {
    const { host, handler } = stage(
      [{ text: 'I hand over. ', calls: [['clerk', { prompt: 'go' }, 'c1']] }, { text: 'I am the clerk.' }],
      { agent: { tools: ['refund'], handoffs: ['clerk'] }, more: [agentDef('clerk', { tools: ['refund'] })] },
    );
    const chunks = await chunksIn(await handler(postRequest({ id: 'chat', messages: [userMessage('hi')] })));
    expect(textIn(chunks)).toBe('I hand over. I am the clerk.');
    const live = await readBySdk(chunks);
    const [, loaded] = uiMessages(await host.archive.events('chat'), { kindOf: toolKinds(host, 'support') });
    expect(JSON.parse(JSON.stringify(live))).toEqual(JSON.parse(JSON.stringify(loaded)));
  },
);

verifies('aisdk.chat', 'an action that asks inside of a workflow is shown as the workflow', async () => {
  const steps = [{ loopId: 'refund', inputMapping: '$.input' }];
  const { message, handler, refunds } = await waiting(
    [{ calls: [['workflow', { amount: 3 }, 'c1']] }, { text: 'It is done.' }],
    { agent: { tools: ['workflow'], approvals: { refund: 'ask' } }, more: [composite('workflow', steps)] },
  );
  expect(message.parts.filter((part) => 'toolCallId' in part)).toMatchObject([
    { type: 'dynamic-tool', toolName: 'refund', input: { amount: 3 }, state: 'approval-requested' },
  ]);
  const rest = await chunksIn(await handler(postRequest({ id: 'chat', messages: [withAnswers(message, true)] })));
  expect(refunds).toEqual([3]);
  const now = await readBySdk(rest, withAnswers(message, true));
  expect(now?.parts.map((part) => ('state' in part ? part.state : part.type))).toEqual([
    'step-start',
    'data-rondo-call',
    'output-available',
    'step-start',
    'done',
  ]);
});

verifies('aisdk.chat', 'an answer that comes days later, to another process, is lost or counts twice', async () => {
  const store = memoryStore();
  const replies = [REFUND, { text: 'It is done.' }];
  const first = await waiting(replies, { store });
  const second = stage(replies, { store });
  const request = () => postRequest({ id: 'chat', messages: [withAnswers(first.message, true)] });
  const both = await Promise.all([0, 1].map(async () => chunksIn(await second.handler(request()))));
  expect([first.refunds, second.refunds]).toEqual([[], [5]]);
  for (const rest of both) {
    const now = await readBySdk(rest, withAnswers(first.message, true));
    expect(now?.parts.at(-1)).toMatchObject({ type: 'text', text: 'It is done.' });
    expect(now?.parts).toHaveLength(first.message.parts.length + 2);
  }
});
