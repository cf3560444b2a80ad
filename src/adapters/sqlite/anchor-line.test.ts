/** Lines of the anchor file: their checksums, and how they are read back. */
import { crc32 } from 'node:zlib';
import fc from 'fast-check';
import { expect } from 'vitest';
import { verifies } from '../../../spec/verifies.js';
import { parseAnchor } from './anchor-file.js';
import { AnchorLineReader, encodeLine, formatLine } from './anchor-line.js';

const ascii = fc.string({ unit: 'grapheme-ascii', maxLength: 300 });
const long = fc.tuple(ascii, fc.nat(2000)).map(([text, times]) => text.repeat(times).slice(0, 40_000));
const fields = fc.oneof(ascii, fc.string({ unit: 'binary' }), long);

verifies('sqlite.damage', 'a line of the anchor has the CRC-32 of zlib for any text and length', () => {
  fc.assert(
    fc.property(fields, (text) => {
      const line = `${crc32(text)} ${text}\n`;
      expect(formatLine(text)).toBe(line);
      const { bytes, from, to } = encodeLine(text);
      expect(bytes.subarray(from, to).equals(Buffer.from(line))).toBe(true);
    }),
    { numRuns: 2000 },
  );
});

/** Returns the fields of a line; undefined if its checksum does not match. */
function fieldsOf(line: string): string | undefined {
  const reader = new AnchorLineReader(line);
  if (!reader.nextLine() || !reader.verifyChecksum()) return undefined;
  const result: string[] = [];
  while (reader.hasMoreFields) result.push(reader.readField());
  return result.join('\t');
}

const field = fc.string({ unit: 'grapheme-ascii', minLength: 1, maxLength: 80 });

verifies('sqlite.damage', 'a line of the anchor is read back, and a changed character in it is detected', () => {
  fc.assert(
    fc.property(fc.array(field, { minLength: 1 }), fc.nat(), (parts, offset) => {
      const text = parts.join('\t');
      const line = formatLine(text).slice(0, -1);
      expect(fieldsOf(line)).toBe(text);
      const at = offset % line.length;
      const other = line[at] === 'x' ? 'y' : 'x';
      expect(fieldsOf(line.slice(0, at) + other + line.slice(at + 1))).toBeUndefined();
      expect(fieldsOf(`0${line}`)).toBeUndefined();
    }),
  );
});

verifies('sqlite.damage', 'any number in a line of the anchor is read back exactly', () => {
  const number = fc.oneof(fc.maxSafeNat(), fc.maxSafeInteger(), fc.double({ noNaN: true }));
  fc.assert(
    fc.property(fc.array(number, { minLength: 1 }), fc.constantFrom(' ', '\t'), (numbers, separator) => {
      const reader = new AnchorLineReader(formatLine(numbers.join(separator)));
      expect([reader.nextLine(), reader.verifyChecksum()]).toEqual([true, true]);
      // Adding 0 turns -0 into 0, because the text of a number has no negative zero.
      expect(numbers.map(() => reader.readNumber() + 0)).toEqual(numbers.map((value) => value + 0));
    }),
  );
});

verifies('sqlite.damage', 'a text that is not an anchor is read to its end and has flaws', () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(fc.string({ unit: 'binary' }), ascii.map(formatLine))), (lines) => {
      const text = lines.join('\n');
      const reader = new AnchorLineReader(text);
      let count = 0;
      while (reader.nextLine()) count += 1;
      expect(count).toBe(text === '' ? 0 : text.replace(/\n$/, '').split('\n').length);
      expect(parseAnchor(text).flaws).not.toEqual([]);
    }),
  );
});
