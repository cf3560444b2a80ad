import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect } from 'vitest';
import { verifies } from '../../../spec/verifies.js';
import type { LoopError } from '../../journal/errors.js';
import { type Config, loadConfig } from './config.js';

const made: string[] = [];

afterEach(async () => {
  for (const directory of made.splice(0)) await rm(directory, { recursive: true });
});

async function directoryWith(text: string): Promise<string> {
  const directory = await realpath(await mkdtemp(join(tmpdir(), 'rondo-config-')));
  made.push(directory);
  await writeFile(join(directory, 'rondo.toml'), text);
  return directory;
}

async function load(text: string): Promise<Config> {
  return loadConfig(undefined, await directoryWith(text));
}

const full = `
data = "state"
loops = "/opt/loops"
store = "sqlite:db/journal.db"
engine = "local"

[trust]
directories = ["loops", "/opt/loops"]

[prices."openai/gpt-4o-mini"]
inputPerMillion = 150000
outputPerMillion = 600_000.5

[backends.local-llm]
kind = "openai-compatible"
baseURL = "http://127.0.0.1:8080/v1"
apiKeyEnv = "LOCAL_KEY"
model = "small"
`;

verifies('config.keys', 'a setting is lost on the way', async () => {
  const directory = await directoryWith(full);
  expect(await loadConfig(join(directory, 'rondo.toml'))).toEqual({
    file: join(directory, 'rondo.toml'),
    data: join(directory, 'state'),
    loops: '/opt/loops',
    store: `sqlite:${join(directory, 'db/journal.db')}`,
    engine: 'local',
    trusted: [join(directory, 'loops'), '/opt/loops'],
    prices: new Map([['openai/gpt-4o-mini', { inputPerMillion: 150000, outputPerMillion: 600000.5 }]]),
    backends: new Map([
      [
        'local-llm',
        { kind: 'openai-compatible', baseURL: 'http://127.0.0.1:8080/v1', apiKeyEnv: 'LOCAL_KEY', model: 'small' },
      ],
    ]),
  });
  expect(await load('\ufeff# nothing')).toMatchObject({ trusted: [], prices: new Map(), backends: new Map() });
  for (const store of ['memory:', 'sqlite:', 'postgres://db/x', 'sqlite:/abs.db']) {
    expect((await load(`store = "${store}"`)).store).toBe(store);
  }
});

verifies('config.keys', 'no settings are taken for broken ones, or missing ones for none', async () => {
  const directory = await directoryWith('');
  await rm(join(directory, 'rondo.toml'));
  expect(await loadConfig(undefined, directory)).toMatchObject({ file: undefined, trusted: [] });
  await expect(loadConfig('rondo.toml', directory)).rejects.toMatchObject({
    code: 'CONFIG_INVALID',
    data: { file: join(directory, 'rondo.toml'), reason: 'it does not exist' },
  });
});

verifies('config.keys', 'a misspelt setting silently becomes its default', async () => {
  const wrong: [text: string, path: string | undefined, line: number, says: string][] = [
    ['data = "a"\nlops = "b"', '/lops', 2, 'is not a known key; known here: data, loops'],
    ['Data = "a"', '/Data', 1, 'did you mean "data"?'],
    ['data = ""', '/data', 1, 'must be text that is not empty'],
    ['\nengine = 1', '/engine', 2, 'must be text'],
    ['trust = true', '/trust', 1, 'must be a table'],
    ['[trust]\ndirs = []', '/trust/dirs', 2, 'did you mean "directories"?'],
    ['[trust]\ndirectories = ["a", 1]', '/trust/directories', 2, 'must be a list of directories'],
    ['[prices.x]\ninputPerMillion = 1', '/prices/x', 1, 'must be named "backend/model"'],
    ['[prices."a/b"]\ninput_per_million = 1', '/prices/a~1b/input_per_million', 2, 'did you mean "inputPerMillion"?'],
    ['[prices."a/b"]\ninputPerMillion = 1', '/prices/a~1b/outputPerMillion', 1, 'is required'],
    ['[prices."a/b"]\ninputPerMillion = -1', '/prices/a~1b/inputPerMillion', 2, 'must be a number from 0 up'],
    ['[prices."a/b"]\ninputPerMillion = nan', '/prices/a~1b/inputPerMillion', 2, 'must be a number from 0 up'],
    ['[backends.a]\nbaseURL = "https://x"', '/backends/a/kind', 1, 'is required'],
    ['[backends.a]\nkind = "openai"', '/backends/a/kind', 2, 'must be "openai-compatible"'],
    ['[backends.a]\nkind = "openai-compatible"', '/backends/a/baseURL', 1, 'is required'],
    ['[backends.a]\nkind = "openai-compatible"\nbaseURL = "ftp://x"', '/backends/a/baseURL', 3, 'must be a URL'],
    ['[backends.a]\napi_key = "k"', '/backends/a/api_key', 2, 'did you mean "apiKeyEnv"?'],
    ['data = "a"\ndata = "b"', undefined, 2, 'redefine'],
    ['data = ', undefined, 1, 'value'],
    ['"__proto__" = 1', '/__proto__', 1, 'is not a known key'],
    ['constructor = 1', '/constructor', 1, 'is not a known key'],
  ];
  for (const [text, path, line, says] of wrong) {
    const error = await load(text).catch((thrown: LoopError) => thrown);
    expect(error, text).toMatchObject({
      code: 'CONFIG_INVALID',
      data: { line, reason: expect.stringContaining(says) },
    });
    expect((error as LoopError).data, text).toMatchObject(path === undefined ? {} : { path });
    expect((error as LoopError).message, text).toContain(`rondo.toml:${line}: `);
  }
});

verifies('config.keys', 'a secret that was put into the settings is printed', async () => {
  const head = '[backends.a]\nkind = "openai-compatible"\n';
  for (const line of [
    'apiKeyEnv = "sk-hush-hush"',
    'apiKey = "sk-hush-hush"',
    'baseURL = "https://me:sk-hush-hush@x"',
    'model = "sk-hush-hush',
  ]) {
    const error = await load(`${head}${line}`).catch((thrown: LoopError) => thrown);
    expect(error, line).toMatchObject({ code: 'CONFIG_INVALID' });
    expect(`${(error as LoopError).message}${JSON.stringify((error as LoopError).data)}`, line).not.toContain('hush');
  }
});
