// What users and operators see of turns that a server cannot continue.

import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readUIMessageStream } from 'ai';
import { expect, onTestFinished, vi } from 'vitest';
import { z } from 'zod';
import { chunksIn, postRequest, userMessage, withAnswers } from '../../../spec/support/chat-fixture.mjs';
import { readWithAiSdk } from '../../../spec/support/envelopes.mjs';
import { replyProvider } from '../../../spec/support/scripted-agents.js';
import { verifies } from '../../../spec/verifies.js';
import { createRondo, defineAgent, LoopError, type Rondo, tool } from '../../index.js';
import { chatHandler } from './chat.js';
import { chatSession } from './chat-session.js';
import { uiMessages } from './message.js';
import { toolKinds } from './tool-kinds.js';

const refund = tool({
  name: 'refund',
  inputSchema: z.object({ amount: z.number() }),
  requestApproval: ({ amount }) => `Refund ${amount}?`,
  execute: ({ amount }) => ({ refunded: amount }),
});
const UNAVAILABLE = 'This chat cannot continue at the moment. Its operator has been informed.';
const agentWith = (instructions: string, version = '1.0.0') =>
  defineAgent({ id: 'support', version, model: 'test', instructions, tools: { refund } });

/** Starts a chat that waits for an approval, in a process that ends. Returns the client's message and the next process. */
async function openRestartedChat() {
  const store = `sqlite:${join(mkdtempSync(join(tmpdir(), 'rondo-')), 'journal.db')}`;
  const models = { test: replyProvider([{ calls: [['refund', { amount: 5 }, 'c1']] }, { text: 'It is done.' }]) };
  const first = await createRondo({ store, models });
  const handler = chatHandler({ host: first, agent: agentWith('Be brief.') });
  const chunks = await chunksIn(await handler(postRequest({ id: 'chat', messages: [userMessage('my money')] })));
  const message = await readWithAiSdk(readUIMessageStream, chunks);
  await first.close();
  const rondo = await createRondo({ store, models });
  onTestFinished(() => rondo.close());
  return { rondo, answered: withAnswers(message, true) };
}

async function loadedParts(rondo: Rondo) {
  const sessionId = await chatSession(rondo, { chatId: 'chat', principal: undefined });
  const messages = uiMessages(await rondo.events(sessionId), { kindOf: toolKinds(rondo, 'support') });
  return JSON.parse(JSON.stringify(messages.at(-1)?.parts));
}

for (const [code, changed] of [
  ['REPLAY_MISMATCH', agentWith('Be kind.')],
  ['LOOP_NOT_FOUND', agentWith('Be kind.', '2.0.0')],
] as const) {
  verifies(
    'aisdk.chat',
    `${code}: the operator learns the turn, the user a plain text, and the call stays`,
    async () => {
      const { rondo, answered } = await openRestartedChat();
      const reported: unknown[] = [];
      const handler = chatHandler({ host: rondo, agent: changed, onError: (thrown) => reported.push(thrown) });
      const request = postRequest({ id: 'chat', messages: [answered], messageId: answered.id });
      const chunks = await chunksIn(await handler(request));
      expect(chunks.at(-1)).toEqual({ type: 'error', errorText: UNAVAILABLE });
      expect(chunks.filter(({ type }) => type.startsWith('tool-output'))).toEqual([]);
      expect(reported).toEqual([expect.any(LoopError)]);
      expect(reported).toMatchObject([{ code, data: { turnId: answered.id } }]);
      expect(String(reported[0])).toContain(`Turn ${answered.id} cannot continue: `);
      expect(await loadedParts(rondo)).toEqual(JSON.parse(JSON.stringify(answered.parts)));
      expect(answered.parts.at(-1)).toMatchObject({
        state: 'approval-responded',
        approval: { id: expect.stringContaining('chat.k-'), descriptor: { description: 'Refund 5?' }, approved: true },
      });
    },
  );
}

verifies('aisdk.chat', 'a loaded message has the approval of the stream after its tool has ended', async () => {
  const { rondo, answered } = await openRestartedChat();
  const handler = chatHandler({ host: rondo, agent: agentWith('Be brief.') });
  const chunks = await chunksIn(
    await handler(postRequest({ id: 'chat', messages: [answered], messageId: answered.id })),
  );
  const message = await readWithAiSdk(readUIMessageStream, chunks, answered);
  const streamed = message.parts.find(({ type }) => type === 'tool-refund');
  expect(streamed).toMatchObject({ state: 'output-available', approval: { descriptor: { description: 'Refund 5?' } } });
  expect(await loadedParts(rondo)).toContainEqual(JSON.parse(JSON.stringify(streamed)));
});

verifies(
  'aisdk.chat',
  'a failed model call reaches the operator with its reason, by default as a warning',
  async () => {
    await using rondo = await createRondo({ store: 'memory:', models: { test: replyProvider([]) } });
    const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
    onTestFinished(() => warn.mockRestore());
    const reported: unknown[] = [];
    const agent = agentWith('Be brief.');
    const handlers = [
      chatHandler({ host: rondo, agent, onError: (thrown) => reported.push(thrown) }),
      chatHandler({ host: rondo, agent }),
    ];
    for (const [index, handler] of handlers.entries())
      await chunksIn(await handler(postRequest({ id: `chat${index}`, messages: [userMessage('hi')] })));
    const message = expect.stringMatching(/^Turn chat0\.\S+ failed: .*has 0 replies/);
    expect(reported).toMatchObject([{ code: 'BACKEND_FAILED', message, data: { details: { retryable: true } } }]);
    expect(warn.mock.calls).toEqual([[expect.stringContaining('BACKEND_FAILED: Turn chat1.'), expect.anything()]]);
  },
);
