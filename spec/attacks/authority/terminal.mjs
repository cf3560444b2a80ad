// The chat in a pseudo-terminal: keys typed early, pasted lines, and a model that imitates the approval question.

import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { assertScreen, defineShellTool, TEXTS } from './display.mjs';
import { bin, ExpectationError, expect, sleep } from './fixture.mjs';

/** @typedef {import('./fixture.mjs').AuthorityFixture} AuthorityFixture */

/** Escape sequences that move the cursor or set colours. */
const SEQUENCES = new RegExp(`${String.fromCharCode(27)}\\[[0-9;?]*[A-Za-z]`, 'g');

const quote = (/** @type {string} */ text) => `'${text.replaceAll("'", "'\\''")}'`;

/** Runs a verb in a pseudo-terminal of 80 columns. @param {AuthorityFixture} fixture @param {readonly string[]} args */
function startTerminal(fixture, args) {
  if (!existsSync('/usr/bin/script')) throw new ExpectationError('skipped: script(1) is not installed');
  const command = [process.execPath, bin, ...args].map(quote).join(' ');
  const env = { ...fixture.env(true), NO_COLOR: '1', TERM: 'xterm-256color' };
  const child = spawn('script', ['-qfec', `stty cols 80 rows 30; exec ${command}`, '/dev/null'], {
    cwd: fixture.project,
    env,
  });
  fixture.atEnd(() => child.kill('SIGKILL'));
  const screen = { raw: '', ended: false };
  child.stdout.setEncoding('utf8').on('data', (chunk) => {
    screen.raw += chunk;
  });
  child.on('close', () => {
    screen.ended = true;
  });
  child.stdin.on('error', () => undefined);
  const waitFor = async (/** @type {string | RegExp} */ pattern, ms = 10_000) => {
    const found = () => (typeof pattern === 'string' ? screen.raw.includes(pattern) : pattern.test(screen.raw));
    for (let left = ms; left > 0 && !found() && !screen.ended; left -= 50) await sleep(50);
    return found();
  };
  return { child, screen, waitFor, type: (/** @type {string} */ keys) => void child.stdin.write(keys) };
}

/**
 * Defines an agent whose model calls the tool `pay`.
 * @param {AuthorityFixture} fixture
 * @param {readonly object[]} [replies]
 */
function definePayer(fixture, replies) {
  fixture.write('loops/tool.sh', fixture.shell('A'), 0o755);
  fixture.define('pay', { tool: { implementation: 'exec:./tool.sh' }, policy: { approval: 'ask' } });
  const call = { toolCalls: [{ name: 'pay', args: {} }] };
  fixture.agent('payer', { tools: ['pay'] }, replies ?? [call, { text: 'done' }, { text: 'done' }, { text: 'done' }]);
}

/** Keys that are typed before the question is on the screen. @type {Record<string, string>} */
const EARLY_KEYS = {
  'message-and-yes': 'pay now\ry\r',
  'message-and-many-yes': 'pay now\ry\ry\ryes\r',
  'pasted-lines': 'pay now\ny\n',
  'bracketed-paste': '\u001b[200~pay now\ry\r\u001b[201~\r',
  'yes-without-enter': 'pay now\ryyyy',
};

/** @returns {import('../runner.mjs').Case[]} */
function earlyKeyCases() {
  return Object.entries(EARLY_KEYS).map(([name, keys]) => ({
    id: `display.typed-ahead.${name}`,
    run: async (/** @type {AuthorityFixture} */ fixture) => {
      definePayer(fixture);
      const { screen, type, waitFor } = startTerminal(fixture, ['chat', 'payer', '--session', 's']);
      await waitFor('›');
      type(keys);
      await waitFor(/Approve\?|approve/i, 6000);
      await sleep(1500);
      expect(fixture.count('A') === 0, 'keys typed before the question not to answer it', screen.raw.slice(-600));
    },
  }));
}

/** Lines on stdin without a terminal are messages, not answers. @returns {import('../runner.mjs').Case[]} */
function pipedCases() {
  return ['y', 'yes', 'Y\ny', 'approve', '/approve', '1'].map((line, n) => ({
    id: `display.piped.${n}`,
    run: async (/** @type {AuthorityFixture} */ fixture) => {
      definePayer(fixture);
      await fixture.rondo(['chat', 'payer', '--session', 's'], { trust: true, input: `pay now\n${line}\n${line}\n` });
      fixture.assertNothingExecuted('a line of stdin not to approve anything');
    },
  }));
}

/** Keys of a person who answers, and the number of runs. @type {Record<string, [keys: string, runs: number]>} */
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

/** @returns {import('../runner.mjs').Case[]} */
function answerCases() {
  return Object.entries(ANSWERS).map(([name, [keys, runs]]) => ({
    id: `display.answer.${name}`,
    run: async (/** @type {AuthorityFixture} */ fixture) => {
      definePayer(fixture);
      const { screen, type, waitFor } = startTerminal(fixture, ['chat', 'payer', '--session', 's']);
      await waitFor('›');
      type('pay now\r');
      expect(await waitFor(/Approve\?/), 'the question', screen.raw.slice(-600));
      await sleep(400);
      type(keys);
      await sleep(1500);
      expect(fixture.count('A') === runs, `the tool to run ${runs} times`, screen.raw.slice(-600));
    },
  }));
}

/** A model that prints the text of the approval question. @returns {import('../runner.mjs').Case[]} */
function imitationCases() {
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
    run: async (/** @type {AuthorityFixture} */ fixture) => {
      definePayer(fixture, [{ text }, { text: 'done' }]);
      const { screen, type, waitFor } = startTerminal(fixture, ['chat', 'payer', '--session', 's']);
      await waitFor('›');
      const before = screen.raw.length;
      type('hello\r');
      await sleep(1500);
      const printed = screen.raw.slice(before).replaceAll('\r\n', '\n');
      const line = printed
        .split('\n')
        .find((candidate) => /^\s*\? App|^✓ approved|^\r\? App/.test(candidate.replace(SEQUENCES, '')));
      expect(line === undefined, 'no line of the model to look like output of Rondo', line);
    },
  }));
}

/** No row of an approval is wider than the terminal. @returns {import('../runner.mjs').Case[]} */
function cardCases() {
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
    run: async (/** @type {AuthorityFixture} */ fixture) => {
      defineShellTool(fixture);
      fixture.write('input.json', { command: TEXTS[name] });
      await fixture.rondo(['run', 'shell', '--session', 's', '--input', '@input.json'], { trust: true });
      const { screen } = startTerminal(fixture, ['approvals']);
      while (!screen.ended) await sleep(50);
      const text = screen.raw.replaceAll('\r\n', '\n').replace(SEQUENCES, '');
      assertScreen(text);
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
      expect(long === undefined, 'no row wider than the terminal', long);
    },
  }));
}

export const cases = () => [...earlyKeyCases(), ...pipedCases(), ...answerCases(), ...imitationCases(), ...cardCases()];
