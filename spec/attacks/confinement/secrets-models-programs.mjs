// Model providers that echo their API key, and programs and commands that print a secret variable.

import { chmodSync } from 'node:fs';
import { expect } from '../../support/store-attack.mjs';
import { assertAbsent, encodings, randomSecret, rareEncodings } from './secret-encodings.mjs';
import { partsOf, runAndCollect } from './secrets-http.mjs';

const chunk = (delta, more = {}) =>
  `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, ...more }] })}\n\n`;

const sendStream = (response, ...chunks) => {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.end(`${chunks.join('')}${chunk({}, { finish_reason: 'stop' })}data: [DONE]\n\n`);
};

/** Functions that echo a text in one part of a provider's response. */
const providerChannels = {
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
  'answer-text': (echo, response) => sendStream(response, chunk({ content: `your key is ${echo}` })),
  'answer-reasoning': (echo, response) =>
    sendStream(response, chunk({ reasoning_content: `I was sent ${echo}` }), chunk({ content: 'ok' })),
  'answer-model': (echo, response) =>
    sendStream(
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

/** Runs a prompt, or an agent if the response is a stream, whose provider echoes its API key. */
async function checkProvider(fixture, channel, encode, secret = randomSecret(fixture.random)) {
  let received = '';
  const echo = encode(secret);
  const url = await fixture.server((request, _, response) => {
    received = request.headers.authorization ?? '';
    providerChannels[channel](echo, response);
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
  const { run, texts } = await runAndCollect(fixture, args, { TOK: secret });
  expect(received === `Bearer ${secret}`, 'the API key in the request', { received, run });
  expect(!channel.startsWith('answer-') || run.code === 0, 'the run to succeed', run);
  assertAbsent(texts, partsOf(secret));
}

/** Responses of a provider of the Anthropic API, which gets its key in x-api-key and streams content blocks. */
const blocks = {
  error: (echo) => [
    401,
    JSON.stringify({ type: 'error', error: { type: 'auth', message: `invalid x-api-key ${echo}` } }),
  ],
  text: (echo) => [200, blocksOf(['text', `key ${echo}`])],
  'two-texts': (echo) => [200, blocksOf(['text', echo.slice(0, 15)], ['text', echo.slice(15)])],
  thinking: (echo) => [200, blocksOf(['thinking', echo], ['text', 'ok'])],
};

/** Returns an event stream of content blocks, each with a type and a text. */
function blocksOf(...contents) {
  const usage = { input_tokens: 1, output_tokens: 1 };
  const message = { id: 'm', type: 'message', role: 'assistant', model: 'm', content: [], stop_reason: null, usage };
  const events = contents.flatMap(([kind, text], index) => [
    { type: 'content_block_start', index, content_block: { type: kind, [kind]: '' } },
    { type: 'content_block_delta', index, delta: { type: `${kind}_delta`, [kind]: text } },
    { type: 'content_block_stop', index },
  ]);
  const end = { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage };
  return [{ type: 'message_start', message }, ...events, end, { type: 'message_stop' }]
    .map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
    .join('');
}

/** Runs a prompt whose provider echoes its API key in content blocks. */
async function checkBlocks(fixture, responseFor) {
  const secret = `sk-ant-${randomSecret(fixture.random)}`;
  let received = '';
  const url = await fixture.server((request, _, response) => {
    received = request.headers['x-api-key'] ?? '';
    const [status, body] = responseFor(secret);
    const type = status === 200 ? 'text/event-stream' : 'application/json';
    response.writeHead(status, { 'content-type': type }).end(body);
  });
  fixture.file('p/loops/m.json', {
    ...{ id: 'm', name: 'm', version: '1.0.0', kind: 'prompt', inputSchema: {}, outputSchema: { type: 'string' } },
    ...{ prompt: { template: 'Say it.' }, backend: { id: 'anthropic', model: 'm' } },
  });
  const env = { ANTHROPIC_API_KEY: secret, ANTHROPIC_BASE_URL: `${url}/v1` };
  const { run, texts } = await runAndCollect(fixture, ['m', '--input', '{}'], env);
  expect(received === secret, 'the API key in the request', { received, run });
  expect(run.code === (responseFor === blocks.error ? 1 : 0), 'the expected exit code', run);
  assertAbsent(texts, [secret.slice(0, 14), secret, secret.slice(10, 22)]);
}

/** Shell scripts of an exec: tool. echo.txt and echo.json have the encoded secret. */
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

/** Runs an exec: tool that prints its secret variable. */
async function checkProgram(fixture, name, encode) {
  const secret = randomSecret(fixture.random);
  const echo = encode(secret);
  fixture.file('p/loops/echo.txt', echo);
  fixture.file('p/loops/echo.json', JSON.stringify(echo));
  chmodSync(fixture.file('p/loops/print.sh', `#!/bin/sh\n[ -n "$TOK" ] || exit 9\n${programs[name]}\n`), 0o755);
  fixture.toolLoop('x', 'exec:./print.sh', { env: ['TOK'], maxOutputBytes: 100_000 });
  const { run, texts } = await runAndCollect(fixture, ['x', '--input', '{}'], { TOK: secret });
  expect(!run.stdout.includes('"exitCode":9'), 'the variable in the environment of the program', run);
  assertAbsent(texts, partsOf(secret));
}

/** Sandboxed commands that print a secret variable. */
const commandLines = {
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

/** Runs a sandboxed command that prints its secret variable. */
async function checkCommand(fixture, line) {
  const secret = randomSecret(fixture.random);
  const host = await fixture.host();
  const options = { env: { NPM_TOKEN: secret, OTHER: 'x' }, maxOutputBytes: 1000, timeoutMs: 5000 };
  const { ok } = await host.command(line, { roots: [fixture.project], commands: options });
  expect(ok?.output.length > 0, 'output of the command', ok);
  assertAbsent({ output: ok.output, streamed: ok.streamed, note: ok.note ?? '' }, partsOf(secret));
}

/** Runs a prompt with a provider of the project's configuration. The operator permits to send the key. */
async function checkConfiguredProvider(fixture, channel) {
  const secret = randomSecret(fixture.random);
  const url = await fixture.server((_, __, response) => providerChannels[channel](secret, response));
  const host = new URL(url).host;
  fixture.file(
    'p/rondo.toml',
    `[backends.lab]\nkind = "openai-compatible"\nbaseURL = "${url}/v1"\nmodel = "m"\napiKeyEnv = "LAB"\n`,
  );
  fixture.file('p/loops/m.json', {
    ...{ id: 'm', name: 'm', version: '1.0.0', kind: 'prompt', inputSchema: {}, outputSchema: { type: 'string' } },
    ...{ prompt: { template: 'Say it.' }, backend: { id: 'lab' } },
  });
  const { texts } = await runAndCollect(fixture, ['m', '--input', '{}', '--send', `LAB=${host}`], { LAB: secret });
  const doctor = await fixture.cli(['doctor', '--json'], { env: { LAB: secret, RONDO_SEND: `LAB=${host}` } });
  assertAbsent({ ...texts, doctor: doctor.stdout + doctor.stderr }, partsOf(secret));
}

/** The error names a variable that is not valid as a header, without its value. */
async function checkInvalidHeader(fixture, value) {
  const url = await fixture.server((_, __, response) => response.writeHead(200).end('{}'));
  fixture.toolLoop('h', `http:${url}/x`, { headersFromEnv: { Authorization: 'TOK' } });
  const { run, texts } = await runAndCollect(fixture, ['h', '--input', '{}'], { TOK: value });
  expect(run.code === 1 && run.stdout.includes('TOK'), 'a failure with the name of the variable', run);
  assertAbsent(texts, ['Zq7xW9kPl']);
}

export function cases() {
  const list = [];
  const add = (id, run) => list.push({ id: `secrets.${id}`, run });
  for (const channel of Object.keys(providerChannels)) {
    add(`model.${channel}.plain`, (fixture) => checkProvider(fixture, channel, encodings.plain));
  }
  for (const [name, responseFor] of Object.entries(blocks))
    add(`blocks.${name}`, (fixture) => checkBlocks(fixture, responseFor));
  const selected = ['url', 'url-partial', 'json', 'json-slash', 'json-units', 'base64', 'base64url', 'base64-shift-1'];
  for (const channel of ['error-message', 'error-text', 'answer-text', 'stream-error', 'stream-whole']) {
    for (const name of selected)
      add(`model.${channel}.${name}`, (fixture) => checkProvider(fixture, channel, encodings[name]));
  }
  for (const program of Object.keys(programs))
    add(`exec.${program}.plain`, (fixture) => checkProgram(fixture, program, encodings.plain));
  for (const program of ['stderr', 'stdout']) {
    for (const name of selected)
      add(`exec.${program}.${name}`, (fixture) => checkProgram(fixture, program, encodings[name]));
    add(`exec.${program}.rare.hex`, (fixture) => checkProgram(fixture, program, rareEncodings.hex));
  }
  for (const [name, line] of Object.entries(commandLines))
    add(`command.${name}`, (fixture) => checkCommand(fixture, line));
  for (const channel of ['error-message', 'answer-text'])
    add(`config.${channel}`, (fixture) => checkConfiguredProvider(fixture, channel));
  const values = { feed: 'Zq7xW9kPl\nnext: line', emoji: 'Zq7xW9kPl\u{1f600}', escape: 'Zq7xW9kPl\u001b[0m' };
  for (const [name, value] of Object.entries(values))
    add(`unfit.${name}`, (fixture) => checkInvalidHeader(fixture, value));
  return list;
}
