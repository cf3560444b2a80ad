// HTTP servers that echo the secret header of an http: tool, in every encoding and in every part of a response. The
// secret must not be in printed output, traces or the journal.

import { createServer } from 'node:net';
import { join } from 'node:path';
import { expect } from '../../support/store-attack.mjs';
import { bytesBelow } from './fixture.mjs';
import { assertAbsent, encodings, randomSecret, rareEncodings } from './secret-encodings.mjs';

/** Functions that echo a text in one part of the response. */
const channels = {
  'error-text': (echo, response) => response.writeHead(401).end(`bad credentials: ${echo}`),
  'error-json': (echo, response) =>
    response.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify({ error: { detail: echo } })),
  'error-html': (echo, response) =>
    response.writeHead(502, { 'content-type': 'text/html' }).end(`<html><body><pre>${echo}</pre></body></html>`),
  'error-first': (echo, response) => response.writeHead(500).end(`${echo} was refused`),
  'error-alone': (echo, response) => response.writeHead(500).end(echo),
  value: (echo, response) => response.writeHead(200).end(JSON.stringify({ you: echo })),
  'value-top': (echo, response) => response.writeHead(200).end(JSON.stringify(echo)),
  nested: (echo, response) =>
    response.writeHead(200).end(JSON.stringify({ a: [{ b: { c: [null, 1, { d: `sent ${echo}!` }] } }] })),
  key: (echo, response) => response.writeHead(200).end(JSON.stringify({ headers: { [echo]: true } })),
  'two-keys': (echo, response) => response.writeHead(200).end(JSON.stringify({ [echo]: 1, [`${echo}.`]: 2 })),
  many: (echo, response) => response.writeHead(200).end(JSON.stringify(Array.from({ length: 500 }, () => echo))),
  'not-json': (echo, response) => response.writeHead(200).end(`you sent ${echo}`),
  'json-and-more': (echo, response) => response.writeHead(200).end(`{"a": 1} ${echo}`),
  header: (echo, response) =>
    response.writeHead(401, { 'www-authenticate': `Bearer realm="${echo}"`, 'x-echo': echo }).end(),
  'retry-after': (echo, response) => response.writeHead(503, { 'retry-after': echo, date: echo }).end('busy'),
  'status-text': (echo, response) => response.writeHead(401, `No ${echo}`).end(),
  redirect: (echo, response) =>
    response.writeHead(302, { location: `/login?token=${encodeURIComponent(echo)}` }).end(echo),
  'error-redirect': (echo, response) => response.writeHead(307, { location: echo }).end(`moved to ${echo}`),
  'no-location': (echo, response) => response.writeHead(304).end(echo) ?? response.end(),
  'cut-200': (echo, response) => response.writeHead(500).end(`${'.'.repeat(188)}${echo}`),
  'cut-4000': (echo, response) => response.writeHead(500).end(`${'\u001b[0m'.repeat(997)}${echo}`),
  'cut-65536': (echo, response) => response.writeHead(500).end(`${'\u001b[0m'.repeat(16_381)}${'.'}${echo}`),
  'escape-inside': (echo, response) =>
    response.writeHead(500).end(`no ${echo.slice(0, 9)}\u001b[1m${echo.slice(9)}\u001b[0m`),
  'control-inside': (echo, response) => response.writeHead(500).end(`no ${echo.slice(0, 9)}\u0000${echo.slice(9)}`),
  'long-value': (echo, response) =>
    response.writeHead(200).end(JSON.stringify({ filler: 'f'.repeat(900_000), tail: `${'g'.repeat(100_000)}${echo}` })),
  'too-long': (echo, response) => response.writeHead(200).end(JSON.stringify(echo.repeat(500_000))),
  'too-deep': (echo, response) =>
    response.writeHead(200).end(`${'['.repeat(300)}${JSON.stringify(echo)}${']'.repeat(300)}`),
  'broken-off': (echo, response) => {
    response.writeHead(200, { 'content-length': '9999' }).write(`{"a": "${echo}`);
    setTimeout(() => response.destroy(), 50);
  },
  'error-broken-off': (echo, response) => {
    response.writeHead(500, { 'content-length': '9999' }).write(`it was ${echo}`);
    setTimeout(() => response.destroy(), 50);
  },
  'one-byte-each': async (echo, response) => {
    response.writeHead(401);
    for (const character of `no: ${echo}`) {
      response.write(character);
      await new Promise((resolve) => setTimeout(resolve, 3));
    }
    response.end();
  },
  'invalid-utf8': (echo, response) =>
    response.writeHead(200).end(Buffer.concat([Buffer.from(`{"a": "${echo}`), Buffer.from([0xff, 0x22, 0x7d])])),
};

