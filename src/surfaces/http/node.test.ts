import { once } from 'node:events';
import { connect } from 'node:net';
import { expect } from 'vitest';
import { blockingTool, chatFixtures, chunksIn, userMessage } from '../../../spec/support/chat-fixture.mjs';
import { withServer } from '../../../spec/support/chat-page.mjs';
import { hostOf, tool } from '../../../spec/support/host-fixture.js';
import { agentDef, replyProvider } from '../../../spec/support/scripted-agents.js';
import { verifies } from '../../../spec/verifies.js';
import { chatHandler } from '../ai-sdk/chat.js';
import { nodeListener } from './node.js';

const createChat = chatFixtures({ agentDef, replyProvider, hostOf, tool, chatHandler });
const BODY = JSON.stringify({ id: 'chat', messages: [userMessage('hi')] });
const headers = { 'content-type': 'application/json' };

verifies('aisdk.chat', 'a handler has the same behaviour behind a Node server', async () => {
  const { handler } = createChat([{ text: 'Hello.' }], { options: { maxBytes: 1000 } });
  await withServer(nodeListener(handler), async (api) => {
    const response = await fetch(api, { method: 'POST', body: BODY, headers });
    expect(response.headers.get('x-vercel-ai-ui-message-stream')).toBe('v1');
    expect((await chunksIn(response)).at(-1)).toMatchObject({ type: 'finish' });
    const large = await fetch(api, { method: 'POST', body: 'x'.repeat(5000), headers });
    expect(large.status).toBe(413);
    expect(await large.json()).toMatchObject({ status: 413, code: 'INPUT_VALIDATION_FAILED' });
    expect((await fetch(`${api}/chat/stream`)).status).toBe(204);
    expect((await fetch(api, { method: 'PUT', body: 'x' })).status).toBe(405);
    expect((await fetch(api, { method: 'HEAD' })).status).toBe(405);
  });
});

verifies('aisdk.origin', 'a client that sends more than the server reads still receives the response', async () => {
  const { handler } = createChat([{ text: 'Hello.' }], { options: { maxBytes: 1000 } });
  await withServer(nodeListener(handler), async (api) => {
    const body = 'x'.repeat(3_000_000);
    for (const [type, status] of [
      ['application/json', 413],
      ['text/plain', 415],
    ] as const) {
      const refused = await fetch(api, { method: 'POST', body, headers: { 'content-type': type } });
      expect(refused.status).toBe(status);
    }
    expect((await fetch(`${api}/chat/stream`)).status).toBe(204);
  });
});

verifies('aisdk.origin', 'an HTTP/1.0 request without a host is refused', async () => {
  const { handler, host } = createChat([{ text: 'Hello.' }]);
  await withServer(nodeListener(handler), async (api) => {
    const socket = connect(Number(new URL(api).port), '127.0.0.1');
    let response = '';
    socket.setEncoding('utf8').on('data', (text: string) => {
      response += text;
    });
    const type = 'Content-Type: application/json';
    socket.write(`POST /api/chat HTTP/1.0\r\n${type}\r\nContent-Length: ${BODY.length}\r\n\r\n${BODY}`);
    await once(socket, 'close');
    expect(response).toMatch(/^HTTP\/1\.\d 403 [\s\S]*HOST_NOT_ALLOWED/);
    expect(await host.archive.turns('chat')).toEqual([]);
  });
});

