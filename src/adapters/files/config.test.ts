import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect } from 'vitest';
import { verifies } from '../../../spec/verifies.js';
import type { LoopError } from '../../base/errors.js';
import { type ConfigPathKey, loadConfig, type ProjectConfig } from './config.js';

const directories: string[] = [];

afterEach(async () => {
  for (const directory of directories.splice(0)) await rm(directory, { recursive: true });
});

async function directoryWith(text: string): Promise<string> {
  const directory = await realpath(await mkdtemp(join(tmpdir(), 'rondo-config-')));
  directories.push(directory);
  await writeFile(join(directory, 'rondo.toml'), text);
  return directory;
}

async function load(text: string): Promise<ProjectConfig> {
  return loadConfig(undefined, await directoryWith(text));
}

const full = `
data = "state"
loops = "/opt/loops"
store = "sqlite:db/journal.db"
engine = "local"

[prices."openai/gpt-4o-mini"]
inputPerMillion = 150000
outputPerMillion = 600_000

[backends.local-llm]
kind = "openai-compatible"
baseURL = "http://127.0.0.1:8080/v1"
apiKeyEnv = "LOCAL_KEY"
model = "small"

[verbs]
edit = "files.edit"
`;

verifies('config.keys', 'every setting of the file is in the result', async () => {
  const directory = await directoryWith(full);
  expect(await loadConfig(join(directory, 'rondo.toml'))).toEqual({
    file: join(directory, 'rondo.toml'),
    data: join(directory, 'state'),
    loops: '/opt/loops',
    store: `sqlite:${join(directory, 'db/journal.db')}`,
    engine: 'local',
    prices: new Map([['openai/gpt-4o-mini', [{ inputPerMillion: 150000, outputPerMillion: 600000 }]]]),
    backends: new Map([
      [
        'local-llm',
        { kind: 'openai-compatible', baseURL: 'http://127.0.0.1:8080/v1', apiKeyEnv: 'LOCAL_KEY', model: 'small' },
      ],
    ]),
    verbs: new Map([['edit', 'files.edit']]),
  });
  expect(await load('\ufeff# nothing')).toMatchObject({ prices: new Map(), backends: new Map() });
  for (const store of ['memory:', 'sqlite:', 'postgres://db/x', 'sqlite:/abs.db']) {
    expect((await load(`store = "${store}"`)).store).toBe(store);
  }
});

verifies(
  'config.keys',
  'a missing default file means no settings, and a missing explicit file is an error',
  async () => {
    const directory = await directoryWith('');
    await rm(join(directory, 'rondo.toml'));
    expect(await loadConfig(undefined, directory)).toMatchObject({ file: undefined });
    await expect(loadConfig('rondo.toml', directory)).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
      data: { file: join(directory, 'rondo.toml'), reason: 'it does not exist' },
    });
  },
);