/**
 * Runs a loop. Returns the result, and the texts that must not have the secret: the output, the journal and further
 * verbs.
 */
export async function runAndCollect(fixture, args, env, verbs = []) {
  const run = await fixture.cli(['run', ...args, '--session', 's', '--json'], { env });
  const texts = { 'the journal': bytesBelow(join(fixture.project, '.rondo')) };
  Object.assign(texts, { stdout: run.stdout, stderr: run.stderr });
  for (const verb of verbs) {
    const { stdout, stderr } = await fixture.cli(verb, { env });
    texts[verb.join(' ')] = `${stdout}\n${stderr}`;
  }
  return { run, texts };
}

const READ_VERBS = [
  ['trace', 's', '--json'],
  ['trace', 's'],
  ['events', 's'],
  ['status', 's', '--json'],
  ['runs', '--json'],
];

/** The server echoes a text. None of `parts` is in the collected texts. */
async function checkHttp(fixture, options) {
  const { header, parts, echo, channel, name = 'Authorization', extra = {}, env = {}, verbs = [] } = options;
  let received = '';
  const url = await fixture.server((request, _, response) => {
    received = request.headers[name.toLowerCase()] ?? '';
    if (options.number)
      response.writeHead(channel === 'nested' ? 200 : 400).end(`{"id": ${header}, "of": [${header}]}`);
    else void channels[channel](typeof echo === 'function' ? echo(received) : echo, response);
  });
  fixture.toolLoop('h', `http:${url}/x`, { headersFromEnv: { [name]: 'TOK' } }, extra);
  const { run, texts } = await runAndCollect(fixture, ['h', '--input', '{}'], { TOK: header, ...env }, verbs);
  expect(received === header || (options.odd && received !== ''), 'the header in the request', { received, run });
  expect([0, 1].includes(run.code ?? -1), 'exit code 0 or 1', run);
  assertAbsent(texts, parts);
}

/** Returns parts of a secret: long enough to be unique, short enough to find a remainder. */
export const partsOf = (secret) => [secret.slice(0, 10), secret.slice(10, 20), secret.slice(-10)];

const latin = { header: 'Bearer gr\u00fc\u00dfe-Zq7xW9kPl', parts: ['Zq7xW9kPl'], odd: true };

