// Redirects, responses that contain a key, names that resolve to private addresses, and the hosts that a permit entry
// matches.

import { once } from 'node:events';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { expect, outcome, rondoLibrary, SECRETS } from './fixture.mjs';

/** @typedef {import('./fixture.mjs').AuthorityFixture} AuthorityFixture */

/** Starts a second server, for which there is no permit. @param {AuthorityFixture} fixture */
async function startSecondServer(fixture) {
  const requests = /** @type {string[]} */ ([]);
  const server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url} ${JSON.stringify(request.rawHeaders)}`);
    response.setHeader('content-type', 'application/json').end('{}');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  fixture.atEnd(() => server.close());
  return { requests, port: /** @type {import('node:net').AddressInfo} */ (server.address()).port };
}

/**
 * Defines a loop that sends MY_TOKEN to a local port.
 * @param {AuthorityFixture} fixture
 * @param {'tool' | 'model'} sender
 * @param {number} port
 */
function defineSender(fixture, sender, port) {
  if (sender === 'tool') {
    const config = { headersFromEnv: { Authorization: 'MY_TOKEN' } };
    fixture.define('go', { tool: { implementation: `http:http://127.0.0.1:${port}/a`, config, safety: 'idempotent' } });
  } else {
    const options = { baseURL: `http://127.0.0.1:${port}/v1`, apiKeyEnv: 'MY_TOKEN' };
    fixture.define('go', {
      kind: 'prompt',
      prompt: { template: 'x' },
      backend: { id: 'openai-compatible', model: 'm', options },
    });
  }
}

/** @returns {import('../runner.mjs').Case[]} */
function redirectCases() {
  return [301, 302, 303, 307, 308].flatMap((status) =>
    /** @type {const} */ (['tool', 'model']).flatMap((sender) =>
      ['trusted', 'allowed'].map((how) => ({
        id: `sends.redirect.${sender}.${how}.${status}`,
        run: async (/** @type {AuthorityFixture} */ fixture) => {
          const other = await startSecondServer(fixture);
          const { port, requests } = await fixture.listen((_, response) => {
            response.writeHead(status, { location: `http://127.0.0.1:${other.port}/b` }).end();
          });
          defineSender(fixture, sender, port);
          const flags = how === 'allowed' ? ['--send', `MY_TOKEN=127.0.0.1:${port}`] : [];
          await fixture.rondo(['run', 'go', '--input', '{}', '--json', ...flags], { trust: how === 'trusted' });
          expect(requests.length >= 1, 'the allowed server to receive a request', requests);
          expect(other.requests.length === 0, 'a redirect not to be followed', other.requests);
        },
      })),
    ),
  );
}

/** Returns the content of all files of the data directory. @param {AuthorityFixture} fixture */
function readDataDirectory(fixture) {
  const directory = fixture.path('.rondo');
  const files = readdirSync(directory, { recursive: true, encoding: 'utf8' }).map((name) => join(directory, name));
  return files
    .filter((file) => statSync(file).isFile())
    .map((file) => readFileSync(file, 'latin1'))
    .join('\n');
}

/** Returns the response of a model, streamed or complete. @param {string} text @param {boolean} isStreamed */
function modelResponse(text, isStreamed) {
  const head = { id: '1', created: 1, model: 'm' };
  const choice = (/** @type {object} */ more) => ({ ...head, choices: [{ index: 0, ...more }] });
  if (!isStreamed)
    return JSON.stringify(choice({ message: { role: 'assistant', content: text }, finish_reason: 'stop' }));
  const parts = [choice({ delta: { role: 'assistant', content: text } }), choice({ delta: {}, finish_reason: 'stop' })];
  return `${parts.map((part) => `data: ${JSON.stringify(part)}\n\n`).join('')}data: [DONE]\n\n`;
}

/**
 * Responses that contain the received key.
 * @type {Record<string, (key: string, isStreamed: boolean) => [status: number, type: string, body: string]>}
 */
