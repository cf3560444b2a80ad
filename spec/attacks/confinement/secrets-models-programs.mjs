// Model providers and programs repeat their secrets: providers the key that they got, programs a variable that they were given.

import { chmodSync } from 'node:fs';
import { expect } from '../../support/store-attack.mjs';
import { assertAbsent, forms, rarer, secretOf } from './secret-encodings.mjs';
import { seen } from './secrets-http.mjs';

const piecesOf = (secret) => [secret.slice(0, 10), secret.slice(10, 20), secret.slice(-10)];

const chunk = (delta, more = {}) =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, ...more }] })}\n\n`;

const streamed = (response, ...chunks) => {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.end(`${chunks.join('')}${chunk({}, { finish_reason: 'stop' })}data: [DONE]\n\n`);
};

/** What a provider answers. Each gets what is repeated, the response, and whether a stream was asked for. */
const providers = {
  'error-message': (echo, response) =>
    response
      .writeHead(401, { 'content-type': 'application/json' })
      .end(JSON.stringify({ error: { message: `Incorrect API key provided: ${echo}.`, type: 'invalid', code: echo } })),
  'error-text': (echo, response) => response.writeHead(403).end(`key ${echo} is not known`),
  'error-long': (echo, response) =>
    response
      .writeHead(500, { 'content-type': 'application/json' })
      .end(JSON.stringify({ error: { message: `${'.'.repeat(488)} ${echo}` } })),
  'error-cut': (echo, response) =>
    response
      .writeHead(500, { 'content-type': 'application/json' })
      .end(JSON.stringify({ error: { message: `${'- '.repeat(240)}${echo}` } })),
  'error-header': (echo, response) =>
    response
      .writeHead(429, { 'retry-after': echo, 'x-request': echo, 'content-type': 'application/json' })
      .end(JSON.stringify({ error: { message: 'busy' } })),
  'status-text': (echo, response) => response.writeHead(500, `Key ${echo}`).end(),
  redirect: (echo, response) => response.writeHead(302, { location: `/${encodeURIComponent(echo)}` }).end(),
  'not-json': (echo, response) => response.writeHead(200).end(`welcome ${echo}`),
  'wrong-shape': (echo, response) =>
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ choices: echo, [echo]: 1 })),
  'answer-text': (echo, response) => streamed(response, chunk({ content: `your key is ${echo}` })),
  'answer-reasoning': (echo, response) =>
    streamed(response, chunk({ reasoning_content: `I was sent ${echo}` }), chunk({ content: 'ok' })),
  'answer-model': (echo, response) =>
    streamed(
      response,
      chunk({ content: 'ok' }).replace(
        '"id":"c"',
        `"id":${JSON.stringify(echo)},"system_fingerprint":${JSON.stringify(echo)}`,
      ),
    ),
  'stream-error': (echo, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(chunk({ role: 'assistant', content: 'so ' }));
    response.end(`data: ${JSON.stringify({ error: { message: `bad key ${echo}`, code: 401 } })}\n\ndata: [DONE]\n\n`);
  },
  'stream-bad-chunk': (echo, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.end(`data: {"choices": "${encodeURIComponent(echo)} ${echo}\n\ndata: [DONE]\n\n`);
  },
  'stream-pieces': (echo, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const piece of echo.match(/.{1,4}/gs) ?? []) response.write(chunk({ content: piece }));
    response.end(`${chunk({}, { finish_reason: 'stop' })}data: [DONE]\n\n`);
  },
  'stream-whole': (echo, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.end(`${chunk({ content: `key ${echo}` })}${chunk({}, { finish_reason: 'stop' })}data: [DONE]\n\n`);
  },
  'stream-tool-call': (echo, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const tool_calls = [
      {
        index: 0,
        id: 'k',
        type: 'function',
        function: { name: echo.slice(0, 60), arguments: JSON.stringify({ a: echo }) },
      },
    ];
    response.end(`${chunk({ tool_calls })}${chunk({}, { finish_reason: 'tool_calls' })}data: [DONE]\n\n`);
  },
  'broken-off': (echo, response) => {
    response.writeHead(500, { 'content-length': '9999', 'content-type': 'application/json' });
    response.write(JSON.stringify({ error: { message: echo } }));
    setTimeout(() => response.destroy(), 50);
  },
};

