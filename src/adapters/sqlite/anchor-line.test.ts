import { crc32 } from 'node:zlib';
import fc from 'fast-check';
import { expect } from 'vitest';
import { verifies } from '../../../spec/verifies.js';
import { parseAnchor } from './anchor-file.js';
import { AnchorLineReader, encodeLine, formatLine } from './anchor-line.js';

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
        expect(formatLine(text)).toBe(line);
        const { bytes, from, to } = encodeLine(text);
        expect(bytes.subarray(from, to).equals(Buffer.from(line))).toBe(true);
      }),
      { numRuns: 2000 },
    );
  },
);

function fieldsOf(line: string): string | undefined {
  const reader = new AnchorLineReader(line);
  if (!reader.nextLine() || !reader.verifyChecksum()) return undefined;
  const found: string[] = [];
  while (reader.hasMoreFields) found.push(reader.readField());
  return found.join('\t');
}

const field = fc.string({ unit: 'grapheme-ascii', minLength: 1, maxLength: 80 });

verifies('sqlite.damage', 'a line of the anchor is read back, and with a character changed it is not', () => {
  fc.assert(
    fc.property(fc.array(field, { minLength: 1 }), fc.nat(), (all, place) => {
      const text = all.join('\t');
      const line = formatLine(text).slice(0, -1);
      expect(fieldsOf(line)).toBe(text);
      const at = place % line.length;
      const other = line[at] === 'x' ? 'y' : 'x';
      expect(fieldsOf(line.slice(0, at) + other + line.slice(at + 1))).toBeUndefined();
      expect(fieldsOf(`0${line}`)).toBeUndefined();
    }),
  );
});

verifies('sqlite.damage', 'a number in a line of the anchor is read back, whatever the clock that it came from', () => {
  const number = fc.oneof(fc.maxSafeNat(), fc.maxSafeInteger(), fc.double({ noNaN: true }));
  fc.assert(
    fc.property(fc.array(number, { minLength: 1 }), fc.constantFrom(' ', '\t'), (all, blank) => {
      const reader = new AnchorLineReader(formatLine(all.join(blank)));
      expect([reader.nextLine(), reader.verifyChecksum()]).toEqual([true, true]);
      expect(all.map(() => reader.readNumber() + 0)).toEqual(all.map((value) => value + 0));
    }),
  );
});

verifies('sqlite.damage', 'a text that is no anchor is read to its end, and found to have flaws', () => {
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
