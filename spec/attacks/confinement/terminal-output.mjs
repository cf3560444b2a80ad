// Texts that would control a terminal, in every place that the command line prints, on a real terminal.

import { chmodSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from '../../support/store-attack.mjs';
import { bin, runProgram } from './fixture.mjs';

/** What a live display uses, and what no text may bring to a terminal: made of codes, as no source holds the characters. */
const ESC = String.fromCharCode(27);
const LIVE = new RegExp(`${ESC}\\[(?:\\d*(?:;\\d+)*m|2K|\\d*[ABGJK]|\\?25[lh])|\\r`, 'g');
const HIDDEN = /(?![\t\n])[\p{Cc}\u200b-\u200f\u202a-\u202e\u2060-\u2069]/u;

/** A title, a cleared screen, a link, a colour in one byte, a turned direction, and what removes a line. */
const EVIL = 'A\u001b]0;PWNED\u0007\u001b[2J\u001b[1A\u009b31m\u202eB\u2066\u0008\u007f\u001b]8;;http://x\u0007C';
/** Without what cannot be in a name of a file or an argument. */
const NAME = EVIL.replaceAll('/', '');

const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`;

/** What is written to a terminal. */
async function screenOf(fixture, args, env = {}, input = '') {
  const command = [process.execPath, bin, ...args].map(quote).join(' ');
  const all = { ...fixture.env, TERM: 'xterm-256color', ...env };
  const { stdout } = await runProgram('script', ['-qfec', `stty cols 100 rows 40; ${command}`, '/dev/null'], {
    cwd: fixture.project,
    env: all,
    ms: 30_000,
    input,
  });
  return stdout;
}

/** Nothing but text, line ends and, where colours are asked for, colours and the moves of a display of our own. */
function assertPlain(screen, isLive) {
  const own = isLive ? LIVE : /\r(?=\n)/g;
  const rest = screen.replace(own, '');
  const found = HIDDEN.exec(rest);
  const around = found === null ? '' : JSON.stringify(rest.slice(Math.max(0, found.index - 60), found.index + 30));
  expect(found === null, 'nothing that controls the terminal', around);
  expect(!screen.includes('\u001b]') && !screen.includes('\u001b[2J'), 'no title and no cleared screen', around);
}

function prepare(fixture) {
  fixture.toolLoop('echo', 'builtin:echo');
  fixture.toolLoop('fail', 'builtin:fail');
  fixture.toolLoop('ask', 'builtin:echo', undefined, { policy: { approval: 'ask' } });
  fixture.toolLoop('named', 'builtin:echo', undefined, { name: EVIL, description: EVIL });
  mkdirSync(join(fixture.project, 'box'));
}

const input = JSON.stringify({ message: EVIL, [EVIL]: [EVIL] });
const run = (loop, ...more) => ['run', loop, '--input', input, '--session', 's', ...more];

/** What is done before, and the verb whose screen is judged. */
const verbs = {
  'run-output': [[], run('echo')],
  'run-json': [[], run('echo', '--json')],
  'run-watch': [[], run('echo', '--watch'), 'live'],
  'run-error': [[], run('fail')],
  'run-error-json': [[], run('fail', '--json')],
  'run-error-watch': [[], run('fail', '--watch'), 'live'],
  'run-ask': [[], run('ask')],
  trace: [[run('fail')], ['trace', 's']],
  'trace-json': [[run('fail')], ['trace', 's', '--json']],
  events: [[run('echo')], ['events', 's', '--text']],
  'events-json': [[run('echo')], ['events', 's', '--json']],
  status: [[run('fail')], ['status', 's']],
  'status-json': [[run('fail')], ['status', 's', '--json']],
  runs: [[run('fail')], ['runs']],
  approvals: [[run('ask')], ['approvals']],
  'approvals-json': [[run('ask')], ['approvals', '--json']],
  deny: [[run('ask')], ['deny', 's', '--reason', EVIL, '--as', EVIL]],
  approve: [[run('ask')], ['approve', EVIL]],
  diff: [
    [run('echo'), ['run', 'fail', '--session', 's2', '--input', input]],
    ['diff', 's', 's2'],
  ],
  replay: [[run('fail')], ['replay', 's']],
  list: [[], ['list']],
  'list-json': [[], ['list', '--json']],
  show: [[], ['show', 'named']],
  'show-json': [[], ['show', 'named', '--json']],
  check: [[], ['check']],
  'unknown-loop': [[], ['run', EVIL]],
  'unknown-loop-json': [[], ['run', EVIL, '--json']],
  'unknown-verb': [[], [EVIL]],
  'unknown-option': [[], ['run', 'echo', `--${EVIL}`]],
  'unknown-turn': [[], ['trace', EVIL]],
  'bad-input': [[], ['run', 'echo', '--input', EVIL]],
  'bad-input-file': [[], ['run', 'echo', '--input', `@${NAME}`]],
  'bad-session': [[], ['run', 'echo', '--session', EVIL]],
  'bad-key': [[], ['run', 'echo', '--key', EVIL]],
  'bad-who': [[], ['run', 'echo', '--as', EVIL]],
  'bad-version': [[], ['run', `echo@${EVIL}`]],
  'bad-config': [[], ['list', '--config', NAME]],
  'bad-store': [[], ['list', '--store', EVIL]],
  'bad-data': [[], ['runs', '--data', `/dev/null/${NAME}`]],
  'bad-loops': [[], ['list', '--loops', NAME]],
  'bad-trust': [[], ['trust', NAME]],
  'bad-send': [[], ['trust', '--send', EVIL]],
  'bad-engine': [[], ['list', '--engine', EVIL]],
  cancel: [[run('echo')], ['cancel', 's', '--reason', EVIL]],
  resolve: [[], ['resolve', EVIL, '--fail']],
  help: [[], ['help', EVIL]],
};

async function verb(fixture, [before, args, look], env = {}) {
  prepare(fixture);
  for (const one of before) await fixture.cli(one);
  const screen = await screenOf(fixture, args, env);
  expect(screen.length > 0, 'something on the screen', screen);
  assertPlain(screen, look === 'live' || env.NO_COLOR === '');
}

/** Things of a project whose texts are hostile: each prepares it and gives the verb. */
const projects = {
  'file-name': (fixture) => {
    fixture.file(`p/loops/${NAME}.json`, '{');
    return ['check'];
  },
  'file-name-list': (fixture) => {
    fixture.file(`p/loops/${NAME}.json`, '{"id": 5}');
    return ['list'];
  },
  'file-content': (fixture) => {
    fixture.file('p/loops/bad.json', { id: EVIL, kind: EVIL, [EVIL]: EVIL });
    return ['check'];
  },
  config: (fixture) => {
    fixture.file(
      'p/rondo.toml',
      `"${EVIL.replace(/\p{Cc}/gu, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`)}" = 1\n`,
    );
    return ['list'];
  },
  'config-raw': (fixture) => {
    fixture.file('p/rondo.toml', `x = ${EVIL}\n`);
    return ['list'];
  },
  'exec-stderr': (fixture) => {
    chmodSync(fixture.file('p/loops/x.sh', `#!/bin/sh\ncat evil.txt >&2\nexit 1\n`), 0o755);
    fixture.file('p/loops/evil.txt', EVIL);
    fixture.toolLoop('x', 'exec:./x.sh');
    return ['run', 'x', '--input', '{}'];
  },
  'exec-not-json': (fixture) => {
    chmodSync(fixture.file('p/loops/x.sh', `#!/bin/sh\ncat evil.txt\n`), 0o755);
    fixture.file('p/loops/evil.txt', EVIL);
    fixture.toolLoop('x', 'exec:./x.sh');
    return ['run', 'x', '--input', '{}'];
  },
  'model-text': (fixture) => {
    fixture.agent('a', [], [{ text: EVIL, reasoning: EVIL, chunks: 9 }]);
    return ['run', 'a', '--input', '{"prompt": "p"}', '--watch'];
  },
  'model-tool': (fixture) => {
    fixture.agent('a', ['echo'], [{ toolCalls: [{ name: EVIL, args: { [EVIL]: EVIL } }] }, { text: 'end' }]);
    return ['run', 'a', '--input', '{"prompt": "p"}', '--watch'];
  },
  'model-error': (fixture) => {
    fixture.agent('a', [], [{ error: { message: EVIL } }]);
    return ['run', 'a', '--input', '{"prompt": "p"}'];
  },
  'command-output': (fixture) => {
    fixture.file('p/box/evil.txt', EVIL);
    fixture.toolLoop(
      'sh',
      'toolbox:run_command',
      { roots: ['../box'] },
      {
        tool: { implementation: 'toolbox:run_command', config: { roots: ['../box'] }, safety: 'once' },
        policy: { approval: 'always_allow' },
      },
    );
    return ['run', 'sh', '--input', '{"command": "cat evil.txt; echo $0"}'];
  },
  'file-names-listed': (fixture) => {
    fixture.file(`p/box/${NAME}`, 'x');
    fixture.toolLoop('ls', 'toolbox:list_files', { roots: ['../box'] });
    return ['run', 'ls', '--input', '{}'];
  },
  'diff-asked': (fixture) => {
    fixture.file('p/box/f.txt', 'old\n');
    fixture.toolLoop(
      'w',
      'toolbox:write_file',
      { roots: ['../box'] },
      { tool: { implementation: 'toolbox:write_file', config: { roots: ['../box'] }, safety: 'once' } },
    );
    return ['run', 'w', '--input', JSON.stringify({ path: 'f.txt', content: EVIL })];
  },
  'path-asked': (fixture) => {
    fixture.toolLoop(
      'w',
      'toolbox:write_file',
      { roots: ['../box'] },
      { tool: { implementation: 'toolbox:write_file', config: { roots: ['../box'] }, safety: 'once' } },
    );
    return ['run', 'w', '--input', JSON.stringify({ path: NAME, content: 'x' })];
  },
};

