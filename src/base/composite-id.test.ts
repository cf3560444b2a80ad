import fc from 'fast-check';
import { expect } from 'vitest';
import { verifies } from '../../spec/verifies.js';
import { digestOfText } from '../journal/record.js';
import { compositeId } from './composite-id.js';

type Parts = readonly [string, ...string[]];

/** Characters that separators, escapes and encodings are made of, lone surrogates among them. */
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
  fc.array(fc.oneof(character, loneSurrogate())).map((all) => all.join('')),
);
const parts = fc.tuple(part, fc.array(part, { maxLength: 4 })).map(([first, rest]): Parts => [first, ...rest]);

function loneSurrogate(): fc.Arbitrary<string> {
  return fc.integer({ min: 0xd800, max: 0xdfff }).map((code) => String.fromCharCode(code));
}

/** The inverse, which exists only if no two lists share a text. */
function partsOf(id: string): string[] {
  return id
    .split(':')
    .map((escaped) =>
      escaped.replace(/%(?:u([0-9A-F]{4})|([0-9A-F]{2}))/g, (_, long, short) =>
        String.fromCharCode(Number.parseInt(long ?? short, 16)),
      ),
    );
}

verifies('identity.injective', 'a composite id gives back exactly the parts that it was made of', () => {
  fc.assert(
    fc.property(parts, (given) => {
      expect(partsOf(compositeId(...given))).toEqual(given);
    }),
    { numRuns: 5000, seed: 7 },
  );
});

verifies('identity.injective', 'different parts have different ids and different digests', () => {
  fc.assert(
    fc.property(parts, parts, (one, other) => {
      const same = JSON.stringify(one) === JSON.stringify(other);
      expect(compositeId(...one) === compositeId(...other)).toBe(same);
      expect(digestOfText(compositeId(...one)) === digestOfText(compositeId(...other))).toBe(same);
    }),
    { numRuns: 5000, seed: 11 },
  );
  const close: readonly Parts[] = [
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
  expect(new Set(close.map((given) => digestOfText(compositeId(...given)))).size).toBe(close.length);
});

verifies(
  'identity.injective',
  'parts without a special character keep the text that earlier versions gave them',
  () => {
    expect(compositeId('chat', 'm1')).toBe('chat:m1');
    expect(compositeId('tool', 'pay', 'call_0')).toBe('tool:pay:call_0');
  },
);
