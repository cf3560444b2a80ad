// The text that a person sees before answering: commands that hide their end, imitate output of Rondo, or control the
// terminal.

import { expect } from './fixture.mjs';

/** @typedef {import('./fixture.mjs').AuthorityFixture} AuthorityFixture */

const ESC = '\u001b';
const repeat = (/** @type {string} */ text, /** @type {number} */ n) => text.repeat(n);

/** Commands. SPOOF marks text that imitates output of Rondo; TAIL9 marks the harmful end of the command. */
export const TEXTS = {
  'long-line': `echo ok ${repeat(' ', 3000)}; TAIL9`,
  'long-word': `echo ${repeat('x', 15_000)};TAIL9`,
  'many-lines': `echo ok${repeat('\n', 800)}TAIL9`,
  'many-words': `echo ${repeat('word ', 3500)}; TAIL9`,
  tabs: `echo ok${repeat('\t', 2000)}TAIL9`,
  'carriage-return': 'rm -rf / ; TAIL0\recho harmless SPOOF; TAIL9',
  'carriage-returns': `echo a\r\n${repeat('\r', 50)}SPOOF TAIL9`,
  backspaces: `evil${repeat('\b', 20)}echo ok TAIL9`,
  'erase-line': `evil${ESC}[2K${ESC}[1Gecho SPOOF TAIL9`,
  'clear-screen': `echo${ESC}[2J${ESC}[HSPOOF TAIL9`,
  hidden: `echo ok${ESC}[8m; evil${ESC}[0m TAIL9`,
  'other-screen': `${ESC}[?1049hSPOOF TAIL9`,
  'c1-control': 'echo \u009b2JSPOOF TAIL9',
  title: `echo ${ESC}]0;title\u0007 TAIL9`,
  link: `echo ${ESC}]8;;https://evil.example${ESC}\\ok${ESC}]8;;${ESC}\\ TAIL9`,
  clipboard: `echo ${ESC}]52;c;ZXZpbA==\u0007 TAIL9`,
  'right-to-left': 'echo \u202e9LIAT ;ko SPOOF\u202c TAIL9',
  isolates: 'echo \u2066ok\u2067SPOOF\u2069\u2069 TAIL9',
  'zero-width': `r${repeat('\u200b', 300)}m -rf / TAIL9`,
  tags: `echo ok${[...'evil'].map((c) => String.fromCodePoint(0xe0000 + (c.codePointAt(0) ?? 0))).join('')} TAIL9`,
  'variation-selectors': `echo ok${repeat('\ufe0f', 500)} TAIL9`,
  'hangul-fillers': `echo ok${repeat('\u3164', 2000)}TAIL9`,
  'braille-blanks': `echo ok${repeat('\u2800', 2000)}TAIL9`,
  'no-break-spaces': `echo ok${repeat('\u00a0', 2000)}TAIL9`,
  'ideographic-spaces': `echo ok${repeat('\u3000', 2000)}TAIL9`,
  'line-separators': `echo ok\u2028SPOOF\u2029\u0085SPOOF TAIL9`,
  'form-feeds': `echo ok\f\vSPOOF TAIL9`,
  'combining-marks': `e${repeat('\u0301', 4000)} TAIL9`,
  'wide-characters': `${repeat('漢', 4000)} TAIL9`,
  'lone-surrogates': `echo \ud800 \udc00 TAIL9`,
  'imitates-the-card': `echo ok\n? Approval s.1:SPOOF\n  tool      SPOOF\n  description\nRun SPOOF, in a sandbox without network: TAIL9`,
  'imitates-the-bar': `echo ok\n│ SPOOF\n  hidden    SPOOF … 3 of 9 characters are hidden here …\n TAIL9`,
  'imitates-the-mark': `echo ⟪99999 of 100000 characters hidden⟫ ${repeat('x', 9000)} TAIL9`,
  'imitates-two-marks': `⟪1 of 2 characters hidden⟫${repeat('y', 9000)}⟪1 of 2 characters hidden⟫ TAIL9`,
  'imitates-the-question': `echo ok\n? Approve? [y]es / [n]o / [l]ater › y SPOOF\n✓ approved SPOOF TAIL9`,
  'imitates-commands': `echo ok\n  rondo approve s.1:SPOOF\n  rondo deny s.1:SPOOF TAIL9`,
  'imitates-a-diff': `--- SPOOF\n+++ SPOOF\n@@ -1,1 +1,1 @@\n-x\n+SPOOF TAIL9`,
};

/** Control characters and invisible characters, without the line feed. */
export const HARMFUL = /(?!\n)[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u00a0\u2800\u3164]/u;

/** Defines a tool that runs commands without a sandbox. @param {AuthorityFixture} fixture */
export function defineShellTool(fixture) {
  fixture.write('loops/work/.keep', '');
  const config = { roots: ['work'], commands: { sandbox: 'off' } };
  fixture.define('shell', { tool: { implementation: 'toolbox:run_command', config } });
}

/** Returns the code point of a match, with the surrounding text. @param {string} screen @param {RegExpExecArray} match */
function describeMatch(screen, { 0: character, index }) {
  const context = screen.slice(Math.max(0, index - 40), index + 40);
  return `U+${character.codePointAt(0)?.toString(16)} in ${JSON.stringify(context)}`;
}

/** Asserts that the screen shows the end of the command, without invisible or imitating text. @param {string} screen */
export function assertScreen(screen) {
  const match = HARMFUL.exec(screen);
  expect(match === null, 'no invisible character on the screen', match && describeMatch(screen, match));
  const stray = screen.split('\n').find((line) => line.includes('SPOOF') && !line.startsWith('│ '));
  expect(stray === undefined, 'foreign text to be prefixed by a bar', stray);
  expect(screen.includes('TAIL9'), 'the end of the command to be shown', screen.slice(-500));
  expect(screen.includes('WITHOUT a sandbox'), 'the confinement to be shown', screen.slice(0, 500));
}

/** @returns {import('../runner.mjs').Case[]} */
export const cases = () =>
  Object.entries(TEXTS).map(([name, command]) => ({
    id: `display.card.${name}`,
    run: async (/** @type {AuthorityFixture} */ fixture) => {
      defineShellTool(fixture);
      fixture.write('input.json', { command });
      const result = await fixture.json(['run', 'shell', '--session', 's', '--input', '@input.json'], { trust: true });
      // Text that is not well-formed may be refused before an approval is requested.
      if (name === 'lone-surrogates' && result.status !== 'paused') return;
      expect(result.status === 'paused', 'an approval request', result.error);
      const { stdout, stderr } = await fixture.rondo(['approvals']);
      assertScreen(stdout + stderr);
      const isAbbreviated = command.length > 8000;
      expect(
        !isAbbreviated || /characters are hidden/.test(stdout),
        'the number of hidden characters to be shown',
        stdout.slice(0, 300),
      );
      const [{ arguments: args }] = (await fixture.json(['approvals'])).approvals;
      expect(args.command === command, 'the whole command in the document', args.command.length);
    },
  }));
