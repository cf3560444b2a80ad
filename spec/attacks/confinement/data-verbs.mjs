// An agent of the command line has all tools over the whole project, and the data directory is in it under every name and setting.

import { existsSync, mkdirSync, readFileSync, statSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from '../../support/store-attack.mjs';

/** What is said where the data is, and where the database is then. */
const settings = {
  usual: { file: '.rondo/journal.db' },
  flag: { args: ['--data', 'state'], file: 'state/journal.db' },
  'flag-slash': { args: ['--data', 'state/'], file: 'state/journal.db' },
  'flag-dots': { args: ['--data', './loops/../deep/er/state'], file: 'deep/er/state/journal.db' },
  'flag-odd': { args: ['--data', "my 'data' (1)"], file: "my 'data' (1)/journal.db" },
  'flag-hidden': { args: ['--data', '.cache'], file: '.cache/journal.db' },
  'flag-link': { args: ['--data', 'link/state'], file: 'real/state/journal.db', link: ['real', 'link'] },
  'flag-in-modules': { args: ['--data', 'node_modules/.r'], file: 'node_modules/.r/journal.db' },
  'flag-in-git': { args: ['--data', '.git/r'], file: '.git/r/journal.db' },
  'flag-in-loops': { args: ['--data', 'loops/state'], file: 'loops/state/journal.db' },
  environment: { env: { RONDO_DATA: 'state' }, file: 'state/journal.db' },
  config: { toml: 'data = "state"\n', file: 'state/journal.db' },
  store: { args: ['--store', 'sqlite:db/x.db'], file: 'db/x.db' },
  'store-beside': { args: ['--store', 'sqlite:x.db'], file: 'x.db' },
  'store-environment': { env: { RONDO_STORE: 'sqlite:db/deep/x' }, file: 'db/deep/x' },
  'store-in-modules': { args: ['--store', 'sqlite:node_modules/x.db'], file: 'node_modules/x.db' },
  both: { args: ['--data', 'state', '--store', 'sqlite:db/x.db'], file: 'db/x.db', other: 'state' },
};

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

/** What the agent does, by the way that it uses. */
const ways = {
  files: ({ file }) => [
    { name: 'view', args: { path: file } },
    { name: 'view', args: { path: `${file}.owner` } },
    { name: 'list', args: { path: '.', depth: 9, hidden: true } },
    { name: 'list', args: { path: join(file, '..'), hidden: true } },
    { name: 'search', args: { query: 'secret', hidden: true } },
    { name: 'write', args: { path: `${file}.owner`, content: 'overwritten' } },
    { name: 'write', args: { path: `${file}-wal`, content: 'overwritten' } },
  ],
  command: ({ file }) => [
    {
      name: 'sh',
      args: {
        command: `cd box; { cat ../${quoted(file)}* ; find .. -name '*.anchor' -o -name '*-wal' -o -name '*.owner'; ls -laR ..; } > stolen.txt 2>/dev/null; rm -f ../${quoted(file)}*; : > ../${quoted(file)}; mv ../${quoted(file)} moved; rm -rf ../${quoted(join(file, '..'))}`,
      },
    },
  ],
};

function prepare(scene, setting, way) {
  const { toml, link } = setting;
  mkdirSync(join(scene.place, 'box'));
  if (toml !== undefined) scene.file('p/rondo.toml', toml);
  if (link !== undefined) {
    mkdirSync(join(scene.place, link[0]));
    symlinkSync(link[0], join(scene.place, link[1]));
  }
  const names = {
    view: 'view_file',
    list: 'list_files',
    search: 'search_files',
    write: 'write_file',
    sh: 'run_command',
  };
  for (const [id, name] of Object.entries(names)) {
    const safety = /write|run/.test(name) ? 'once' : 'pure';
    const tool = { implementation: `toolbox:${name}`, config: { roots: ['..'] }, safety };
    scene.toolLoop(id, '', undefined, { tool, policy: { approval: 'always_allow' } });
  }
  scene.agent('a', Object.keys(names), [{ toolCalls: ways[way](setting) }, { text: 'done' }]);
}

async function verb(scene, setting, way) {
  prepare(scene, setting, way);
  const { args = [], env = {}, file } = setting;
  const run = await scene.cli(['run', 'a', '--input', '{"prompt": "go"}', '--session', 's', '--json', ...args], {
    env,
  });
  expect(run.code === 0, 'an answer', run);
  const database = join(scene.place, file);
  expect(existsSync(database) && statSync(database).size > 1000, 'the database where it was', run.stderr);
  const events = await scene.cli(['events', 's', '--json', ...args], { env });
  expect(events.code === 0 && events.stdout.includes('done'), 'the session to be whole', events);
  const doctor = await scene.cli(['doctor', '--json', ...args], { env });
  expect(!/damage[^"]*":\s*\[\s*\{/.test(doctor.stdout), 'no damage', doctor.stdout.slice(0, 500));
  const results = events.stdout
    .split('\n')
    .filter((line) => /tool-(result|error|output)/.test(line))
    .join('\n');
  expect(results.length > 0, 'results of tools', events.stdout.slice(0, 500));
  expect(!/SQLite format|"secret\\*":/.test(results), 'nothing of the store', results.slice(0, 800));
  const shown = results
    .split('\n')
    .filter((line) => line.includes('tool-result'))
    .join('\n');
  expect(
    way !== 'files' || !/(?:-wal|-shm|\.anchor|\.lock)\b/.test(shown),
    'no names of the store',
    shown.slice(0, 800),
  );
  const stolen = join(scene.place, 'box/stolen.txt');
  if (way === 'command') {
    const text = existsSync(stolen) ? readFileSync(stolen, 'latin1') : '';
    expect(text.includes('box'), 'a command that was run', results.slice(0, 500));
    expect(!/SQLite format|\.anchor|-wal|\.owner/.test(text), 'nothing of the store', text.slice(0, 800));
    expect(!existsSync(join(scene.place, 'box/moved')), 'nothing moved', 'it was');
  }
}

export function cases() {
  const all = [];
  for (const [name, setting] of Object.entries(settings)) {
    for (const way of Object.keys(ways))
      all.push({ id: `data.verb.${name}.${way}`, run: (scene) => verb(scene, setting, way) });
  }
  return all;
}