async function project(fixture, make, after) {
  prepare(fixture);
  const args = make(fixture);
  assertPlain(await screenOf(fixture, args), args.includes('--watch'));
  if (after !== undefined) assertPlain(await screenOf(fixture, after), false);
}

/** A conversation at a terminal: what the model, its tools and its approvals say. */
async function chat(fixture, script, typed) {
  prepare(fixture);
  fixture.agent('a', ['echo', 'ask'], script, { mode: undefined });
  const screen = await screenOf(fixture, ['chat', 'a', '--session', 's'], {}, typed);
  expect(screen.length > 20, 'something on the screen', screen);
  for (const mark of ['\u001b]0;', '\u0007', '\u001b[2J', '\u009b', '\u202e', '\u2066', '\u007f'])
    expect(!screen.includes(mark), 'nothing that controls the terminal', JSON.stringify(screen.slice(0, 600)));
}

const chats = {
  text: [[{ text: EVIL, reasoning: EVIL, chunks: 7 }], 'hello\n/quit\n'],
  tool: [[{ toolCalls: [{ name: 'echo', args: { [EVIL]: EVIL } }] }, { text: EVIL }], 'hello\n/quit\n'],
  unknown: [[{ toolCalls: [{ name: EVIL, args: {} }] }, { text: 'end' }], 'hello\n/quit\n'],
  ask: [[{ toolCalls: [{ name: 'ask', args: { [EVIL]: EVIL } }] }, { text: 'end' }], 'hello\nn\n/quit\n'],
  error: [[{ error: { message: EVIL } }], 'hello\n/quit\n'],
};

export function cases() {
  const all = [];
  const add = (id, run) => all.push({ id: `terminal.${id}`, run });
  for (const [name, one] of Object.entries(verbs)) add(`verb.${name}`, (fixture) => verb(fixture, one));
  for (const name of ['run-output', 'run-error', 'trace', 'approvals', 'list', 'run-ask', 'deny'])
    add(`colour.${name}`, (fixture) => verb(fixture, verbs[name], { NO_COLOR: '' }));
  for (const [name, make] of Object.entries(projects))
    add(`project.${name}`, (fixture) => project(fixture, make, /asked/.test(name) ? ['approvals'] : undefined));
  for (const [name, [script, typed]] of Object.entries(chats))
    add(`chat.${name}`, (fixture) => chat(fixture, script, typed));
  return all;
}
