// No URL, redirect or setting of an HTTP tool reaches a Unix socket, such as that of the owner of a store.

import { once } from 'node:events';
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect } from 'vitest';
import { toolbox } from '../../src/adapters/toolbox/index.js';
import { httpsTools, httpTools } from '../../src/adapters/tools/index.js';
import { use } from '../support/toolbox-fixture.mjs';
import { call, failure } from '../support/tools-fixture.mjs';
import { verifies } from '../verifies.js';

const directory = realpathSync(mkdtempSync(join(tmpdir(), 'rondo-socket-')));
const path = join(directory, 'journal.db.sock');
const trusted = { directory, trusted: true };
const PUBLIC = '93.184.216.34';
const servers: Server[] = [];
let connections = 0;

beforeAll(async () => {
  const server = createServer((_request, response) => response.end('"reached"')).listen(path);
  servers.push(server.on('connection', () => (connections += 1)));
  await once(server, 'listening');
});
afterAll(() => {
  for (const server of servers) server.close();
  rmSync(directory, { recursive: true, force: true });
});

/** The socket in URL notations that some programs support. */
const urls = [
  `http://unix:${path}`,
  `http://unix:${path}:/tool`,
  `https://unix:${path}:/tool`,
  `http+unix://${encodeURIComponent(path)}/tool`,
  `unix:${path}`,
  `unix://${path}`,
  `http://${encodeURIComponent(path)}/tool`,
  `http://[unix:${path}]/tool`,
  `http://localhost:${path}/tool`,
  `http:${path}`,
  `http://${path}`,
  `file://${path}`,
  `http:unix:${path}`,
];

verifies('toolbox.store', 'an http: or https: tool reaches no Unix socket by its URL', async () => {
  for (const url of urls) {
    for (const tools of [httpTools(), httpsTools()]) {
      const signal = AbortSignal.timeout(1000);
      const { message } = await failure(tools.open(url, trusted, {}).then((tool) => tool(null, call({ signal }))));
      expect(message, url).not.toContain('reached');
    }
  }
  expect(connections).toBe(0);
});

verifies('toolbox.store', 'an http: or https: tool accepts no setting that names a socket', async () => {
  const settings = [{ socketPath: path }, { agent: { socketPath: path } }, { path }, { port: path }, { host: path }];
  for (const config of settings) {
    for (const tools of [httpTools(), httpsTools()]) {
      const { scheme } = tools;
      expect(tools.unavailableReason(`${scheme}://localhost/tool`, trusted, config)).toMatch(
        /is not a setting of https?: tools/,
      );
      const opened = tools.open(`${scheme}://localhost/tool`, trusted, config).then((tool) => tool(null, call()));
      expect((await failure(opened)).code).toBe('DEFINITION_INVALID');
    }
  }
  expect(connections).toBe(0);
});

verifies(
  'toolbox.store',
  'fetch_url reaches no Unix socket by a URL, a redirect, a name server or a setting',
  async () => {
    const redirecting = createServer(({ url = '' }, response) => {
      response.writeHead(302, { location: urls[Number(url.slice(1))] ?? 'about:blank' }).end();
    }).listen(0, '127.0.0.1');
    servers.push(redirecting);
    await once(redirecting, 'listening');
    const { port } = redirecting.address() as AddressInfo;
    const fetch = { allowPrivate: true, timeoutMs: 1000, resolve: async () => ['127.0.0.1'] };
    const { fetch_url } = toolbox({ roots: [directory], fetch });
    for (const [index, url] of urls.entries()) {
      for (const requested of [url, `http://127.0.0.1:${port}/${index}`]) {
        expect((await failure(use(fetch_url, { url: requested }))).message, requested).not.toContain('reached');
      }
    }
    for (const addresses of [[path], [`unix:${path}`], [PUBLIC, path]]) {
      const resolving = toolbox({ roots: [directory], fetch: { ...fetch, resolve: async () => addresses } }).fetch_url;
      expect((await failure(use(resolving, { url: 'http://public.example/' }))).message).toMatch(/is refused/);
    }
    expect(() => toolbox({ roots: [directory], fetch: { socketPath: path } as object })).toThrow(/is not an option/);
    expect(connections).toBe(0);
  },
);

verifies('toolbox.store', 'the socket is reachable by a request that names its path', async () => {
  const before = connections;
  const sent = request({ socketPath: path, path: '/tool' }).end();
  const [response] = await once(sent, 'response');
  response.resume();
  expect(connections).toBe(before + 1);
});