const isStream = (name) => name.startsWith('stream-');

/** A prompt, or an agent where the answer is streamed, whose provider repeats its key. */
async function provider(fixture, channel, form, secret = secretOf(fixture.random)) {
  let asked = '';
  const echo = form(secret);
  const url = await fixture.server((request, _, response) => {
    asked = request.headers.authorization ?? '';
    providers[channel](echo, response);
  });
  const backend = { id: 'openai-compatible', model: 'm', options: { baseURL: `${url}/v1`, apiKeyEnv: 'TOK' } };
  const schema = { type: 'object' };
  fixture.file('p/loops/m.json', {
    ...{ id: 'm', name: 'm', version: '1.0.0', inputSchema: schema },
    ...(isStream(channel)
      ? { kind: 'composite', outputSchema: schema, composite: { agent: { backend, tools: [], maxRounds: 2 } } }
      : { kind: 'prompt', outputSchema: { type: 'string' }, prompt: { template: 'Say {{prompt}}.' }, backend }),
  });
  const args = ['m', '--input', '{"prompt": "hello"}', ...(isStream(channel) ? ['--watch'] : [])];
  const { run, places } = await seen(fixture, args, { TOK: secret });
  expect(asked === `Bearer ${secret}`, 'the key to be sent', { asked, run });
  expect(!channel.startsWith('answer-') || run.code === 0, 'an answer', run);
  assertAbsent(places, piecesOf(secret));
}

/** Answers of a provider that gets its key in a header of its own, and whose answers come in several blocks. */
const blocks = {
  error: (echo) => [
    401,
    JSON.stringify({ type: 'error', error: { type: 'auth', message: `invalid x-api-key ${echo}` } }),
  ],
  text: (echo) => [200, blocksOf(['text', `key ${echo}`])],
  'two-texts': (echo) => [200, blocksOf(['text', echo.slice(0, 15)], ['text', echo.slice(15)])],
  thinking: (echo) => [200, blocksOf(['thinking', echo], ['text', 'ok'])],
};

/** A stream of blocks: each has a kind and a text. */
function blocksOf(...all) {
  const usage = { input_tokens: 1, output_tokens: 1 };
  const message = { id: 'm', type: 'message', role: 'assistant', model: 'm', content: [], stop_reason: null, usage };
  const events = all.flatMap(([kind, text], index) => [
    { type: 'content_block_start', index, content_block: { type: kind, [kind]: '' } },
    { type: 'content_block_delta', index, delta: { type: `${kind}_delta`, [kind]: text } },
    { type: 'content_block_stop', index },
  ]);
  const end = { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage };
  return [{ type: 'message_start', message }, ...events, end, { type: 'message_stop' }]
    .map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
    .join('');
}

async function inBlocks(fixture, answer) {
  const secret = `sk-ant-${secretOf(fixture.random)}`;
  let asked = '';
  const url = await fixture.server((request, _, response) => {
    asked = request.headers['x-api-key'] ?? '';
    const [status, body] = answer(secret);
    const type = status === 200 ? 'text/event-stream' : 'application/json';
    response.writeHead(status, { 'content-type': type }).end(body);
  });
  fixture.file('p/loops/m.json', {
    ...{ id: 'm', name: 'm', version: '1.0.0', kind: 'prompt', inputSchema: {}, outputSchema: { type: 'string' } },
    ...{ prompt: { template: 'Say it.' }, backend: { id: 'anthropic', model: 'm' } },
  });
  const env = { ANTHROPIC_API_KEY: secret, ANTHROPIC_BASE_URL: `${url}/v1` };
  const { run, places } = await seen(fixture, ['m', '--input', '{}'], env);
  expect(asked === secret, 'the key to be sent', { asked, run });
  expect(run.code === (answer === blocks.error ? 1 : 0), 'an answer', run);
  assertAbsent(places, [secret.slice(0, 14), secret, secret.slice(10, 22)]);
}

