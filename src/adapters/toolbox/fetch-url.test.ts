/**
 * `fetch_url` connects to public addresses and allowed hosts only, whatever a URL, a name server or a redirect
 * contains.
 */
import {
  createServer as createNetServer,
  type Server as NetServer,
  connect as netConnect,
  type Socket,
} from 'node:net';
import { afterAll, expect } from 'vitest';
import {
  closeServers,
  createFetcher,
  listen,
  type PageResponder,
  PUBLIC,
  PUBLIC6,
  servePages,
} from '../../../spec/support/fetch-fixture.js';
import { cleanUp, failure, SECRET } from '../../../spec/support/toolbox-fixture.mjs';
import { verifies } from '../../../spec/verifies.js';
import { isPublicAddress } from '../../base/ip-address.js';
import type { FetchOptions } from './index.js';

afterAll(cleanUp);
afterAll(closeServers);

/** Spellings of loopback, private and reserved addresses that URL filters often miss. */
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

/** What a malicious name server may return: private addresses, and texts that are not addresses. */
const dnsAnswers = [
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

/** Malformed URLs, other schemes and ports, credentials, and names of this machine. */
const malformedUrls = [
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

interface TestNetwork {
  readonly options: FetchOptions;
  /** The addresses that were connected to. */
  readonly connectedAddresses: string[];
  /** Returns the number of connections to private addresses. */
  privateConnections(): number;
}

/**
 * Simulates a network: one public server, and a canary server for all other addresses. No connection leaves this
 * machine.
 */
async function createTestNetwork(respond: PageResponder): Promise<TestNetwork> {
  let connectionCount = 0;
  const canary = (): NetServer =>
    createNetServer((socket) => {
      connectionCount += 1;
      socket.end(`HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n${SECRET}`);
    });
  const canaryPort = await listen(canary());
  const port = await servePages(respond);
  const connectedAddresses: string[] = [];
  const connect = (address: string): Socket => {
    connectedAddresses.push(address);
    return netConnect({ host: '127.0.0.1', port: address === PUBLIC || address === PUBLIC6 ? port : canaryPort });
  };
  const resolve = async (host: string): Promise<readonly string[]> => {
    const match = /^answer-(\d+)(-mixed)?\.example$/.exec(host);
    if (match === null) return /localhost$/.test(host) ? ['127.0.0.1', '::1'] : [PUBLIC];
    const privateAnswer = dnsAnswers[Number(match[1])] as string;
    return match[2] === undefined ? [privateAnswer] : [PUBLIC, PUBLIC6, privateAnswer];
  };
  return {
    options: { connect, resolve, timeoutMs: 5000 },
    connectedAddresses,
    privateConnections: () => connectionCount,
  };
}

verifies('toolbox.fetch', 'none of 250 spellings of a private address is connected to', async () => {
  const redirect: PageResponder = (request, response) => {
    const to = new URL(request.url ?? '', 'http://public.example').searchParams.get('to') ?? '';
    response.writeHead(302, { location: encodeURI(to) }).end();
  };
  const { options, connectedAddresses, privateConnections } = await createTestNetwork(redirect);
  const get = createFetcher(options);
  const direct = [
    ...literals.flatMap((host) => [`http://${host}/`, `https://${host}:8443/x`]),
    ...dnsAnswers.flatMap((_, i) => [`http://answer-${i}.example/`, `http://answer-${i}-mixed.example/`]),
    ...malformedUrls,
  ];
  expect(new Set(direct).size).toBeGreaterThanOrEqual(250);
  const results: string[] = [];
  for (const url of direct) results.push(await failure(get(url)));
  expect(direct.filter((_, i) => results[i]?.includes('redirects'))).toEqual([]);
  expect(connectedAddresses).toEqual([]);
  const redirects = direct.map((url) => `http://public.example/?to=${encodeURIComponent(url)}`);
  for (const url of redirects) results.push(await failure(get(url)));
  expect(new Set(connectedAddresses)).toEqual(new Set([PUBLIC]));
  expect(privateConnections()).toBe(0);
  expect(results.filter((text) => text.startsWith('It returned') || text.includes(SECRET))).toEqual([]);
  expect(results.filter((text) => text.includes('not on the public internet')).length).toBeGreaterThan(300);
});

verifies('toolbox.fetch', 'the test servers at private addresses are reachable if the options allow it', async () => {
  const { options, connectedAddresses, privateConnections } = await createTestNetwork(
    (_request, response) => void response.end('x'),
  );
  const get = createFetcher({ ...options, allowPrivate: true });
  expect(await get('http://0x7f.1:9/')).toMatchObject({ text: SECRET });
  expect(connectedAddresses).toEqual(['127.0.0.1']);
  expect(privateConnections()).toBe(1);
});

verifies('toolbox.fetch', 'a host name is resolved once per request, so DNS rebinding fails', async () => {
  const { options, connectedAddresses, privateConnections } = await createTestNetwork(
    (_request, response) => void response.writeHead(302, { location: '/again' }).end(),
  );
  let lookups = 0;
  const resolve = async (): Promise<readonly string[]> => {
    lookups += 1;
    return [lookups % 2 === 1 ? PUBLIC : '127.0.0.1'];
  };
  const get = createFetcher({ ...options, resolve, maxRedirects: 0 });
  expect(await failure(get('http://rebind.example/'))).toMatch(/redirects too often/);
  expect([connectedAddresses, lookups]).toEqual([[PUBLIC], 1]);
  lookups = 0;
  const following = createFetcher({ ...options, resolve });
  expect(await failure(following('http://rebind.example/'))).toBe(
    'rebind.example is refused: it is not on the public internet.',
  );
  expect([connectedAddresses, lookups, privateConnections()]).toEqual([[PUBLIC, PUBLIC], 2, 0]);
});

verifies('toolbox.fetch', 'public and private addresses are distinguished', () => {
  const publicAddresses = [
    '1.1.1.1',
    '8.8.8.8',
    '93.184.216.34',
    '100.63.255.255',
    '100.128.0.0',
    '172.15.0.1',
    '172.32.0.1',
    '191.255.255.255',
  ];
  const publicAddresses6 = [
    '2606:4700:4700::1111',
    '2001:4860:4860::8888',
    '2a00:1450::1',
    '2400:cb00::1',
    '2003::1',
    '3ffe::1',
  ];
  expect(
    [...publicAddresses, ...publicAddresses6, '11.0.0.1', '126.255.255.255', '128.0.0.1', '223.255.255.255'].filter(
      (address) => !isPublicAddress(address),
    ),
  ).toEqual([]);
  const privateAddresses = [
    ...dnsAnswers,
    '127.0.0.1',
    '::ffff:8.8.8.8',
    '64:ff9b::808:808',
    '2002:808:808::',
    '1fff::1',
    '4000::',
    'public.example',
  ];
  expect(privateAddresses.filter(isPublicAddress)).toEqual([]);
});

verifies('toolbox.fetch', 'all checked addresses are tried in turn', async () => {
  const { options, connectedAddresses } = await createTestNetwork(
    (_request, response) => void response.setHeader('content-type', 'text/plain').end('fine'),
  );
  const closedServer = createNetServer();
  const closedPort = await listen(closedServer);
  await new Promise((resolve) => closedServer.close(resolve));
  const connect = (address: string, port: number): Socket =>
    address === PUBLIC6
      ? (options.connect?.(address, port) as Socket)
      : netConnect({ host: '127.0.0.1', port: closedPort });
  const get = createFetcher({ ...options, connect, resolve: async () => [PUBLIC6, PUBLIC] });
  expect(await get('http://two.example/')).toMatchObject({ text: 'fine', status: 200 });
  expect(connectedAddresses).toEqual([PUBLIC6]);
  const refusing = createFetcher({
    connect: () => netConnect({ host: '127.0.0.1', port: closedPort }),
    resolve: async () => [PUBLIC],
  });
  for (const url of ['http://down.example/', 'https://down.example/']) {
    expect(await failure(refusing(url))).toBe('down.example did not answer: ECONNREFUSED.');
  }
  const unresolvable = createFetcher({
    resolve: () => Promise.reject(Object.assign(new Error('x'), { code: 'ENOTFOUND' })),
  });
  expect(await failure(unresolvable('http://none.example/'))).toBe(
    'none.example did not answer: there is no such host.',
  );
});

verifies('toolbox.fetch', 'only the allowed hosts are contacted, directly and by redirect', async () => {
  const { options, connectedAddresses } = await createTestNetwork(
    (request, response) =>
      void response
        .writeHead(302, { location: request.url === '/out' ? 'http://other.example/' : 'http://docs.example.com/x' })
        .end(),
  );
  const get = createFetcher({ ...options, allow: ['example.com', '*.example.com'], maxRedirects: 1 });
  for (const url of [
    'http://other.example/',
    'http://example.com.evil.example/',
    'http://badexample.com/',
    'http://93.184.216.34/',
  ]) {
    expect(await failure(get(url))).toMatch(/only example\.com, \*\.example\.com may be fetched/);
  }
  expect(connectedAddresses).toEqual([]);
  expect(await failure(get('http://example.com./'))).toMatch(/docs\.example\.com redirects too often/);
  expect(await failure(get('http://a.b.example.com/out'))).toMatch(/is refused: only/);
  expect(connectedAddresses).toHaveLength(3);
});
