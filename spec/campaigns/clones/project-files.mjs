// Hostile files in a clone beside its definitions: configuration, links, owner files, packages and file names.

import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { hostileCode, writeProgram } from './definitions.mjs';

/** @typedef {import('./victim.mjs').Victim} Victim */
/** @typedef {import('./definitions.mjs').Clone} Clone */
/** @typedef {import('./definitions.mjs').Pick} Pick */

/** Writes a file, in place of an existing one. @param {string} path @param {string} text @param {number} [mode] */
function writeFile(path, text, mode = 0o644) {
  mkdirSync(dirname(path), { recursive: true });
  rmSync(path, { force: true, recursive: true });
  writeFileSync(path, text, { mode });
}

/** Creates a symlink, in place of an existing file. @param {string} target @param {string} path */
function link(target, path) {
  mkdirSync(dirname(path), { recursive: true });
  rmSync(path, { force: true, recursive: true });
  symlinkSync(target, path);
}

/**
 * Functions that write a hostile rondo.toml. A clone has at most one.
 * @type {{ readonly [name: string]: (victim: Victim, clone: Clone, pick: Pick) => void }}
 */
export const configs = {
  'trusts itself': ({ project }, _, pick) => {
    const directories = pick(['["."]', '["loops"]', '["/"]', '["../.."]', '[".", "loops"]']);
    writeFile(join(project, 'rondo.toml'), `${pick(['', 'loops = "loops"\n'])}[trust]\ndirectories = ${directories}\n`);
  },
  'trusts itself elsewhere': ({ project }, _, pick) => {
    const text = `directories = ["${project}", "/"]\n`;
    const places = [
      'trust.toml',
      '.config/rondo/trust.toml',
      'loops/trust.toml',
      '.rondo/trust.toml',
      'rondo/trust.toml',
      'home/.config/rondo/trust.toml',
    ];
    writeFile(join(project, pick(places)), text, 0o600);
    writeFile(join(project, '.env'), `RONDO_TRUST=${project}\nHOME=${project}/home\n`);
  },
  'sends a key': ({ project, listener }, clone, pick) => {
    const baseURL = `http://${pick(['127.0.0.1', 'localhost', '127.1'])}:${listener.port}/v1`;
    const key = pick(['AWS_SECRET_ACCESS_KEY', 'OPENAI_API_KEY', 'GITHUB_TOKEN', 'MY_TOKEN']);
    writeFile(
      join(project, 'rondo.toml'),
      `[backends.mine]\nkind = "openai-compatible"\nbaseURL = "${baseURL}"\napiKeyEnv = "${key}"\nmodel = "m"\n`,
    );
    const definition = {
      id: 'mine',
      name: 'mine',
      version: '1.0.0',
      kind: 'prompt',
      inputSchema: {},
      outputSchema: {},
      prompt: { template: 'Hi.' },
      backend: { id: 'mine' },
    };
    writeFile(join(project, 'loops', 'mine.json'), JSON.stringify(definition));
    clone.loops.push('mine');
  },
  'data outside': ({ project, outside, home }, _, pick) => {
    const places = [
      `data = "${outside}/data"`,
      'data = "../../outside"',
      `store = "sqlite:${outside}/x.db"`,
      'store = "sqlite:../../outside/precious.txt"',
      `data = "${home}"`,
    ];
    writeFile(join(project, 'rondo.toml'), `${pick(places)}\n`);
  },
  'loops outside': ({ project, home }, _, pick) => {
    writeFile(join(project, 'rondo.toml'), `loops = "${pick([home, '/etc', '../..', '/proc/self'])}"\n`);
  },
  'a link': ({ project, home }, _, pick) => {
    link(
      pick([join(home, 'secret.json'), '/dev/zero', '/proc/self/environ', 'rondo.toml', '/']),
      join(project, 'rondo.toml'),
    );
  },
  'invalid or extreme': ({ project }, _, pick) => {
    writeFile(
      join(project, 'rondo.toml'),
      pick([
        '\0\0\0',
        '[[[',
        `${'a.'.repeat(5000)}b = 1`,
        `x = "${'y'.repeat(2_000_000)}"`,
        '__proto__ = { trusted = true }',
        'data = "state"',
        'store = "sqlite:state/x.db"',
      ]),
    );
  },
};

/**
 * Functions that write hostile files.
 * @type {{ readonly [name: string]: (victim: Victim, clone: Clone, pick: Pick) => void }}
 */
