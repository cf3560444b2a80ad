/** `http:` tools: the request that is sent, and what untrusted definitions may send and reach. */
import { afterAll, beforeAll, expect } from 'vitest';
import {
  type HttpToolConfig,
  type Responder,
  respondWith,
  ToolServer,
  trustedOrigin,
  untrustedOrigin,
} from '../../../spec/support/tool-server.js';
import { call, cleanUp, failure } from '../../../spec/support/tools-fixture.mjs';
import { verifies } from '../../../spec/verifies.js';
import { permitsOf } from '../../base/permits.js';
import { httpsTools, httpTools } from './index.js';

const server = new ToolServer();
beforeAll(() => server.start());
afterAll(cleanUp);
afterAll(() => server.stop());

verifies('tool.http', 'input, headers and idempotency key are sent, and the response is returned', async () => {
  const input = { text: 'Grüße 🌍', n: [1, null] };
  let receivedAuthorization: string | undefined;
  const received = await server.ask(
    (response, { method, headers }, body) => {
      const { 'content-type': type, 'idempotency-key': key, 'x-team': team, authorization, host } = headers;
      receivedAuthorization = authorization;
      response.end(JSON.stringify({ method, type, key, team, host, body: JSON.parse(body) }));
    },
    input,
    { headers: { 'X-Team': 'blue' }, headersFromEnv: { Authorization: 'TOKEN' } },
  );
  expect(received).toEqual({
    method: 'POST',
    type: 'application/json',
    key: 'born:t1/0',
    team: 'blue',
    host: server.url.slice('http://'.length),
    body: input,
  });
  expect(receivedAuthorization).toBe('Bearer t0psecret');
  expect(await server.allClosed()).toBe(true);
});

verifies('tool.http', 'an idempotency key is percent-encoded for its header', async () => {
  server.routes.set('/tool', (response, { headers }) => void response.end(JSON.stringify(headers['idempotency-key'])));
  const tool = await httpTools().open(`${server.url}/tool`, trustedOrigin, {});
  const callWithKey = async (idempotencyKey: string): Promise<unknown> => tool(1, call({ idempotencyKey }));
  expect(await callWithKey('söhne 🌍:t1/0\r\nX: 1')).toBe('s%C3%B6hne%20%F0%9F%8C%8D:t1/0%0D%0AX:%201');
  expect(await callWithKey('100%')).toBe('100%25');
});

