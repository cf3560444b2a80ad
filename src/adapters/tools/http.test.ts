/** Endpoints: what is sent, what may come back, and how they fail; against a real server that misbehaves. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, createServer as createPlainServer, type Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect } from 'vitest';
import { call, cleanUp, failure, takes, thrown } from '../../../spec/support/tools-fixture.mjs';
import { verifies } from '../../../spec/verifies.js';
import { permitsOf } from '../../base/permits.js';
import type { Json } from '../../protocol/json.js';
import { httpsTools, httpTools } from './index.js';

type Config = Parameters<ReturnType<typeof httpTools>['unavailableReason']>[2];
type Answering = (response: ServerResponse, request: IncomingMessage, body: string) => void;

const origin = { directory: undefined, trusted: false };
const known = { directory: undefined, trusted: true };
const routes = new Map<string, Answering>();
const sockets = new Set<Socket>();
let opened = 0;
let asked: string[] = [];

const server = createServer((request, response) => {
  const pieces: Buffer[] = [];
  asked.push(request.url ?? '');
  request.on('error', () => undefined).on('data', (piece: Buffer) => pieces.push(piece));
  const answer = routes.get(new URL(request.url ?? '', 'http://x').pathname);
  if (request.headers['x-early'] !== undefined) answer?.(response, request, '');
  else request.on('end', () => answer?.(response, request, Buffer.concat(pieces).toString()));
});
server.on('connection', (socket) => {
  opened += 1;
  sockets.add(socket);
  socket.on('close', () => sockets.delete(socket)).on('error', () => undefined);
});

let base = '';
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(cleanUp);
afterAll(() => new Promise((resolve) => server.close(resolve)));

/** Asks a route that answers like this. */
async function ask(answer: Answering, input: Json = null, config: Config = {}, signal?: AbortSignal): Promise<unknown> {
  routes.set('/tool', answer);
  const tool = await httpTools({ environment: { TOKEN: 'Bearer t0psecret', BROKEN: 'a\nb', EMPTY: ' ' } }).open(
    `${base}/tool?q=hidden`,
    known,
    config,
  );
  return tool(input, call(signal === undefined ? {} : { signal }));
}

const say =
  (status: number, text = '', headers = {}): Answering =>
  (response) =>
    void response.writeHead(status, headers).end(text);

/** Nothing stays open once a call has ended. */
async function allClosed(): Promise<boolean> {
  for (let i = 0; i < 100 && sockets.size > 0; i++) await setTimeout(10);
  return sockets.size === 0;
}

verifies('tool.http', 'the input or the key does not arrive, or the answer does not come back', async () => {
  const input = { text: 'Grüße 🌍', n: [1, null] };
  let arrived: string | undefined;
  const seen = await ask(
    (response, { method, headers }, body) => {
      const { 'content-type': type, 'idempotency-key': key, 'x-team': team, authorization, host } = headers;
      arrived = authorization;
      response.end(JSON.stringify({ method, type, key, team, host, body: JSON.parse(body) }));
    },
    input,
    { headers: { 'X-Team': 'blue' }, headersFromEnv: { Authorization: 'TOKEN' } },
  );
  expect(seen).toEqual({
    method: 'POST',
    type: 'application/json',
    key: 'born:t1/0',
    team: 'blue',
    host: base.slice('http://'.length),
    body: input,
  });
  expect(arrived).toBe('Bearer t0psecret');
  expect(await allClosed()).toBe(true);
});

verifies('tool.http', 'a key that no header can hold breaks the call', async () => {
  routes.set('/tool', (response, { headers }) => void response.end(JSON.stringify(headers['idempotency-key'])));
  const tool = await httpTools().open(`${base}/tool`, known, {});
  const keyed = async (idempotencyKey: string): Promise<unknown> => tool(1, call({ idempotencyKey }));
  expect(await keyed('söhne 🌍:t1/0\r\nX: 1')).toBe('s%C3%B6hne%20%F0%9F%8C%8D:t1/0%0D%0AX:%201');
  expect(await keyed('100%')).toBe('100%25');
});

