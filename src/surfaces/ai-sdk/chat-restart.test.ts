// Chats of a runtime made with `createRondo`, across a restart of the server.

import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readUIMessageStream } from 'ai';
import { expect } from 'vitest';
import { z } from 'zod';
import { chunksIn, postRequest, userMessage, withAnswers } from '../../../spec/support/chat-fixture.mjs';
import { readWithAiSdk } from '../../../spec/support/envelopes.mjs';
import { replyProvider } from '../../../spec/support/scripted-agents.js';
import { verifies } from '../../../spec/verifies.js';
import { createRondo, defineAgent, tool } from '../../index.js';
import { chatHandler } from './chat.js';
import { chatSession } from './chat-session.js';
import { uiMessages } from './message.js';
import { toAISDKTool } from './tool.js';

const refund = tool({
  name: 'refund',
  inputSchema: z.object({ amount: z.number() }),
  approval: 'ask',
  execute: ({ amount }) => ({ refunded: amount }),
});
const support = defineAgent({ id: 'support', model: 'test', tools: { refund } });

verifies(
  'aisdk.chat',
  'an approval that waited for a restarted server continues with the agent of the handler',
  async () => {
    const store = `sqlite:${join(mkdtempSync(join(tmpdir(), 'rondo-')), 'journal.db')}`;
    const models = { test: replyProvider([{ calls: [['refund', { amount: 5 }, 'c1']] }, { text: 'It is done.' }]) };
    const first = await createRondo({ store, models });
    const before = chatHandler({ host: first, agent: support });
    const chunks = await chunksIn(await before(postRequest({ id: 'chat', messages: [userMessage('my money')] })));
    const message = await readWithAiSdk(readUIMessageStream, chunks);
    expect(message.parts.at(-1)).toMatchObject({ type: 'tool-refund', state: 'approval-requested' });
    await first.close();
    await using second = await createRondo({ store, models });
    const after = chatHandler({ host: second, agent: support });
    const answered = withAnswers(message, true);
    const rest = await chunksIn(await after(postRequest({ id: 'chat', messages: [answered], messageId: message.id })));
    expect((await readWithAiSdk(readUIMessageStream, rest, answered)).parts.at(-1)).toMatchObject({
      type: 'text',
      text: 'It is done.',
    });
    const session = await chatSession(second, { chatId: 'chat', principal: undefined });
    expect(uiMessages(await second.events(session)).map(({ role }) => role)).toEqual(['user', 'assistant']);
    expect(toAISDKTool(support, { host: second }).description).toBe('support');
  },
);
