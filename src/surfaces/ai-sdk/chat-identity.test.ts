import { expect } from 'vitest';
import {
  blockingTool,
  chatFixtures,
  chunksIn,
  firstChunkOf,
  postRequest,
  REFUND,
  textIn,
  userMessage,
} from '../../../spec/support/chat-fixture.mjs';
import { hostOf, tool } from '../../../spec/support/host-fixture.js';
import { agentDef, replyProvider } from '../../../spec/support/scripted-agents.js';
import { verifies } from '../../../spec/verifies.js';
import { memoryStore } from '../../adapters/memory/index.js';
import { chatHandler } from './chat.js';
import { chatSession } from './chat-session.js';

const createChat = chatFixtures({ agentDef, replyProvider, hostOf, tool, chatHandler });
const principal = (request: Request): string | undefined => request.headers.get('x-user') ?? undefined;
const ADA = { 'x-user': 'ada' };
const EVE = { 'x-user': 'eve' };
const chatBody = (id: string, messageId = 'm1') => ({ id, messages: [userMessage('hi', messageId)] });
const streamRequest = (chat: string, headers: Record<string, string> = {}): Request =>
  new Request(`http://localhost/api/chat/${encodeURIComponent(chat)}/stream`, { headers });

/** Creates a chat with a tool whose first call blocks until it is released. */
function createBlockingChat(options: Parameters<typeof createChat>[1] = {}) {
  const first = blockingTool();
  let calls = 0;
  const slow: typeof first.slow = (...args) => (calls++ === 0 ? first.slow(...args) : 'found');
  const replies = [{ text: 'I look. ', calls: [['slow', {}, 'c1'] as const] }, { text: 'Found.' }];
  const more = [tool('slow', 'builtin:slow')];
  return { ...createChat(replies, { agent: { tools: ['slow'] }, more, tools: { slow }, ...options }), ...first };
}

verifies('aisdk.identity', 'chat and message ids that are equal when joined have separate streams', async () => {
  const { handler, started, release, host } = createBlockingChat();
  const first = chunksIn(await handler(postRequest(chatBody('a:b', 'c'))));
  await started;
  const second = chunksIn(await handler(postRequest(chatBody('a', 'b:c'))));
  release();
  const [one, other] = await Promise.all([first, second]);
  expect(firstChunkOf(one, 'start')).not.toEqual(firstChunkOf(other, 'start'));
  for (const [chat, chunks] of [
    ['a:b', one],
    ['a', other],
  ] as const) {
    const turns = await host.archive.turns(chat);
    expect(turns.map(({ turnId }) => turnId)).toEqual([firstChunkOf(chunks, 'start')?.messageId]);
  }
});

verifies('aisdk.identity', 'a message whose id resembles a regeneration key starts its own turn', async () => {
  const { handler, host } = createChat([{ text: 'One.' }, { text: 'Two.' }, { text: 'Three.' }]);
  await chunksIn(await handler(postRequest(chatBody('chat'))));
  const again = await chunksIn(await handler(postRequest({ ...chatBody('chat'), trigger: 'regenerate-message' })));
  const other = await chunksIn(await handler(postRequest(chatBody('chat', 'm1:again:1'))));
  expect([textIn(again), textIn(other)]).toEqual(['Two.', 'Three.']);
  expect(await host.archive.turns('chat')).toHaveLength(3);
});

verifies('aisdk.identity', 'a message whose id resembles a turn id does not join the stream of that turn', async () => {
  const { handler, started, release, host } = createBlockingChat();
  const running = chunksIn(await handler(postRequest(chatBody('a:b'))));
  await started;
  const [turn] = await host.archive.turns('a:b');
  const joined = chunksIn(await handler(streamRequest('a:b')));
  const separate = chunksIn(await handler(postRequest(chatBody('a', (turn?.turnId ?? '').slice('a:'.length)))));
  release();
  const [one, same, other] = await Promise.all([running, joined, separate]);
  expect(firstChunkOf(same, 'start')).toEqual(firstChunkOf(one, 'start'));
  expect(firstChunkOf(other, 'start')).not.toEqual(firstChunkOf(one, 'start'));
});

verifies(
  'aisdk.identity',
  'two users with the same chat id have separate chats when they stream, reconnect and stop',
  async () => {
    const { handler, started, release, host } = createBlockingChat({ options: { principal } });
    const mine = chunksIn(await handler(postRequest(chatBody('chat'), ADA)));
    await started;
    expect((await handler(streamRequest('chat', EVE))).status).toBe(204);
    expect((await handler(postRequest({ id: 'chat', abort: true }, EVE))).status).toBe(204);
    const theirs = await chunksIn(await handler(postRequest(chatBody('chat'), EVE)));
    const resumed = chunksIn(await handler(streamRequest('chat', ADA)));
    release();
    const [one, same] = await Promise.all([mine, resumed]);
    expect([textIn(one), textIn(same), textIn(theirs)]).toEqual(Array(3).fill('I look. Found.'));
    expect(firstChunkOf(same, 'start')).toEqual(firstChunkOf(one, 'start'));
    expect(firstChunkOf(theirs, 'start')).not.toEqual(firstChunkOf(one, 'start'));
    const [ada, eve] = await Promise.all(
      ['ada', 'eve'].map((who) => chatSession(host, { chatId: 'chat', principal: who })),
    );
    expect(await host.archive.turns(ada ?? '')).toMatchObject([{ principal: 'ada', status: 'ok' }]);
    expect(await host.archive.turns(eve ?? '')).toMatchObject([{ principal: 'eve', status: 'ok' }]);
    expect(await host.archive.turns('chat')).toEqual([]);
  },
);

