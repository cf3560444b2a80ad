// An agent that the command line runs has all tools with the whole project as root. The data directory is in the
// project, under every name and setting, and stays protected.

import { existsSync, mkdirSync, readFileSync, statSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from '../../support/store-attack.mjs';

/** Settings of the data directory or the store, and the path of the database with each. */
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

const shellQuote = (text) => `'${text.replaceAll("'", "'\\''")}'`;

/** The tool calls of the agent: with file tools, or with a command. */
const toolCalls = {
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
        command: `cd box; { cat ../${shellQuote(file)}* ; find .. -name '*.anchor' -o -name '*-wal' -o -name '*.owner'; ls -laR ..; } > stolen.txt 2>/dev/null; rm -f ../${shellQuote(file)}*; : > ../${shellQuote(file)}; mv ../${shellQuote(file)} moved; rm -rf ../${shellQuote(join(file, '..'))}`,
      },
    },
  ],
};

/** Writes the project with its tools and the scripted agent. */
function prepare(fixture, setting, kind) {
  const { toml, link } = setting;
  mkdirSync(join(fixture.project, 'box'));
  if (toml !== undefined) fixture.file('p/rondo.toml', toml);
  if (link !== undefined) {
    mkdirSync(join(fixture.project, link[0]));
    symlinkSync(link[0], join(fixture.project, link[1]));
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
    fixture.toolLoop(id, '', undefined, { tool, policy: { approval: 'always_allow' } });
  }
  fixture.agent('a', Object.keys(names), [{ toolCalls: toolCalls[kind](setting) }, { text: 'done' }]);
}

/** Runs the agent. The store stays intact, and neither a tool result nor a file of the root has its content. */
async function checkAgent(fixture, setting, kind) {
  prepare(fixture, setting, kind);
  const { args = [], env = {}, file } = setting;
  const run = await fixture.cli(['run', 'a', '--input', '{"prompt": "go"}', '--session', 's', '--json', ...args], {
    env,
  });
  expect(run.code === 0, 'the run to succeed', run);
  const database = join(fixture.project, file);
  expect(existsSync(database) && statSync(database).size > 1000, 'an intact database at its path', run.stderr);
  const events = await fixture.cli(['events', 's', '--json', ...args], { env });
  expect(events.code === 0 && events.stdout.includes('done'), 'the whole session', events);
  const doctor = await fixture.cli(['doctor', '--json', ...args], { env });
  expect(!/damage[^"]*":\s*\[\s*\{/.test(doctor.stdout), 'no damage', doctor.stdout.slice(0, 500));
  const results = events.stdout
    .split('\n')
    .filter((line) => /tool-(result|error|output)/.test(line))
    .join('\n');
  expect(results.length > 0, 'tool results', events.stdout.slice(0, 500));
  expect(!/SQLite format|"secret\\*":/.test(results), 'no content of the store', results.slice(0, 800));
  const successes = results
    .split('\n')
    .filter((line) => line.includes('tool-result'))
    .join('\n');
  expect(
    kind !== 'files' || !/(?:-wal|-shm|\.anchor|\.lock)\b/.test(successes),
    'no file names of the store',
    successes.slice(0, 800),
  );
  const stolen = join(fixture.project, 'box/stolen.txt');
  if (kind === 'command') {
    const text = existsSync(stolen) ? readFileSync(stolen, 'latin1') : '';
    expect(text.includes('box'), 'a command that ran', results.slice(0, 500));
    expect(!/SQLite format|\.anchor|-wal|\.owner/.test(text), 'no content of the store', text.slice(0, 800));
    expect(!existsSync(join(fixture.project, 'box/moved')), 'no moved database', 'box/moved exists');
  }
}

export function cases() {
  const list = [];
  for (const [name, setting] of Object.entries(settings)) {
    for (const kind of Object.keys(toolCalls))
      list.push({ id: `data.verb.${name}.${kind}`, run: (fixture) => checkAgent(fixture, setting, kind) });
  }
  return list;
}