verifies('aisdk.chat', 'a request that is cut off starts no turn and leaves the server running', async () => {
  const { handler, host } = createChat([{ text: 'Hello.' }]);
  await withServer(nodeListener(handler), async (api, requests) => {
    const socket = connect(Number(new URL(api).port), '127.0.0.1');
    socket.write(`POST /api/chat HTTP/1.1\r\nHost: x\r\nContent-Length: ${BODY.length}\r\n\r\n${BODY.slice(0, 20)}`);
    while (requests.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    socket.destroy();
    await once(socket, 'close');
    expect(await host.archive.turns('chat')).toEqual([]);
    const response = await fetch(api, { method: 'POST', body: BODY, headers });
    expect((await chunksIn(response)).at(-1)).toMatchObject({ type: 'finish' });
  });
});

verifies('aisdk.chat', 'a disconnect is detected while nothing is written', async () => {
  const { slow, started } = blockingTool();
  const { handler, host } = createChat([{ calls: [['slow', {}]] }], {
    agent: { tools: ['slow'] },
    more: [tool('slow', 'builtin:slow')],
    tools: { slow },
    options: { abortOnDisconnect: true },
  });
  await withServer(nodeListener(handler), async (api) => {
    const stop = new AbortController();
    const response = await fetch(api, { method: 'POST', body: BODY, headers, signal: stop.signal });
    await started;
    stop.abort();
    await expect(response.text()).rejects.toThrow();
    while ((await host.archive.turns('chat'))[0]?.status === 'running') {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    expect(await host.archive.turns('chat')).toMatchObject([{ status: 'cancelled', error: { code: 'CANCELLED' } }]);
  });
});

verifies('aisdk.chat', 'a handler that throws leaves the server running and discloses nothing', async () => {
  await withServer(
    nodeListener(() => Promise.reject(new Error('secret of the server'))),
    async (api) => {
      const response = await fetch(api);
      expect(response.status).toBe(500);
      expect(await response.text()).not.toContain('secret');
    },
  );
  const broken = new ReadableStream({ pull: () => Promise.reject(new Error('broken')) });
  await withServer(
    nodeListener(async () => new Response(broken)),
    async (api) => {
      await expect(fetch(api).then((response) => response.text())).rejects.toThrow();
    },
  );
});

/** What `express.json()` does: reads a body of JSON to its end, keeps its bytes for `verify`, and parses it. */
function withParsedBody(
  listener: ReturnType<typeof nodeListener>,
  kept: (bytes: Buffer) => object,
): ReturnType<typeof nodeListener> {
  return (incoming, outgoing) => {
    if (incoming.method !== 'POST') return listener(incoming, outgoing);
    const chunks: Buffer[] = [];
    incoming.on('data', (bytes: Buffer) => chunks.push(bytes));
    incoming.on('end', () => {
      Object.assign(incoming, kept(Buffer.concat(chunks)));
      listener(incoming, outgoing);
    });
  };
}

const parsers = {
  'as a value': (bytes: Buffer) => ({ body: JSON.parse(bytes.toString()) as unknown }),
  'as a value, with its bytes': (bytes: Buffer) => ({ body: {}, rawBody: bytes }),
  'as bytes': (bytes: Buffer) => ({ body: bytes }),
  'as text': (bytes: Buffer) => ({ body: bytes.toString() }),
};

for (const [name, kept] of Object.entries(parsers))
  verifies('aisdk.chat', `a chat works behind a middleware that has read the body, and left it ${name}`, async () => {
    const { handler } = createChat([{ text: 'Hello.' }], { options: { maxBytes: 1000 } });
    await withServer(withParsedBody(nodeListener(handler), kept), async (api) => {
      const response = await fetch(api, { method: 'POST', body: BODY, headers });
      expect((await chunksIn(response)).at(-1), 'the chat hangs or fails').toMatchObject({ type: 'finish' });
      const large = await fetch(api, { method: 'POST', body: JSON.stringify({ id: 'x'.repeat(5000) }), headers });
      expect(large.status, 'the limit does not apply').toBe(413);
      expect((await fetch(`${api}/chat/stream`)).status).toBe(204);
    });
  });

verifies(
  'aisdk.chat',
  'a body that was read before, and of which nothing is left, is refused with the reason',
  async () => {
    const { handler } = createChat([{ text: 'Hello.' }]);
    await withServer(
      withParsedBody(nodeListener(handler), () => ({})),
      async (api) => {
        const response = await fetch(api, { method: 'POST', body: BODY, headers });
        expect(response.status).toBe(500);
        expect(await response.json()).toMatchObject({ detail: expect.stringContaining('mount the handler before') });
      },
    );
  },
);
