import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { codeOf } from '../../spec/support/code-of.js';
import { errorOf } from '../../spec/support/turn-results.js';
import { verifies } from '../../spec/verifies.js';
import { trustPredicateOf } from './authority.js';
import { loadProviders, providerIdsOf } from './compose/adapters.js';
import { composeHost, loadLoops, loadSettings } from './compose.js';
import { type Environment, type Flags, UsageError } from './settings.js';

function temporaryDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'rondo-compose-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

const echoTool = {
  id: 'echo',
  name: 'Echo',
  version: '1.0.0',
  kind: 'tool',
  inputSchema: true,
  outputSchema: true,
  tool: { implementation: 'builtin:echo', safety: 'pure' },
};

const promptLoop = {
  id: 'asks',
  name: 'Asks',
  version: '1.0.0',
  kind: 'prompt',
  inputSchema: true,
  outputSchema: { type: 'string' },
  prompt: { template: 'Say something.' },
};

/** Creates a project with these files and returns its settings. */
function settingsOf(files: Readonly<Record<string, object | string>>, flags: Flags = {}, env: Environment = {}) {
  const cwd = temporaryDirectory();
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(join(cwd, name, '..'), { recursive: true });
    writeFileSync(join(cwd, name), typeof content === 'string' ? content : JSON.stringify(content, null, 2));
  }
  return loadSettings({ flags: { store: 'memory:', ...flags }, env, cwd });
}

verifies(
  'tool.trust',
  'trust covers a directory and those inside it, but not its siblings or link targets outside',
  () => {
    const root = temporaryDirectory();
    for (const name of ['safe/inner', 'safer', 'outside']) mkdirSync(join(root, name), { recursive: true });
    symlinkSync(join(root, 'outside'), join(root, 'safe', 'way-out'));
    symlinkSync(join(root, 'safe'), join(root, 'way-in'));
    const directories = ['safe', 'missing'].map((name) => ({ directory: join(root, name), source: 'file' as const }));
    const trusts = trustPredicateOf({ directories });
    expect(trusts(join(root, 'safe'))).toBe(true);
    expect(trusts(join(root, 'safe', 'inner'))).toBe(true);
    expect(trusts(join(root, 'way-in', 'inner'))).toBe(true);
    expect(trusts(join(root, 'safer'))).toBe(false);
    expect(trusts(join(root, 'safe', 'way-out'))).toBe(false);
    expect(trusts(join(root, 'missing'))).toBe(false);
    expect(trusts(root)).toBe(false);
    expect(trusts(undefined)).toBe(false);
  },
);

verifies('definition.place', 'errors of the registry have the line of the definition file', async () => {
  const settings = await settingsOf({
    'loops/a.json': echoTool,
    'loops/b.json': { ...echoTool, name: 'Another' },
    'loops/c.json': { ...echoTool, id: 'c', inputSchema: { type: 'objekt' } },
    'loops/d.json': { ...echoTool, id: 'd', tool: { implementation: 'exec:run.sh' } },
    'loops/e.json': { ...echoTool, id: 'e', tool: { implementation: 'warp:speed' } },
  });
  const { registry, badFiles } = await loadLoops(settings);
  expect(registry.list().map(({ definition }) => definition.id)).toEqual(['echo']);
  const [b, c, d, e] = badFiles;
  expect(b).toMatchObject({ path: '/version', line: 4, reason: 'registered with other content' });
  expect(c).toMatchObject({ path: expect.stringMatching(/^\/inputSchema/), line: expect.any(Number) });
  expect(d).toMatchObject({ path: '/tool/implementation', reason: expect.stringContaining('--trust') });
  expect(e).toMatchObject({ reason: expect.stringContaining('exec:') });
});

