/** Fetching: only what is public is connected to, whatever a URL, a name server or a redirect says. */
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import {
  createServer as createNetServer,
  type Server as NetServer,
  connect as netConnect,
  type Socket,
} from 'node:net';
import { join } from 'node:path';
import { afterAll, expect } from 'vitest';
import { cleanUp, createWorkspace, failure, SECRET, use } from '../../../spec/support/toolbox-fixture.mjs';
import { verifies } from '../../../spec/verifies.js';
import { isPublicAddress } from '../../base/ip-address.js';
import { htmlToText } from './html-to-text.js';
import { type FetchOptions, toolbox } from './index.js';

const servers: (Server | NetServer)[] = [];

afterAll(() => {
  for (const server of servers) server.close();
  cleanUp();
});

async function listening<S extends Server | NetServer>(server: S, host: string): Promise<number> {
  servers.push(server);
  server.listen(0, host);
  await once(server, 'listening');
  return (server.address() as { port: number }).port;
}

const served = async (answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<number> =>
  listening(createServer(answer), '127.0.0.1');

function fetcher(fetch: FetchOptions): (url: string, told?: object) => Promise<{ readonly [name: string]: unknown }> {
  const { fetch_url } = toolbox({ roots: [createWorkspace().root], fetch });
  return (url, told = {}) => use(fetch_url, { url }, told);
}

const PUBLIC = '93.184.216.34';
const PUBLIC6 = '2606:2800:220:1:248:1893:25c8:1946';

/** Loopback, private and odd hosts, in the spellings that guards are known to miss. */
const literals = [
  ...[
    '127.0.0.1',
    '127.1',
    '127.0.1',
    '2130706433',
    '0x7f000001',
    '0x7f.0.0.1',
    '0x7f.1',
    '0X7F.0X0.0X0.0X1',
    '017700000001',
  ],
  ...['0177.0.0.1', '0177.0.0.01', '00000177.1', '127.0.0.1.', '0', '0.0.0.0', '127.255.255.255', '127.000.000.001'],
  ...['%31%32%37.0.0.1', '127%2e0.0.1', '127。0。0。1', '１２７.0.0.1', '①②⑦.0.0.1', '0x7f.0.1', '127.0x1'],
  ...[
    '[::1]',
    '[::]',
    '[0:0:0:0:0:0:0:1]',
    '[0000::0001]',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[::FFFF:7F00:0001]',
  ],
  ...[
    '[0:0:0:0:0:ffff:7f00:1]',
    '[::ffff:0:127.0.0.1]',
    '[::127.0.0.1]',
    '[::7f00:1]',
    '[64:ff9b::127.0.0.1]',
    '[64:ff9b::7f00:1]',
  ],
  ...[
    '[64:ff9b:1::7f00:1]',
    '[2002:7f00:1::]',
    '[2002:7f00:1::1]',
    '[2001:0:7f00:1::]',
    '[2001::1]',
    '[fe80::1]',
    '[febf::1]',
  ],
  ...[
    '[fec0::1]',
    '[fc00::1]',
    '[fd00:ec2::254]',
    '[ff02::1]',
    '[2001:db8::1]',
    '[3fff::1]',
    '[100::1]',
    '[::ffff:a9fe:a9fe]',
  ],
  ...['[64:ff9b::a9fe:a9fe]', '[2002:a9fe:a9fe::1]', '[::ffff:10.0.0.1]', '[5f00::1]', '[4000::1]'],
  ...['10.0.0.1', '10.255.255.255', '172.16.0.1', '172.31.255.255', '192.168.0.1', '169.254.169.254', '2852039166'],
  ...[
    '0xa9fea9fe',
    '0251.0376.0251.0376',
    '169.254.43518',
    '100.64.0.1',
    '100.127.255.255',
    '198.18.0.1',
    '198.19.255.255',
  ],
  ...[
    '192.0.0.1',
    '192.0.2.1',
    '192.88.99.1',
    '198.51.100.1',
    '203.0.113.1',
    '224.0.0.1',
    '239.255.255.255',
    '240.0.0.1',
  ],
  ...['255.255.255.255', '0.1.2.3', '4294967295', '127.127.127.127'],
];

/** What a name server may answer with: addresses that are not public, and things that are none. */
const answers = [
  ...[
    '127.0.0.1',
    '::1',
    '::',
    '0.0.0.0',
    '10.1.2.3',
    '192.168.1.1',
    '169.254.169.254',
    'fe80::1',
    'fd00::1',
    '::ffff:127.0.0.1',
  ],
  ...[
    '::ffff:7f00:1',
    '64:ff9b::7f00:1',
    '2002:7f00:1::',
    '100.64.1.1',
    '127.0.0.1%lo',
    'fe80::1%eth0',
    '2606:4700::1%eth0',
  ],
  ...[
    '0177.0.0.1',
    '2130706433',
    'localhost',
    '',
    '127.1',
    ' 127.0.0.1',
    '224.0.0.251',
    '198.18.0.1',
    '0:0:0:0:0:ffff:127.0.0.1',
  ],
];

const odd = [
  ...[`http://public.example@127.0.0.1/`, `http://127.0.0.1@public.example/`, `http://a:b@public.example/`],
  ...[
    `http://public.example\\@127.0.0.1/`,
    `http:\\\\127.0.0.1/`,
    `http:/127.0.0.1/`,
    `http:127.0.0.1`,
    `http:///127.0.0.1/`,
  ],
  ...[`HTTP://127.0.0.1/`, `hTTps://127.0.0.1/`, ` http://127.0.0.1/`, `http://127.0.0.1\t/`, `ht\ntp://127.0.0.1/`],
  ...[
    `file:///etc/passwd`,
    `ftp://127.0.0.1/`,
    `gopher://127.0.0.1/`,
    `ws://127.0.0.1/`,
    `data:text/plain,x`,
    `javascript:1`,
  ],
  ...[`//127.0.0.1/`, `127.0.0.1`, `http://`, `http://[::1`, `http://[::1%25lo]/`, `http://127.0.0.1#@public.example/`],
  ...[
    `http://127.0.0.1?@public.example/`,
    `http://public.example:22/`,
    `http://public.example:6379/`,
    `http://public.example:3000/`,
  ],
  ...[
    `http://public.example:0/`,
    `http://localhost/`,
    `http://localhost./`,
    `http://LOCALHOST/`,
    `http://x.localhost/`,
  ],
  ...[`https://localhost/`, `http://ip6-localhost/`, `blob:http://127.0.0.1/x`, `view-source:http://127.0.0.1/`],
];

interface Trap {
  readonly options: FetchOptions;
  /** Addresses that a connection was asked for. */
  readonly asked: string[];
  hits(): number;
}

/** A network in a box: one public server, and canaries for everything else. Nothing can leave this machine. */
async function trap(answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<Trap> {
  let hits = 0;
  const canary = (): NetServer =>
    createNetServer((socket) => {
      hits += 1;
      socket.end(`HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n${SECRET}`);
    });
  const canaryPort = await listening(canary(), '127.0.0.1');
  const port = await served(answer);
  const asked: string[] = [];
  const connect = (address: string): Socket => {
    asked.push(address);
    return netConnect({ host: '127.0.0.1', port: address === PUBLIC || address === PUBLIC6 ? port : canaryPort });
  };
  const resolve = async (host: string): Promise<readonly string[]> => {
    const chosen = /^answer-(\d+)(-mixed)?\.example$/.exec(host);
    if (chosen === null) return /localhost$/.test(host) ? ['127.0.0.1', '::1'] : [PUBLIC];
    const bad = answers[Number(chosen[1])] as string;
    return chosen[2] === undefined ? [bad] : [PUBLIC, PUBLIC6, bad];
  };
  return { options: { connect, resolve, timeoutMs: 5000 }, asked, hits: () => hits };
}

verifies('toolbox.fetch', 'one of 150 spellings of an address that is not public is connected to', async () => {
  const redirecting = (request: IncomingMessage, response: ServerResponse): void => {
    const to = new URL(request.url ?? '', 'http://public.example').searchParams.get('to') ?? '';
    response.writeHead(302, { location: encodeURI(to) }).end();
  };
  const { options, asked, hits } = await trap(redirecting);
  const get = fetcher(options);
  const direct = [
    ...literals.flatMap((host) => [`http://${host}/`, `https://${host}:8443/x`]),
    ...answers.flatMap((_, i) => [`http://answer-${i}.example/`, `http://answer-${i}-mixed.example/`]),
    ...odd,
  ];
  expect(new Set(direct).size).toBeGreaterThanOrEqual(250);
  const said: string[] = [];
  for (const url of direct) said.push(await failure(get(url)));
  expect(direct.filter((_, i) => said[i]?.includes('redirects'))).toEqual([]);
  expect(asked).toEqual([]);
  const redirects = direct.map((url) => `http://public.example/?to=${encodeURIComponent(url)}`);
  for (const url of redirects) said.push(await failure(get(url)));
  expect(new Set(asked)).toEqual(new Set([PUBLIC]));
  expect(hits()).toBe(0);
  expect(said.filter((text) => text.startsWith('It returned') || text.includes(SECRET))).toEqual([]);
  expect(said.filter((text) => text.includes('not on the public internet')).length).toBeGreaterThan(300);
});

verifies('toolbox.fetch', 'the canaries prove nothing, as nobody could reach them', async () => {
  const { options, asked, hits } = await trap((_request, response) => void response.end('x'));
  const get = fetcher({ ...options, allowPrivate: true });
  expect(await get('http://0x7f.1:9/')).toMatchObject({ text: SECRET });
  expect(asked).toEqual(['127.0.0.1']);
  expect(hits()).toBe(1);
});

verifies('toolbox.fetch', 'a name that is resolved twice leads elsewhere the second time', async () => {
  const { options, asked, hits } = await trap(
    (_request, response) => void response.writeHead(302, { location: '/again' }).end(),
  );
  let lookups = 0;
  const resolve = async (): Promise<readonly string[]> => {
    lookups += 1;
    return [lookups % 2 === 1 ? PUBLIC : '127.0.0.1'];
  };
  const get = fetcher({ ...options, resolve, maxRedirects: 0 });
  expect(await failure(get('http://rebind.example/'))).toMatch(/only redirects/);
  expect([asked, lookups]).toEqual([[PUBLIC], 1]);
  lookups = 0;
  const following = fetcher({ ...options, resolve });
  expect(await failure(following('http://rebind.example/'))).toBe(
    'rebind.example is refused: it is not on the public internet.',
  );
  expect([asked, lookups, hits()]).toEqual([[PUBLIC, PUBLIC], 2, 0]);
});

verifies('toolbox.fetch', 'an address is taken for public, or a public one is refused', () => {
  const open = [
    '1.1.1.1',
    '8.8.8.8',
    '93.184.216.34',
    '100.63.255.255',
    '100.128.0.0',
    '172.15.0.1',
    '172.32.0.1',
    '191.255.255.255',
  ];
  const open6 = ['2606:4700:4700::1111', '2001:4860:4860::8888', '2a00:1450::1', '2400:cb00::1', '2003::1', '3ffe::1'];
  expect(
    [...open, ...open6, '11.0.0.1', '126.255.255.255', '128.0.0.1', '223.255.255.255'].filter(
      (address) => !isPublicAddress(address),
    ),
  ).toEqual([]);
  const closed = [
    ...answers,
    '127.0.0.1',
    '::ffff:8.8.8.8',
    '64:ff9b::808:808',
    '2002:808:808::',
    '1fff::1',
    '4000::',
    'public.example',
  ];
  expect(closed.filter(isPublicAddress)).toEqual([]);
});

verifies('toolbox.fetch', 'a second address that works is never tried, or one that was not checked is', async () => {
  const { options, asked } = await trap(
    (_request, response) => void response.setHeader('content-type', 'text/plain').end('fine'),
  );
  const closed = await listening(createNetServer(), '127.0.0.1');
  await new Promise((resolve) => servers.pop()?.close(resolve));
  const connect = (address: string, port: number): Socket =>
    address === PUBLIC6
      ? (options.connect?.(address, port) as Socket)
      : netConnect({ host: '127.0.0.1', port: closed });
  const get = fetcher({ ...options, connect, resolve: async () => [PUBLIC6, PUBLIC] });
  expect(await get('http://two.example/')).toMatchObject({ text: 'fine', status: 200 });
  expect(asked).toEqual([PUBLIC6]);
  const down = fetcher({
    connect: () => netConnect({ host: '127.0.0.1', port: closed }),
    resolve: async () => [PUBLIC],
  });
  for (const url of ['http://down.example/', 'https://down.example/']) {
    expect(await failure(down(url))).toBe('down.example did not answer: ECONNREFUSED.');
  }
  const silent = fetcher({ resolve: () => Promise.reject(Object.assign(new Error('x'), { code: 'ENOTFOUND' })) });
  expect(await failure(silent('http://none.example/'))).toBe('none.example did not answer: there is no such host.');
});

verifies('toolbox.fetch', 'a host that the operator did not name is asked', async () => {
  const { options, asked } = await trap(
    (request, response) =>
      void response
        .writeHead(302, { location: request.url === '/out' ? 'http://other.example/' : 'http://docs.example.com/x' })
        .end(),
  );
  const get = fetcher({ ...options, allow: ['example.com', '*.example.com'], maxRedirects: 1 });
  for (const url of [
    'http://other.example/',
    'http://example.com.evil.example/',
    'http://badexample.com/',
    'http://93.184.216.34/',
  ]) {
    expect(await failure(get(url))).toMatch(/of hosts only example\.com, \*\.example\.com may be fetched/);
  }
  expect(asked).toEqual([]);
  expect(await failure(get('http://example.com./'))).toMatch(/docs\.example\.com only redirects/);
  expect(await failure(get('http://a.b.example.com/out'))).toMatch(/of hosts only/);
  expect(asked).toHaveLength(3);
});

verifies('toolbox.fetch', 'a page comes as a riddle, or a secret of ours goes out', async () => {
  const seen: IncomingMessage['headers'][] = [];
  const port = await served((request, response) => {
    seen.push(request.headers);
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
  const get = fetcher({ allowPrivate: true });
  const at = (path: string) => get(`http://127.0.0.1:${port}${path}`);
  expect(await at('/html')).toEqual({
    url: `http://127.0.0.1:${port}/html`,
    status: 200,
    contentType: 'text/html; charset=utf-8',
    text: 'Title\n\na & b',
  });
  expect(await at('/json')).toMatchObject({ text: '{"a":1}' });
  expect(await at('/latin')).toMatchObject({ text: 'é' });
  expect(await at('/odd')).toMatchObject({ text: 'odd' });
  expect(await at('/bare')).toMatchObject({ text: 'bare' });
  expect(await at('/cookie')).toMatchObject({ text: '{"a":1}', url: `http://127.0.0.1:${port}/json` });
  expect(await at('/relative')).toMatchObject({ url: `http://127.0.0.1:${port}/html?x#y` });
  expect(await at('/missing')).toMatchObject({ status: 404, text: 'not here' });
  expect(await failure(at('/png'))).toMatch(/is not text \(image\/png\)/);
  expect(await failure(at('/zeros'))).toMatch(/is not text \(no type\)/);
  expect(await failure(at('/gzip'))).toMatch(/in the encoding gzip/);
  expect(await failure(at('/cut'))).toMatch(/did not answer: ECONNRESET/);
  const names = new Set(seen.flatMap((headers) => Object.keys(headers)));
  expect([...names].sort()).toEqual(['accept', 'accept-encoding', 'connection', 'host', 'user-agent']);
  expect(seen[0]?.host).toBe(`127.0.0.1:${port}`);
});

verifies(
  'toolbox.fetch',
  'a page without an end, a server that waits or a circle of redirects holds us up',
  async () => {
    const port = await served((request, response) => {
      if (request.url === '/slow') return;
      if (request.url === '/circle') return void response.writeHead(302, { location: '/circle' }).end();
      response.writeHead(200, { 'content-type': 'text/plain' });
      if (request.url === '/drip') return void response.write('x');
      const more = (): void => {
        while (!response.destroyed && response.write('y'.repeat(10_000)));
      };
      response.on('drain', more);
      more();
    });
    const get = fetcher({ allowPrivate: true, timeoutMs: 800, maxBytes: 50_000 });
    const at = (path: string, told = {}) => get(`http://127.0.0.1:${port}${path}`, told);
    const from = performance.now();
    expect(await at('/endless')).toMatchObject({
      text: 'y'.repeat(50_000),
      note: 'The page is longer than what was read.',
    });
    for (const path of ['/slow', '/drip']) expect(await failure(at(path))).toBe('It took longer than 800 ms.');
    expect(await failure(at('/circle'))).toMatch(/only redirects; it was given up/);
    const reason = new Error('cancelled');
    const controller = new AbortController();
    const waiting = at('/slow', { abortSignal: controller.signal });
    controller.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    const stuck = fetcher({ resolve: () => new Promise(() => undefined), timeoutMs: 100 });
    expect(await failure(stuck('http://public.example/'))).toBe('It took longer than 100 ms.');
    expect(await failure(fetcher({ resolve: async () => [] })('http://public.example/'))).toBe(
      'public.example has no address.',
    );
    const named = fetcher({ allowPrivate: true, resolve: async () => ['127.0.0.1', 'inner.example'] });
    expect(await failure(named('http://public.example/'))).toContain('something that is no IP address');
    expect(performance.now() - from).toBeLessThan(10_000);
  },
);

verifies('toolbox.fetch', 'a long page floods the model', async () => {
  const port = await served(
    (_request, response) => void response.setHeader('content-type', 'text/plain').end('z'.repeat(300_000)),
  );
  const answer = await fetcher({ allowPrivate: true })(`http://127.0.0.1:${port}/`);
  expect(answer).toMatchObject({ text: 'z'.repeat(60_000), note: '240000 more characters are left out.' });
});

verifies('toolbox.fetch', 'a server that cannot prove its name is believed', async (context) => {
  const openssl = existsSync('/usr/bin/openssl');
  context.skip(!openssl, 'needs openssl');
  const { root } = createWorkspace();
  const [key, cert] = [join(root, 'key.pem'), join(root, 'cert.pem')];
  const made = [
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
  execFileSync('openssl', ['req', ...made], { stdio: 'ignore' });
  let requests = 0;
  const server = createSecureServer({ key: readFileSync(key), cert: readFileSync(cert) }, (_request, response) => {
    requests += 1;
    response.end(SECRET);
  });
  const port = await listening(server, '127.0.0.1');
  const connect = (): Socket => netConnect({ host: '127.0.0.1', port });
  const get = fetcher({ connect, resolve: async () => [PUBLIC] });
  expect(await failure(get('https://public.example/'))).toMatch(
    /did not answer: (DEPTH_ZERO_SELF_SIGNED_CERT|.*self.signed)/,
  );
  expect(await failure(get(`https://${PUBLIC}/`))).toMatch(/did not answer: /);
  expect(requests).toBe(0);
});

verifies('toolbox.fetch', 'a page made for it takes long to read, or shows what nobody was to see', () => {
  const page =
    '<!DOCTYPE html><html><head><title>no</title></head><body><SCRIPT>no()</SCRIPT ><style>no{}</style><!-- no --><ul><li>one' +
    '<li>two</ul>a<br>b <b>c</b>&nbsp;d &#65;&#x42;&unknown; 1 < 2 <p class="x>y">e</p><noscript>no</noscript>&#0;&#xD800;';
  expect(htmlToText(page)).toBe('- one\n- two\na\nb c d AB&unknown; 1 < 2\ny">e\n\n\ufffd\ufffd');
  const from = performance.now();
  const hard = ['<', '<a', '<!--', '<script>', '</script', '&', '&#', ' \n', '<p>', '<script></', '\t', '<svg><svg>'];
  for (const part of hard)
    expect(htmlToText(part.repeat(Math.ceil(1_000_000 / part.length))).length).toBeLessThan(1_100_000);
  expect(performance.now() - from).toBeLessThan(10_000);
});