/** What a program prints of a variable that it was given: a script of sh, with the text in a file beside it. */
const programs = {
  stderr: 'cat echo.txt >&2; exit 1',
  'stderr-retry': 'cat echo.txt >&2; exit 75',
  'stderr-killed': 'cat echo.txt >&2; kill -9 $$',
  stdout: "printf '{\"env\": '; cat echo.json; printf '}'",
  'stdout-key': "printf '{'; cat echo.json; printf ': 1}'",
  'stdout-not-json': 'cat echo.txt',
  'stdout-exit-1': 'cat echo.txt; exit 1',
  'stderr-cut-2000': `cat echo.txt >&2; printf '%1990s' . | tr ' ' . >&2; exit 1`,
  'stderr-cut-8000': `cat echo.txt >&2; i=0; while [ $i -lt 1995 ]; do printf '\\033[0m'; i=$((i+1)); done >&2; exit 1`,
  flood: 'while :; do cat echo.txt; done',
};

async function executed(fixture, how, form) {
  const secret = secretOf(fixture.random);
  const echo = form(secret);
  fixture.file('p/loops/echo.txt', echo);
  fixture.file('p/loops/echo.json', JSON.stringify(echo));
  chmodSync(fixture.file('p/loops/tell.sh', `#!/bin/sh\n[ -n "$TOK" ] || exit 9\n${programs[how]}\n`), 0o755);
  fixture.toolLoop('x', 'exec:./tell.sh', { env: ['TOK'], maxOutputBytes: 100_000 });
  const { run, places } = await seen(fixture, ['x', '--input', '{}'], { TOK: secret });
  expect(!run.stdout.includes('"exitCode":9'), 'the variable to be given', run);
  assertAbsent(places, piecesOf(secret));
}

/** Commands in the sandbox that print a variable which they were given. */
const printing = {
  plain: 'echo "$NPM_TOKEN"',
  environment: 'env; set; export -p',
  trace: 'set -x; : "$NPM_TOKEN"',
  url: `python3 -c "import os, urllib.parse as u; print(u.quote(os.environ['NPM_TOKEN'], safe=''))"`,
  json: `python3 -c "import os, json; print(json.dumps(dict(os.environ)))"`,
  repr: `python3 -c "import os; print(os.environ)"`,
  node: 'node -p "process.env"',
  base64: 'printf %s "$NPM_TOKEN" | base64 -w0',
  'base64-lines': 'env | sort | base64',
  'base64-short-lines': 'printf %s "$NPM_TOKEN" | base64 -w 10',
  hex: `python3 -c "import os; print(os.environ['NPM_TOKEN'].encode().hex())"`,
  xxd: 'printf %s "$NPM_TOKEN" | od -An -v -tx1 | tr -d " \\n"',
  'head-cut': 'printf "%490s" . | tr " " .; printf %s "$NPM_TOKEN"; printf "%5000s" . | tr " " .',
  'tail-cut': 'printf "%5000s" . | tr " " .; printf %s "$NPM_TOKEN"; printf "%485s" . | tr " " .',
  'stream-cut': 'printf "%990s" . | tr " " .; printf %s "$NPM_TOKEN"; printf "%5000s" . | tr " " .',
  slowly: `python3 -c "
import os, time
for c in os.environ['NPM_TOKEN']: os.write(1, c.encode()); time.sleep(0.02)"`,
  'two-streams': `python3 -c "
import os, time
s = os.environ['NPM_TOKEN']
for n, c in enumerate(s): os.write(1 + n % 2, c.encode()); time.sleep(0.005)"`,
  twice: 'printf %s%s "$NPM_TOKEN" "$NPM_TOKEN"',
  failing: 'echo "$NPM_TOKEN" >&2; exit 3',
  killed: 'echo "$NPM_TOKEN"; sleep 30',
};