verifies('tool.http', 'an invalid URL, or one with credentials, makes the definition invalid', async () => {
  const http = httpTools();
  const https = httpsTools();
  const invalidTargets = [
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
  for (const target of invalidTargets) {
    expect(http.unavailableReason(target, untrustedOrigin, {}), target).toBeTypeOf('string');
    expect((await failure(http.open(target, untrustedOrigin, {}))).code, target).toBe('DEFINITION_INVALID');
  }
  expect(http.unavailableReason('https://user:hunter2@host/', untrustedOrigin, {})).not.toContain('hunter2');
  for (const target of ['//host/x', 'http://127.0.0.1:1234/x', 'https://host/x?y=z', 'http://[::1]:80/']) {
    expect(http.unavailableReason(target, trustedOrigin, {}), target).toBeUndefined();
  }
  expect(https.unavailableReason('//host/x', untrustedOrigin, {})).toBeUndefined();
  expect(https.unavailableReason('http://host/x', untrustedOrigin, {})).toBeTypeOf('string');
  expect([http.scheme, https.scheme]).toEqual(['http', 'https']);
});

verifies('tool.http', 'an implementation that is itself a URL is called', async () => {
  server.routes.set('/tool', (response) => void response.end('"here"'));
  const tool = await httpTools().open(`${server.url.slice('http:'.length)}/tool`, trustedOrigin, {});
  expect(await tool(null, call())).toBe('here');
});

verifies('tool.http', 'an https: URL is never called over plain HTTP', async () => {
  server.requestedUrls = [];
  const tool = await httpsTools().open(`${server.url.slice('http:'.length)}/tool`, trustedOrigin, {});
  const { code, message, data } = await failure(tool(null, call()));
  expect({ code, data }).toEqual({ code: 'TOOL_FAILED', data: { retryable: true } });
  expect(message).toMatch(/^https:.* did not answer: /);
  expect(server.requestedUrls).toEqual([]);
});

verifies('tool.http', 'secret and reserved headers in a definition are rejected', () => {
  const reasonFor = (config: HttpToolConfig): string | undefined =>
    httpTools().unavailableReason('http://host/', trustedOrigin, config);
  expect(reasonFor({ headers: { Authorization: 'Bearer x' } })).toContain('config.headersFromEnv');
  const invalidConfigs: HttpToolConfig[] = [
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
  for (const config of invalidConfigs)
    expect(reasonFor(config), JSON.stringify(config)).toMatch(/^config\.\w+ of http: tools must be/);
  expect(reasonFor({ method: 'GET' })).toBe(
    'config.method is not a setting of http: tools; available are headers, headersFromEnv, maxOutputBytes.',
  );
  expect(reasonFor({ headers: { Accept: 'text/json' }, headersFromEnv: { 'X-Api-Key': 'KEY' } })).toBeUndefined();
});

verifies('tool.trust', 'an untrusted definition cannot send an environment variable without a permit', async () => {
  const config = { headersFromEnv: { 'X-Key': 'AWS_SECRET_ACCESS_KEY' } };
  expect(httpTools().unavailableReason('http://host/', untrustedOrigin, config)).toContain(
    'rondo trust --send AWS_SECRET_ACCESS_KEY=http://host',
  );
  expect((await failure(httpTools().open('http://host/', untrustedOrigin, config))).code).toBe('DEFINITION_INVALID');
  expect(httpTools().unavailableReason('http://host/', trustedOrigin, config)).toBeUndefined();
});

verifies('authority.send', 'a variable is sent only to the hosts that the operator permits for it', async () => {
  const environment = { TOKEN: 't0psecret', OPENAI_API_KEY: 'sk' };
  const send = new Map([['TOKEN', ['stock.example', '127.0.0.1:1']]]);
  const tools = httpTools({ environment, permits: permitsOf(environment, { send, destinations: [] }) });
  const reasonFor = (url: string, variable = 'TOKEN') =>
    tools.unavailableReason(url, untrustedOrigin, { headersFromEnv: { 'X-Key': variable } });
  for (const url of ['https://stock.example/a', 'http://127.0.0.1:1/']) expect(reasonFor(url)).toBeUndefined();
  for (const url of [
    'https://evil.example/',
    'https://stock.example:8443/',
    'https://stock.example.evil/',
    'http://127.0.0.1:2/',
  ])
    expect(reasonFor(url), url).toContain('sends the environment variable TOKEN to');
  // Without TLS, others on the network could read the variable.
  expect(reasonFor('http://stock.example/')).toContain('TOKEN=http://stock.example');
  expect(reasonFor('https://stock.example/', 'HOME')).toContain('HOME = ["stock.example"] under [send]');
  expect(reasonFor('https://api.openai.com/v1', 'OPENAI_API_KEY')).toBeUndefined();
  expect(reasonFor('https://api.openai.com.evil/', 'OPENAI_API_KEY')).toContain('OPENAI_API_KEY');
});

verifies('authority.reach', 'an untrusted definition cannot reach this machine or a private network', async () => {
  server.routes.set('/tool', respondWith(200, '1'));
  const { host, port } = new URL(server.url);
  server.connectionCount = 0;
  const spellings = [
    server.url,
    `http://localhost:${port}`,
    `http://2130706433:${port}`,
    `http://[::ffff:127.0.0.1]:${port}`,
  ];
  for (const url of [...spellings, 'http://10.0.0.5', 'http://169.254.169.254', 'http://[fd00::1]', 'http://0.0.0.0'])
    expect(httpTools().unavailableReason(`${url}/tool`, untrustedOrigin, {}), url).toMatch(
      /not on the public internet.*rondo trust --reach/,
    );
  // Host names are checked on connect: one private address among those it resolves to is enough to refuse.
  for (const addresses of [['127.0.0.1'], ['203.0.113.7', '10.1.2.3'], ['::1'], ['fe80::1%eth0'], ['nonsense'], []]) {
    const tool = await httpTools({ resolve: async () => addresses }).open(
      `http://inner.example:${port}/tool`,
      untrustedOrigin,
      {},
    );
    const { code, message } = await failure(Promise.resolve(tool(null, call())));
    expect(`${code} ${message}`).toContain(
      `TOOL_FAILED http://inner.example:${port}/tool: inner.example:${port} is not`,
    );
  }
  expect(server.connectionCount).toBe(0);
  const permits = permitsOf({}, { send: new Map(), destinations: [host] });
  const allowed = await httpTools({ permits }).open(`${server.url}/tool`, untrustedOrigin, {});
  expect(await allowed(null, call())).toBe(1);
  const trustedTool = await httpTools().open(`${server.url}/tool`, trustedOrigin, {});
  expect(await trustedTool(null, call())).toBe(1);
});

verifies('tool.env', 'a missing secret prevents the request, and an error never contains a secret', async () => {
  server.requestedUrls = [];
  const errorFor = async (variable: string): Promise<string> => {
    const { code, message } = await failure(
      server.ask(respondWith(200, '1'), null, { headersFromEnv: { 'X-Key': variable } }),
    );
    return `${code} ${message}`;
  };
  expect(await errorFor('MISSING')).toBe('TOOL_FAILED The header X-Key comes from MISSING, which is not set.');
  expect(await errorFor('EMPTY')).toContain('is not set');
  expect(await errorFor('BROKEN')).toBe(
    'TOOL_FAILED The header X-Key comes from BROKEN, which contains characters that are not allowed in a header.',
  );
  expect(server.requestedUrls).toEqual([]);
  const echo: Responder = (response, { headers }) => void response.writeHead(401).end(`bad ${headers.authorization}`);
  const { message } = await failure(server.ask(echo, null, { headersFromEnv: { Authorization: 'TOKEN' } }));
  expect(message).toBe(`${server.url}/tool answered 401: bad [withheld]`);
});
