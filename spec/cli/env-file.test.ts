// Keys from .env: only in a trusted directory, and nothing that a stranger's project could use against its operator.

import { mkdirSync } from 'node:fs';
import { expect } from 'vitest';
import { loadSettings } from '../../src/surfaces/compose.js';
import { verifies } from '../verifies.js';
import { Clone } from './clone.js';

/** Variables that decide about authority, locations, addresses, or how programs run. */
const HOSTILE = [
  'RONDO_TRUST=.',
  'RONDO_SEND=SHOP_KEY=evil.example',
  'RONDO_REACH=127.0.0.1',
  'RONDO_DATA=/tmp/elsewhere',
  'RONDO_STORE=memory:',
  'RONDO_LOOPS=other',
  'RONDO_CONFIG=other.toml',
  'RONDO_API_KEY=x',
  'NODE_OPTIONS=--import ./evil.mjs',
  'NODE_AUTH_TOKEN=x',
  'NPM_TOKEN=x',
  'OPENAI_BASE_URL=https://evil.example',
  'ANTHROPIC_BASE_URL=https://evil.example',
  'HTTPS_PROXY=http://evil.example',
  'PATH=/evil',
  'HOME=/evil',
  'XDG_CONFIG_HOME=.',
  'LD_PRELOAD=./evil.so',
  'SSL_CERT_FILE=./evil.pem',
  'BASH_ENV=./evil.sh',
  '__proto__=x',
  'constructor=x',
  'lower_key=x',
];

/** Loads the settings in a clone with this .env and these variables. */
async function settingsOf(clone: Clone, env: Readonly<Record<string, string>>, text: string, trust: readonly string[]) {
  clone.write('.env', text);
  return loadSettings({ flags: { trust }, env, cwd: clone.directory });
}

verifies('authority.env-file', 'nothing is read from the .env of a directory that is not trusted', async () => {
  const clone = new Clone();
  const { env, envFile } = await settingsOf(
    clone,
    { HOME: clone.home },
    `OPENAI_API_KEY=stolen\n${HOSTILE.join('\n')}`,
    [],
  );
  expect(env).toEqual({ HOME: clone.home });
  expect(envFile).toMatchObject({ isTrusted: false, names: ['OPENAI_API_KEY'] });
});

verifies('authority.env-file', 'a trusted .env sets keys, and no other variable', async () => {
  const clone = new Clone();
  const text = ['SHOP_KEY="a b" # comment', 'export APP_TOKEN=t', 'MY_SECRET=s', ...HOSTILE].join('\n');
  const given = { HOME: clone.home };
  const { env, envFile, dataDirectory, store, authority, loopsDirectory } = await settingsOf(clone, given, text, ['.']);
  expect(env).toEqual({ HOME: clone.home, SHOP_KEY: 'a b', APP_TOKEN: 't', MY_SECRET: 's' });
  expect(Object.getPrototypeOf(env)).toBe(Object.prototype);
  expect(envFile?.ignored).toEqual(expect.arrayContaining(['RONDO_TRUST', 'NODE_OPTIONS', 'OPENAI_BASE_URL', 'PATH']));
  expect([dataDirectory, loopsDirectory]).toEqual([clone.path('.rondo'), clone.path('loops')]);
  expect(store).toMatchObject({ kind: 'sqlite' });
  expect(authority.directories.map(({ source }) => source)).toEqual(['--trust']);
  expect([authority.send.size, authority.destinations]).toEqual([0, []]);
});

verifies('authority.env-file', 'a variable that is set, even to nothing, is never replaced', async () => {
  const clone = new Clone();
  const given = { HOME: clone.home, SHOP_KEY: 'mine', OTHER_KEY: '' };
  const { env } = await settingsOf(clone, given, 'SHOP_KEY=theirs\nOTHER_KEY=theirs\nNEW_KEY=n', ['.']);
  expect(env).toMatchObject({ SHOP_KEY: 'mine', OTHER_KEY: '', NEW_KEY: 'n' });
});

verifies(
  'authority.env-file',
  'a .env that is a directory or too large is reported, and the verb continues',
  async () => {
    const clone = new Clone();
    const large = await settingsOf(clone, { HOME: clone.home }, `A_KEY=${'x'.repeat(300_000)}`, ['.']);
    expect(large.envFile?.problem).toContain('the limit is');
    const other = new Clone();
    mkdirSync(other.path('.env'));
    const { envFile } = await loadSettings({
      flags: { trust: ['.'] },
      env: { HOME: other.home },
      cwd: other.directory,
    });
    expect(envFile?.problem).toContain('it is a directory');
    expect((await other.run(['list'])).code).toBe(0);
  },
);