verifies('tool.http', 'a URL that should be refused is asked', async () => {
  const http = httpTools();
  const https = httpsTools();
  const bad = [
    '',
    'host/path',
    '//',
    '///x',
    'ftp://host/x',
    'file:///etc/passwd',
    'javascript:1',
    'https:host',
    'https://ho st/',
    'https://host\\@evil/',
    'https://host/\nx',
    'https://host:99999/',
    'https://[::1',
    'https://user:pw@host/',
    'https://user@host/',
  ];
  for (const target of bad) {
    expect(http.unavailableReason(target, origin, {}), target).toBeTypeOf('string');
    expect((await failure(http.open(target, origin, {}))).code, target).toBe('DEFINITION_INVALID');
  }
  expect(http.unavailableReason('https://user:hunter2@host/', origin, {})).not.toContain('hunter2');
  for (const target of ['//host/x', 'http://127.0.0.1:1234/x', 'https://host/x?y=z', 'http://[::1]:80/']) {
    expect(http.unavailableReason(target, known, {}), target).toBeUndefined();
  }
  expect(https.unavailableReason('//host/x', origin, {})).toBeUndefined();
  expect(https.unavailableReason('http://host/x', origin, {})).toBeTypeOf('string');
  expect([http.scheme, https.scheme]).toEqual(['http', 'https']);
});

verifies('tool.http', 'an implementation that is written as a URL goes elsewhere', async () => {
  routes.set('/tool', (response) => void response.end('"here"'));
  const tool = await httpTools().open(`${base.slice('http:'.length)}/tool`, known, {});
  expect(await tool(null, call())).toBe('here');
});

verifies('tool.http', 'what should be secure is sent in the clear', async () => {
  asked = [];
  const tool = await httpsTools().open(`${base.slice('http:'.length)}/tool`, known, {});
  const { code, message, data } = await failure(tool(null, call()));
  expect({ code, data }).toEqual({ code: 'TOOL_FAILED', data: { retryable: true } });
  expect(message).toMatch(/^https:.* did not answer: /);
  expect(asked).toEqual([]);
});

verifies('tool.http', 'a secret is written into a definition, or a header of ours is replaced', () => {
  const flaw = (config: Config): string | undefined => httpTools().unavailableReason('http://host/', known, config);
  expect(flaw({ headers: { Authorization: 'Bearer x' } })).toContain('config.headersFromEnv');
  const wrong: Config[] = [
    { headers: { 'X-API-Key': 'x' } },
    { headers: { Host: 'x' } },
    { headers: { 'Content-Length': '1' } },
    { headers: { 'IDEMPOTENCY-KEY': '1' } },
    { headers: { 'Transfer-Encoding': 'chunked' } },
    { headers: { 'a b': 'x' } },
    { headers: { '': 'x' } },
    { headers: { X: 'a\r\nY: b' } },
    { headers: { X: 1 } },
    { headers: ['X'] },
    { headersFromEnv: { Host: 'TOKEN' } },
    { headersFromEnv: { X: 'not a name' } },
    { headersFromEnv: ['TOKEN'] },
    { maxOutputBytes: 64 * 1024 * 1024 + 1 },
  ];
  for (const config of wrong)
    expect(flaw(config), JSON.stringify(config)).toMatch(/^config\.\w+ of http: tools must be/);
  expect(flaw({ method: 'GET' })).toBe(
    'config.method is not known to http: tools; known are headers, headersFromEnv, maxOutputBytes.',
  );
  expect(flaw({ headers: { Accept: 'text/json' }, headersFromEnv: { 'X-Api-Key': 'KEY' } })).toBeUndefined();
});

verifies('tool.trust', 'a definition from anywhere sends our secrets anywhere', async () => {
  const config = { headersFromEnv: { 'X-Key': 'AWS_SECRET_ACCESS_KEY' } };
  expect(httpTools().unavailableReason('http://host/', origin, config)).toContain(
    'rondo trust --send AWS_SECRET_ACCESS_KEY=http://host',
  );
  expect((await failure(httpTools().open('http://host/', origin, config))).code).toBe('DEFINITION_INVALID');
  expect(httpTools().unavailableReason('http://host/', known, config)).toBeUndefined();
});

