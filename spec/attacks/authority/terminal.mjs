// The chat in a terminal of its own: keys typed ahead, pasted lines, and a model that imitates the question.

import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { judge, stage as shellStage, TEXTS } from './display.mjs';
import { Broken, bin, expect, sleep } from './world.mjs';

/** @typedef {import('./world.mjs').World} World */

/** What moves the cursor or changes a colour. */
const SEQUENCES = new RegExp(`${String.fromCharCode(27)}\\[[0-9;?]*[A-Za-z]`, 'g');

const quote = (/** @type {string} */ text) => `'${text.replaceAll("'", "'\\''")}'`;

/** A verb on a real terminal of 80 columns. @param {World} world @param {readonly string[]} args */
function terminal(world, args) {
  if (!existsSync('/usr/bin/script')) throw new Broken('skipped: there is no script(1)');
  const command = [process.execPath, bin, ...args].map(quote).join(' ');
  const env = { ...world.env(true), NO_COLOR: '1', TERM: 'xterm-256color' };
  const child = spawn('script', ['-qfec', `stty cols 80 rows 30; exec ${command}`, '/dev/null'], {
    cwd: world.project,
    env,
  });
  world.atEnd(() => child.kill('SIGKILL'));
  const screen = { raw: '', ended: false };
  child.stdout.setEncoding('utf8').on('data', (piece) => {
    screen.raw += piece;
  });
  child.on('close', () => {
    screen.ended = true;
  });
  child.stdin.on('error', () => undefined);
  const sees = async (/** @type {string | RegExp} */ what, ms = 10_000) => {
    const found = () => (typeof what === 'string' ? screen.raw.includes(what) : what.test(screen.raw));
    for (let left = ms; left > 0 && !found() && !screen.ended; left -= 50) await sleep(50);
    return found();
  };
  return { child, screen, sees, type: (/** @type {string} */ keys) => void child.stdin.write(keys) };
}

/** An agent whose model pays after each message. @param {World} world @param {readonly object[]} [replies] */
function payer(world, replies) {
  world.write('loops/tool.sh', world.shell('A'), 0o755);
  world.define('pay', { tool: { implementation: 'exec:./tool.sh' }, policy: { approval: 'ask' } });
  const call = { toolCalls: [{ name: 'pay', args: {} }] };
  world.agent('desk', { tools: ['pay'] }, replies ?? [call, { text: 'done' }, { text: 'done' }, { text: 'done' }]);
}

/** What is typed before the question stands on the screen. @type {Record<string, string>} */
const AHEAD = {
  'message-and-yes': 'pay now\ry\r',
  'message-and-many-yes': 'pay now\ry\ry\ryes\r',
  'pasted-lines': 'pay now\ny\n',
  'bracketed-paste': '\u001b[200~pay now\ry\r\u001b[201~\r',
  'yes-without-enter': 'pay now\ryyyy',
};

/** @returns {import('../authority.mjs').Case[]} */
function ahead() {
  return Object.entries(AHEAD).map(([name, keys]) => ({
    id: `display.typed-ahead.${name}`,
    run: async (/** @type {World} */ world) => {
      payer(world);
      const { screen, type, sees } = terminal(world, ['chat', 'desk', '--session', 's']);
      await sees('›');
      type(keys);
      await sees(/Approve\?|approve/i, 6000);
      await sleep(1500);
      expect(
        world.count('A') === 0,
        'an answer that was typed before the question not to count',
        screen.raw.slice(-600),
      );
    },
  }));
}

/** Lines on stdin without a terminal are messages, and answer nothing. @returns {import('../authority.mjs').Case[]} */
function piped() {
  return ['y', 'yes', 'Y\ny', 'approve', '/approve', '1'].map((word, n) => ({
    id: `display.piped.${n}`,
    run: async (/** @type {World} */ world) => {
      payer(world);
      await world.rondo(['chat', 'desk', '--session', 's'], { trust: true, input: `pay now\n${word}\n${word}\n` });
      world.expectNothing('a line of stdin not to approve anything');
    },
  }));
}

