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
import { agentDef, told } from '../../../spec/support/scripted-agents.js';
import { verifies } from '../../../spec/verifies.js';
import { memoryStore } from '../../adapters/memory/index.js';
import { chatHandler } from './chat.js';
import { chatSession } from './chat-session.js';

const stage = chatFixtures({ agentDef, told, hostOf, tool, chatHandler });
const principal = (request: Request): string | undefined => request.headers.get('x-user') ?? undefined;
const ADA = { 'x-user': 'ada' };
const EVE = { 'x-user': 'eve' };
const hi = (id: string, message = 'm1') => ({ id, messages: [userMessage('hi', message)] });
const stream = (chat: string, headers: Record<string, string> = {}): Request =>
  new Request(`http://localhost/api/chat/${encodeURIComponent(chat)}/stream`, { headers });

/** Chats that use a tool; the first call of it waits until it is released. */
function held(options: Parameters<typeof stage>[1] = {}) {
  const first = blockingTool();
  let calls = 0;
  const slow: typeof first.slow = (...given) => (calls++ === 0 ? first.slow(...given) : 'found');
  const replies = [{ text: 'I look. ', calls: [['slow', {}, 'c1'] as const] }, { text: 'Found.' }];
  const more = [tool('slow', 'builtin:slow')];
  return { ...stage(replies, { agent: { tools: ['slow'] }, more, tools: { slow }, ...options }), ...first };
}

verifies('aisdk.identity', 'chats whose id and message read alike when joined have streams of their own', async () => {
  const { handler, started, release, host } = held();
  const first = chunksIn(await handler(postRequest(hi('a:b', 'c'))));
  await started;
  const second = chunksIn(await handler(postRequest(hi('a', 'b:c'))));
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

verifies(
  'aisdk.identity',
  'a message whose id reads like a wish for another answer begins a turn of its own',
  async () => {
    const { handler, host } = stage([{ text: 'One.' }, { text: 'Two.' }, { text: 'Three.' }]);
    await chunksIn(await handler(postRequest(hi('chat'))));
    const again = await chunksIn(await handler(postRequest({ ...hi('chat'), trigger: 'regenerate-message' })));
    const other = await chunksIn(await handler(postRequest(hi('chat', 'm1:again:1'))));
    expect([textIn(again), textIn(other)]).toEqual(['Two.', 'Three.']);
    expect(await host.archive.turns('chat')).toHaveLength(3);
  },
);

verifies('aisdk.identity', 'a message whose id reads like a turn gets no stream of that turn', async () => {
  const { handler, started, release, host } = held();
  const running = chunksIn(await handler(postRequest(hi('a:b'))));
  await started;
  const [turn] = await host.archive.turns('a:b');
  const watched = chunksIn(await handler(stream('a:b')));
  const named = chunksIn(await handler(postRequest(hi('a', (turn?.turnId ?? '').slice('a:'.length)))));
  release();
  const [one, same, other] = await Promise.all([running, watched, named]);
  expect(firstChunkOf(same, 'start')).toEqual(firstChunkOf(one, 'start'));
  expect(firstChunkOf(other, 'start')).not.toEqual(firstChunkOf(one, 'start'));
});

verifies('aisdk.identity', 'the same chat id of another user is another chat, live, resumed and stopped', async () => {
  const { handler, started, release, host } = held({ options: { principal } });
  const mine = chunksIn(await handler(postRequest(hi('chat'), ADA)));
  await started;
  expect((await handler(stream('chat', EVE))).status).toBe(204);
  expect((await handler(postRequest({ id: 'chat', abort: true }, EVE))).status).toBe(204);
  const theirs = await chunksIn(await handler(postRequest(hi('chat'), EVE)));
  const resumed = chunksIn(await handler(stream('chat', ADA)));
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
});

verifies('aisdk.identity', 'a chat id that is the session of another user reaches nothing of it', async () => {
  const { handler, host, asked } = stage([{ text: 'Hello.' }], { options: { principal } });
  await chunksIn(await handler(postRequest({ id: 'chat', messages: [userMessage('my secret')] }, ADA)));
  const taken = await chatSession(host, { chatId: 'chat', principal: 'ada' });
  const keyed = await host.run({ loop: 'support', input: { prompt: 'hi' }, key: 'order-7', principal: 'ada' });
  for (const chatId of [taken, keyed.sessionId]) {
    await chunksIn(await handler(postRequest(hi(chatId), EVE)));
    expect(await host.archive.turns(chatId)).toHaveLength(1);
  }
  expect(asked()[0]).toContain('my secret');
  expect(asked().slice(1).join()).not.toContain('my secret');
});

verifies('aisdk.identity', 'names that differ in case, form or separators are different users and chats', async () => {
  const { host } = stage([]);
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
});

verifies('aisdk.identity', 'a request whose user is unknown is refused, and so are reserved chat ids', async () => {
  const known = stage([{ text: 'Hello.' }], { options: { principal } });
  for (const request of [
    postRequest(hi('chat')),
    stream('chat'),
    postRequest({ id: 'chat', abort: true }),
    postRequest(hi('chat'), { 'x-user': ' ' }),
  ]) {
    const response = await known.handler(request);
    expect(response.status).toBe(403);
    expect(await response.json()).toMatchObject({ code: 'NOT_AUTHORISED' });
  }
  const open = stage([{ text: 'Hello.' }]);
  const derived = await chatSession(open.host, { chatId: 'chat', principal: 'ada' });
  for (const id of ['rondo:refusals', derived]) {
    expect((await open.handler(postRequest(hi(id)))).status).toBe(422);
    expect((await open.handler(stream(id))).status).toBe(422);
  }
  expect(await open.host.archive.turns()).toEqual([]);
});

verifies('aisdk.identity', 'a chat that was stored under its id alone stays with its only user', async () => {
  const store = memoryStore();
  const { host, handler, asked } = stage([{ text: 'One.' }, { text: 'Two.' }, { text: 'Three.' }], {
    store,
    options: { principal },
  });
  await host.run({ loop: 'support', input: { prompt: 'hi' }, sessionId: 'chat', principal: 'ada' });
  expect(await chatSession(host, { chatId: 'chat', principal: 'ada' })).toBe('chat');
  await chunksIn(await handler(postRequest(hi('chat', 'm2'), ADA)));
  expect(await host.archive.turns('chat')).toHaveLength(2);
  expect(asked().at(-1)).toContain('One.');
  await chunksIn(await handler(postRequest(hi('chat', 'm3'), EVE)));
  expect(await host.archive.turns('chat')).toHaveLength(2);
  expect(asked().at(-1)).not.toContain('One.');
});

verifies(
  'aisdk.identity',
  'an approval of one user is not answered by another who knows the chat and its id',
  async () => {
    const { handler, host, refunds } = stage([REFUND, { text: 'Paid.' }], { options: { principal } });
    const chunks = await chunksIn(await handler(postRequest(hi('chat'), ADA)));
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