verifies(
  'authority.send',
  'a header with a variable goes to a host that the operator did not name for it',
  async () => {
    const environment = { TOKEN: 't0psecret', OPENAI_API_KEY: 'sk' };
    const send = new Map([['TOKEN', ['stock.example', '127.0.0.1:1']]]);
    const tools = httpTools({ environment, permits: permitsOf(environment, { send, destinations: [] }) });
    const flaw = (url: string, variable = 'TOKEN') =>
      tools.unavailableReason(url, origin, { headersFromEnv: { 'X-Key': variable } });
    for (const url of ['https://stock.example/a', 'http://127.0.0.1:1/']) expect(flaw(url)).toBeUndefined();
    for (const url of [
      'https://evil.example/',
      'https://stock.example:8443/',
      'https://stock.example.evil/',
      'http://127.0.0.1:2/',
    ])
      expect(flaw(url), url).toContain('sends the environment variable TOKEN to');
    // The same host without TLS: everybody on the way could read it.
    expect(flaw('http://stock.example/')).toContain('TOKEN=http://stock.example');
    expect(flaw('https://stock.example/', 'HOME')).toContain('HOME = ["stock.example"] under [send]');
    expect(flaw('https://api.openai.com/v1', 'OPENAI_API_KEY')).toBeUndefined();
    expect(flaw('https://api.openai.com.evil/', 'OPENAI_API_KEY')).toContain('OPENAI_API_KEY');
  },
);

verifies('authority.reach', 'a definition that nobody trusts reaches this machine or its network', async () => {
  routes.set('/tool', say(200, '1'));
  const { host, port } = new URL(base);
  opened = 0;
  const spellings = [
    base,
    `http://localhost:${port}`,
    `http://2130706433:${port}`,
    `http://[::ffff:127.0.0.1]:${port}`,
  ];
  for (const url of [...spellings, 'http://10.0.0.5', 'http://169.254.169.254', 'http://[fd00::1]', 'http://0.0.0.0'])
    expect(httpTools().unavailableReason(`${url}/tool`, origin, {}), url).toMatch(
      /not on the public internet.*rondo trust --reach/,
    );
  // A name tells nothing: what it resolves to is judged when it is connected to, and one bad address is enough.
  for (const addresses of [['127.0.0.1'], ['203.0.113.7', '10.1.2.3'], ['::1'], ['fe80::1%eth0'], ['nonsense'], []]) {
    const tool = await httpTools({ resolve: async () => addresses }).open(
      `http://inner.example:${port}/tool`,
      origin,
      {},
    );
    const { code, message } = await failure(Promise.resolve(tool(null, call())));
    expect(`${code} ${message}`).toContain(
      `TOOL_FAILED http://inner.example:${port}/tool: inner.example:${port} is not`,
    );
  }
  expect(opened).toBe(0);
  const permits = permitsOf({}, { send: new Map(), destinations: [host] });
  const allowed = await httpTools({ permits }).open(`${base}/tool`, origin, {});
  expect(await allowed(null, call())).toBe(1);
  const trusting = await httpTools().open(`${base}/tool`, known, {});
  expect(await trusting(null, call())).toBe(1);
});

verifies('tool.env', 'a header goes out without its secret, or the secret is told in an error', async () => {
  asked = [];
  const told = async (variable: string): Promise<string> => {
    const { code, message } = await failure(ask(say(200, '1'), null, { headersFromEnv: { 'X-Key': variable } }));
    return `${code} ${message}`;
  };
  expect(await told('MISSING')).toBe('TOOL_FAILED The header X-Key comes from MISSING, which is not set.');
  expect(await told('EMPTY')).toContain('is not set');
  expect(await told('BROKEN')).toBe(
    'TOOL_FAILED The header X-Key comes from BROKEN, which holds characters that a header may not.',
  );
  expect(asked).toEqual([]);
  const echo: Answering = (response, { headers }) => void response.writeHead(401).end(`bad ${headers.authorization}`);
  const { message } = await failure(ask(echo, null, { headersFromEnv: { Authorization: 'TOKEN' } }));
  expect(message).toBe(`${base}/tool answered 401: bad [withheld]`);
});