async function commanded(fixture, line) {
  const secret = secretOf(fixture.random);
  const host = await fixture.host();
  const options = { env: { NPM_TOKEN: secret, OTHER: 'x' }, maxOutputBytes: 1000, timeoutMs: 5000 };
  const { ok } = await host.command(line, { roots: [fixture.project], commands: options });
  expect(ok?.output.length > 0, 'a command that printed', ok);
  assertAbsent({ output: ok.output, streamed: ok.streamed, note: ok.note ?? '' }, piecesOf(secret));
}

/** A backend of the project's config, which gets a key by the operator's leave. */
async function configured(fixture, channel) {
  const secret = secretOf(fixture.random);
  const url = await fixture.server((_, __, response) => providers[channel](secret, response));
  const host = new URL(url).host;
  fixture.file(
    'p/rondo.toml',
    `[backends.lab]\nkind = "openai-compatible"\nbaseURL = "${url}/v1"\nmodel = "m"\napiKeyEnv = "LAB"\n`,
  );
  fixture.file('p/loops/m.json', {
    ...{ id: 'm', name: 'm', version: '1.0.0', kind: 'prompt', inputSchema: {}, outputSchema: { type: 'string' } },
    ...{ prompt: { template: 'Say it.' }, backend: { id: 'lab' } },
  });
  const { places } = await seen(fixture, ['m', '--input', '{}', '--send', `LAB=${host}`], { LAB: secret });
  const doctor = await fixture.cli(['doctor', '--json'], { env: { LAB: secret, RONDO_SEND: `LAB=${host}` } });
  assertAbsent({ ...places, doctor: doctor.stdout + doctor.stderr }, piecesOf(secret));
}

/** A variable that cannot be a header is named, and not shown. */
async function unfit(fixture, value) {
  const url = await fixture.server((_, __, response) => response.writeHead(200).end('{}'));
  fixture.toolLoop('h', `http:${url}/x`, { headersFromEnv: { Authorization: 'TOK' } });
  const { run, places } = await seen(fixture, ['h', '--input', '{}'], { TOK: value });
  expect(run.code === 1 && run.stdout.includes('TOK'), 'a failure that names the variable', run);
  assertAbsent(places, ['Zq7xW9kPl']);
}

export function cases() {
  const all = [];
  const add = (id, run) => all.push({ id: `secrets.${id}`, run });
  for (const channel of Object.keys(providers)) {
    add(`model.${channel}.plain`, (fixture) => provider(fixture, channel, forms.plain));
  }
  for (const [name, answer] of Object.entries(blocks)) add(`blocks.${name}`, (fixture) => inBlocks(fixture, answer));
  const some = ['url', 'url-partial', 'json', 'json-slash', 'json-units', 'base64', 'base64url', 'base64-shift-1'];
  for (const channel of ['error-message', 'error-text', 'answer-text', 'stream-error', 'stream-whole']) {
    for (const name of some) add(`model.${channel}.${name}`, (fixture) => provider(fixture, channel, forms[name]));
  }
  for (const how of Object.keys(programs)) add(`exec.${how}.plain`, (fixture) => executed(fixture, how, forms.plain));
  for (const how of ['stderr', 'stdout']) {
    for (const name of some) add(`exec.${how}.${name}`, (fixture) => executed(fixture, how, forms[name]));
    add(`exec.${how}.rare.hex`, (fixture) => executed(fixture, how, rarer.hex));
  }
  for (const [name, line] of Object.entries(printing)) add(`command.${name}`, (fixture) => commanded(fixture, line));
  for (const channel of ['error-message', 'answer-text'])
    add(`config.${channel}`, (fixture) => configured(fixture, channel));
  const values = { feed: 'Zq7xW9kPl\nnext: line', emoji: 'Zq7xW9kPl\u{1f600}', escape: 'Zq7xW9kPl\u001b[0m' };
  for (const [name, value] of Object.entries(values)) add(`unfit.${name}`, (fixture) => unfit(fixture, value));
  return all;
}
