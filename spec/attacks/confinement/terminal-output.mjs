// Texts with terminal escape sequences in every output of the command line, printed to a pseudo-terminal.

import { chmodSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from '../../support/store-attack.mjs';
import { bin, runProgram } from './fixture.mjs';

/** The escape character. Sources have no control characters. */
const ESC = String.fromCharCode(27);
/** The sequences of the live display. */
const LIVE = new RegExp(`${ESC}\\[(?:\\d*(?:;\\d+)*m|2K|\\d*[ABGJK]|\\?25[lh])|\\r`, 'g');
/** Control and invisible characters, which no text may contain on a terminal. */
const HIDDEN = /(?![\t\n])[\p{Cc}\u200b-\u200f\u202a-\u202e\u2060-\u2069]/u;

/**
 * Sets the title, clears the screen, moves the cursor, sets a colour, changes the text direction, deletes and opens a
 * link.
 */
const EVIL = 'A\u001b]0;PWNED\u0007\u001b[2J\u001b[1A\u009b31m\u202eB\u2066\u0008\u007f\u001b]8;;http://x\u0007C';
/** The same without slashes, for file names. */
const NAME = EVIL.replaceAll('/', '');

const shellQuote = (text) => `'${text.replaceAll("'", "'\\''")}'`;

/** Runs the command line on a pseudo-terminal and returns its output. */
async function terminalOutputOf(fixture, args, env = {}, input = '') {
  const command = [process.execPath, bin, ...args].map(shellQuote).join(' ');
  const terminalEnv = { ...fixture.env, TERM: 'xterm-256color', ...env };
  const { stdout } = await runProgram('script', ['-qfec', `stty cols 100 rows 40; ${command}`, '/dev/null'], {
    cwd: fixture.project,
    env: terminalEnv,
    ms: 30_000,
    input,
  });
  return stdout;
}

/** Asserts that the output is plain text. `isLive` also permits the sequences of the live display. */
function assertPlain(output, isLive) {
  const permitted = isLive ? LIVE : /\r(?=\n)/g;
  const rest = output.replace(permitted, '');
  const found = HIDDEN.exec(rest);
  const excerpt = found === null ? '' : JSON.stringify(rest.slice(Math.max(0, found.index - 60), found.index + 30));
  expect(found === null, 'no control character', excerpt);
  expect(!output.includes('\u001b]') && !output.includes('\u001b[2J'), 'no title and no cleared screen', excerpt);
}

/** Writes the loops of the project. */
function prepare(fixture) {
  fixture.toolLoop('echo', 'builtin:echo');
  fixture.toolLoop('fail', 'builtin:fail');
  fixture.toolLoop('ask', 'builtin:echo', undefined, { policy: { approval: 'ask' } });
  fixture.toolLoop('named', 'builtin:echo', undefined, { name: EVIL, description: EVIL });
  mkdirSync(join(fixture.project, 'box'));
}

const input = JSON.stringify({ message: EVIL, [EVIL]: [EVIL] });
const run = (loop, ...more) => ['run', loop, '--input', input, '--session', 's', ...more];

/** The verbs to run first, and the verb whose output is checked. */
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

/** Runs a verb and checks its output. */
async function checkVerb(fixture, [before, args, display], env = {}) {
  prepare(fixture);
  for (const earlier of before) await fixture.cli(earlier);
  const output = await terminalOutputOf(fixture, args, env);
  expect(output.length > 0, 'output', output);
  assertPlain(output, display === 'live' || env.NO_COLOR === '');
}

/** Functions that write a project with hostile texts and return the verb to run. */
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

/** Runs the verb of a hostile project, and possibly a second one, and checks the output. */
async function checkProject(fixture, writeProject, after) {
  prepare(fixture);
  const args = writeProject(fixture);
  assertPlain(await terminalOutputOf(fixture, args), args.includes('--watch'));
  if (after !== undefined) assertPlain(await terminalOutputOf(fixture, after), false);
}

/** Runs a chat whose model, tools and approvals have hostile texts, and checks the output. */
async function checkChat(fixture, script, typed) {
  prepare(fixture);
  fixture.agent('a', ['echo', 'ask'], script, { mode: undefined });
  const output = await terminalOutputOf(fixture, ['chat', 'a', '--session', 's'], {}, typed);
  expect(output.length > 20, 'output', output);
  for (const mark of ['\u001b]0;', '\u0007', '\u001b[2J', '\u009b', '\u202e', '\u2066', '\u007f'])
    expect(!output.includes(mark), 'no control character', JSON.stringify(output.slice(0, 600)));
}

const chats = {
  text: [[{ text: EVIL, reasoning: EVIL, chunks: 7 }], 'hello\n/quit\n'],
  tool: [[{ toolCalls: [{ name: 'echo', args: { [EVIL]: EVIL } }] }, { text: EVIL }], 'hello\n/quit\n'],
  unknown: [[{ toolCalls: [{ name: EVIL, args: {} }] }, { text: 'end' }], 'hello\n/quit\n'],
  ask: [[{ toolCalls: [{ name: 'ask', args: { [EVIL]: EVIL } }] }, { text: 'end' }], 'hello\nn\n/quit\n'],
  error: [[{ error: { message: EVIL } }], 'hello\n/quit\n'],
};

export function cases() {
  const list = [];
  const add = (id, run) => list.push({ id: `terminal.${id}`, run });
  for (const [name, verb] of Object.entries(verbs)) add(`verb.${name}`, (fixture) => checkVerb(fixture, verb));
  for (const name of ['run-output', 'run-error', 'trace', 'approvals', 'list', 'run-ask', 'deny'])
    add(`colour.${name}`, (fixture) => checkVerb(fixture, verbs[name], { NO_COLOR: '' }));
  for (const [name, writeProject] of Object.entries(projects))
    add(`project.${name}`, (fixture) =>
      checkProject(fixture, writeProject, /asked/.test(name) ? ['approvals'] : undefined),
    );
  for (const [name, [script, typed]] of Object.entries(chats))
    add(`chat.${name}`, (fixture) => checkChat(fixture, script, typed));
  return list;
}
