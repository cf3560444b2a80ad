// Each tool for files is asked for a data directory or a store by every path that leads to it.

import { execFileSync } from 'node:child_process';
import { linkSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { expect } from '../../support/store-attack.mjs';
import { assertUntold, fingerprint, KEPT, layouts, MARK, secretOf } from './layouts.mjs';

/** Paths to a file of the store. Each may put something into the root first. */
const ways = {
  direct: (_, file) => file,
  relative: ({ root }, file) => relative(root, file),
  dots: ({ root }, file) => `${root}/sub/../${relative(root, file)}`,
  'outside-and-back': ({ root }, file) => `../${basename(root)}/./${relative(root, file)}`,
  slashes: ({ root }, file) => `${root}//${relative(root, file).replaceAll('/', '//')}`,
  'trailing-slash': (_, file) => `${file}/`,
  'trailing-dot': (_, file) => `${file}/.`,
  symlink: ({ root }, file) => put(symlinkSync, file, join(root, 'soft')),
  'symlink-relative': ({ root }, file) =>
    put(symlinkSync, relative(join(root, 'sub'), file), join(root, 'sub', 'soft')),
  'symlink-chain': ({ root }, file) => {
    symlinkSync(file, join(root, 'soft0'));
    for (let n = 1; n < 20; n++) symlinkSync(`soft${n - 1}`, join(root, `soft${n}`));
    return join(root, 'soft19');
  },
  'linked-directory': ({ root }, file) => {
    symlinkSync(dirname(file), join(root, 'softdir'));
    return join(root, 'softdir', basename(file));
  },
  'linked-above': ({ root }, file) => {
    symlinkSync(root, join(root, 'sub', 'up'));
    return join(root, 'sub', 'up', relative(root, file));
  },
  'symlink-by-proc': ({ root }, file) => put(symlinkSync, `/proc/self/root${file}`, join(root, 'soft')),
  'hard-link': ({ root }, file) => put(linkSync, file, join(root, 'hard')),
  'hard-link-renamed': ({ root }, file) => put(linkSync, file, join(root, 'sub', 'notes.txt')),
  'bind-file': ({ root, scene }, file) => bound(scene, file, join(root, 'bound'), false),
  'bind-directory': ({ root, scene }, file) =>
    join(bound(scene, dirname(file), join(root, 'bounddir'), true), basename(file)),
  'proc-root': (_, file) => `/proc/self/root${file}`,
  'proc-cwd': ({ host }, file) => `/proc/${host.pid}/root${file}`,
  'dev-fd': (_, file) => `/dev/fd/../../..${file}`,
  upper: ({ root }, file) => join(root, relative(root, file).toUpperCase()),
  decomposed: (_, file) => file.normalize('NFD'),
  percent: (_, file) => file.replaceAll('.', '%2e'),
  backslashes: ({ root }, file) => relative(root, file).replaceAll('/', '\\'),
  'file-url': (_, file) => `file://${file}`,
  'nul-inside': (_, file) => `harmless.txt\0${file}`,
};

function put(make, to, at) {
  make(to, at);
  return at;
}

function bound(scene, file, at, isDirectory) {
  if (isDirectory) mkdirSync(at);
  else writeFileSync(at, '');
  execFileSync('mount', ['--bind', file, at]);
  scene.atEnd(() => execFileSync('umount', ['-l', at]));
  return at;
}

/** Each tool with one path: nothing is told, nothing is changed. */
async function byPath(scene, layout, way, name, aim) {
  const scenery = await layouts[layout](scene);
  const secret = secretOf(scenery);
  const isLive = secret !== '' && aim !== 'kept';
  const target = isLive ? `${scenery.file}.owner` : join(scenery.directory, 'kept.txt');
  const file = way({ ...scenery, scene }, target);
  const before = fingerprint(scenery);
  const said = [];
  const { ok } = await scenery.host.tool('view_file', { path: 'harmless.txt' }, scenery);
  expect(ok?.text.includes('harmless'), 'tools that work', ok);
  const tries = [
    ['view_file', { path: file }],
    ['search_files', { path: file, query: isLive ? 'secret' : 'K', hidden: true }],
    ['search_files', { path: dirname(file), query: KEPT, hidden: true }],
    ['list_files', { path: file, hidden: true }],
    ['list_files', { path: dirname(file), hidden: true, depth: 3 }],
    ['edit_file', { path: file, old: isLive ? secret : KEPT, new: 'overwritten' }],
    ['write_file', { path: file, content: 'overwritten' }],
    ['write_file', { path: `${dirname(file)}/planted.txt`, content: 'planted' }],
    ['write_file', { path: `${dirname(file)}/new/planted.txt`, content: 'planted' }],
    ['run_command', { command: 'pwd; ls -la', directory: dirname(file) }],
  ];
  for (const [tool, input] of tries) said.push([tool, await scenery.host.tool(tool, input, scenery)]);
  expect(fingerprint(scenery) === before, `the data directory as before (${name})`, {
    before,
    after: fingerprint(scenery),
  });
  for (const [tool, answer] of said) {
    expect(!('gone' in answer), `${tool} to answer`, answer);
    assertUntold(JSON.stringify(answer.ok ?? {}), scenery, secret, []);
  }
}

/** Tools that look at everything. */
const sweeps = {
  list: ['list_files', { hidden: true, depth: 20, limit: 2000 }],
  search: ['search_files', { query: 'K', hidden: true, limit: 200 }],
  pattern: ['search_files', { query: 'Mk7|Kp9|journal|SQLite', pattern: true, hidden: true }],
};

async function sweep(scene, layout, [tool, input]) {
  const scenery = await layouts[layout](scene);
  const before = fingerprint(scenery);
  const answer = await scenery.host.tool(tool, { path: '.', ...input }, scenery);
  expect('ok' in answer, 'an answer', answer);
  const text = JSON.stringify(answer.ok);
  assertUntold(text, scenery, secretOf(scenery));
  const skips = JSON.stringify(answer.ok.skipped ?? '');
  expect(!text.replace(skips, '').includes('journal.db-'), 'no names of the store', text.slice(0, 400));
  expect(fingerprint(scenery) === before, 'the data directory as before', fingerprint(scenery));
}

/** Roots in, at and around a data directory. */
const rootings = {
  at: ({ directory }) => [directory],
  'below-at': ({ directory }) => [join(directory, 'inner')],
  linked: ({ root, directory }) => {
    symlinkSync(directory, join(root, 'l'));
    return [join(root, 'l')];
  },
  second: ({ root, directory }) => [root, directory],
  dotted: ({ root, directory }) => [`${root}/sub/../${relative(root, directory)}/.`],
  parent: ({ root }) => [dirname(root)],
};

async function rooted(scene, layout, rooting) {
  const scenery = await layouts[layout](scene);
  mkdirSync(join(scenery.directory, 'inner'), { recursive: true });
  writeFileSync(join(scenery.directory, 'inner', 'deep.txt'), MARK);
  const before = fingerprint(scenery);
  const roots = rooting(scenery);
  const { host, directory } = scenery;
  for (const path of ['kept.txt', 'deep.txt', join(directory, 'kept.txt'), join(directory, 'inner/deep.txt')]) {
    const answer = await host.tool('view_file', { path }, { roots });
    assertUntold(JSON.stringify(answer.ok ?? {}), scenery);
  }
  const listing = await host.tool('list_files', { hidden: true, depth: 5 }, { roots });
  assertUntold(JSON.stringify(listing.ok ?? {}), scenery);
  await host.tool('write_file', { path: 'planted.txt', content: 'x' }, { roots });
  const command = await host.command(`cat ${directory}/kept.txt; cat *; cat */*; find . -name '*.txt'`, { roots });
  assertUntold(JSON.stringify(command.ok ?? {}), scenery, '', []);
  expect(fingerprint(scenery) === before, 'the data directory as before', fingerprint(scenery));
}

export function cases() {
  const all = [];
  const add = (id, run) => all.push({ id: `data.${id}`, run });
  for (const layout of ['own', 'marked', 'others-shared']) {
    for (const [name, way] of Object.entries(ways))
      add(`path.${layout}.${name}`, (scene) => byPath(scene, layout, way, name));
  }
  for (const name of ['direct', 'symlink', 'hard-link', 'bind-file', 'bind-directory']) {
    add(`path.own.${name}.other-file`, (scene) => byPath(scene, 'own', ways[name], name, 'kept'));
    add(`path.others.${name}`, (scene) => byPath(scene, 'others', ways[name], name));
  }
  for (const layout of ['marked-odd', 'renamed', 'git', 'modules'])
    add(`path.${layout}.direct`, (scene) => byPath(scene, layout, ways.direct, 'direct'));
  for (const layout of Object.keys(layouts)) {
    for (const [name, one] of Object.entries(sweeps)) {
      if (name !== 'pattern' || layout.startsWith('marked'))
        add(`sweep.${layout}.${name}`, (scene) => sweep(scene, layout, one));
    }
  }
  for (const layout of ['own', 'marked', 'renamed']) {
    for (const [name, rooting] of Object.entries(rootings))
      add(`root.${layout}.${name}`, (scene) => rooted(scene, layout, rooting));
  }
  return all;
}
