import { join } from 'node:path';
import { expect } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import {
  explicitConfigFile,
  resolveSettings,
  type SettingsConfig,
  type SettingsInput,
  UsageError,
} from './settings.js';

const emptyConfig: SettingsConfig = {};
const cwd = '/home/ada';

function settingsOf(input: Partial<SettingsInput> = {}, config = emptyConfig) {
  return resolveSettings({ flags: {}, env: {}, cwd, ...input }, config);
}

verifies('cli.settings', 'the build comes from the environment', () => {
  expect(resolveSettings({ flags: {}, env: { RONDO_BUILD: 'c0ffee' }, cwd: '/' }, {}).build).toBe('c0ffee');
  expect(resolveSettings({ flags: {}, env: {}, cwd: '/' }, {}).build).toBeUndefined();
});

verifies('cli.contract', 'the default settings are the documented ones', () => {
  expect(settingsOf()).toMatchObject({
    dataDirectory: join(cwd, '.rondo'),
    loopsDirectory: join(cwd, 'loops'),
    hasExplicitLoops: false,
    store: { kind: 'sqlite', path: join(cwd, '.rondo', 'journal.db') },
    authority: { directories: [], destinations: [] },
    seed: undefined,
    clockStartAt: undefined,
  });
});

verifies('cli.contract', 'a flag takes precedence over a variable, and a variable over the config', () => {
  const config = { ...emptyConfig, data: '/config/data', loops: '/config/loops', store: 'memory:' };
  const env = { RONDO_DATA: 'env', RONDO_LOOPS: '', RONDO_STORE: 'sqlite:' };
  expect(settingsOf({}, config)).toMatchObject({
    dataDirectory: '/config/data',
    hasExplicitLoops: true,
    store: { kind: 'memory' },
  });
  const second = settingsOf({ env }, config);
  expect(second).toMatchObject({ dataDirectory: join(cwd, 'env'), loopsDirectory: '/config/loops' });
  expect(second.store).toEqual({ kind: 'sqlite', path: join(cwd, 'env', 'journal.db') });
  const flags = { data: '/flag', store: 'sqlite:db/file' };
  const third = settingsOf({ flags, env }, config);
  expect(third).toMatchObject({ dataDirectory: '/flag', store: { kind: 'sqlite', path: join(cwd, 'db/file') } });
  expect(explicitConfigFile({ flags: { config: 'a' }, env: { RONDO_CONFIG: 'b' }, cwd })).toBe('a');
  expect(explicitConfigFile({ flags: {}, env: { RONDO_CONFIG: 'b' }, cwd })).toBe('b');
});

verifies('cli.input', 'an unsupported setting is an error that discloses no password', () => {
  for (const flags of [
    { store: 'postgres://user:word@host/db' },
    { store: 'postgresql://host' },
    { store: 'mysql:x' },
    { store: '' },
    { engine: 'restate' },
    { engine: 'warp' },
  ]) {
    expect(() => settingsOf({ flags })).toThrow(UsageError);
    expect(() => settingsOf({ flags })).not.toThrow(/word/);
  }
  expect(() => settingsOf({}, { ...emptyConfig, engine: 'restate' })).toThrow(UsageError);
});

verifies('cli.contract', 'RONDO_NOW sets the start of the clock', () => {
  expect(settingsOf({ env: { RONDO_NOW: '2030-01-01T00:00:00Z' } }).clockStartAt).toBe(Date.UTC(2030, 0, 1));
  expect(settingsOf({ env: { RONDO_NOW: '1234567890123' } }).clockStartAt).toBe(1_234_567_890_123);
  expect(() => settingsOf({ env: { RONDO_NOW: 'tomorrow' } })).toThrow(UsageError);
});