verifies('definition.load', 'a given file is loaded once, together with its directory', async () => {
  const settings = await settingsOf({
    'other/a.json': echoTool,
    'other/b.json': { ...echoTool, id: 'b' },
    'other/c.json': '{',
  });
  const file = join(settings.cwd, 'other', 'a.json');
  const { loops, badFiles } = await loadLoops(settings, [file]);
  expect(loops.map(({ registered }) => registered.definition.id)).toEqual(['echo', 'b']);
  expect(badFiles).toHaveLength(1);
  const missing = await loadLoops(await settingsOf({}, { loops: 'nowhere' }));
  expect(missing.badFiles).toHaveLength(1);
  expect((await loadLoops(await settingsOf({}))).badFiles).toEqual([]);
});

verifies('definition.failed', 'a run of a loop that failed to load reports the problems of its file', async () => {
  const step = { loopId: 'broken', inputMapping: '$.input' };
  const { tool: _, ...untyped } = echoTool;
  const settings = await settingsOf({
    'loops/broken.json': { ...echoTool, id: 'broken', version: 'one', kind: 'tol' },
    'loops/syntax.json': '{\n  "id": ',
    'loops/greeter.mjs': `import { defineLoop } from 'rondo';\nexport const greeter = defineLoop({ id: 'greeter' });`,
    'loops/caller.json': { ...untyped, id: 'caller', kind: 'composite', composite: { steps: [step] } },
    'loops/agent.json': {
      ...{ ...untyped, id: 'agent', kind: 'composite' },
      composite: { agent: { backend: { id: 'mock' }, tools: ['broken'] } },
    },
  });
  const { host, close } = await composeHost(settings);
  const failureOf = async (loop: string) => errorOf(await host.run({ loop, input: {} }));
  const file = join(settings.cwd, 'loops', 'broken.json');
  const flaw = { file, path: '/version', line: expect.any(Number), column: expect.any(Number) };
  const details = { loopId: 'broken', flaws: expect.arrayContaining([{ ...flaw, reason: expect.any(String) }]) };
  const message = expect.stringContaining(`"broken" could not be loaded: ${file}:`);
  expect(await failureOf('broken')).toMatchObject({ code: 'DEFINITION_INVALID', message, details });
  expect(await failureOf('syntax')).toMatchObject({ code: 'DEFINITION_INVALID', details: { flaws: [{ line: 2 }] } });
  const child = { code: 'DEFINITION_INVALID', message: expect.stringContaining(`could not be loaded: ${file}:`) };
  expect(await failureOf('caller')).toMatchObject({ ...child, details: { ...details, stepIndex: 0 } });
  expect(await failureOf('agent')).toMatchObject({ ...child, details });
  expect((await failureOf('greeter'))?.message).toContain('not trusted');
  const missing = await failureOf('unknown');
  expect(missing).toMatchObject({ code: 'LOOP_NOT_FOUND', message: expect.stringContaining('greeter.mjs') });
  await close();
});

verifies('model.required', 'the config may name the model of prompts that name none', async () => {
  const files = { 'loops/asks.json': promptLoop };
  const without = await loadLoops(await settingsOf(files));
  const reason = expect.stringMatching(/is required: a prompt needs a model\..*rondo\.toml.*anthropic.*"mock"/);
  expect(without.badFiles).toMatchObject([{ path: '/backend', line: 1, loopId: 'asks', reason }]);
  const settings = await settingsOf({ ...files, 'rondo.toml': 'model = "mock:mock-7"' });
  const { host, registry, close } = await composeHost(settings);
  expect(registry.find('asks')?.definition.backend).toEqual({ id: 'mock', model: 'mock-7' });
  expect(await host.run({ loop: 'asks', input: {} })).toMatchObject({ status: 'ok' });
  await close();
  const misspelt = await settingsOf({ ...files, 'rondo.toml': 'model = "antropic:x"' });
  await expect(loadLoops(misspelt)).rejects.toThrow('"antropic" is not configured; did you mean "anthropic"?');
});

verifies('policy.backend', 'the providers that are loaded are those that definitions may name', async () => {
  const backend = { kind: 'openai-compatible', baseURL: 'http://127.0.0.1:9/v1' } as const;
  const settings = await settingsOf({});
  const config = { ...settings.config, backends: new Map([['lab', backend]]) };
  expect([...(await loadProviders({ ...settings, config })).keys()]).toEqual(providerIdsOf(config));
});