const ECHOES = {
  'failure-text': (key) => [400, 'text/plain', `bad key ${key}`],
  'failure-json': (key) => [
    401,
    'application/json',
    JSON.stringify({ error: { message: `Incorrect API key provided: ${key}`, type: 'x' } }),
  ],
  'failure-header-text': (key) => [500, 'text/html', `<pre>authorization: ${key}</pre>`],
  'failure-base64': (key) => [403, 'text/plain', Buffer.from(key).toString('base64')],
  'failure-hex': (key) => [403, 'text/plain', Buffer.from(key).toString('hex')],
  'failure-percent': (key) => [403, 'text/plain', [...key].map((c) => `%${c.charCodeAt(0).toString(16)}`).join('')],
  'failure-entities': (key) => [403, 'text/html', [...key].map((c) => `&#${c.charCodeAt(0)};`).join('')],
  'failure-escapes': (key) => [
    403,
    'text/plain',
    [...key].map((c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`).join(''),
  ],
  'success-text': (key, isStreamed) => [
    200,
    isStreamed ? 'text/event-stream' : 'application/json',
    modelResponse(`your key is ${key}`, isStreamed),
  ],
  'success-not-json': (key) => [200, 'text/plain', `key=${key}`],
};

/** @returns {import('../runner.mjs').Case[]} */
function echoCases() {
  return Object.entries(ECHOES).flatMap(([name, echo]) =>
    /** @type {const} */ (['tool', 'model']).map((sender) => ({
      id: `sends.echo.${sender}.${name}`,
      run: async (/** @type {AuthorityFixture} */ fixture) => {
        const { port } = await fixture.listen((_, response) => {
          const [status, type, body] = echo(SECRETS.MY_TOKEN, sender === 'model');
          response.writeHead(status, { 'content-type': type }).end(body);
        });
        defineSender(fixture, sender, port);
        const flags = ['--send', `MY_TOKEN=127.0.0.1:${port}`];
        const { stdout, stderr } = await fixture.rondo(['run', 'go', '--input', '{}', '--json', ...flags]);
        const forms = Object.values(ECHOES).map((respond) => respond(SECRETS.MY_TOKEN, false)[2]);
        const containsKey = (/** @type {string} */ text) =>
          [SECRETS.MY_TOKEN, ...forms.filter((form) => !form.includes(SECRETS.MY_TOKEN))].some((form) =>
            text.includes(form),
          );
        expect(!containsKey(stdout + stderr), 'the key not to be printed', stdout + stderr);
        expect(
          !containsKey(readDataDirectory(fixture)),
          'the key not to be journaled',
          'a file of the data directory contains it',
        );
      },
    })),
  );
}

/** Addresses that are not public. The resolver of the case returns them. */
const PRIVATE_ADDRESSES = [
  '127.0.0.1',
  '::1',
  '0.0.0.0',
  '::ffff:127.0.0.1',
  '169.254.169.254',
  '10.0.0.1',
  '192.168.1.1',
  '100.64.0.1',
  'fd00::1',
  'fe80::1',
  '::',
  '64:ff9b::7f00:1',
  '224.0.0.1',
  'fe80::1%lo',
];

/** @returns {import('../runner.mjs').Case[]} */
function resolverCases() {
  return PRIVATE_ADDRESSES.flatMap((address) =>
    ['alone', 'behind-a-public-one'].map((how) => ({
      id: `sends.resolved.${how}.${address}`,
      run: async (/** @type {AuthorityFixture} */ fixture) => {
        const { port, requests } = await fixture.listen();
        const { httpTools } = await rondoLibrary();
        const resolve = async () => (how === 'alone' ? [address] : ['203.0.114.1', address]);
        const tools = httpTools({ environment: {}, resolve });
        const origin = { directory: fixture.project, trusted: false };
        const tool = await tools.open(`http://rebound.example:${port}/x`, origin, {});
        const call = {
          idempotencyKey: 'k',
          callId: 'c',
          signal: AbortSignal.timeout(3000),
          config: {},
          log() {},
          emit() {},
          delta() {},
        };
        const result = await outcome(Promise.resolve(tool({}, call)));
        expect(
          result.code === 'TOOL_FAILED' && /public/.test(result.message ?? ''),
          'the address to be refused as not public',
          result,
        );
        expect(requests.length === 0, 'no connection', requests);
      },
    })),
  );
}

/**
 * An entry of a permit list, a URL, and whether a variable may be sent there.
 * @type {[entry: string, url: string, isPermitted: boolean][]}
 */
const PERMIT_ENTRIES = [
  ['api.example.com', 'https://api.example.com/v1', true],
  ['api.example.com', 'https://API.EXAMPLE.com/v1', true],
  ['API.example.com', 'https://api.example.com/v1', true],
  ['api.example.com', 'https://api.example.com:443/', true],
  ['api.example.com', 'https://api.example.com:8443/', false],
  ['api.example.com', 'http://api.example.com/', false],
  ['api.example.com', 'https://api.example.com.evil.example/', false],
  ['api.example.com', 'https://api.example.com@evil.example/', false],
  ['api.example.com', 'https://evil.example/api.example.com', false],
  ['api.example.com', 'https://xapi.example.com/', false],
  ['api.example.com', 'https://example.com/', false],
  ['api.example.com', 'https://api.example.com./', false],
  ['api.example.com', 'https://api。example。com/', true],
  ['example.com', 'https://a.example.com/', false],
  ['example.com', 'https://exаmple.com/', false],
  ['example.com:8443', 'https://example.com/', false],
  ['example.com:443', 'https://example.com/', true],
  ['https://example.com', 'http://example.com/', false],
  ['http://example.com', 'http://example.com/', true],
  ['http://example.com', 'https://example.com/', false],
  ['127.0.0.1', 'http://127.0.0.1/', true],
  ['127.0.0.1:80', 'https://127.0.0.1/', false],
  ['localhost:80', 'http://127.0.0.1/', false],
  ['127.0.0.1', 'http://0x7f.1/', true],
  ['10.0.0.1', 'http://10.0.0.1/', false],
  ['[::1]:8080', 'http://[::1]:8080/', true],
  ['[::1]', 'http://[::ffff:127.0.0.1]/', false],
];

/** @returns {import('../runner.mjs').Case[]} */
function permitEntryCases() {
  return PERMIT_ENTRIES.map(([entry, url, isPermitted], n) => ({
    id: `sends.entry.${n}.${entry.replace('://', ':')}`,
    run: async () => {
      const { permitsOf } = await rondoLibrary();
      const permits = permitsOf({}, { send: new Map([['KEY', [entry]]]), destinations: [] });
      expect(
        permits.canSend('KEY', new URL(url)) === isPermitted,
        `${url} ${isPermitted ? 'to be' : 'not to be'} permitted by ${entry}`,
        !isPermitted,
      );
      expect(!permits.canSend('OTHER', new URL(url)), 'another variable not to be sent', true);
    },
  }));
}

export const cases = () => [...redirectCases(), ...echoCases(), ...resolverCases(), ...permitEntryCases()];
