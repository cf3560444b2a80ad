import { expect } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import { assertOutsideProject, authorityOf, operatorFilePath } from './authority.js';
import type { SettingsInput } from './settings.js';

verifies('authority.trust', "the operator's file is looked for in an absolute directory of the user only", () => {
  expect(operatorFilePath({ XDG_CONFIG_HOME: '/x', HOME: '/home/ada' })).toBe('/x/rondo/trust.toml');
  expect(operatorFilePath({ XDG_CONFIG_HOME: 'relative', HOME: '/home/ada' })).toBe(
    '/home/ada/.config/rondo/trust.toml',
  );
  for (const env of [{}, { HOME: '' }, { HOME: 'relative' }]) expect(operatorFilePath(env)).toBeUndefined();
});

verifies(
  'authority.trust',
  "the operator's file is believed in the recorded home directory, and nowhere else inside of the project",
  () => {
    const asked = (cwd: string): SettingsInput => ({ flags: {}, env: {}, cwd });
    const file = '/home/ada/.config/rondo/trust.toml';
    for (const cwd of ['/home/ada', '/home', '/', '/home/ada/shop'])
      expect(() => assertOutsideProject(file, asked(cwd), '/home/ada')).not.toThrow();
    // HOME was set to the project, which is not where the user lives.
    expect(() => assertOutsideProject(file, asked('/home/ada'), '/root')).toThrow('lies inside of /home/ada');
    expect(() => assertOutsideProject(file, asked('/home/ada'), undefined)).toThrow('lies inside');
    expect(() => assertOutsideProject('/home/ada/x/rondo/trust.toml', asked('/home/ada'), '/home/ada')).toThrow(
      'lies inside',
    );
    const named = { ...asked('/elsewhere'), flags: { config: '/home/ada/.config/rondo.toml' } };
    expect(() => assertOutsideProject(file, named, '/home/ada')).toThrow('lies inside of /home/ada/.config');
  },
);

verifies('authority.send', 'what flags, environment and file allow is joined', () => {
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
