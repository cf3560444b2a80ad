// Calls each file tool on a data directory or a store, by every path that leads to it.

import { execFileSync } from 'node:child_process';
import { linkSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { expect } from '../../support/store-attack.mjs';
import { assertNotDisclosed, fingerprint, KEPT, layouts, MARK, secretOf } from './layouts.mjs';

/** Functions that return a path to a protected file. Some create a link or a mount in the root first. */
const paths = {
  direct: (_, file) => file,
  relative: ({ root }, file) => relative(root, file),
  dots: ({ root }, file) => `${root}/sub/../${relative(root, file)}`,
  'outside-and-back': ({ root }, file) => `../${basename(root)}/./${relative(root, file)}`,
  slashes: ({ root }, file) => `${root}//${relative(root, file).replaceAll('/', '//')}`,
  'trailing-slash': (_, file) => `${file}/`,
  'trailing-dot': (_, file) => `${file}/.`,
  symlink: ({ root }, file) => createAt(symlinkSync, file, join(root, 'soft')),
  'symlink-relative': ({ root }, file) =>
    createAt(symlinkSync, relative(join(root, 'sub'), file), join(root, 'sub', 'soft')),
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
  'symlink-by-proc': ({ root }, file) => createAt(symlinkSync, `/proc/self/root${file}`, join(root, 'soft')),
  'hard-link': ({ root }, file) => createAt(linkSync, file, join(root, 'hard')),
  'hard-link-renamed': ({ root }, file) => createAt(linkSync, file, join(root, 'sub', 'notes.txt')),
  'bind-file': ({ root, fixture }, file) => bindMount(fixture, file, join(root, 'bound'), false),
  'bind-directory': ({ root, fixture }, file) =>
    join(bindMount(fixture, dirname(file), join(root, 'bounddir'), true), basename(file)),
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

/** Creates a link to `target` at `path` and returns `path`. */
function createAt(createLink, target, path) {
  createLink(target, path);
  return path;
}

/** Bind-mounts a file or directory at `path` until the case ends, and returns `path`. */
function bindMount(fixture, source, path, isDirectory) {
  if (isDirectory) mkdirSync(path);
  else writeFileSync(path, '');
  execFileSync('mount', ['--bind', source, path]);
  fixture.atEnd(() => execFileSync('umount', ['-l', path]));
  return path;
}

/** Calls every tool with one path to a protected file. The tools disclose and change nothing. */
async function checkPath(fixture, layoutName, pathTo, name, target) {
  const layout = await layouts[layoutName](fixture);
  const secret = secretOf(layout);
  const isLive = secret !== '' && target !== 'kept';
  const protectedFile = isLive ? `${layout.file}.owner` : join(layout.directory, 'kept.txt');
  const file = pathTo({ ...layout, fixture }, protectedFile);
  const before = fingerprint(layout);
  const responses = [];
  const { ok } = await layout.host.tool('view_file', { path: 'harmless.txt' }, layout);
  expect(ok?.text.includes('harmless'), 'view_file to read a harmless file', ok);
  const calls = [
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
  for (const [tool, input] of calls) responses.push([tool, await layout.host.tool(tool, input, layout)]);
  expect(fingerprint(layout) === before, `an unchanged data directory (${name})`, {
    before,
    after: fingerprint(layout),
  });
  for (const [tool, response] of responses) {
    expect(!('exited' in response), `${tool} to return`, response);
    assertNotDisclosed(JSON.stringify(response.ok ?? {}), layout, secret, []);
  }
}

/** Tool calls that traverse the whole root. */
const sweeps = {
  list: ['list_files', { hidden: true, depth: 20, limit: 2000 }],
  search: ['search_files', { query: 'K', hidden: true, limit: 200 }],
  pattern: ['search_files', { query: 'Mk7|Kp9|journal|SQLite', pattern: true, hidden: true }],
};

/** A traversal of the root discloses and changes nothing of the data directory. */
async function checkSweep(fixture, layoutName, [tool, input]) {
  const layout = await layouts[layoutName](fixture);
  const before = fingerprint(layout);
  const response = await layout.host.tool(tool, { path: '.', ...input }, layout);
  expect('ok' in response, `${tool} to succeed`, response);
  const text = JSON.stringify(response.ok);
  assertNotDisclosed(text, layout, secretOf(layout));
  const skips = JSON.stringify(response.ok.skipped ?? '');
  expect(!text.replace(skips, '').includes('journal.db-'), 'no file names of the store', text.slice(0, 400));
  expect(fingerprint(layout) === before, 'an unchanged data directory', fingerprint(layout));
}

/** Roots that are in, equal to or above a data directory. */
const rootChoices = {
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

/** Tools with such roots disclose and change nothing of the data directory. */
async function checkRoots(fixture, layoutName, rootsOf) {
  const layout = await layouts[layoutName](fixture);
  mkdirSync(join(layout.directory, 'inner'), { recursive: true });
  writeFileSync(join(layout.directory, 'inner', 'deep.txt'), MARK);
  const before = fingerprint(layout);
  const roots = rootsOf(layout);
  const { host, directory } = layout;
  for (const path of ['kept.txt', 'deep.txt', join(directory, 'kept.txt'), join(directory, 'inner/deep.txt')]) {
    const response = await host.tool('view_file', { path }, { roots });
    assertNotDisclosed(JSON.stringify(response.ok ?? {}), layout);
  }
  const listing = await host.tool('list_files', { hidden: true, depth: 5 }, { roots });
  assertNotDisclosed(JSON.stringify(listing.ok ?? {}), layout);
  await host.tool('write_file', { path: 'planted.txt', content: 'x' }, { roots });
  const command = await host.command(`cat ${directory}/kept.txt; cat *; cat */*; find . -name '*.txt'`, { roots });
  assertNotDisclosed(JSON.stringify(command.ok ?? {}), layout, '', []);
  expect(fingerprint(layout) === before, 'an unchanged data directory', fingerprint(layout));
}

export function cases() {
  const list = [];
  const add = (id, run) => list.push({ id: `data.${id}`, run });
  for (const layout of ['own', 'marked', 'others-shared']) {
    for (const [name, pathTo] of Object.entries(paths))
      add(`path.${layout}.${name}`, (fixture) => checkPath(fixture, layout, pathTo, name));
  }
  for (const name of ['direct', 'symlink', 'hard-link', 'bind-file', 'bind-directory']) {
    add(`path.own.${name}.other-file`, (fixture) => checkPath(fixture, 'own', paths[name], name, 'kept'));
    add(`path.others.${name}`, (fixture) => checkPath(fixture, 'others', paths[name], name));
  }
  for (const layout of ['marked-odd', 'renamed', 'git', 'modules'])
    add(`path.${layout}.direct`, (fixture) => checkPath(fixture, layout, paths.direct, 'direct'));
  for (const layout of Object.keys(layouts)) {
    for (const [name, call] of Object.entries(sweeps)) {
      if (name !== 'pattern' || layout.startsWith('marked'))
        add(`sweep.${layout}.${name}`, (fixture) => checkSweep(fixture, layout, call));
    }
  }
  for (const layout of ['own', 'marked', 'renamed']) {
    for (const [name, rootsOf] of Object.entries(rootChoices))
      add(`root.${layout}.${name}`, (fixture) => checkRoots(fixture, layout, rootsOf));
  }
  return list;
}
