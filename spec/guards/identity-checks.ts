// Checks of identities and origins: each holds on the intact library and fails when its guard is broken.

import { deepStrictEqual, notStrictEqual, strictEqual } from 'node:assert';
import type { Host, TurnRequest } from '../../src/host/host.js';
import type { DefinedLoop } from '../../src/loops/defined-loop.js';
import type { Json } from '../../src/protocol/index.js';
import type { ChatOptions } from '../../src/surfaces/ai-sdk/index.js';
import { errorOf, outputOf } from '../support/turn-results.js';
import type { LibraryParts } from './library.js';

/** Everything that a chat passes through. */
export const chatParts: LibraryParts = [
  'kernel/session.js',
  'journal/record.js',
  'adapters/memory/index.js',
  'testing/manual-clock.js',
  'adapters/system/seeded-ids.js',
  'host/host.js',
  'loops/define.js',
  'loops/registry.js',
  'surfaces/ai-sdk/index.js',
];

type ChatLibrary = typeof import('../../src/kernel/session.js') &
  typeof import('../../src/journal/record.js') &
  typeof import('../../src/adapters/memory/index.js') &
  typeof import('../../src/testing/manual-clock.js') &
  typeof import('../../src/adapters/system/seeded-ids.js') &
  typeof import('../../src/host/host.js') &
  typeof import('../../src/loops/define.js') &
  typeof import('../../src/loops/registry.js') &
  typeof import('../../src/surfaces/ai-sdk/index.js');

const ANY = { input: true, output: true } as const;
const JSON_TYPE = { 'content-type': 'application/json' };
const CHAT = 'http://localhost/api/chat';

/** A host with a loop that counts its runs, and a handler for chats with it. */
function chatFixture(library: ChatLibrary, options: Partial<ChatOptions> = {}) {
  const store = library.memoryStore();
  const clock = new library.ManualClock(1_000_000);
  const registry = new library.Registry(new Map());
  let runs = 0;
  const tool = (): Json => ++runs;
  const loop = library.defineLoop({ ...ANY, id: 'count', safety: 'idempotent', tool }) as DefinedLoop;
  registry.add(loop);
  const host: Host = new library.Host({ store, clock, ids: library.seededIds(1), registry });
  const handler = library.chatHandler({ host, agent: loop, ...options });
  const run = (request: Partial<TurnRequest>) => host.run({ loop, input: {}, key: 'order-7', ...request });
  return { store, clock, host, handler, loop, run, runs: () => runs };
}

function post(chatId: string, messageId: string, headers: Record<string, string> = {}): Request {
  const message = { id: messageId, role: 'user', parts: [{ type: 'text', text: 'hi' }] };
  const body = JSON.stringify({ id: chatId, messages: [message] });
  return new Request(CHAT, { method: 'POST', body, headers: { ...JSON_TYPE, ...headers } });
}

/** Returns the turn id in a streamed response. */
async function turnIn(response: Response): Promise<string | undefined> {
  return /"type":"start","messageId":"([^"]+)"/.exec(await response.text())?.[1];
}

/** Records a turn of ada as earlier versions did, under its key without the principal. */
async function recordLegacyTurn(
  library: ChatLibrary,
  { store, clock }: ReturnType<typeof chatFixture>,
): Promise<string> {
  const name = `k-${library.digestOfText('order-7').slice(0, 16)}`;
  const turnId = `${name}.${name}`;
  const session = await library.Session.open(name, { store, clock, ids: library.seededIds(2) });
  await session.recordFact('rondo.turn.opened', turnId, { principal: 'ada' });
  await session.run(turnId, { name: 'count', version: '1.0.0', body: async () => 'recorded earlier' }, {});
  await session.close();
  return turnId;
}

const principalFromHeader = (request: Request): string | undefined => request.headers.get('x-user') ?? undefined;

