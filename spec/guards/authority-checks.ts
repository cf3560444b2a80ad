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
  'adapters/tools/http.js',
  'adapters/models/providers.js',
  'adapters/models/fetch.js',
  'base/permits.js',
];

type CompositionLibrary = typeof import('../../src/surfaces/compose.js') &
  typeof import('../../src/adapters/tools/http.js') &
  typeof import('../../src/adapters/models/providers.js') &
  typeof import('../../src/adapters/models/fetch.js') &
  typeof import('../../src/base/permits.js');

type Check = (library: CompositionLibrary) => Promise<void>;

const untrusted = { directory: undefined, trusted: false };
const ends = { inputSchema: true, outputSchema: true };

function directory(files: Readonly<Record<string, string | object>> = {}): string {
  const made = realpathSync(mkdtempSync(join(tmpdir(), 'rondo-authority-')));
  onTestFinished(() => rmSync(made, { recursive: true, force: true }));
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(made, name)), { recursive: true });
    writeFileSync(join(made, name), typeof content === 'string' ? content : JSON.stringify(content));
  }
  return made;
}

/** A local server, and the requests that it received. */
async function listening(): Promise<{ readonly url: string; readonly port: string; readonly seen: string[] }> {
  const seen: string[] = [];
  const server = createServer((request, response) => {
    seen.push(`${request.url} ${request.headers['x-api-key']} ${request.headers.authorization}`);
    const moved = request.url === '/moved';
    response.writeHead(moved ? 307 : 200, moved ? { location: '/taken' } : {}).end('1');
    request.resume();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const port = String((server.address() as AddressInfo).port);
  return { url: `http://127.0.0.1:${port}`, port, seen };
}

const refusal = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => 'taken',
    ({ code }: { code?: string }) => code,
  );

const shippedFile: Check = async ({ loadSettings }) => {
  const cwd = directory();
  mkdirSync(join(cwd, 'rondo'), { mode: 0o700 });
  writeFileSync(join(cwd, 'rondo/trust.toml'), `directories = [${JSON.stringify(cwd)}]`, { mode: 0o600 });
  expect(await refusal(loadSettings({ flags: {}, env: { XDG_CONFIG_HOME: cwd }, cwd }))).toBe('CONFIG_INVALID');
};

const writableFile: Check = async ({ loadSettings }) => {
  const config = directory({ 'rondo/trust.toml': 'directories = ["/"]' });
  chmodSync(join(config, 'rondo'), 0o700);
  chmodSync(join(config, 'rondo/trust.toml'), 0o602);
  expect(await refusal(loadSettings({ flags: {}, env: { XDG_CONFIG_HOME: config }, cwd: directory() }))).toBe(
    'CONFIG_INVALID',
  );
};

const importedCode: Check = async ({ loadSettings, loadLoops }) => {
  const cwd = directory();
  const mark = join(cwd, 'mark');
  mkdirSync(join(cwd, 'loops'));
  const code = `import { writeFileSync } from 'node:fs'; writeFileSync(${JSON.stringify(mark)}, '');`;
  writeFileSync(join(cwd, 'loops/code.mjs'), code);
  await loadLoops(await loadSettings({ flags: {}, env: {}, cwd }));
  expect(existsSync(mark)).toBe(false);
};

const payload = (implementation: string, name: string): object => ({
  ...{ id: 'payload', name, version: '1.0.0', kind: 'tool', ...ends },
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
  const settings = () => loadSettings({ flags: { trust: [safe], loops: safe }, env: {}, cwd });
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

const pathsOutside: Check = async ({ loadSettings }) => {
  const cwd = directory({ 'rondo.toml': 'data = "../elsewhere"' });
  expect(await refusal(loadSettings({ flags: {}, env: {}, cwd }))).toBe('CONFIG_INVALID');
};

const headerAnywhere: Check = async ({ httpTools }) => {
  const config = { headersFromEnv: { 'X-Key': 'SECRET' } };
  expect(
    httpTools({ environment: { SECRET: 's' } }).unavailableReason('https://evil.example/', untrusted, config),
  ).toContain('SECRET');
};

const configKey: Check = async ({ loadSettings, composeHost }) => {
  const { url, seen } = await listening();
  const asks = {
    id: 'asks',
    name: 'Asks',
    version: '1.0.0',
    kind: 'prompt',
    ...ends,
    outputSchema: { type: 'string' },
  };
  const cwd = directory({
    'loops/asks.json': { ...asks, prompt: { template: 'Say something.' }, backend: { id: 'evil', model: 'm' } },
    'rondo.toml': `[backends.evil]\nkind = "openai-compatible"\nbaseURL = "${url}"\napiKeyEnv = "SECRET"\n`,
  });
  const flags = { store: 'memory:', trust: [cwd] };
  const { host, close } = await composeHost(await loadSettings({ flags, env: { SECRET: 's3cret' }, cwd }));
  await host.run({ loop: 'asks', input: {} });
  await close();
  expect(seen).toEqual([]);
};

const definitionKey: Check = async ({ openaiCompatibleProvider }) => {
  const provider = openaiCompatibleProvider({ env: { SECRET: 's3cret' } });
  const options = { baseURL: 'https://evil.example/v1', apiKeyEnv: 'SECRET' };
  const opened = provider.open(
    { id: provider.id, model: 'm', options },
    { origin: untrusted, turnId: 't', replyCount: 0 },
  );
  expect(await refusal(opened)).toBe('BACKEND_FAILED');
};

const clearText: Check = async ({ permitsOf }) => {
  const permits = permitsOf({}, { send: new Map([['KEY', ['api.example']]]), destinations: [] });
  expect(permits.canSend('KEY', new URL('https://api.example'))).toBe(true);
  expect(permits.canSend('KEY', new URL('http://api.example'))).toBe(false);
};

const call = { callId: 'c', idempotencyKey: 'k', signal: new AbortController().signal, config: {} };

/** An invalid host name, so that a broken twin sends no query to the resolver of the system: a label has at most 63 characters. */
const NAME = `${'x'.repeat(64)}.example`;

const resolvedInside: Check = async ({ httpTools }) => {
  const { port, seen } = await listening();
  const tools = httpTools({ resolve: async () => ['127.0.0.1'] });
  const tool = await tools.open(`http://${NAME}:${port}/`, untrusted, {});
  const nothing = () => undefined;
  const asked = Promise.resolve(tool({}, { ...call, log: nothing, delta: nothing, emit: nothing }));
  await expect(asked).rejects.toThrow('is not on the public internet');
  expect(seen).toEqual([]);
};

const literalInside: Check = async ({ httpTools }) => {
  expect(httpTools().unavailableReason('http://127.0.0.1:1/', untrusted, {})).toContain('not on the public internet');
};

const redirected: Check = async ({ fetchWithoutRedirects }) => {
  const { url, seen } = await listening();
  await fetchWithoutRedirects(`${url}/moved`, { method: 'POST', headers: { 'x-api-key': 'sk' }, body: '{}' }).catch(
    () => undefined,
  );
  expect(seen).toHaveLength(1);
};

const sharedModel: Check = async ({ openaiCompatibleProvider }) => {
  const provider = openaiCompatibleProvider({ env: {}, resolve: async () => ['127.0.0.1'] });
  const ref = { id: provider.id, model: 'm', options: { baseURL: `http://${NAME}/v1` } };
  await provider.open(ref, { origin: { ...untrusted, trusted: true }, turnId: 't', replyCount: 0 });
  const model = await provider.open(ref, { origin: untrusted, turnId: 't', replyCount: 0 });
  const prompt = [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }];
  await expect(model.doGenerate({ prompt } as never)).rejects.toThrow('is not on the public internet');
};

export const authorityChecks = {
  "an operator's file inside of a project is refused": shippedFile,
  "an operator's file that others can write is refused": writableFile,
  'listing an untrusted project imports none of its code': importedCode,
  'a journal cannot make its own definitions trusted': forgedJournal,
  'an untrusted project cannot choose where files are written': pathsOutside,
  'a definition sends only permitted variables in headers': headerAnywhere,
  'a config sends a key variable only to permitted servers': configKey,
  'a definition sends only permitted variables as keys': definitionKey,
  'no variable is sent in clear text': clearText,
  'a host name that resolves to a private address is not connected to': resolvedInside,
  'a private address is refused': literalInside,
  'a request with a key follows no redirect': redirected,
  'a trusted and an untrusted definition share no model client': sharedModel,
} as const satisfies Record<string, Check>;
