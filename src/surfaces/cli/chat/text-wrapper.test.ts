import fc from 'fast-check';
import { expect } from 'vitest';
import { verifies } from '../../../../spec/verifies.js';
import { widthOf } from '../terminal-text.js';
import { TextWrapper } from './text-wrapper.js';

const flow = (room = 10): TextWrapper => new TextWrapper({ bar: '| ', maxColumns: () => room, style: (text) => text });

/** What is written for these pieces. */
function poured(pieces: readonly string[], room?: number): string {
  const into = flow(room);
  return pieces.map((piece) => into.feed(piece)).join('') + into.endRow();
}

verifies('cli.chat', 'words are torn apart at the edge, or indented text loses its shape', () => {
  expect(poured(['one two three four'])).toBe('| one two\n| three four\n');
  expect(poured(['  - a\n  - b\n\nend'])).toBe('|   - a\n|   - b\n| \n| end\n');
  expect(poured(['abcdefghijklmnopqrstuvwxyz'])).toBe('| abcdefghij\n| klmnopqrst\n| uvwxyz\n');
  expect(poured(['wide 漢字漢字漢字'])).toBe('| wide\n| 漢字漢字漢\n| 字\n');
  expect(poured(['end.   '])).toBe('| end.\n');
  expect(poured([''])).toBe('');
});

verifies('cli.chat', 'an answer is shown only once it is there as a whole', () => {
  const into = flow(40);
  expect(into.feed('The ans')).toBe('| The');
  expect(into.feed('wer is')).toBe(' answer');
  expect(into.feed(' 42.\n')).toBe(' is 42.\n');
  expect(into.endRow()).toBe('');
});

verifies('cli.chat', 'how an answer is cut into pieces changes what is read', () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'b', ' ', '\n', '漢', 'long', '  ') });
  fc.assert(
    fc.property(text, fc.array(fc.nat(20)), fc.integer({ min: 8, max: 30 }), (whole, cuts, room) => {
      const edges = [0, ...cuts.map((cut) => Math.min(cut, whole.length)).sort((a, b) => a - b), whole.length];
      const pieces = edges.slice(1).map((edge, index) => whole.slice(edges[index], edge));
      const out = poured(pieces, room);
      expect(out).toBe(poured([whole], room));
      const rows = out.split('\n').slice(0, -1);
      expect(rows.every((row) => row.startsWith('| ') && widthOf(row) <= room + 2)).toBe(true);
      const letters = (words: string): string => words.replace(/[ \n|]/g, '');
      expect(letters(out)).toBe(letters(whole));
    }),
  );
});
