import fc from 'fast-check';
import { eastAsianWidth } from 'get-east-asian-width';
import { expect } from 'vitest';
import { verifies } from '../../../spec/verifies.js';
import {
  breakIntoRows,
  createColors,
  formatCost,
  formatCount,
  formatDuration,
  isColorEnabled,
  renderSpans,
  sanitizeText,
  truncate,
  truncateSpans,
  widthOf,
  widthOfSpans,
  wrapWords,
} from './terminal-text.js';

/** Invisible characters, and characters that control a terminal. */
const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u;

verifies('cli.tree', 'colours are printed only on a terminal, and never with NO_COLOR', () => {
  const tty = { isTTY: true };
  expect(isColorEnabled(tty, {})).toBe(true);
  expect(isColorEnabled({}, {})).toBe(false);
  expect(isColorEnabled({ isTTY: false }, { TERM: 'xterm-256color' })).toBe(false);
  expect(isColorEnabled(tty, { NO_COLOR: '1' })).toBe(false);
  expect(isColorEnabled(tty, { NO_COLOR: '' })).toBe(true);
  expect(isColorEnabled(tty, { NO_COLOR: '1', FORCE_COLOR: '1' })).toBe(false);
  expect(isColorEnabled({}, { FORCE_COLOR: '1' })).toBe(true);
  expect(isColorEnabled({}, { FORCE_COLOR: '', TERM: 'dumb' })).toBe(true);
  expect(isColorEnabled(tty, { FORCE_COLOR: '0' })).toBe(false);
  expect(isColorEnabled(tty, { TERM: 'dumb' })).toBe(false);
});

verifies('cli.tree', 'a colour ends with its text, and is omitted without colour', () => {
  expect(createColors(true).red('a')).toBe('\u001b[31ma\u001b[39m');
  expect(createColors(true).dim('a')).toBe('\u001b[2ma\u001b[22m');
  expect(createColors(true).bold('')).toBe('');
  const none = createColors(false);
  for (const style of [none.dim, none.bold, none.red, none.green, none.yellow, none.cyan]) expect(style('a')).toBe('a');
});

verifies('cli.tree', 'hidden and control characters are escaped', () => {
  expect(sanitizeText('\u001b[2J\u001b]0;owned\u0007')).toBe('\\x1b[2J\\x1b]0;owned\\x07');
  expect(sanitizeText('\u009b31m')).toBe('\\x9b31m');
  expect(sanitizeText('user\u202egnp.exe')).toBe('user\\u202egnp.exe');
  expect(sanitizeText('ad\u200bmin\ufeff\u00ad')).toBe('ad\\u200bmin\\ufeff\\xad');
  expect(sanitizeText('\u{e0041}\ud800')).toBe('\\u{e0041}\\ud800');
  expect(sanitizeText('a\nb\r\nc\rd\te\u2028')).toBe('a⏎b⏎c\\rd\\te\\u2028');
  expect(sanitizeText('a\nb', { lines: true })).toBe('a\nb');
  expect(sanitizeText('straße 東京 ⚠️ a\ufe0f')).toBe('straße 東京 ⚠️ a\\ufe0f');
});

verifies('cli.tree', 'a long text is truncated', () => {
  expect(sanitizeText('x'.repeat(10_000))).toBe(`${'x'.repeat(1000)}…`);
  expect(sanitizeText('ab😀', { max: 3 })).toBe('ab…');
});

verifies('cli.tree', 'wide characters count as two columns', () => {
  expect(widthOf('abc')).toBe(3);
  expect(widthOf('é├─✓…→')).toBe(6);
  expect(widthOf('東京')).toBe(4);
  expect(widthOf('😀⚡')).toBe(4);
  expect(truncate('東京都', 4)).toBe('東…');
  expect(truncate('abc', 3)).toBe('abc');
  expect(truncate('abc', 0)).toBe('');
  expect(renderSpans(truncateSpans([['ab', 'red'], ['cd']], 3), createColors(false))).toBe('ab…');
  expect(renderSpans(truncateSpans([['ab'], ['cd']], 4), createColors(false))).toBe('abcd');
});

verifies('cli.tree', 'no character counts as narrower than its East Asian Width', () => {
  const narrow: string[] = [];
  for (let code = 0x20; code <= 0x10ffff; code++)
    if (widthOf(String.fromCodePoint(code)) < eastAsianWidth(code)) narrow.push(code.toString(16));
  expect(narrow).toEqual([]);
});

verifies('cli.tree', 'a long message is wrapped between words, up to a maximum of lines', () => {
  expect(wrapWords('the quick brown fox', 10, 5)).toEqual(['the quick', 'brown fox']);
  expect(wrapWords('abcdefghij', 4, 5)).toEqual(['abcd', 'efgh', 'ij']);
  expect(wrapWords('the quick brown fox', 10, 1)).toEqual(['the quick…']);
  expect(wrapWords('東京', 1, 3)).toEqual([]);
  expect(wrapWords('', 10, 3)).toEqual([]);
});

verifies('cli.tree', 'durations, counts and costs are formatted briefly', () => {
  const times = [0, 12, 999.4, 999.6, 1240, 9994, 9996, 59_949, 59_951, 123_000, 3_599_600, 18_420_000, 277_200_000];
  expect(times.map(formatDuration)).toEqual([
    ...['0 ms', '12 ms', '999 ms', '1.00 s', '1.24 s', '9.99 s', '10.0 s', '59.9 s', '1 m 00 s', '2 m 03 s'],
    ...['1 h 00 m', '5 h 07 m', '3 d 05 h'],
  ]);
  expect([0, 96, 999, 1204, 9999, 12_345, 999_949, 1_234_567, 5e9, 1e16].map(formatCount)).toEqual([
    ...['0', '96', '999', '1,204', '9,999', '12.3k', '999.9k', '1.2M', '5.0G', 'very many'],
  ]);
  expect([0, 3, 1234, 999_949, 1_200_000].map(formatCost)).toEqual(['$0', '<$0.0001', '$0.0012', '$0.9999', '$1.20']);
});

verifies('cli.tree', 'sanitised text has no control characters, and truncated text fits its width', () => {
  const text = fc.string({ unit: 'binary', maxLength: 80 });
  fc.assert(
    fc.property(text, fc.integer({ min: 0, max: 40 }), (input, width) => {
      const safe = sanitizeText(input);
      expect(safe).not.toMatch(HIDDEN);
      expect(sanitizeText(safe)).toBe(safe);
      expect(widthOf(truncate(safe, width))).toBeLessThanOrEqual(width);
      expect(widthOfSpans(truncateSpans([[safe], [safe, 'red']], width))).toBeLessThanOrEqual(width);
      for (const line of wrapWords(safe, width, 4)) expect(widthOf(line)).toBeLessThanOrEqual(width);
    }),
    { numRuns: 1000 },
  );
});

verifies('cli.tree', 'a text that is split into rows keeps every character, and every row fits', () => {
  expect(breakIntoRows('one two three', 8)).toEqual(['one two ', 'three']);
  expect(breakIntoRows('', 8)).toEqual(['']);
  expect(breakIntoRows('漢字', 1)).toEqual(['漢', '字']);
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), fc.integer({ min: 2, max: 20 }), (text, width) => {
      const rows = breakIntoRows(text, width);
      expect(rows.join('')).toBe(text);
      expect(rows.every((row) => widthOf(row) <= width)).toBe(true);
    }),
  );
});
