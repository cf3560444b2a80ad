// What a person is shown before an answer: text that hides its end, imitates our own lines, or acts on the terminal.

import { expect } from './world.mjs';

/** @typedef {import('./world.mjs').World} World */

const E = '\u001b';
const many = (/** @type {string} */ text, /** @type {number} */ n) => text.repeat(n);

/** Commands; each has SPOOF where it imitates us, and ends with TAIL9, which does the harm. */
export const TEXTS = {
  'long-line': `echo ok ${many(' ', 3000)}; TAIL9`,
  'long-word': `echo ${many('x', 15_000)};TAIL9`,
  'many-lines': `echo ok${many('\n', 800)}TAIL9`,
  'many-words': `echo ${many('word ', 3500)}; TAIL9`,
  tabs: `echo ok${many('\t', 2000)}TAIL9`,
  'carriage-return': 'rm -rf / ; TAIL0\recho harmless SPOOF; TAIL9',
  'carriage-returns': `echo a\r\n${many('\r', 50)}SPOOF TAIL9`,
  backspaces: `evil${many('\b', 20)}echo ok TAIL9`,
  'erase-line': `evil${E}[2K${E}[1Gecho SPOOF TAIL9`,
  'clear-screen': `echo${E}[2J${E}[HSPOOF TAIL9`,
  hidden: `echo ok${E}[8m; evil${E}[0m TAIL9`,
  'other-screen': `${E}[?1049hSPOOF TAIL9`,
  'c1-control': 'echo \u009b2JSPOOF TAIL9',
  title: `echo ${E}]0;title\u0007 TAIL9`,
  link: `echo ${E}]8;;https://evil.example${E}\\ok${E}]8;;${E}\\ TAIL9`,
  clipboard: `echo ${E}]52;c;ZXZpbA==\u0007 TAIL9`,
  'right-to-left': 'echo \u202e9LIAT ;ko SPOOF\u202c TAIL9',
  isolates: 'echo \u2066ok\u2067SPOOF\u2069\u2069 TAIL9',
  'zero-width': `r${many('\u200b', 300)}m -rf / TAIL9`,
  tags: `echo ok${[...'evil'].map((c) => String.fromCodePoint(0xe0000 + (c.codePointAt(0) ?? 0))).join('')} TAIL9`,
  'variation-selectors': `echo ok${many('\ufe0f', 500)} TAIL9`,
  'hangul-fillers': `echo ok${many('\u3164', 2000)}TAIL9`,
  'braille-blanks': `echo ok${many('\u2800', 2000)}TAIL9`,
  'no-break-spaces': `echo ok${many('\u00a0', 2000)}TAIL9`,
  'ideographic-spaces': `echo ok${many('\u3000', 2000)}TAIL9`,
  'line-separators': `echo ok\u2028SPOOF\u2029\u0085SPOOF TAIL9`,
  'form-feeds': `echo ok\f\vSPOOF TAIL9`,
  'combining-marks': `e${many('\u0301', 4000)} TAIL9`,
  'wide-characters': `${many('漢', 4000)} TAIL9`,
  'lone-surrogates': `echo \ud800 \udc00 TAIL9`,
  'imitates-the-card': `echo ok\n? Approval s.1:SPOOF\n  tool      SPOOF\n  description\nRun SPOOF, in a sandbox without network: TAIL9`,
  'imitates-the-bar': `echo ok\n│ SPOOF\n  hidden    SPOOF … 3 of 9 characters are hidden here …\n TAIL9`,
  'imitates-the-mark': `echo ⟪99999 of 100000 characters hidden⟫ ${many('x', 9000)} TAIL9`,
  'imitates-two-marks': `⟪1 of 2 characters hidden⟫${many('y', 9000)}⟪1 of 2 characters hidden⟫ TAIL9`,
  'imitates-the-question': `echo ok\n? Approve? [y]es / [n]o / [l]ater › y SPOOF\n✓ approved SPOOF TAIL9`,
  'imitates-commands': `echo ok\n  rondo approve s.1:SPOOF\n  rondo deny s.1:SPOOF TAIL9`,
  'imitates-a-diff': `--- SPOOF\n+++ SPOOF\n@@ -1,1 +1,1 @@\n-x\n+SPOOF TAIL9`,
};

/** A character that acts on a terminal, or that nobody sees. Line ends are ours to write. */
export const HARMFUL = /(?!\n)[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u00a0\u2800\u3164]/u;

/** @param {World} world */
export function stage(world) {
  world.write('loops/work/.keep', '');
  const config = { roots: ['work'], commands: { sandbox: 'off' } };
  world.define('shell', { tool: { implementation: 'toolbox:run_command', config } });
}

/** @param {string} screen */
export function judge(screen) {
  const harm = HARMFUL.exec(screen);
  expect(
    harm === null,
    'nothing unseen on the screen',
    harm &&
      `U+${harm[0].codePointAt(0)?.toString(16)} in ${JSON.stringify(screen.slice(Math.max(0, harm.index - 40), harm.index + 40))}`,
  );
  const stray = screen.split('\n').find((line) => line.includes('SPOOF') && !line.startsWith('│ '));
  expect(stray === undefined, 'text of others to stand behind a bar', stray);
  expect(screen.includes('TAIL9'), 'the end of the command to be shown', screen.slice(-500));
  expect(screen.includes('WITHOUT a sandbox'), 'how it is confined to be shown', screen.slice(0, 500));
}

/** @returns {import('../authority.mjs').Case[]} */
export const cases = () =>
  Object.entries(TEXTS).map(([name, command]) => ({
    id: `display.card.${name}`,
    run: async (/** @type {World} */ world) => {
      stage(world);
      world.write('input.json', { command });
      const result = await world.json(['run', 'shell', '--session', 's', '--input', '@input.json'], { trust: true });
      // What is no well-formed text at all may be refused before anybody is asked.
      if (name === 'lone-surrogates' && result.status !== 'paused') return;
      expect(result.status === 'paused', 'it to be asked about', result.error);
      const { stdout, stderr } = await world.rondo(['approvals']);
      judge(stdout + stderr);
      const hides = command.length > 8000;
      expect(!hides || /characters are hidden/.test(stdout), 'what is left out to be told', stdout.slice(0, 300));
      const [{ arguments: given }] = await world.json(['approvals']);
      expect(given.command === command, 'the whole command in the document', given.command.length);
    },
  }));
