/** `fetch_url`: the content of pages, limits, certificates and the conversion of HTML. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { connect as netConnect, type Socket } from 'node:net';
import { join } from 'node:path';
import { afterAll, expect } from 'vitest';
import { closeServers, createFetcher, listen, PUBLIC, servePages } from '../../../spec/support/fetch-fixture.js';
import { cleanUp, createWorkspace, failure, SECRET } from '../../../spec/support/toolbox-fixture.mjs';
import { verifies } from '../../../spec/verifies.js';
import { htmlToText } from './html-to-text.js';

afterAll(cleanUp);
afterAll(closeServers);

verifies(
  'toolbox.fetch',
  'a page is decoded and converted to text, and the request contains no credentials',
  async () => {
    const receivedHeaders: IncomingMessage['headers'][] = [];
    const port = await servePages((request, response) => {
      receivedHeaders.push(request.headers);
      const pages: { readonly [path: string]: () => unknown } = {
        '/html': () =>
          response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end('<h1>Title</h1><p>a &amp; b'),
        '/json': () => response.writeHead(200, { 'content-type': 'application/problem+json' }).end('{"a":1}'),
        '/latin': () =>
          response.writeHead(200, { 'content-type': 'text/plain; charset=iso-8859-1' }).end(Buffer.from([0xe9])),
        '/odd': () => response.writeHead(200, { 'content-type': 'text/plain; charset=no-such' }).end('odd'),
        '/png': () => response.writeHead(200, { 'content-type': 'image/png' }).end('x'),
        '/bare': () => response.writeHead(200).end('bare'),
        '/zeros': () => response.writeHead(200).end(Buffer.alloc(10)),
        '/gzip': () => response.writeHead(200, { 'content-type': 'text/plain', 'content-encoding': 'gzip' }).end('x'),
        '/cookie': () => response.writeHead(302, { location: '/json', 'set-cookie': 'a=b' }).end(),
        '/relative': () => response.writeHead(307, { location: '../html?x#y' }).end(),
        '/missing': () => response.writeHead(404, { 'content-type': 'text/plain' }).end('not here'),
        '/cut': () => response.socket?.destroy(),
      };
      (pages[(request.url ?? '').split('?')[0] ?? ''] ?? pages['/missing'])?.();
    });
    const get = createFetcher({ allowPrivate: true });
    const getPath = (path: string) => get(`http://127.0.0.1:${port}${path}`);
    expect(await getPath('/html')).toEqual({
      url: `http://127.0.0.1:${port}/html`,
      status: 200,
      contentType: 'text/html; charset=utf-8',
      text: 'Title\n\na & b',
    });
    expect(await getPath('/json')).toMatchObject({ text: '{"a":1}' });
    expect(await getPath('/latin')).toMatchObject({ text: 'é' });
    expect(await getPath('/odd')).toMatchObject({ text: 'odd' });
    expect(await getPath('/bare')).toMatchObject({ text: 'bare' });
    expect(await getPath('/cookie')).toMatchObject({ text: '{"a":1}', url: `http://127.0.0.1:${port}/json` });
    expect(await getPath('/relative')).toMatchObject({ url: `http://127.0.0.1:${port}/html?x#y` });
    expect(await getPath('/missing')).toMatchObject({ status: 404, text: 'not here' });
    expect(await failure(getPath('/png'))).toMatch(/is not text \(image\/png\)/);
    expect(await failure(getPath('/zeros'))).toMatch(/is not text \(no type\)/);
    expect(await failure(getPath('/gzip'))).toMatch(/in the encoding gzip/);
    expect(await failure(getPath('/cut'))).toMatch(/did not answer: ECONNRESET/);
    const names = new Set(receivedHeaders.flatMap((headers) => Object.keys(headers)));
    expect([...names].sort()).toEqual(['accept', 'accept-encoding', 'connection', 'host', 'user-agent']);
    expect(receivedHeaders[0]?.host).toBe(`127.0.0.1:${port}`);
  },
);

verifies('toolbox.fetch', 'endless pages, slow servers and redirect loops end at their limits', async () => {
  const port = await servePages((request, response) => {
    if (request.url === '/slow') return;
    if (request.url === '/circle') return void response.writeHead(302, { location: '/circle' }).end();
    response.writeHead(200, { 'content-type': 'text/plain' });
    if (request.url === '/drip') return void response.write('x');
    const writeMore = (): void => {
      while (!response.destroyed && response.write('y'.repeat(10_000)));
    };
    response.on('drain', writeMore);
    writeMore();
  });
  const get = createFetcher({ allowPrivate: true, timeoutMs: 800, maxBytes: 50_000 });
  const getPath = (path: string, callOptions = {}) => get(`http://127.0.0.1:${port}${path}`, callOptions);
  const start = performance.now();
  expect(await getPath('/endless')).toMatchObject({
    text: 'y'.repeat(50_000),
    note: 'The page is longer than the part that was read.',
  });
  for (const path of ['/slow', '/drip']) expect(await failure(getPath(path))).toBe('It took longer than 800 ms.');
  expect(await failure(getPath('/circle'))).toMatch(/redirects too often/);
  const reason = new Error('cancelled');
  const controller = new AbortController();
  const waiting = getPath('/slow', { abortSignal: controller.signal });
  controller.abort(reason);
  await expect(waiting).rejects.toBe(reason);
  const neverResolving = createFetcher({ resolve: () => new Promise(() => undefined), timeoutMs: 100 });
  expect(await failure(neverResolving('http://public.example/'))).toBe('It took longer than 100 ms.');
  expect(await failure(createFetcher({ resolve: async () => [] })('http://public.example/'))).toBe(
    'public.example has no address.',
  );
  const resolvingToName = createFetcher({ allowPrivate: true, resolve: async () => ['127.0.0.1', 'inner.example'] });
  expect(await failure(resolvingToName('http://public.example/'))).toContain('something that is not an IP address');
  expect(performance.now() - start).toBeLessThan(10_000);
});

verifies('toolbox.fetch', 'the text of a page is bounded', async () => {
  const port = await servePages(
    (_request, response) => void response.setHeader('content-type', 'text/plain').end('z'.repeat(300_000)),
  );
  const output = await createFetcher({ allowPrivate: true })(`http://127.0.0.1:${port}/`);
  expect(output).toMatchObject({ text: 'z'.repeat(60_000), note: '240000 more characters are omitted.' });
});

verifies('toolbox.fetch', 'a server with an invalid certificate gets no request', async (context) => {
  const hasOpenssl = existsSync('/usr/bin/openssl');
  context.skip(!hasOpenssl, 'needs openssl');
  const { root } = createWorkspace();
  const [key, cert] = [join(root, 'key.pem'), join(root, 'cert.pem')];
  const options = [
    '-x509',
    '-newkey',
    'rsa:2048',
    '-nodes',
    '-keyout',
    key,
    '-out',
    cert,
    '-days',
    '1',
    '-subj',
    '/CN=public.example',
  ];
  execFileSync('openssl', ['req', ...options], { stdio: 'ignore' });
  let requestCount = 0;
  const server = createSecureServer({ key: readFileSync(key), cert: readFileSync(cert) }, (_request, response) => {
    requestCount += 1;
    response.end(SECRET);
  });
  const port = await listen(server);
  const connect = (): Socket => netConnect({ host: '127.0.0.1', port });
  const get = createFetcher({ connect, resolve: async () => [PUBLIC] });
  expect(await failure(get('https://public.example/'))).toMatch(
    /did not answer: (DEPTH_ZERO_SELF_SIGNED_CERT|.*self.signed)/,
  );
  expect(await failure(get(`https://${PUBLIC}/`))).toMatch(/did not answer: /);
  expect(requestCount).toBe(0);
});

verifies('toolbox.fetch', 'HTML is converted in linear time, without scripts and hidden elements', () => {
  const page =
    '<!DOCTYPE html><html><head><title>no</title></head><body><SCRIPT>no()</SCRIPT ><style>no{}</style><!-- no --><ul><li>one' +
    '<li>two</ul>a<br>b <b>c</b>&nbsp;d &#65;&#x42;&unknown; 1 < 2 <p class="x>y">e</p><noscript>no</noscript>&#0;&#xD800;';
  expect(htmlToText(page)).toBe('- one\n- two\na\nb c d AB&unknown; 1 < 2\ny">e\n\n\ufffd\ufffd');
  const start = performance.now();
  const hardParts = [
    '<',
    '<a',
    '<!--',
    '<script>',
    '</script',
    '&',
    '&#',
    ' \n',
    '<p>',
    '<script></',
    '\t',
    '<svg><svg>',
  ];
  for (const part of hardParts)
    expect(htmlToText(part.repeat(Math.ceil(1_000_000 / part.length))).length).toBeLessThan(1_100_000);
  expect(performance.now() - start).toBeLessThan(10_000);
});
