import fc from 'fast-check';
import { expect } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import { digestOfText } from '../journal/record.js';
import { compositeId } from './composite-id.js';

type Parts = readonly [string, ...string[]];

/** Characters of separators, escapes and encodings. */
const character = fc.constantFrom(
  ':',
  '%',
  '%3A',
  '%25',
  '%uD800',
  'a',
  '3',
  'u',
  '/',
  ' ',
  '\0',
  'é',
  'e\u0301',
  '😀',
);
const part = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.array(fc.oneof(character, loneSurrogate())).map((characters) => characters.join('')),
);
const parts = fc.tuple(part, fc.array(part, { maxLength: 4 })).map(([first, rest]): Parts => [first, ...rest]);

function loneSurrogate(): fc.Arbitrary<string> {
  return fc.integer({ min: 0xd800, max: 0xdfff }).map((code) => String.fromCharCode(code));
}

/** The inverse of `compositeId`. It exists only if the encoding is injective. */
function partsOf(id: string): string[] {
  return id
    .split(':')
    .map((escaped) =>
      escaped.replace(/%(?:u([0-9A-F]{4})|([0-9A-F]{2}))/g, (_, long, short) =>
        String.fromCharCode(Number.parseInt(long ?? short, 16)),
      ),
    );
}

verifies('identity.injective', 'a composite id can be decoded to exactly its parts', () => {
  fc.assert(
    fc.property(parts, (list) => {
      expect(partsOf(compositeId(...list))).toEqual(list);
    }),
    { numRuns: 5000, seed: 7 },
  );
});

verifies('identity.injective', 'different parts have different ids and different digests', () => {
  fc.assert(
    fc.property(parts, parts, (one, other) => {
      const isSame = JSON.stringify(one) === JSON.stringify(other);
      expect(compositeId(...one) === compositeId(...other)).toBe(isSame);
      expect(digestOfText(compositeId(...one)) === digestOfText(compositeId(...other))).toBe(isSame);
    }),
    { numRuns: 5000, seed: 11 },
  );
  const similar: readonly Parts[] = [
    ['a:b', 'c'],
    ['a', 'b:c'],
    ['a', 'b', 'c'],
    ['a:b:c'],
    ['a%3Ab', 'c'],
    ['', 'a'],
    ['a', ''],
    ['a'],
    [''],
    ['', ''],
    ['\ud800'],
    ['\ud801'],
    ['\ufffd'],
    ['%uD800'],
    ['\u00e9'],
    ['e\u0301'],
    ['A'],
  ];
  expect(new Set(similar.map((list) => digestOfText(compositeId(...list)))).size).toBe(similar.length);
});

verifies('identity.injective', 'parts without a special character have the same id as in earlier versions', () => {
  expect(compositeId('chat', 'm1')).toBe('chat:m1');
  expect(compositeId('tool', 'pay', 'call_0')).toBe('tool:pay:call_0');
});