verifies('config.keys', 'an unknown or invalid setting is an error with its line', async () => {
  const invalid: [text: string, path: string | undefined, line: number, reason: string][] = [
    ['[verbs]\nedit = 1', '/verbs/edit', 2, 'must be the id of a loop'],
    ['[verbs]\n"edit it" = "a"', '/verbs/edit it', 2, 'must be a verb'],
    ['data = "a"\nlops = "b"', '/lops', 2, 'is not a known key; known here: data, loops'],
    ['Data = "a"', '/Data', 1, 'did you mean "data"?'],
    ['data = ""', '/data', 1, 'must be a non-empty string'],
    ['\nengine = 1', '/engine', 2, 'must be a non-empty string'],
    ['[prices.x]\ninputPerMillion = 1', '/prices/x', 1, 'must be named "backend/model"'],
    ['[prices."a/b"]\ninput_per_million = 1', '/prices/a~1b/input_per_million', 2, 'did you mean "inputPerMillion"?'],
    ['[prices."a/b"]\ninputPerMillion = 1', '/prices/a~1b/outputPerMillion', 1, 'is required'],
    ['[prices."a/b"]\ninputPerMillion = -1', '/prices/a~1b/inputPerMillion', 2, 'must be a whole number of at least 0'],
    [
      '[prices."a/b"]\ninputPerMillion = 0.5',
      '/prices/a~1b/inputPerMillion',
      2,
      'must be a whole number of at least 0',
    ],
    [
      '[prices."a/b"]\ninputPerMillion = 1\noutputPerMillion = 1\nfrom = "2026-02-30"',
      '/prices/a~1b/from',
      4,
      'is not a day that exists',
    ],
    ['[prices."a/b"]\nfrom = "soon"', '/prices/a~1b/from', 2, 'a day in quotes'],
    ['prices."a/b" = []', '/prices/a~1b', 1, 'must have at least one price'],
    [
      '[[prices."a/b"]]\ninputPerMillion = 1\noutputPerMillion = 1\n[[prices."a/b"]]\ninputPerMillion = 2\noutputPerMillion = 2',
      '/prices/a~1b/1',
      4,
      'another "from"',
    ],
    [
      '[prices."a/b"]\ninputPerMillion = nan',
      '/prices/a~1b/inputPerMillion',
      2,
      'must be a whole number of at least 0',
    ],
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
  for (const [text, path, line, reason] of invalid) {
    const error = await load(text).catch((thrown: LoopError) => thrown);
    expect(error, text).toMatchObject({
      code: 'CONFIG_INVALID',
      data: { line, reason: expect.stringContaining(reason) },
    });
    expect((error as LoopError).data, text).toMatchObject(path === undefined ? {} : { path });
    expect((error as LoopError).message, text).toContain(`rondo.toml:${line}: `);
  }
});

verifies('authority.trust', 'a project cannot declare itself trusted', async () => {
  for (const text of ['[trust]\ndirectories = ["."]', 'trust = true', 'trust.directories = ["/"]', '[trust]']) {
    const error = await load(text).catch((thrown: LoopError) => thrown);
    expect(error, text).toMatchObject({ code: 'CONFIG_INVALID', data: { path: '/trust' } });
    expect((error as LoopError).message, text).toContain('run: rondo trust DIR');
  }
});

verifies('authority.paths', 'the paths of an untrusted project stay inside its directory', async () => {
  const directory = await directoryWith('');
  const outside = await directoryWith('');
  await symlink(outside, join(directory, 'link'));
  await symlink(join(outside, 'not-there'), join(directory, 'nowhere'));
  await mkdir(join(directory, 'sub'));
  const keys = ['data', 'loops', 'store'] as const;
  const attempt = async (line: string, confined: readonly ConfigPathKey[] = keys): Promise<unknown> => {
    await writeFile(join(directory, 'rondo.toml'), line);
    return loadConfig(undefined, directory, { confinedPaths: () => confined }).then(
      () => 'accepted',
      ({ code, data }: LoopError) => [code, (data as { path: string }).path],
    );
  };
  for (const key of keys) {
    const line = (path: string) => `${key} = "${key === 'store' ? 'sqlite:' : ''}${path}"`;
    for (const path of [
      '..',
      '../x',
      '/tmp/x',
      outside,
      'link',
      'link/deeper/x',
      'nowhere',
      'nowhere/x',
      'sub/../../x',
    ])
      expect(await attempt(line(path)), line(path)).toEqual(['CONFIG_INVALID', `/${key}`]);
    for (const path of ['x', 'sub/x', './sub/../y', directory]) expect(await attempt(line(path))).toBe('accepted');
    expect(await attempt(line('..'), [])).toBe('accepted');
  }
  expect(await attempt('store = "memory:"')).toBe('accepted');
  expect(await attempt('store = "sqlite:"')).toBe('accepted');
});

verifies('config.keys', 'an error message never contains a secret from the file', async () => {
  const header = '[backends.a]\nkind = "openai-compatible"\n';
  for (const line of [
    'apiKeyEnv = "sk-hush-hush"',
    'apiKey = "sk-hush-hush"',
    'baseURL = "https://me:sk-hush-hush@x"',
    'model = "sk-hush-hush',
  ]) {
    const error = await load(`${header}${line}`).catch((thrown: LoopError) => thrown);
    expect(error, line).toMatchObject({ code: 'CONFIG_INVALID' });
    expect(`${(error as LoopError).message}${JSON.stringify((error as LoopError).data)}`, line).not.toContain('hush');
  }
});