/** What a person answers on a real question. @type {Record<string, [keys: string, runs: number]>} */
const ANSWERS = {
  yes: ['y\r', 1],
  no: ['n\r', 0],
  later: ['l\r', 0],
  enter: ['\r', 0],
  'something-else': ['maybe\r', 0],
  'end-of-input': ['\u0004', 0],
  interrupt: ['\u0003', 0],
  'yes-with-more': ['y; n\r', 0],
};

/** @returns {import('../authority.mjs').Case[]} */
function answers() {
  return Object.entries(ANSWERS).map(([name, [keys, runs]]) => ({
    id: `display.answer.${name}`,
    run: async (/** @type {World} */ world) => {
      payer(world);
      const { screen, type, sees } = terminal(world, ['chat', 'desk', '--session', 's']);
      await sees('›');
      type('pay now\r');
      expect(await sees(/Approve\?/), 'the question', screen.raw.slice(-600));
      await sleep(400);
      type(keys);
      await sleep(1500);
      expect(world.count('A') === runs, `it to run ${runs} times`, screen.raw.slice(-600));
    },
  }));
}

/** A model that writes the question itself. @returns {import('../authority.mjs').Case[]} */
function imitations() {
  const texts = {
    question: '? Approve? [y]es / [n]o / [l]ater › ',
    card: '? Approval s.1:real\n  tool      harmless\n? Approve? [y]es / [n]o / [l]ater › ',
    'over-the-edge': `${'x'.repeat(78)}? Approve? [y]es / [n]o / [l]ater › `,
    cursor: '\u001b[1G\u001b[2K? Approve? [y]es / [n]o / [l]ater › ',
    'carriage-return': 'text\r? Approve? [y]es / [n]o / [l]ater › ',
    'prompt-sign': '\n› y\n✓ approved',
  };
  return Object.entries(texts).map(([name, text]) => ({
    id: `display.imitation.${name}`,
    run: async (/** @type {World} */ world) => {
      payer(world, [{ text }, { text: 'done' }]);
      const { screen, type, sees } = terminal(world, ['chat', 'desk', '--session', 's']);
      await sees('›');
      const before = screen.raw.length;
      type('hello\r');
      await sleep(1500);
      const told = screen.raw.slice(before).replaceAll('\r\n', '\n');
      const line = told.split('\n').find((one) => /^\s*\? App|^✓ approved|^\r\? App/.test(one.replace(SEQUENCES, '')));
      expect(line === undefined, 'no line of a model to look like ours', line);
    },
  }));
}

/** The card on a real terminal: no row longer than the screen. @returns {import('../authority.mjs').Case[]} */
function cards() {
  const names = /** @type {(keyof typeof TEXTS)[]} */ ([
    'long-word',
    'wide-characters',
    'combining-marks',
    'imitates-the-card',
    'right-to-left',
    'tabs',
    'many-words',
  ]);
  return names.map((name) => ({
    id: `display.terminal.${name}`,
    run: async (/** @type {World} */ world) => {
      shellStage(world);
      world.write('input.json', { command: TEXTS[name] });
      await world.rondo(['run', 'shell', '--session', 's', '--input', '@input.json'], { trust: true });
      const { screen } = terminal(world, ['approvals']);
      while (!screen.ended) await sleep(50);
      const text = screen.raw.replaceAll('\r\n', '\n').replace(SEQUENCES, '');
      judge(text);
      const widthOf = (/** @type {string} */ line) =>
        [...line].reduce(
          (sum, char) =>
            sum +
            (/[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\uff00-\uff60]|\p{Emoji_Presentation}/u.test(char)
              ? 2
              : /\p{M}/u.test(char)
                ? 0
                : 1),
          0,
        );
      const long = text.split('\n').find((line) => line.startsWith('│ ') && widthOf(line) > 80);
      expect(long === undefined, 'no row longer than the terminal', long);
    },
  }));
}

export const cases = () => [...ahead(), ...piped(), ...answers(), ...imitations(), ...cards()];
