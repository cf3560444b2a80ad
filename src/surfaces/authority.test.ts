import { expect } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import { assertOutsideProject, authorityOf, trustFilePath } from './authority.js';
import type { SettingsInput } from './settings.js';

verifies('authority.trust', 'trust.toml is read only from an absolute directory of the user', () => {
  expect(trustFilePath({ XDG_CONFIG_HOME: '/x', HOME: '/home/ada' })).toBe('/x/rondo/trust.toml');
  expect(trustFilePath({ XDG_CONFIG_HOME: 'relative', HOME: '/home/ada' })).toBe('/home/ada/.config/rondo/trust.toml');
  for (const env of [{}, { HOME: '' }, { HOME: 'relative' }]) expect(trustFilePath(env)).toBeUndefined();
});

verifies('authority.trust', 'a trust.toml inside the project is refused, except in the recorded home directory', () => {
  const inputOf = (cwd: string): SettingsInput => ({ flags: {}, env: {}, cwd });
  const file = '/home/ada/.config/rondo/trust.toml';
  for (const cwd of ['/home/ada', '/home', '/', '/home/ada/shop'])
    expect(() => assertOutsideProject(file, inputOf(cwd), '/home/ada')).not.toThrow();
  // HOME points to the project, but the user's recorded home directory is another one.
  expect(() => assertOutsideProject(file, inputOf('/home/ada'), '/root')).toThrow('lies inside /home/ada');
  expect(() => assertOutsideProject(file, inputOf('/home/ada'), undefined)).toThrow('lies inside');
  expect(() => assertOutsideProject('/home/ada/x/rondo/trust.toml', inputOf('/home/ada'), '/home/ada')).toThrow(
    'lies inside',
  );
  const explicitConfig = { ...inputOf('/elsewhere'), flags: { config: '/home/ada/.config/rondo.toml' } };
  expect(() => assertOutsideProject(file, explicitConfig, '/home/ada')).toThrow('lies inside /home/ada/.config');
});

verifies('authority.send', 'the permissions of flags, environment and file are joined', () => {
  const env = { RONDO_SEND: 'A=two.example B=b.example', RONDO_REACH: '10.0.0.5, 10.0.0.6' };
  const flags = { send: ['A=one.example'], reach: ['127.0.0.1:1'] };
  const remembered = { directories: ['/gone'], send: new Map([['A', ['three.example']]]), destinations: ['[::1]:2'] };
  const authority = authorityOf({ flags, env, cwd: '/' }, remembered);
  expect(Object.fromEntries(authority.send)).toEqual({
    A: ['one.example', 'two.example', 'three.example'],
    B: ['b.example'],
  });
  expect(authority.destinations).toEqual(['127.0.0.1:1', '10.0.0.5', '10.0.0.6', '[::1]:2']);
  expect(authority.directories).toEqual([{ directory: '/gone', source: 'file' }]);
  expect(() => authorityOf({ flags, env: { RONDO_SEND: 'nonsense' }, cwd: '/' }, remembered)).toThrow(
    'RONDO_SEND nonsense',
  );
});
