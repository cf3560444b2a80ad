import { request as httpRequest } from 'node:http';
import { expect } from 'vitest';
import { chatFixtures, chunksIn, userMessage } from '../../../spec/support/chat-fixture.mjs';
import { withServer } from '../../../spec/support/chat-page.mjs';
import { hostOf, tool } from '../../../spec/support/host-fixture.js';
import { agentDef, replyProvider } from '../../../spec/support/scripted-agents.js';
import { verifies } from '../../../spec/verifies.js';
import { nodeListener } from '../http/node.js';
import { type ChatOptions, chatHandler } from './chat.js';

const createChat = chatFixtures({ agentDef, replyProvider, hostOf, tool, chatHandler });
const BODY = JSON.stringify({ id: 'chat', messages: [userMessage('hi')] });
const JSON_TYPE = { 'content-type': 'application/json' };
const principal = (): string => 'ada';

interface SentResponse {
  readonly status: number | undefined;
  readonly allow: string | undefined;
  readonly code: string | undefined;
}

/** Sends a request with exactly these headers. `fetch` would add some and forbid others. */
function send(api: string, method: string, headers: Record<string, string>, path = ''): Promise<SentResponse> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      `${api}${path}`,
      { method, headers, setHost: headers.host === undefined },
      (incoming) => {
        let text = '';
        incoming.setEncoding('utf8');
        incoming.on('data', (chunk: string) => {
          text += chunk;
        });
        incoming.on('end', () => {
          const isProblem = incoming.headers['content-type'] === 'application/problem+json' && text !== '';
          const code = isProblem ? (JSON.parse(text) as { code: string }).code : undefined;
          resolve({ status: incoming.statusCode, allow: incoming.headers.allow, code });
        });
      },
    );
    request.on('error', reject);
    request.end(method.startsWith('P') ? BODY : undefined);
  });
}

/** Serves a chat over HTTP while `use` runs. `turns` returns the number of turns. */
async function withChatServer(
  options: Partial<ChatOptions>,
  use: (api: string, turns: () => Promise<number>) => Promise<void>,
): Promise<void> {
  const { handler, host } = createChat([{ text: 'Hello.' }, { text: 'Hello.' }], { options });
  await withServer(nodeListener(handler), (api) => use(api, async () => (await host.archive.turns()).length));
}

verifies('aisdk.origin', 'a POST that needs no preflight request is refused', async () => {
  await withChatServer({}, async (api, turns) => {
    const types = [
      'text/plain',
      'text/plain;charset=UTF-8',
      'application/x-www-form-urlencoded',
      'multipart/form-data',
    ];
    for (const type of [...types, 'application/jsonp', 'text/json', 'application/json, text/plain', '']) {
      expect(await send(api, 'POST', type === '' ? {} : { 'content-type': type }), type).toMatchObject({
        status: 415,
        code: 'INPUT_VALIDATION_FAILED',
      });
    }
    expect(await turns()).toBe(0);
    for (const type of ['application/json', 'Application/JSON; charset=utf-8']) {
      expect((await send(api, 'POST', { 'content-type': type })).status, type).toBe(200);
    }
    expect(await turns()).toBe(1);
  });
});

verifies('aisdk.origin', 'a page of another origin neither starts a turn nor reads a stream', async () => {
  await withChatServer({}, async (api, turns) => {
    const { origin, port } = new URL(api);
    const foreign: readonly Record<string, string>[] = [
      { origin: 'https://evil.example' },
      { origin: 'null' },
      { origin: `http://127.0.0.1:${Number(port) + 1}` },
      { origin: `${origin}.evil.example` },
      { origin: 'no origin' },
      { origin: 'file://' },
      { origin: 'data:' },
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
      { 'sec-fetch-site': 'cross-site', origin },
    ];
    for (const headers of foreign) {
      const refused = { status: 403, code: 'ORIGIN_NOT_ALLOWED' };
      expect(await send(api, 'POST', { ...JSON_TYPE, ...headers }), JSON.stringify(headers)).toMatchObject(refused);
      expect(await send(api, 'GET', headers, '/chat/stream'), JSON.stringify(headers)).toMatchObject(refused);
    }
    expect(await turns()).toBe(0);
    const allowed = [{}, { origin }, { origin, 'sec-fetch-site': 'same-origin' }, { 'sec-fetch-site': 'none' }];
    for (const headers of allowed) {
      expect((await send(api, 'POST', { ...JSON_TYPE, ...headers })).status, JSON.stringify(headers)).toBe(200);
      expect((await send(api, 'GET', headers, '/chat/stream')).status, JSON.stringify(headers)).toBe(204);
    }
    expect(await turns()).toBe(1);
  });
});