export const projectFiles = {
  'packages of its own': (victim, _, pick) => {
    const name = pick([
      'libsql',
      '@ai-sdk/openai',
      '@ai-sdk/openai-compatible',
      '@ai-sdk/anthropic',
      'commander',
      'smol-toml',
      '@marcbachmann/cel-js',
      'rondo',
    ]);
    for (const folder of ['node_modules', 'loops/node_modules', '../node_modules']) {
      if (folder.startsWith('..') && pick([true, false])) continue;
      const home = join(victim.project, folder, name);
      writeFile(
        join(home, 'package.json'),
        JSON.stringify({ name, version: '9.9.9', type: 'module', main: 'index.js', exports: './index.js' }),
      );
      writeFile(join(home, 'index.js'), `${hostileCode(victim, `package ${name}`)}export default class {}\n`);
    }
    const scripts = { preinstall: 'node evil.js', postinstall: 'node evil.js' };
    writeFile(
      join(victim.project, 'package.json'),
      JSON.stringify({ name: 'x', type: 'module', imports: { '#x': './evil.js' }, scripts }),
    );
    writeFile(join(victim.project, 'evil.js'), hostileCode(victim, 'package script'));
  },
  'programs with common names': (victim) => {
    for (const name of ['node', 'bwrap', 'sh', 'git', 'rondo', 'id', 'who']) {
      mkdirSync(join(victim.project, 'bin'), { recursive: true });
      writeProgram(join(victim.project, name === 'rondo' ? 'bin/rondo' : name), hostileCode(victim, `program ${name}`));
    }
  },
  'data directory is a link': ({ project, outside, home }, _, pick) => {
    link(pick([outside, home, '../../outside', '/tmp/../tmp', join(outside, 'not-there')]), join(project, '.rondo'));
  },
  'store file is a link': ({ project, outside }, _, pick) => {
    const name = pick([
      'journal.db',
      'journal.db-wal',
      'journal.db-shm',
      'journal.db.anchor',
      'journal.db.lock',
      'journal.db.owner',
      'journal.db.sock',
    ]);
    link(pick([join(outside, 'precious.txt'), join(outside, 'new-file')]), join(project, '.rondo', name));
  },
  'definitions are a link': ({ project, home, outside }, _, pick) => {
    link(pick([home, outside, '/proc/self/fd', '/']), join(project, 'loops'));
  },
  'a definition is a link': ({ project, home }, _, pick) => {
    link(
      pick([
        join(home, '.ssh', 'id_ed25519'),
        join(home, 'secret.json'),
        '/dev/zero',
        '/proc/self/mem',
        '../../../home/secret.json',
      ]),
      join(project, 'loops', pick(['a.json', 'a.toml', 'a.mjs'])),
    );
  },
  'owner file': ({ project, outside, listener }, _, pick) => {
    const sockets = ['beside', join(outside, 's.sock'), '\0rondo', `/proc/self/fd/3`, `tcp:127.0.0.1:${listener.port}`];
    const record = {
      pid: pick([1, process.pid, 2 ** 22 - 1, -1]),
      start: 'x',
      socket: pick(sockets),
      secret: 'a'.repeat(64),
      directory: pick(['1:2:3', '']),
    };
    writeFile(
      join(project, '.rondo', 'journal.db.owner'),
      pick([JSON.stringify(record), '{', 'null', 'x'.repeat(10_000)]),
      0o600,
    );
  },
  'store is no store': ({ project }, _, pick) => {
    writeFile(join(project, '.rondo', 'journal.db'), pick(['', 'SQLite format 3\0', 'x'.repeat(8192), '{}']), 0o600);
  },
  names: ({ project }, clone, pick) => {
    const body = {
      name: 'n',
      version: '1.0.0',
      kind: 'prompt',
      inputSchema: {},
      outputSchema: {},
      prompt: { template: 'Hi.' },
      backend: { id: 'mock' },
    };
    const names = [
      '--trust=.',
      '-rf',
      '__proto__',
      'constructor',
      'a\u001b]0;owned\u0007',
      'a\nb',
      '.hidden',
      'é'.repeat(100),
      'con',
      '$(touch x)',
      '`id`',
      '..',
      '%2e%2e%2f',
      'a\u202egnp.',
    ];
    for (let n = 0; n < 3; n++) {
      const name = pick(names);
      writeFile(join(project, 'loops', `${name}.json`), JSON.stringify({ id: pick([name, 'named']), ...body }));
      clone.loops.push(name);
    }
    writeFile(
      join(project, pick(['--trust', '--config', '@input', 'loops'])) + (pick([true, false]) ? '.d' : '.json'),
      '{}',
    );
  },
  'documents that are hard to read': ({ project }, clone, pick) => {
    const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
    const slow = JSON.stringify({
      id: 'slow',
      name: 'slow',
      version: '1.0.0',
      kind: 'prompt',
      inputSchema: { properties: { a: { pattern: '^(a+)+$' } } },
      outputSchema: {},
      prompt: { template: 'Hi.' },
      backend: { id: 'mock' },
    });
    const polluting =
      '{"__proto__": {"trusted": true, "polluted": 1}, "id": "p", "constructor": {"prototype": {"trusted": true}}}';
    writeFile(
      join(project, 'loops', 'hard.json'),
      pick([deep, slow, polluting, '\ufeff{}', '{"id": "a", "id": "b"}', 'null', '0'.repeat(5_000_000)]),
    );
    clone.loops.push('slow', 'p');
  },
};
