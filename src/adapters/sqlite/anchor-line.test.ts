import { crc32 } from 'node:zlib';
import fc from 'fast-check';
import { expect } from 'vitest';
import { verifies } from '../../../spec/verifies.js';
import { encodedLine, fieldsOf, lineOf } from './anchor-line.js';

const ascii = fc.string({ unit: 'grapheme-ascii', maxLength: 300 });
const long = fc.tuple(ascii, fc.nat(2000)).map(([text, times]) => text.repeat(times).slice(0, 40_000));
const fields = fc.oneof(ascii, fc.string({ unit: 'binary' }), long);

verifies(
  'sqlite.damage',
  'a line of the anchor has the checksum that zlib gives it, whatever its text and length',
  () => {
    fc.assert(
      fc.property(fields, (text) => {
        const line = `${crc32(text)} ${text}\n`;
        expect(lineOf(text)).toBe(line);
        expect(encodedLine(text).equals(Buffer.from(line))).toBe(true);
      }),
      { numRuns: 2000 },
    );
  },
);

verifies('sqlite.damage', 'a line of the anchor is read back, and with a character changed it is not', () => {
  fc.assert(
    fc.property(ascii, fc.nat(), (text, place) => {
      const line = lineOf(text).slice(0, -1);
      expect(fieldsOf(line)?.join('\t')).toBe(text);
      const at = place % line.length;
      const other = line[at] === 'x' ? 'y' : 'x';
      expect(fieldsOf(line.slice(0, at) + other + line.slice(at + 1))).toBeUndefined();
    }),
  );
});