/** Headers of various schemes, the echoed part of each, and the parts that must not appear. */
const schemes = {
  'bearer-whole': (s) => ({ header: `Bearer ${s}`, echo: `Bearer ${s}`, parts: partsOf(s) }),
  'bearer-lower': (s) => ({ header: `Bearer ${s}`, echo: `bearer ${s}`, parts: partsOf(s) }),
  'bearer-tight': (s) => ({ header: `Bearer ${s}`, echo: `Bearer:${s}`, parts: partsOf(s) }),
  'bearer-many-blanks': (s) => ({ header: `Bearer   ${s}`, echo: s, parts: partsOf(s) }),
  'raw-key': (s) => ({ header: s, echo: s, parts: partsOf(s), name: 'X-Api-Key' }),
  'basic-text': (s) => {
    const pair = `operator:${s}`;
    return { header: `Basic ${Buffer.from(pair).toString('base64')}`, echo: pair, parts: partsOf(s) };
  },
  'basic-password': (s) => ({
    ...{ header: `Basic ${Buffer.from(`operator:${s}`).toString('base64')}`, echo: `password ${s}` },
    parts: partsOf(s),
  }),
  'basic-code': (s) => {
    const code = Buffer.from(`operator:${s}`).toString('base64');
    return { header: `Basic ${code}`, echo: code, parts: partsOf(s) };
  },
  'cookie-one': (s) => ({ header: `lang=en; session=${s}; theme=dark`, echo: s, parts: partsOf(s), name: 'Cookie' }),
  'cookie-pair': (s) => ({ header: `sid=${s};b=2`, echo: `sid is ${s}`, parts: partsOf(s), name: 'Cookie' }),
  'parameter-quoted': (s) => {
    const key = s.replaceAll('"', '_');
    return { header: `Digest username="ada", response="${key}"`, echo: key, parts: partsOf(key) };
  },
  'parameter-bare': (s) => {
    const key = s.replaceAll(/["=,]/g, '_');
    return { header: `AWS4 Credential=AK, Signature=${key}`, echo: `signature ${key}`, parts: partsOf(key) };
  },
  'token-scheme': (s) => ({ header: `Token token=${s}`, echo: s, parts: partsOf(s) }),
  'colon-pair': (s) => ({ header: `key:${s}`, echo: `got key:${s}.`, parts: partsOf(s), name: 'X-Auth' }),
  'short-7': () => ({ header: 'Bearer Zq7xW9k', echo: 'Zq7xW9k', parts: ['Zq7xW9k'] }),
  'short-8-url': () => ({ header: 'Bearer Zq/x+9kV', echo: encodeURIComponent('Zq/x+9kV'), parts: ['Zq/x+9kV'] }),
  'latin-utf8': () => ({ ...latin, echo: 'gr\u00fc\u00dfe-Zq7xW9kPl' }),
  'latin-as-received': () => ({ ...latin, echo: (received) => received.slice(7) }),
  jwt: () => {
    const [head, body, sign] = ['eyJhbGciOiJIUzI1NiJ9', 'eyJzdWIiOiJaUTdXOUsifQ', 'Zq7xW9kPlZq7xW9kPlAA'];
    return { header: `Bearer ${head}.${body}.${sign}`, echo: `signature ${sign} of ${body}`, parts: [sign, body] };
  },
  number: () => ({ header: '90718253640718253647', echo: '', parts: ['9071825364071825'], number: true }),
  'number-short': () => ({ header: '9071825364', echo: '', parts: ['9071825364'], number: true }),
  'blank-inside': () => ({
    header: 'correct horse Zq7xW9kPl battery',
    echo: 'correct horse Zq7xW9kPl battery',
    parts: ['Zq7xW9kPl'],
  }),
};

/** The response has a header that Node rejects; its error has the bytes of the response. */
async function checkMalformedResponse(fixture, secret, env) {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.on('data', () => socket.end(`HTTP/1.1 200 OK\r\nbad header ${secret}\u0001\r\n\r\n${secret}`));
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(undefined)));
  fixture.atEnd(() => server.close());
  const url = `http://127.0.0.1:${server.address().port}`;
  fixture.toolLoop('h', `http:${url}/x`, { headersFromEnv: { Authorization: 'TOK' } });
  const { run, texts } = await runAndCollect(fixture, ['h', '--input', '{}'], { TOK: `Bearer ${secret}`, ...env });
  expect(run.code === 1, 'exit code 1', run);
  assertAbsent(texts, partsOf(secret));
}

