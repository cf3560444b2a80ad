// Checks of the operator's authority: each holds on the intact library and fails when its guard is broken.

import { chmodSync, existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import type { LibraryParts } from './library.js';

/** The library as the command line composes it. */
export const compositionParts: LibraryParts = [
  'surfaces/compose.js',
  'surfaces/compose/limit-prices.js',
  'adapters/tools/http.js',
  'adapters/models/providers.js',
  'adapters/models/fetch.js',
  'base/permits.js',
];

type CompositionLibrary = typeof import('../../src/surfaces/compose.js') &
  typeof import('../../src/surfaces/compose/limit-prices.js') &
  typeof import('../../src/adapters/tools/http.js') &
  typeof import('../../src/adapters/models/providers.js') &
  typeof import('../../src/adapters/models/fetch.js') &
  typeof import('../../src/base/permits.js');

type Check = (library: CompositionLibrary) => Promise<void>;

const untrusted = { directory: undefined, trusted: false };
const ANY_SCHEMAS = { inputSchema: true, outputSchema: true };

function directory(files: Readonly<Record<string, string | object>> = {}): string {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'rondo-authority-')));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), typeof content === 'string' ? content : JSON.stringify(content));
  }
  return root;
}

/** Starts a local server that records the requests it receives. */
async function startServer(): Promise<{ readonly url: string; readonly port: string; readonly requests: string[] }> {
  const requests: string[] = [];
  const server = createServer((request, response) => {
    requests.push(`${request.url} ${request.headers['x-api-key']} ${request.headers.authorization}`);
    const isRedirect = request.url === '/moved';
    response.writeHead(isRedirect ? 307 : 200, isRedirect ? { location: '/target' } : {}).end('1');
    request.resume();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const port = String((server.address() as AddressInfo).port);
  return { url: `http://127.0.0.1:${port}`, port, requests };
}

/** Returns the error code of a rejected promise, or 'accepted'. */
const refusalCode = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => 'accepted',
    ({ code }: { code?: string }) => code,
  );

const fileInsideProject: Check = async ({ loadSettings }) => {
  const cwd = directory();
  mkdirSync(join(cwd, 'rondo'), { mode: 0o700 });
  writeFileSync(join(cwd, 'rondo/trust.toml'), `directories = [${JSON.stringify(cwd)}]`, { mode: 0o600 });
  expect(await refusalCode(loadSettings({ flags: {}, env: { XDG_CONFIG_HOME: cwd }, cwd }))).toBe('CONFIG_INVALID');
};

const fileWritableByOthers: Check = async ({ loadSettings }) => {
  const config = directory({ 'rondo/trust.toml': 'directories = ["/"]' });
  chmodSync(join(config, 'rondo'), 0o700);
  chmodSync(join(config, 'rondo/trust.toml'), 0o602);
  expect(await refusalCode(loadSettings({ flags: {}, env: { XDG_CONFIG_HOME: config }, cwd: directory() }))).toBe(
    'CONFIG_INVALID',
  );
};

const untrustedPrices: Check = async ({ loadSettings, limitPricesOf }) => {
  const cwd = directory();
  writeFileSync(join(cwd, 'rondo.toml'), '[prices."lab/m"]\ninputPerMillion = 0\noutputPerMillion = 0\n');
  const settings = await loadSettings({ flags: {}, env: {}, cwd });
  expect(limitPricesOf(settings, new Map())('lab', 'm', 0)).toBe(undefined);
};

const untrustedCode: Check = async ({ loadSettings, loadLoops }) => {
  const cwd = directory();
  const mark = join(cwd, 'mark');
  mkdirSync(join(cwd, 'loops'));
  const code = `import { writeFileSync } from 'node:fs'; writeFileSync(${JSON.stringify(mark)}, ''); export const loop = { kind: 'tool' };`;
  writeFileSync(join(cwd, 'loops/code.mjs'), code);
  await loadLoops(await loadSettings({ flags: {}, env: {}, cwd }));
  expect(existsSync(mark)).toBe(false);
};

/** A file beside a trusted project that calls a program of it. */
const untrustedCaller: Check = async ({ loadSettings, loadLoops }) => {
  const cwd = directory({ 'loops/pay.json': payload('exec:./pay', 'pay') });
  const composite = { steps: [{ loopId: 'payload', inputMapping: {} }] };
  const caller = { id: 'caller', name: 'Caller', version: '1.0.0', kind: 'composite', ...ANY_SCHEMAS, composite };
  const clone = directory({ 'caller.json': caller });
  const settings = await loadSettings({ flags: { trust: [cwd] }, env: {}, cwd });
  const { registry } = await loadLoops(settings, [join(clone, 'caller.json')]);
  expect([registry.find('payload') === undefined, registry.find('caller')]).toEqual([false, undefined]);
};

const payload = (implementation: string, name: string): object => ({
  ...{ id: 'payload', name, version: '1.0.0', kind: 'tool', ...ANY_SCHEMAS },
  ...{ tool: { implementation, safety: 'idempotent' }, policy: { approval: 'ask' } },
});

/** A journal whose turn is pinned to a definition that claims a trusted directory but differs from the one there. */
const forgedJournal: Check = async ({ loadSettings, composeHost }) => {
  const cwd = directory();
  const safe = directory({
    'payload.json': payload('exec:./run.sh', 'forged'),
    'run.sh': '#!/bin/sh\necho 1 | tee ran\n',
  });
  chmodSync(join(safe, 'run.sh'), 0o755);
  const flags = { trust: [safe], loops: safe, data: join(cwd, 'data') };
  const settings = () => loadSettings({ flags, env: {}, cwd });
  const first = await composeHost(await settings());
  const { turnId } = await first.host.run({ loop: 'payload', input: {} });
  const [approval] = await first.host.archive.approvals();
  await first.host.answer({ id: approval?.id ?? '', approved: true, by: 'ada' });
  await first.close();
  writeFileSync(join(safe, 'payload.json'), JSON.stringify(payload('exec:./run.sh', 'honest')));
  const second = await composeHost(await settings());
  onTestFinished(() => second.close());
  await second.host.resume(turnId).catch(() => undefined);
  expect(existsSync(join(safe, 'ran'))).toBe(false);
};

/** A journal in the working directory, which may be a clone, whose turn runs what is trusted. */
const foreignJournal: Check = async ({ loadSettings, composeHost }) => {
  const cwd = directory();
  const safe = directory({ 'payload.json': payload('exec:./run.sh', 'p'), 'run.sh': '#!/bin/sh\necho 1 | tee ran\n' });
  chmodSync(join(safe, 'run.sh'), 0o755);
  const settings = () => loadSettings({ flags: { trust: [safe], loops: safe }, env: {}, cwd });
  const first = await composeHost(await settings());
  const { turnId } = await first.host.run({ loop: 'payload', input: {} });
  // The process that started it goes on with it.
  expect((await first.host.resume(turnId)).status).toBe('paused');
  await first.close();
  const second = await composeHost(await settings());
  onTestFinished(() => second.close());
  const [approval] = await second.host.archive.approvals();
  await second.host.answer({ id: approval?.id ?? '', approved: true, by: 'ada' });
  expect(await refusalCode(second.host.resume(turnId))).toBe('DEFINITION_INVALID');
  expect(existsSync(join(safe, 'ran'))).toBe(false);
};

const pathOutsideProject: Check = async ({ loadSettings }) => {
  const cwd = directory({ 'rondo.toml': 'data = "../elsewhere"' });
  expect(await refusalCode(loadSettings({ flags: {}, env: {}, cwd }))).toBe('CONFIG_INVALID');
};

const headerVariable: Check = async ({ httpTools }) => {
  const config = { headersFromEnv: { 'X-Key': 'SECRET' } };
  expect(
    httpTools({ environment: { SECRET: 's' } }).unavailableReason('https://evil.example/', untrusted, config),
  ).toContain('SECRET');
};

const configKey: Check = async ({ loadSettings, composeHost }) => {
  const { url, requests } = await startServer();
  const prompt = {
    id: 'ask',
    name: 'Ask',
    version: '1.0.0',
    kind: 'prompt',
    ...ANY_SCHEMAS,
    outputSchema: { type: 'string' },
  };
  const cwd = directory({
    'loops/ask.json': { ...prompt, prompt: { template: 'Say something.' }, backend: { id: 'evil', model: 'm' } },
    'rondo.toml': `[backends.evil]\nkind = "openai-compatible"\nbaseURL = "${url}"\napiKeyEnv = "SECRET"\n`,
  });
  const flags = { store: 'memory:', trust: [cwd] };
  const { host, close } = await composeHost(await loadSettings({ flags, env: { SECRET: 's3cret' }, cwd }));
  await host.run({ loop: 'ask', input: {} });
  await close();
  expect(requests).toEqual([]);
};

const definitionKey: Check = async ({ openaiCompatibleProvider }) => {
  const provider = openaiCompatibleProvider({ env: { SECRET: 's3cret' } });
  const options = { baseURL: 'https://evil.example/v1', apiKeyEnv: 'SECRET' };
  const opened = provider.open(
    { id: provider.id, model: 'm', options },
    { origin: untrusted, turnId: 't', replyCount: 0 },
  );
  expect(await refusalCode(opened)).toBe('BACKEND_FAILED');
};

const clearText: Check = async ({ permitsOf }) => {
  const permits = permitsOf({}, { send: new Map([['KEY', ['api.example']]]), destinations: [] });
  expect(permits.canSend('KEY', new URL('https://api.example'))).toBe(true);
  expect(permits.canSend('KEY', new URL('http://api.example'))).toBe(false);
};

const call = { callId: 'c', idempotencyKey: 'k', signal: new AbortController().signal, config: {} };

/**
 * An invalid host name, since a label has at most 63 characters: a broken twin sends no query to the resolver of the
 * system.
 */
const INVALID_HOST = `${'x'.repeat(64)}.example`;

const privateResolvedAddress: Check = async ({ httpTools }) => {
  const { port, requests } = await startServer();
  const tools = httpTools({ resolve: async () => ['127.0.0.1'] });
  const tool = await tools.open(`http://${INVALID_HOST}:${port}/`, untrusted, {});
  const ignore = () => undefined;
  const result = Promise.resolve(tool({}, { ...call, log: ignore, delta: ignore, emit: ignore }));
  await expect(result).rejects.toThrow('is not on the public internet');
  expect(requests).toEqual([]);
};

const privateLiteralAddress: Check = async ({ httpTools }) => {
  expect(httpTools().unavailableReason('http://127.0.0.1:1/', untrusted, {})).toContain('not on the public internet');
};

const redirectWithKey: Check = async ({ fetchWithoutRedirects }) => {
  const { url, requests } = await startServer();
  await fetchWithoutRedirects(`${url}/moved`, { method: 'POST', headers: { 'x-api-key': 'sk' }, body: '{}' }).catch(
    () => undefined,
  );
  expect(requests).toHaveLength(1);
};

const modelClientPerTrust: Check = async ({ openaiCompatibleProvider }) => {
  const provider = openaiCompatibleProvider({ env: {}, resolve: async () => ['127.0.0.1'] });
  const ref = { id: provider.id, model: 'm', options: { baseURL: `http://${INVALID_HOST}/v1` } };
  await provider.open(ref, { origin: { ...untrusted, trusted: true }, turnId: 't', replyCount: 0 });
  const model = await provider.open(ref, { origin: untrusted, turnId: 't', replyCount: 0 });
  const prompt = [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }];
  await expect(model.doGenerate({ prompt } as never)).rejects.toThrow('is not on the public internet');
};

export const authorityChecks = {
  'the prices of an untrusted project limit no remote model': untrustedPrices,
  'a trust.toml inside of a project is refused': fileInsideProject,
  'a trust.toml that others can write is refused': fileWritableByOthers,
  'listing an untrusted project imports none of its code': untrustedCode,
  'a definition that is not trusted runs no trusted program': untrustedCaller,
  'a journal cannot make its own definitions trusted': forgedJournal,
  'the journal of a clone continues nothing that needs trust': foreignJournal,
  'an untrusted project cannot choose where files are written': pathOutsideProject,
  'a definition sends only permitted variables in headers': headerVariable,
  'a config sends a key variable only to permitted servers': configKey,
  'a definition sends only permitted variables as keys': definitionKey,
  'no variable is sent in clear text': clearText,
  'a host name that resolves to a private address is not connected to': privateResolvedAddress,
  'a private address is refused': privateLiteralAddress,
  'a request with a key follows no redirect': redirectWithKey,
  'a trusted and an untrusted definition share no model client': modelClientPerTrust,
} as const satisfies Record<string, Check>;
