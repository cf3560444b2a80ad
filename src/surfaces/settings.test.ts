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

const none: SettingsConfig = {};
const cwd = '/home/ada';

function settled(asked: Partial<SettingsInput> = {}, config = none) {
  return resolveSettings({ flags: {}, env: {}, cwd, ...asked }, config);
}

verifies('cli.contract', 'the defaults are not those of the surface', () => {
  expect(settled()).toMatchObject({
    dataDirectory: join(cwd, '.rondo'),
    loopsDirectory: join(cwd, 'loops'),
    hasExplicitLoops: false,
    store: { kind: 'sqlite', path: join(cwd, '.rondo', 'journal.db') },
    authority: { directories: [], destinations: [] },
    seed: undefined,
    clockStartAt: undefined,
  });
});

verifies('cli.contract', 'the config goes before a variable, or a variable before a flag', () => {
  const config = { ...none, data: '/config/data', loops: '/config/loops', store: 'memory:' };
  const env = { RONDO_DATA: 'env', RONDO_LOOPS: '', RONDO_STORE: 'sqlite:' };
  expect(settled({}, config)).toMatchObject({
    dataDirectory: '/config/data',
    hasExplicitLoops: true,
    store: { kind: 'memory' },
  });
  const second = settled({ env }, config);
  expect(second).toMatchObject({ dataDirectory: join(cwd, 'env'), loopsDirectory: '/config/loops' });
  expect(second.store).toEqual({ kind: 'sqlite', path: join(cwd, 'env', 'journal.db') });
  const flags = { data: '/flag', store: 'sqlite:db/file' };
  const third = settled({ flags, env }, config);
  expect(third).toMatchObject({ dataDirectory: '/flag', store: { kind: 'sqlite', path: join(cwd, 'db/file') } });
  expect(explicitConfigFile({ flags: { config: 'a' }, env: { RONDO_CONFIG: 'b' }, cwd })).toBe('a');
  expect(explicitConfigFile({ flags: {}, env: { RONDO_CONFIG: 'b' }, cwd })).toBe('b');
});

verifies('cli.input', 'a setting that is not in this version does something else instead', () => {
  for (const flags of [
    { store: 'postgres://user:word@host/db' },
    { store: 'postgresql://host' },
    { store: 'mysql:x' },
    { store: '' },
    { engine: 'restate' },
    { engine: 'warp' },
  ]) {
    expect(() => settled({ flags })).toThrow(UsageError);
    expect(() => settled({ flags })).not.toThrow(/word/);
  }
  expect(() => settled({}, { ...none, engine: 'restate' })).toThrow(UsageError);
});

verifies('cli.contract', 'the clock of a test starts at another time', () => {
  expect(settled({ env: { RONDO_NOW: '2030-01-01T00:00:00Z' } }).clockStartAt).toBe(Date.UTC(2030, 0, 1));
  expect(settled({ env: { RONDO_NOW: '1234567890123' } }).clockStartAt).toBe(1_234_567_890_123);
  expect(() => settled({ env: { RONDO_NOW: 'tomorrow' } })).toThrow(UsageError);
});