export const identityChecks = {
  'chats whose joined ids are equal have separate streams': async (library: ChatLibrary) => {
    const { handler } = chatFixture(library);
    const responses = await Promise.all([handler(post('a:b', 'c')), handler(post('a', 'b:c'))]);
    const [first, second] = await Promise.all(responses.map(turnIn));
    notStrictEqual(first, undefined);
    notStrictEqual(second, first);
  },
  'two principals can use the same key independently': async (library: ChatLibrary) => {
    const { run, runs } = chatFixture(library);
    const results = [await run({ principal: 'ada' }), await run({ principal: 'eve' }), await run({})];
    deepStrictEqual(
      results.map(({ status }) => status),
      ['ok', 'ok', 'ok'],
    );
    strictEqual(new Set(results.map(({ turnId }) => turnId)).size, 3);
    strictEqual(runs(), 3);
  },
  'different pairs of principal and key never identify the same turn': async (library: ChatLibrary) => {
    const { run, runs, host } = chatFixture(library);
    await run({ principal: 'ada:order', key: '7' });
    await run({ principal: 'ada', key: 'order:7' });
    strictEqual(runs(), 2);
    const chats = [
      await library.chatSession(host, { principal: 'ada:a', chatId: 'b' }),
      await library.chatSession(host, { principal: 'ada', chatId: 'a:b' }),
    ];
    strictEqual(new Set(chats).size, 2);
  },
  'a turn that was recorded under its key alone is returned only to its principal': async (library: ChatLibrary) => {
    const fixture = chatFixture(library);
    await recordLegacyTurn(library, fixture);
    strictEqual(errorOf(await fixture.run({}))?.code, 'KEY_CONFLICT');
    strictEqual(outputOf(await fixture.run({ principal: 'eve' })), 1);
  },
  'a turn that was recorded under its key alone does not run again': async (library: ChatLibrary) => {
    const fixture = chatFixture(library);
    const turnId = await recordLegacyTurn(library, fixture);
    strictEqual((await fixture.run({ principal: 'ada' })).turnId, turnId);
    strictEqual(fixture.runs(), 0);
  },
  'a chat id gives no access to the chat of another user': async (library: ChatLibrary) => {
    const { host, handler } = chatFixture(library, { principal: principalFromHeader });
    const [ada, eve] = [
      await turnIn(await handler(post('chat', 'm1', { 'x-user': 'ada' }))),
      await turnIn(await handler(post('chat', 'm1', { 'x-user': 'eve' }))),
    ];
    notStrictEqual(ada, undefined);
    const sessions = (await host.archive.turns()).map(({ sessionId }) => sessionId);
    strictEqual(new Set(sessions).size, 2);
    notStrictEqual(ada, eve);
  },
  'a request of an unknown user is refused': async (library: ChatLibrary) => {
    const { handler, runs } = chatFixture(library, { principal: principalFromHeader });
    strictEqual((await handler(post('chat', 'm1'))).status, 403);
    strictEqual(runs(), 0);
  },
  'calls with the same number in two conversations have separate results': async (library: ChatLibrary) => {
    const { host, loop, runs } = chatFixture(library);
    const tool = library.toAISDKTool(loop, { host });
    await tool.execute({}, { toolCallId: 'call_0', messages: [] });
    await tool.execute({}, { toolCallId: 'call_0', messages: [] });
    strictEqual(runs(), 2);
  },
  'a message that needs no preflight request is refused': async (library: ChatLibrary) => {
    const { handler, runs } = chatFixture(library);
    const response = await handler(post('chat', 'm1', { 'content-type': 'text/plain' }));
    strictEqual(response.status, 415);
    strictEqual(runs(), 0);
  },
  'a message from another origin is refused': async (library: ChatLibrary) => {
    const { handler, runs } = chatFixture(library);
    for (const headers of [{ origin: 'https://evil.example' }, { 'sec-fetch-site': 'cross-site' }]) {
      strictEqual((await handler(post('chat', 'm1', headers as Record<string, string>))).status, 403);
    }
    strictEqual(runs(), 0);
  },
  'a message for a host name that is not served is refused': async (library: ChatLibrary) => {
    const { handler, runs } = chatFixture(library);
    const headers = { host: 'evil.example', origin: 'http://evil.example', 'sec-fetch-site': 'same-origin' };
    strictEqual((await handler(post('chat', 'm1', headers))).status, 403);
    strictEqual(runs(), 0);
  },
} as const satisfies Record<string, (library: ChatLibrary) => Promise<void>>;
