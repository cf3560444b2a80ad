/** Redaction of secrets that a tool repeats, in any encoding, in errors and results. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect } from 'vitest';
import { call, cleanUp, failure, node, sh, trusted } from '../../../spec/support/tools-fixture.mjs';
import { verifies } from '../../../spec/verifies.js';
import { execTools, httpTools } from './index.js';

const TOKEN = 'sk-l1ve/8a"7f&+ü=3c5e9b';
const PASSWORD = 'correct/horse"9';
const environment = {
  PATH: process.env.PATH,
  API_KEY: TOKEN,
  PLACE: '/srv/data/here',
  BEARER: 'Bearer sk-l1ve/8a7f+3c5e9b',
  BASIC: `Basic ${Buffer.from(`ada:${PASSWORD}`).toString('base64')}`,
  COOKIE: 'theme=dark; sid=a1b2c3d4e5f6; x=y',
};
const headersFromEnv = { Authorization: 'BEARER', 'X-Basic': 'BASIC', Cookie: 'COOKIE' };
const SECRETS = ['sk-l1ve/8a7f+3c5e9b', PASSWORD, 'a1b2c3d4e5f6', environment.BASIC.slice(6)];

const inner = (text: string): string => JSON.stringify(text).slice(1, -1);
const forms: readonly ((text: string) => string)[] = [
  (text) => text,
  encodeURIComponent,
  (text) => encodeURIComponent(text).replace(/%../g, (code) => code.toLowerCase()),
  inner,
  (text) => inner(inner(text)),
  (text) => inner(text).replaceAll('/', '\\/'),
  (text) => Buffer.from(text).toString('base64'),
  (text) => Buffer.from(text).toString('base64url'),
  (text) => Buffer.from(text).toString('hex'),
];
const echoes = SECRETS.flatMap((secret) => forms.map((form) => form(secret)));

let respond: (request: IncomingMessage, response: ServerResponse) => void;
const server = createServer((request, response) => respond(request.resume(), response));
let base = '';
beforeAll(async () => {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}/tool`;
});
afterAll(() => {
  server.close();
  cleanUp();
});

async function ask(): Promise<string> {
  const tool = await httpTools({ environment }).open(base, { directory: '/', trusted: true }, { headersFromEnv });
  return JSON.stringify(await failure(tool(null, call())));
}

verifies('secret.echo', 'an error of an http: tool contains no secret of its headers', async () => {
  for (const status of [400, 401, 500]) {
    for (const echo of echoes) {
      respond = (_, response) => void response.writeHead(status).end(`You sent ${echo}, which is wrong.`);
      const output = await ask();
      expect(output).toContain('You sent [withheld], which is wrong.');
      expect(output).not.toContain(echo);
    }
  }
});

verifies('secret.echo', 'a result of an http: tool contains no secret of its headers', async () => {
  respond = ({ headers }, response) =>
    void response.end(JSON.stringify({ headers, nested: [{ text: JSON.stringify(headers) }], [SECRETS[0] ?? '']: 1 }));
  const output = await ask();
  expect(output).toContain('[withheld]');
  for (const echo of echoes) expect(output).not.toContain(echo);
  for (const secret of SECRETS) expect(output).not.toContain(secret);
  for (const echo of echoes) {
    respond = (_, response) => void response.end(JSON.stringify({ echo }));
    expect(await ask()).not.toContain(JSON.stringify(echo).slice(1, -1));
  }
});

verifies('secret.echo', 'an invalid or truncated response reveals no part of a secret', async () => {
  respond = (_, response) => void response.end(`not JSON: ${encodeURIComponent(SECRETS[0] ?? '')}`);
  expect(await ask()).toContain('not JSON: [withheld]');
  const secret = SECRETS[0] ?? '';
  // An error response is read up to 64 KiB, which end in the middle of a secret.
  respond = (_, response) => void response.writeHead(500).end(`${secret} `.repeat(64 * 1024));
  const output = await ask();
  expect(output).toContain('[withheld] [withheld]');
  expect(output).not.toContain(secret.slice(0, 8));
});

verifies('secret.echo', 'an error response truncated in the middle of a secret reveals no part of it', async () => {
  const secret = SECRETS[0] ?? '';
  const colour = '\u001b[0m';
  // Colour sequences are removed, so that the message contains the end of the 64 KiB. They may be truncated too.
  for (const [head, rest] of [
    [secret.slice(0, 11), secret.slice(11)],
    [`${secret.slice(0, 11)}\u001b[3`, `1m${secret.slice(11)}`],
    [Buffer.from(encodeURIComponent(secret)).toString('base64').slice(0, 20), 'x'],
  ] as const) {
    const filler = 64 * 1024 - head.length;
    const text = `${'.'.repeat(filler % colour.length)}${colour.repeat(Math.floor(filler / colour.length))}${head}${rest}`;
    respond = (_, response) => void response.writeHead(500).end(text);
    const output = await ask();
    expect(output).toContain('[withheld]');
    expect(output).not.toContain(head.slice(0, 8));
  }
});

verifies('secret.echo', 'a header is sent as Latin-1, and redacted however the server decodes it', async () => {
  const value = 'gr\u00fc\u00dfe-Zq7xW9kPl';
  let received: string | undefined;
  for (const encoding of ['latin1', 'utf8'] as const) {
    respond = ({ headers }, response) => {
      received = headers['x-key'] as string;
      const decoded = Buffer.from(received, 'latin1').toString(encoding);
      response.end(JSON.stringify({ decoded, decodedTwice: Buffer.from(decoded).toString('latin1') }));
    };
    const config = { headersFromEnv: { 'X-Key': 'KEY' } };
    const tool = await httpTools({ environment: { KEY: value } }).open(base, { directory: '/', trusted: true }, config);
    const output = JSON.stringify(await tool(null, call()));
    expect(received).toBe(value);
    expect(output).toContain('[withheld]');
    expect(output).not.toContain('Zq7xW9kPl');
  }
});

async function exec(script: string, names: readonly string[]): Promise<string> {
  const tool = await execTools({ environment }).open('tool', trusted({ tool: script }), { env: [...names] });
  return JSON.stringify(await failure(tool(null, call())));
}

verifies('secret.echo', 'errors and results of an exec: tool contain no secret of its variables', async () => {
  const forms = ['encodeURIComponent(key)', 'JSON.stringify({ key })', 'Buffer.from(key).toString("base64")', 'key'];
  for (const form of forms) {
    const script = `const key = process.env.API_KEY; const echo = ${form};`;
    const failed = await exec(node(`${script} console.error('no: ' + echo); process.exit(1)`), ['API_KEY']);
    const printed = await exec(node(`${script} console.log(JSON.stringify({ echo }))`), ['API_KEY']);
    const unread = await exec(node(`${script} console.log('no: ' + echo)`), ['API_KEY']);
    for (const output of [failed, printed, unread]) {
      expect(output).toContain('[withheld]');
      for (const trace of [TOKEN, encodeURIComponent(TOKEN), inner(TOKEN), inner(inner(TOKEN)), 'l1ve']) {
        expect(output).not.toContain(trace);
      }
    }
  }
  // The name of a directory is not a secret, so it stays in a result.
  expect(await exec(sh('echo "\\"$PLACE\\""'), ['PLACE'])).toContain('/srv/data/here');
});

verifies('secret.echo', 'an error of a program truncated in the middle of a secret reveals no part of it', async () => {
  const lines = "(process.env.API_KEY + '\\n').repeat(20000)";
  const script = node(`process.stderr.write(${lines}, () => process.exit(1))`);
  const output = await exec(script, ['API_KEY']);
  expect(output).toContain('[withheld]');
  expect(output).not.toMatch(/l1ve|8a"7f|3c5e9b/);
});