verifies('turn.status', 'a composed host runs the loops of the project', async () => {
  const settings = await settingsOf({ 'loops/echo.json': echoTool }, {}, { RONDO_NOW: '2030-01-01T00:00:00Z' });
  const { host, isDurable, close } = await composeHost(settings);
  const result = await host.run({ loop: 'echo', input: { a: 1 } });
  expect(result).toMatchObject({ status: 'ok', output: { a: 1 } });
  expect(result.startedAt).toMatch(/^2030-01-01T00:0/);
  expect(isDurable).toBe(false);
  await close();
});

const TOML = `
[backends.ours]
kind = "openai-compatible"
baseURL = "http://127.0.0.1:9/v1"
apiKeyEnv = "OUR_KEY"
model = "small"
`;

verifies('model.secret', "a definition cannot redirect the key of the config's backend", async () => {
  const redirected = { ...promptLoop, backend: { id: 'ours', options: { baseURL: 'http://evil.example' } } };
  const settings = await settingsOf({ 'loops/asks.json': redirected, 'rondo.toml': TOML }, {}, { OUR_KEY: 'secret' });
  const { host, close } = await composeHost(settings);
  const result = await host.run({ loop: 'asks', input: {} });
  expect(result).toMatchObject({ status: 'error', error: { code: 'BACKEND_FAILED' } });
  expect(errorOf(result)?.message).toContain('takes no options');
  await close();
});

verifies('authority.send', "a project's config cannot send a variable without the operator's permission", async () => {
  const ours = { ...promptLoop, backend: { id: 'ours' } };
  const errorMessageOf = async (flags: Flags, env: Environment = {}, toml = TOML): Promise<string> => {
    const files = { 'loops/asks.json': ours, 'rondo.toml': toml };
    const { host, close } = await composeHost(await settingsOf(files, flags, { OUR_KEY: 'secret', ...env }));
    const error = errorOf(await host.run({ loop: 'asks', input: {} }));
    await close();
    expect(error?.code).toBe('BACKEND_FAILED');
    return error?.message ?? '';
  };
  const advice = 'rondo trust --send OUR_KEY=127.0.0.1:9';
  expect(await errorMessageOf({})).toContain(advice);
  // Trust in the directory does not permit its config to send variables.
  expect(await errorMessageOf({ trust: ['.'] })).toContain(advice);
  expect(await errorMessageOf({ send: ['OUR_KEY=127.0.0.1:8'] })).toContain(advice);
  expect(await errorMessageOf({ send: ['OTHER=127.0.0.1:9'] })).toContain(advice);
  for (const flags of [{ send: ['OUR_KEY=127.0.0.1:9'] }, { send: ['A=b', 'OUR_KEY=127.0.0.1:9'], trust: ['.'] }])
    expect(await errorMessageOf(flags)).not.toContain('rondo trust');
  expect(await errorMessageOf({}, { RONDO_SEND: 'A=b.example, OUR_KEY=127.0.0.1:9' })).not.toContain('rondo trust');
  const keyless = TOML.replace('apiKeyEnv = "OUR_KEY"', '');
  expect(await errorMessageOf({}, {}, keyless)).toContain('rondo trust --reach 127.0.0.1:9');
  for (const flags of [{ reach: ['127.0.0.1:9'] }, { trust: ['.'] }])
    expect(await errorMessageOf(flags, {}, keyless)).not.toContain('rondo trust');
});

verifies('config.keys', 'a config cannot replace a built-in backend and must not have unknown keys', async () => {
  const settings = await settingsOf({ 'rondo.toml': TOML.replace('ours', 'openai') });
  await expect(composeHost(settings)).rejects.toThrow(UsageError);
  expect(await codeOf(settingsOf({ 'rondo.toml': 'daat = "x"' }))).toBe('CONFIG_INVALID');
});

verifies('tool.trust', 'trust in a missing directory is an error', async () => {
  await expect(settingsOf({}, { trust: ['nowhere'] })).rejects.toThrow(/--trust nowhere: there is no such directory/);
});