/** An agent calls the tool, so that the result of the tool is in the conversation. */
async function checkAgent(fixture, channel, secret) {
  const url = await fixture.server((_, __, response) => channels[channel](secret, response));
  fixture.toolLoop('h', `http:${url}/x`, { headersFromEnv: { Authorization: 'TOK' } });
  fixture.agent('a', ['h'], [{ toolCalls: [{ name: 'h', args: {} }] }, { text: 'done' }]);
  const input = ['a', '--input', '{"prompt": "go"}', '--watch'];
  const { run, texts } = await runAndCollect(fixture, input, { TOK: `Bearer ${secret}` });
  expect(run.code === 0, 'the run to succeed', run);
  assertAbsent(texts, partsOf(secret));
}

/** A server echoes one of two secrets that a tool sends. */
async function checkTwoSecrets(fixture, channel, secret, other) {
  const url = await fixture.server((_, __, response) => channels[channel](secret, response));
  fixture.toolLoop('g', `http:${url}/x`, { headersFromEnv: { Authorization: 'ONE' } });
  fixture.toolLoop('h', `http:${url}/y`, { headersFromEnv: { Authorization: 'TWO', 'X-Also': 'ONE' } });
  const { texts } = await runAndCollect(fixture, ['h', '--input', '{}'], {
    ONE: `Bearer ${secret}`,
    TWO: `Bearer ${other}`,
  });
  assertAbsent(texts, partsOf(secret));
}

/** Adds a case for each encoding. */
function addEncodingCases(add) {
  for (const channel of ['error-text', 'value']) {
    for (const [family, table] of Object.entries({ form: encodings, rare: rareEncodings })) {
      for (const [name, encode] of Object.entries(table)) {
        add(`${family}.${name}.${channel}`, (fixture) => {
          const secret = `sk-${randomSecret(fixture.random)}`;
          return checkHttp(fixture, {
            header: `Bearer ${secret}`,
            echo: encode(secret),
            parts: partsOf(secret),
            channel,
          });
        });
      }
    }
  }
}

export function cases() {
  const list = [];
  const add = (id, run) => list.push({ id: `secrets.http.${id}`, run });
  addEncodingCases(add);
  for (const channel of Object.keys(channels)) {
    add(`channel.${channel}`, (fixture) => {
      const secret = randomSecret(fixture.random).replaceAll('"', '_');
      return checkHttp(fixture, { header: `Bearer ${secret}`, echo: secret, parts: partsOf(secret), channel });
    });
  }
  for (const [name, headerFor] of Object.entries(schemes)) {
    for (const channel of ['error-json', 'nested'])
      add(`kind.${name}.${channel}`, (fixture) =>
        checkHttp(fixture, {
          ...headerFor(randomSecret(fixture.random)),
          channel,
          verbs: name === 'bearer-whole' ? READ_VERBS : [],
        }),
      );
  }
  for (const [name, env] of Object.entries({ usual: {}, debug: { RONDO_DEBUG: '1' } }))
    add(`malformed.${name}`, (fixture) => checkMalformedResponse(fixture, randomSecret(fixture.random), env));
  for (const channel of ['error-text', 'nested', 'key', 'not-json']) {
    add(`agent.${channel}`, (fixture) => checkAgent(fixture, channel, randomSecret(fixture.random)));
    add(`two-secrets.${channel}`, (fixture) =>
      checkTwoSecrets(fixture, channel, randomSecret(fixture.random), randomSecret(fixture.random)),
    );
  }
  const policies = { retry: { retry: { attempts: 3, backoffMs: 1 } }, cache: { cache: { ttlMs: 60_000 } } };
  for (const [name, policy] of Object.entries(policies)) {
    add(`policy.${name}`, (fixture) => {
      const secret = randomSecret(fixture.random);
      const channel = name === 'cache' ? 'nested' : 'error-html';
      return checkHttp(fixture, {
        header: `Bearer ${secret}`,
        echo: secret,
        parts: partsOf(secret),
        channel,
        extra: { policy },
      });
    });
  }
  return list;
}