verifies(
  'aisdk.identity',
  'a chat id that equals a session id of another user gives no access to that session',
  async () => {
    const { handler, host, prompts } = createChat([{ text: 'Hello.' }], { options: { principal } });
    await chunksIn(await handler(postRequest({ id: 'chat', messages: [userMessage('my secret')] }, ADA)));
    const derivedId = await chatSession(host, { chatId: 'chat', principal: 'ada' });
    const keyedTurn = await host.run({
      loop: 'support',
      input: { prompt: 'hi' },
      key: 'order-7',
      principal: 'ada',
    });
    for (const chatId of [derivedId, keyedTurn.sessionId]) {
      await chunksIn(await handler(postRequest(chatBody(chatId), EVE)));
      expect(await host.archive.turns(chatId)).toHaveLength(1);
    }
    expect(prompts()[0]).toContain('my secret');
    expect(prompts().slice(1).join()).not.toContain('my secret');
  },
);

verifies(
  'aisdk.identity',
  'names that differ in case, Unicode form or separators are different users and chats',
  async () => {
    const { host } = createChat([]);
    const pairs: readonly (readonly [principal: string, chatId: string])[] = [
      ['ada', 'a:b'],
      ['ada:a', 'b'],
      ['Ada', 'a:b'],
      ['ada', 'A:b'],
      ['jos\u00e9', 'c'],
      ['jose\u0301', 'c'],
      ['a%3Ab', 'c'],
      ['a:b', 'c'],
    ];
    const sessions = await Promise.all(pairs.map(([who, chatId]) => chatSession(host, { chatId, principal: who })));
    expect(new Set(sessions).size).toBe(pairs.length);
    for (const session of sessions) expect(session).toMatch(/^u-[\w-]{32}$/);
  },
);

verifies('aisdk.identity', 'unauthenticated requests and reserved chat ids are refused', async () => {
  const withUsers = createChat([{ text: 'Hello.' }], { options: { principal } });
  for (const request of [
    postRequest(chatBody('chat')),
    streamRequest('chat'),
    postRequest({ id: 'chat', abort: true }),
    postRequest(chatBody('chat'), { 'x-user': ' ' }),
  ]) {
    const response = await withUsers.handler(request);
    expect(response.status).toBe(403);
    expect(await response.json()).toMatchObject({ code: 'NOT_AUTHORISED' });
  }
  const withoutUsers = createChat([{ text: 'Hello.' }]);
  const derived = await chatSession(withoutUsers.host, { chatId: 'chat', principal: 'ada' });
  for (const id of ['rondo:refusals', derived]) {
    expect((await withoutUsers.handler(postRequest(chatBody(id)))).status).toBe(422);
    expect((await withoutUsers.handler(streamRequest(id))).status).toBe(422);
  }
  expect(await withoutUsers.host.archive.turns()).toEqual([]);
});

verifies(
  'aisdk.identity',
  'a session under a plain chat id is used only by the principal of all its turns',
  async () => {
    const store = memoryStore();
    const { host, handler, prompts } = createChat([{ text: 'One.' }, { text: 'Two.' }, { text: 'Three.' }], {
      store,
      options: { principal },
    });
    await host.run({ loop: 'support', input: { prompt: 'hi' }, sessionId: 'chat', principal: 'ada' });
    expect(await chatSession(host, { chatId: 'chat', principal: 'ada' })).toBe('chat');
    await chunksIn(await handler(postRequest(chatBody('chat', 'm2'), ADA)));
    expect(await host.archive.turns('chat')).toHaveLength(2);
    expect(prompts().at(-1)).toContain('One.');
    await chunksIn(await handler(postRequest(chatBody('chat', 'm3'), EVE)));
    expect(await host.archive.turns('chat')).toHaveLength(2);
    expect(prompts().at(-1)).not.toContain('One.');
  },
);

verifies(
  'aisdk.identity',
  'an approval cannot be answered by another user who has its id and the chat id',
  async () => {
    const { handler, host, refunds } = createChat([REFUND, { text: 'Paid.' }], { options: { principal } });
    const chunks = await chunksIn(await handler(postRequest(chatBody('chat'), ADA)));
    const approval = { id: firstChunkOf(chunks, 'tool-approval-request')?.approvalId, approved: true };
    const part = { type: 'tool-refund', toolCallId: 'c1', state: 'approval-responded', input: {}, approval };
    const message = { id: firstChunkOf(chunks, 'start')?.messageId, role: 'assistant', parts: [part] };
    const answer = (headers: Record<string, string>) =>
      handler(postRequest({ id: 'chat', messages: [message] }, headers));
    expect((await answer(EVE)).status).toBe(404);
    expect(refunds).toEqual([]);
    await chunksIn(await answer(ADA));
    expect(refunds).toEqual([5]);
    expect(await host.archive.approvals()).toEqual([]);
  },
);
