/** `http:` tools: error responses, invalid and endless responses, broken connections and aborts. */
import { type AddressInfo, createServer as createPlainServer } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect } from 'vitest';
import { type Responder, respondWith, ToolServer, trustedOrigin } from '../../../spec/support/tool-server.js';
import { call, cleanUp, durationOf, failure, rejectionOf } from '../../../spec/support/tools-fixture.mjs';
import { verifies } from '../../../spec/verifies.js';
import type { Json } from '../../protocol/json.js';
import { httpTools } from './index.js';

const server = new ToolServer();
beforeAll(() => server.start());
afterAll(cleanUp);
afterAll(() => server.stop());

verifies('tool.http', 'an error status fails the call with retryability and retry delay', async () => {
  const errorData = async (status: number, headers = {}): Promise<Json | undefined> =>
    (await failure(server.ask(respondWith(status, '{"ok": true}', headers)))).data;
  expect(await errorData(400)).toEqual({ status: 400, retryable: false });
  expect(await errorData(404)).toEqual({ status: 404, retryable: false });
  for (const status of [408, 425, 429, 500, 502, 503, 599])
    expect(await errorData(status)).toEqual({ status, retryable: true });
  const date = 'Wed, 21 Oct 2026 07:28:00 GMT';
  const errorDataWithRetryAfter = async (value: string, more = {}): Promise<Json | undefined> =>
    errorData(429, { 'retry-after': value, ...more });
  const expected = { status: 429, retryable: true };
  expect(await errorDataWithRetryAfter('7')).toEqual({ ...expected, retryAfterMs: 7000 });
  expect(await errorDataWithRetryAfter('999999999')).toEqual({ ...expected, retryAfterMs: 86_400_000 });
  expect(await errorDataWithRetryAfter('Wed, 21 Oct 2026 07:28:30 GMT', { date })).toEqual({
    ...expected,
    retryAfterMs: 30_000,
  });
  expect(await errorDataWithRetryAfter('Wed, 21 Oct 2026 07:00:00 GMT', { date })).toEqual({
    ...expected,
    retryAfterMs: 0,
  });
  expect(await errorDataWithRetryAfter('soon')).toEqual(expected);
  for (const value of ['-1', '1.5', '2027-01-01'])
    expect(await errorDataWithRetryAfter(value, { date })).toEqual(expected);
});

verifies('tool.http', 'the text of an error response is shortened and has no control characters', async () => {
  const text = `\u001b[31mred\u001b[0m\u0000 ${'🌍'.repeat(300)}`;
  const { message } = await failure(server.ask(respondWith(400, text)));
  expect(message).toBe(`${server.url}/tool answered 400: red ${'🌍'.repeat(195)}…`);
  expect(message).not.toContain('hidden');
  const huge = await failure(server.ask((response) => void response.writeHead(500).end('x'.repeat(50_000_000))));
  expect(huge.message.length).toBeLessThan(300);
  expect((await failure(server.ask(respondWith(503)))).message).toBe(`${server.url}/tool answered 503.`);
  expect(await server.allClosed()).toBe(true);
});

verifies('tool.http', 'a redirect is not followed', async () => {
  server.routes.set('/elsewhere', respondWith(200, '"caught"'));
  server.requestedUrls = [];
  for (const status of [301, 302, 303, 307, 308]) {
    expect(await failure(server.ask(respondWith(status, '', { location: '/elsewhere' })))).toEqual({
      code: 'TOOL_FAILED',
      message: `${server.url}/tool answered ${status}: a redirect, which is not followed`,
      data: { status, retryable: false },
    });
  }
  expect(server.requestedUrls).not.toContain('/elsewhere');
});

verifies('tool.http', 'a response that is not one JSON document fails the call', async () => {
  const errorFor = async (respond: Responder): Promise<string> => {
    const { code, message, data } = await failure(server.ask(respond));
    expect(data).toMatchObject({ retryable: false });
    return `${code} ${message}`;
  };
  const prefix = `TOOL_FAILED ${server.url}/tool must answer with one JSON document, but answered`;
  expect(await errorFor(respondWith(200, '<html>hello'))).toBe(
    `${prefix} something else, which begins with: <html>hello`,
  );
  expect(await errorFor(respondWith(200))).toBe(`${prefix} nothing`);
  expect(await errorFor(respondWith(204))).toBe(`${prefix} nothing`);
  const packed = gzipSync('{}');
  expect(await errorFor((response) => void response.writeHead(200, { 'content-encoding': 'gzip' }).end(packed))).toBe(
    `${prefix} bytes that are not UTF-8 text`,
  );
  expect(await errorFor(respondWith(200, '['.repeat(1_000_000)))).toBe(
    `${prefix} a document nested deeper than 256 levels`,
  );
});