verifies('tool.http', 'a refusal is taken for an answer, or nobody can tell whether to try again', async () => {
  const told = async (status: number, headers = {}): Promise<Json | undefined> =>
    (await failure(ask(say(status, '{"ok": true}', headers)))).data;
  expect(await told(400)).toEqual({ status: 400, retryable: false });
  expect(await told(404)).toEqual({ status: 404, retryable: false });
  for (const status of [408, 425, 429, 500, 502, 503, 599])
    expect(await told(status)).toEqual({ status, retryable: true });
  const date = 'Wed, 21 Oct 2026 07:28:00 GMT';
  const after = async (value: string, more = {}): Promise<Json | undefined> =>
    told(429, { 'retry-after': value, ...more });
  const retry = { status: 429, retryable: true };
  expect(await after('7')).toEqual({ ...retry, retryAfterMs: 7000 });
  expect(await after('999999999')).toEqual({ ...retry, retryAfterMs: 86_400_000 });
  expect(await after('Wed, 21 Oct 2026 07:28:30 GMT', { date })).toEqual({ ...retry, retryAfterMs: 30_000 });
  expect(await after('Wed, 21 Oct 2026 07:00:00 GMT', { date })).toEqual({ ...retry, retryAfterMs: 0 });
  expect(await after('soon')).toEqual(retry);
  for (const value of ['-1', '1.5', '2027-01-01']) expect(await after(value, { date })).toEqual(retry);
});

verifies('tool.http', 'what a server says in its error floods or draws on a terminal', async () => {
  const text = `\u001b[31mred\u001b[0m\u0000 ${'🌍'.repeat(300)}`;
  const { message } = await failure(ask(say(400, text)));
  expect(message).toBe(`${base}/tool answered 400: red ${'🌍'.repeat(195)}…`);
  expect(message).not.toContain('hidden');
  const huge = await failure(ask((response) => void response.writeHead(500).end('x'.repeat(50_000_000))));
  expect(huge.message.length).toBeLessThan(300);
  expect((await failure(ask(say(503)))).message).toBe(`${base}/tool answered 503.`);
  expect(await allClosed()).toBe(true);
});

verifies('tool.http', 'a redirect leads somewhere else', async () => {
  routes.set('/elsewhere', say(200, '"caught"'));
  asked = [];
  for (const status of [301, 302, 303, 307, 308]) {
    expect(await failure(ask(say(status, '', { location: '/elsewhere' })))).toEqual({
      code: 'TOOL_FAILED',
      message: `${base}/tool answered ${status}: a redirect, which is not followed`,
      data: { status, retryable: false },
    });
  }
  expect(asked).not.toContain('/elsewhere');
});

verifies('tool.http', 'something that is not JSON is taken for an answer', async () => {
  const told = async (answer: Answering): Promise<string> => {
    const { code, message, data } = await failure(ask(answer));
    expect(data).toMatchObject({ retryable: false });
    return `${code} ${message}`;
  };
  const must = `TOOL_FAILED ${base}/tool must answer with one JSON document, but answered`;
  expect(await told(say(200, '<html>hello'))).toBe(`${must} not one JSON document; it begins with: <html>hello`);
  expect(await told(say(200))).toBe(`${must} nothing`);
  expect(await told(say(204))).toBe(`${must} nothing`);
  const packed = gzipSync('{}');
  expect(await told((response) => void response.writeHead(200, { 'content-encoding': 'gzip' }).end(packed))).toBe(
    `${must} not UTF-8 text`,
  );
  expect(await told(say(200, '['.repeat(1_000_000)))).toBe(`${must} nested deeper than 256`);
});