verifies('aisdk.origin', 'only the origins in the option "origins" are served', async () => {
  await withChatServer({ origins: ['https://app.example'] }, async (api) => {
    const cross = (origin: string) => ({ ...JSON_TYPE, origin, 'sec-fetch-site': 'cross-site' });
    expect((await send(api, 'POST', cross('https://app.example'))).status).toBe(200);
    for (const origin of ['http://app.example', 'https://app.example:444', 'https://app.example.evil.example']) {
      expect((await send(api, 'POST', cross(origin))).status, origin).toBe(403);
    }
  });
});

verifies('aisdk.origin', 'a page with a rebound domain (DNS rebinding) reaches no chat', async () => {
  const rebound = {
    ...JSON_TYPE,
    host: 'evil.example',
    origin: 'http://evil.example',
    'sec-fetch-site': 'same-origin',
  };
  await withChatServer({}, async (api, turns) => {
    expect(await send(api, 'POST', rebound)).toMatchObject({ status: 403, code: 'HOST_NOT_ALLOWED' });
    expect((await send(api, 'GET', { host: 'evil.example' }, '/chat/stream')).status).toBe(403);
    for (const host of [
      'evil.example/localhost',
      'user@localhost',
      'localhost.evil.example',
      '127.0.0.1.evil.example',
    ]) {
      expect((await send(api, 'POST', { ...JSON_TYPE, host })).status, host).toBe(403);
    }
    expect(await turns()).toBe(0);
    for (const host of ['localhost:3000', 'app.localhost', '[::1]:3000', '127.0.0.2']) {
      expect((await send(api, 'POST', { ...JSON_TYPE, host })).status, host).toBe(200);
    }
  });
  await withChatServer({ principal, hosts: ['app.example', 'localhost:3000'] }, async (api) => {
    for (const host of ['app.example', 'app.example:8443', 'localhost:3000']) {
      expect((await send(api, 'POST', { ...JSON_TYPE, host })).status, host).toBe(200);
    }
    for (const host of ['evil.example', 'localhost', 'localhost:3001']) {
      expect((await send(api, 'POST', { ...JSON_TYPE, host })).status, host).toBe(403);
    }
  });
  await withChatServer({ principal }, async (api) => {
    expect((await send(api, 'POST', { ...rebound, origin: 'https://evil.example' })).status).toBe(200);
  });
});

verifies('aisdk.origin', 'a response to an unsupported method lists the supported ones', async () => {
  await withChatServer({}, async (api) => {
    for (const method of ['PUT', 'DELETE', 'PATCH', 'OPTIONS', 'HEAD', 'TRACE']) {
      const { status, allow } = await send(api, method, JSON_TYPE);
      expect([status, allow], method).toEqual([405, 'GET, POST']);
    }
  });
});

verifies('aisdk.origin', 'an invalid option is an error when the handler is created', () => {
  const { host } = createChat([]);
  const creating = (options: Partial<ChatOptions>) => () => chatHandler({ host, agent: 'support', ...options });
  expect(creating({ origins: ['app.example'] })).toThrow(/"origins" must contain origins/);
  expect(creating({ origins: ['https://app.example/'] })).toThrow(/"origins" must contain origins/);
  expect(creating({ origins: ['*'] })).toThrow(/"origins" must contain origins/);
  expect(creating({ hosts: ['https://app.example'] })).toThrow(/"hosts" must contain hosts/);
  expect(creating({ hosts: ['app.example/x'] })).toThrow(/"hosts" must contain hosts/);
  expect(creating({ maxBytes: Number.NaN })).toThrow(/"maxBytes" must be a whole number/);
});

verifies('aisdk.origin', 'a body that is not UTF-8 is refused', async () => {
  const { handler } = createChat([{ text: 'Hello.' }]);
  const body = Buffer.concat([Buffer.from('{"id":"'), Buffer.from([0xff]), Buffer.from('"}')]);
  const response = await handler(
    new Request('http://localhost/api/chat', { method: 'POST', body, headers: JSON_TYPE }),
  );
  expect(response.status).toBe(400);
  expect(await response.json()).toMatchObject({ detail: 'The body is not UTF-8.' });
  await chunksIn(
    await handler(new Request('http://localhost/api/chat', { method: 'POST', body: BODY, headers: JSON_TYPE })),
  );
});
