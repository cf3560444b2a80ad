import fc from 'fast-check';
import { expect } from 'vitest';
import { verifies } from '../../../../spec/verifies.js';
import { widthOf } from '../terminal-text.js';
import { TextWrapper } from './text-wrapper.js';

const wrapperOf = (columns = 10): TextWrapper =>
  new TextWrapper({ bar: '| ', maxColumns: () => columns, style: (text) => text });

/** Returns the output for these pieces of text. */
function wrap(pieces: readonly string[], columns?: number): string {
  const wrapper = wrapperOf(columns);
  return pieces.map((piece) => wrapper.feed(piece)).join('') + wrapper.endRow();
}

verifies('cli.chat', 'text is wrapped between words and keeps its indentation', () => {
  expect(wrap(['one two three four'])).toBe('| one two\n| three four\n');
  expect(wrap(['  - a\n  - b\n\nend'])).toBe('|   - a\n|   - b\n| \n| end\n');
  expect(wrap(['abcdefghijklmnopqrstuvwxyz'])).toBe('| abcdefghij\n| klmnopqrst\n| uvwxyz\n');
  expect(wrap(['wide 漢字漢字漢字'])).toBe('| wide\n| 漢字漢字漢\n| 字\n');
  expect(wrap(['end.   '])).toBe('| end.\n');
  expect(wrap([''])).toBe('');
});

verifies('cli.chat', 'an answer is shown word by word as it arrives', () => {
  const wrapper = wrapperOf(40);
  expect(wrapper.feed('The ans')).toBe('| The');
  expect(wrapper.feed('wer is')).toBe(' answer');
  expect(wrapper.feed(' 42.\n')).toBe(' is 42.\n');
  expect(wrapper.endRow()).toBe('');
});

verifies('cli.chat', 'the output does not depend on how the text is divided', () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'b', ' ', '\n', '漢', 'long', '  ') });
  fc.assert(
    fc.property(text, fc.array(fc.nat(20)), fc.integer({ min: 8, max: 30 }), (whole, cuts, columns) => {
      const edges = [0, ...cuts.map((cut) => Math.min(cut, whole.length)).sort((a, b) => a - b), whole.length];
      const pieces = edges.slice(1).map((edge, index) => whole.slice(edges[index], edge));
      const out = wrap(pieces, columns);
      expect(out).toBe(wrap([whole], columns));
      const rows = out.split('\n').slice(0, -1);
      expect(rows.every((row) => row.startsWith('| ') && widthOf(row) <= columns + 2)).toBe(true);
      const letters = (value: string): string => value.replace(/[ \n|]/g, '');
      expect(letters(out)).toBe(letters(whole));
    }),
  );
});