verifies('tool.http', 'an endless response is cut off at the size limit', async () => {
  const before = process.memoryUsage().rss;
  const chunk = Buffer.alloc(1024 * 1024, 'x');
  const endless: Responder = (response) => {
    const more = (): void => {
      while (!response.destroyed && response.write(chunk));
    };
    response.on('drain', more).on('error', () => undefined);
    more();
  };
  expect(await failure(server.ask(endless))).toEqual({
    code: 'TOOL_FAILED',
    message: `${server.url}/tool answered more than 10485760 bytes. Return less, or raise config.maxOutputBytes.`,
    data: { status: 200, retryable: false },
  });
  expect(process.memoryUsage().rss - before).toBeLessThan(150 * 1024 * 1024);
  expect(await server.ask(respondWith(200, '"45678901"'), null, { maxOutputBytes: 10 })).toBe('45678901');
  expect((await failure(server.ask(respondWith(200, '"456789012"'), null, { maxOutputBytes: 10 }))).message).toContain(
    'more than 10',
  );
  expect(await server.allClosed()).toBe(true);
});

verifies('tool.http', 'a broken connection is a retryable error', async () => {
  const brokenResponses: readonly [Responder, string][] = [
    [(response) => void response.socket?.resetAndDestroy(), 'ECONNRESET'],
    [(response) => void response.socket?.destroy(), 'ECONNRESET'],
    [
      (response) =>
        void response
          .writeHead(200, { 'content-length': '100' })
          .write('{"half":', () => response.socket?.resetAndDestroy()),
      'ECONNRESET',
    ],
    [(response) => void response.socket?.end('rubbish\r\n\r\n'), 'HPE_INVALID_CONSTANT'],
    [
      (response) => void response.socket?.end('HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n'),
      'without an answer',
    ],
    [
      (response) => void response.socket?.end(`HTTP/1.1 200 OK\r\nx: ${'y'.repeat(100_000)}\r\n\r\n1`),
      'HPE_HEADER_OVERFLOW',
    ],
  ];
  for (const [respond, reason] of brokenResponses) {
    const { code, message, data } = await failure(server.ask(respond));
    expect({ code, data }).toEqual({ code: 'TOOL_FAILED', data: { retryable: true } });
    expect(message).toContain(`${server.url}/tool did not answer`);
    expect(message).toContain(reason);
  }
  expect(await server.allClosed()).toBe(true);
});

verifies('tool.http', 'a refused connection is a retryable error without a status', async () => {
  const closedServer = createPlainServer();
  await new Promise<void>((resolve) => closedServer.listen(0, '127.0.0.1', resolve));
  const { port } = closedServer.address() as AddressInfo;
  await new Promise((resolve) => closedServer.close(resolve));
  const tool = await httpTools().open(`http://127.0.0.1:${port}/x?token=hidden`, trustedOrigin, {});
  expect(await failure(tool(null, call()))).toEqual({
    code: 'TOOL_FAILED',
    message: `http://127.0.0.1:${port}/x did not answer: ECONNREFUSED.`,
    data: { retryable: true },
  });
});

verifies('tool.http', 'a response that arrives before the request is sent completely is read', async () => {
  const input = 'x'.repeat(10_000_000);
  const early: Responder = (response) => void response.writeHead(413, { connection: 'close' }).end('too much');
  const { data } = await failure(server.ask(early, input, { headers: { 'x-early': '1' } }));
  expect(data).toEqual({ status: 413, retryable: false });
  expect(await server.ask((response, _request, body) => void response.end(String(body.length)), input)).toBe(
    10_000_002,
  );
});

verifies('tool.http', 'sending stops when the response is complete', async () => {
  let received: (bytes: number) => void = () => undefined;
  const total = new Promise<number>((resolve) => {
    received = resolve;
  });
  const idle = createPlainServer((socket) => {
    socket.on('close', () => received(socket.bytesRead)).on('error', () => undefined);
    socket.once('data', () => void socket.pause().write('HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n1'));
    server.openSockets.add(socket);
  });
  await new Promise<void>((resolve) => idle.listen(0, '127.0.0.1', resolve));
  const tool = await httpTools().open(`http://127.0.0.1:${(idle.address() as AddressInfo).port}/`, trustedOrigin, {});
  expect(await tool('x'.repeat(50_000_000), call())).toBe(1);
  for (const socket of server.openSockets) socket.resume();
  expect(await total).toBeLessThan(50_000_000);
  server.openSockets.clear();
  await new Promise((resolve) => idle.close(resolve));
});

verifies('tool.http', 'an aborted call rejects at once and closes its connection', async () => {
  const reason = new Error('cancelled');
  const slowResponders: readonly Responder[] = [
    () => undefined,
    (response) => void response.writeHead(200).write('{"half":'),
    (response) => void response.writeHead(500).write('half'),
  ];
  for (const respond of slowResponders) {
    const controller = new AbortController();
    const working = server.ask(respond, null, {}, controller.signal);
    const ended = rejectionOf(working);
    await setTimeout(50);
    const time = await durationOf(async () => {
      controller.abort(reason);
      await ended;
    });
    expect(await ended).toBe(reason);
    expect(time).toBeLessThan(5000);
    expect(await server.allClosed()).toBe(true);
  }
  const before = server.connectionCount;
  expect(await rejectionOf(server.ask(respondWith(200, '1'), null, {}, AbortSignal.abort(reason)))).toBe(reason);
  // A connection that is wrongly opened after the abort would show here.
  await setTimeout(100);
  expect(server.connectionCount).toBe(before);
  expect(server.openSockets.size).toBe(0);
});
