// Redirects, answers that repeat a key, names that resolve to this machine, and which host an entry of a list means.

import { once } from 'node:events';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { expect, outcome, rondoLibrary, SECRETS } from './world.mjs';

/** @typedef {import('./world.mjs').World} World */

/** A second server, to which nothing was allowed. @param {World} world */
async function second(world) {
  const requests = /** @type {string[]} */ ([]);
  const server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url} ${JSON.stringify(request.rawHeaders)}`);
    response.setHeader('content-type', 'application/json').end('{}');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  world.atEnd(() => server.close());
  return { requests, port: /** @type {import('node:net').AddressInfo} */ (server.address()).port };
}

/** @param {World} world @param {'tool' | 'model'} way @param {number} port */
function define(world, way, port) {
  if (way === 'tool') {
    const config = { headersFromEnv: { Authorization: 'MY_TOKEN' } };
    world.define('go', { tool: { implementation: `http:http://127.0.0.1:${port}/a`, config, safety: 'idempotent' } });
  } else {
    const options = { baseURL: `http://127.0.0.1:${port}/v1`, apiKeyEnv: 'MY_TOKEN' };
    world.define('go', {
      kind: 'prompt',
      prompt: { template: 'x' },
      backend: { id: 'openai-compatible', model: 'm', options },
    });
  }
}

/** @returns {import('../authority.mjs').Case[]} */
function redirects() {
  return [301, 302, 303, 307, 308].flatMap((status) =>
    /** @type {const} */ (['tool', 'model']).flatMap((way) =>
      ['trusted', 'allowed'].map((how) => ({
        id: `sends.redirect.${way}.${how}.${status}`,
        run: async (/** @type {World} */ world) => {
          const other = await second(world);
          const { port, requests } = await world.listen((_, response) => {
            response.writeHead(status, { location: `http://127.0.0.1:${other.port}/b` }).end();
          });
          define(world, way, port);
          const flags = how === 'allowed' ? ['--send', `MY_TOKEN=127.0.0.1:${port}`] : [];
          await world.rondo(['run', 'go', '--input', '{}', '--json', ...flags], { trust: how === 'trusted' });
          expect(requests.length >= 1, 'the allowed server to be asked', requests);
          expect(other.requests.length === 0, 'a redirect not to be followed', other.requests);
        },
      })),
    ),
  );
}

/** Every byte that the data directory holds. @param {World} world */
function journalOf(world) {
  const place = world.path('.rondo');
  const files = readdirSync(place, { recursive: true, encoding: 'utf8' }).map((name) => join(place, name));
  return files
    .filter((file) => statSync(file).isFile())
    .map((file) => readFileSync(file, 'latin1'))
    .join('\n');
}

/** An answer as providers stream it, or whole. @param {string} text @param {boolean} streamed */
function reply(text, streamed) {
  const head = { id: '1', created: 1, model: 'm' };
  const choice = (/** @type {object} */ more) => ({ ...head, choices: [{ index: 0, ...more }] });
  if (!streamed)
    return JSON.stringify(choice({ message: { role: 'assistant', content: text }, finish_reason: 'stop' }));
  const parts = [choice({ delta: { role: 'assistant', content: text } }), choice({ delta: {}, finish_reason: 'stop' })];
  return `${parts.map((part) => `data: ${JSON.stringify(part)}\n\n`).join('')}data: [DONE]\n\n`;
}

/** Servers that repeat what they were sent. @type {Record<string, (key: string, streamed: boolean) => [status: number, type: string, body: string]>} */
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
  'success-text': (key, streamed) => [
    200,
    streamed ? 'text/event-stream' : 'application/json',
    reply(`your key is ${key}`, streamed),
  ],
  'success-not-json': (key) => [200, 'text/plain', `key=${key}`],
};

/** @returns {import('../authority.mjs').Case[]} */
function echoes() {
  return Object.entries(ECHOES).flatMap(([name, echo]) =>
    /** @type {const} */ (['tool', 'model']).map((way) => ({
      id: `sends.echo.${way}.${name}`,
      run: async (/** @type {World} */ world) => {
        const { port } = await world.listen((_, response) => {
          const [status, type, body] = echo(SECRETS.MY_TOKEN, way === 'model');
          response.writeHead(status, { 'content-type': type }).end(body);
        });
        define(world, way, port);
        const flags = ['--send', `MY_TOKEN=127.0.0.1:${port}`];
        const { stdout, stderr } = await world.rondo(['run', 'go', '--input', '{}', '--json', ...flags]);
        const forms = Object.values(ECHOES).map((one) => one(SECRETS.MY_TOKEN, false)[2]);
        const plain = (/** @type {string} */ text) =>
          [SECRETS.MY_TOKEN, ...forms.filter((form) => !form.includes(SECRETS.MY_TOKEN))].some((form) =>
            text.includes(form),
          );
        expect(!plain(stdout + stderr), 'the key not to be printed', stdout + stderr);
        expect(!plain(journalOf(world)), 'the key not to be journaled', 'it is in a file of the data directory');
      },
    })),
  );
}

/** Names that resolve to addresses of this machine, by a resolver of the test. */
const ADDRESSES = [
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

/** @returns {import('../authority.mjs').Case[]} */
function resolved() {
  return ADDRESSES.flatMap((address) =>
    ['alone', 'behind-a-public-one'].map((how) => ({
      id: `sends.resolved.${how}.${address}`,
      run: async (/** @type {World} */ world) => {
        const { port, requests } = await world.listen();
        const { httpTools } = await rondoLibrary();
        const resolve = async () => (how === 'alone' ? [address] : ['203.0.114.1', address]);
        const tools = httpTools({ environment: {}, resolve });
        const origin = { directory: world.project, trusted: false };
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
        const said = await outcome(Promise.resolve(tool({}, call)));
        expect(
          said.code === 'TOOL_FAILED' && /public/.test(said.message ?? ''),
          'it to be refused as not public',
          said,
        );
        expect(requests.length === 0, 'nothing to be connected to', requests);
      },
    })),
  );
}

/** An entry, an address, and whether a variable may be sent there. @type {[entry: string, url: string, may: boolean][]} */
const ENTRIES = [
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

/** @returns {import('../authority.mjs').Case[]} */
function entries() {
  return ENTRIES.map(([entry, url, may], n) => ({
    id: `sends.entry.${n}.${entry.replace('://', ':')}`,
    run: async () => {
      const { permitsOf } = await rondoLibrary();
      const permits = permitsOf({}, { send: new Map([['KEY', [entry]]]), destinations: [] });
      expect(
        permits.maySend('KEY', new URL(url)) === may,
        `${url} ${may ? 'to be' : 'not to be'} meant by ${entry}`,
        !may,
      );
      expect(!permits.maySend('OTHER', new URL(url)), 'another variable not to be sent', true);
    },
  }));
}

export const cases = () => [...redirects(), ...echoes(), ...resolved(), ...entries()];