verifies('tool.http', 'an answer without end fills the memory', async () => {
  const before = process.memoryUsage().rss;
  const piece = Buffer.alloc(1024 * 1024, 'x');
  const endless: Answering = (response) => {
    const more = (): void => {
      while (!response.destroyed && response.write(piece));
    };
    response.on('drain', more).on('error', () => undefined);
    more();
  };
  expect(await failure(ask(endless))).toEqual({
    code: 'TOOL_FAILED',
    message: `${base}/tool answered more than 10485760 bytes. Answer less, or raise config.maxOutputBytes.`,
    data: { status: 200, retryable: false },
  });
  expect(process.memoryUsage().rss - before).toBeLessThan(150 * 1024 * 1024);
  expect(await ask(say(200, '"45678901"'), null, { maxOutputBytes: 10 })).toBe('45678901');
  expect((await failure(ask(say(200, '"456789012"'), null, { maxOutputBytes: 10 }))).message).toContain('more than 10');
  expect(await allClosed()).toBe(true);
});

verifies('tool.http', 'a lost connection is taken for an answer, or crashes us', async () => {
  const lost: readonly [Answering, string][] = [
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
  for (const [answer, why] of lost) {
    const { code, message, data } = await failure(ask(answer));
    expect({ code, data }).toEqual({ code: 'TOOL_FAILED', data: { retryable: true } });
    expect(message).toContain(`${base}/tool did not answer`);
    expect(message).toContain(why);
  }
  expect(await allClosed()).toBe(true);
});

verifies('tool.http', 'a server that is not there cannot be told from one that refuses', async () => {
  const gone = createPlainServer();
  await new Promise<void>((resolve) => gone.listen(0, '127.0.0.1', resolve));
  const { port } = gone.address() as AddressInfo;
  await new Promise((resolve) => gone.close(resolve));
  const tool = await httpTools().open(`http://127.0.0.1:${port}/x?token=hidden`, known, {});
  expect(await failure(tool(null, call()))).toEqual({
    code: 'TOOL_FAILED',
    message: `http://127.0.0.1:${port}/x did not answer: ECONNREFUSED.`,
    data: { retryable: true },
  });
});

verifies('tool.http', 'a server that answers before it has read everything is not heard', async () => {
  const input = 'x'.repeat(10_000_000);
  const early: Answering = (response) => void response.writeHead(413, { connection: 'close' }).end('too much');
  const { data } = await failure(ask(early, input, { headers: { 'x-early': '1' } }));
  expect(data).toEqual({ status: 413, retryable: false });
  expect(await ask((response, _request, body) => void response.end(String(body.length)), input)).toBe(10_000_002);
});

verifies('tool.http', 'a server that answers and reads no further keeps us sending', async () => {
  let received: (bytes: number) => void = () => undefined;
  const total = new Promise<number>((resolve) => {
    received = resolve;
  });
  const idle = createPlainServer((socket) => {
    socket.on('close', () => received(socket.bytesRead)).on('error', () => undefined);
    socket.once('data', () => void socket.pause().write('HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n1'));
    sockets.add(socket);
  });
  await new Promise<void>((resolve) => idle.listen(0, '127.0.0.1', resolve));
  const tool = await httpTools().open(`http://127.0.0.1:${(idle.address() as AddressInfo).port}/`, known, {});
  expect(await tool('x'.repeat(50_000_000), call())).toBe(1);
  for (const socket of sockets) socket.resume();
  expect(await total).toBeLessThan(50_000_000);
  sockets.clear();
  await new Promise((resolve) => idle.close(resolve));
});

verifies('tool.http', 'an aborted call waits for the server, or leaves its connection behind', async () => {
  const reason = new Error('cancelled');
  const slow: readonly Answering[] = [
    () => undefined,
    (response) => void response.writeHead(200).write('{"half":'),
    (response) => void response.writeHead(500).write('half'),
  ];
  for (const answer of slow) {
    const controller = new AbortController();
    const working = ask(answer, null, {}, controller.signal);
    const ended = thrown(working);
    await setTimeout(50);
    const time = await takes(async () => {
      controller.abort(reason);
      await ended;
    });
    expect(await ended).toBe(reason);
    expect(time).toBeLessThan(5000);
    expect(await allClosed()).toBe(true);
  }
  const before = opened;
  expect(await thrown(ask(say(200, '1'), null, {}, AbortSignal.abort(reason)))).toBe(reason);
  // A connection that is opened afresh after an abort would show here.
  await setTimeout(100);
  expect(opened).toBe(before);
  expect(sockets.size).toBe(0);
});
