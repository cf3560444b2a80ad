import fc from 'fast-check';
import { expect } from 'vitest';
import { codeOf } from '../../spec/support/code-of.js';
import { inProcessorTime } from '../../spec/support/processor-time.js';
import { verifies } from '../../spec/verifies.js';
import { jsonPathPattern, linearPattern } from './linear-pattern.js';

const refusal = (source: string) => codeOf(Promise.resolve().then(() => linearPattern(source)));

verifies('schema.linear', 'catastrophic patterns match in linear time', async () => {
  const long = 50_000;
  const cases: [source: string, text: string, isMatch: boolean][] = [
    ['(a+)+$', `${'a'.repeat(long)}!`, false],
    ['(a|a)*b', 'a'.repeat(long), false],
    ['^(x+x+)+y', 'x'.repeat(long), false],
    ['^([a-z]+)*\\d$', 'q'.repeat(long), false],
    ['(.*a){12}b', 'a'.repeat(long), false],
  ];
  for (const [source, text, isMatch] of cases) {
    const pattern = linearPattern(source);
    await inProcessorTime(100, () => expect(pattern.test(text), source).toBe(isMatch), source);
  }
});

verifies('schema.linear', 'a pattern without a linear-time match is refused by name', async () => {
  for (const source of [
    '(?=a)b',
    '(?!a)',
    '(?<=a)b',
    '(?<!a)b',
    '(a)\\1',
    '(?<n>a)\\k<n>',
    '(?m:^a)',
    '(?s:.)',
    'a{1001}',
  ]) {
    expect(await refusal(source), source).toBe('DEFINITION_INVALID');
    expect(() => linearPattern(source), source).toThrow(JSON.stringify(source));
  }
});

verifies('schema.linear', 'a pattern that is not valid ECMA-262 is refused', async () => {
  for (const source of ['(', 'a{', '[z-a]', '\\a', '\\q', '[\\d-x]', 'a**', '\\u{110000}', '\\p{Nothing}', ')', '\\']) {
    expect(await refusal(source), source).toBe('DEFINITION_INVALID');
  }
  expect(await refusal('a'.repeat(20_000))).toBe('DEFINITION_INVALID');
  expect(await refusal(`${'('.repeat(5_000)}a${')?b'.repeat(5_000)}`)).toBe('DEFINITION_INVALID');
});

/** Pieces of patterns whose syntax or meaning differs between ECMA-262 and RE2. */
const pieces = [
  ...[
    'a',
    'b',
    '.',
    '\\d',
    '\\D',
    '\\w',
    '\\W',
    '\\s',
    '\\S',
    '\\t',
    '\\cJ',
    '\\ca',
    '\\0',
    '\\x41',
    '\\u0041',
    '\\u{1F600}',
  ],
  ...['\\uD83D\\uDE00', '\\uD83D', '\\/', '-', '\\.', '\\$', '[ab]', '[^ab]', '[]', '[^]', '[[]', '[\\]]', '[\\s]'],
  ...[
    '[^\\S]',
    '[\\S\\n]',
    '[\\b]',
    '[\\cJa]',
    '[a\\-z]',
    '[--a]',
    '[\\u{1F600}-\\u{1F64F}]',
    '[[:alpha:]',
    '[&&a]',
    '\\b',
    '\\B',
  ],
  ...[
    '\\p{L}',
    '\\p{Lu}',
    '\\P{L}',
    '\\p{Letter}',
    '\\p{Script=Greek}',
    '\\p{sc=Grek}',
    '\\p{gc=Nd}',
    '\\P{Cs}',
    '\\p{C}',
  ],
  ...[
    '\\p{ASCII}',
    '\\p{Alphabetic}',
    '[\\p{Emoji}x]',
    '[^\\p{White_Space}]',
    '[\\P{Letter}]',
    '😀',
    '[😀é]',
    '^',
    '$',
    'é',
    '\\n',
  ],
];
const piece = fc.constantFrom(...pieces);
const quantified = fc
  .tuple(piece, fc.constantFrom('', '', '', '*', '+', '?', '{2}', '{1,3}', '*?', '{0,}'))
  .map(([part, times]) => (/^(?:\^|\$|\\b|\\B)$/i.test(part) ? part : part + times));
const source = fc.letrec<{ part: string; all: string }>((tie) => ({
  part: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    quantified,
    fc
      .tuple(fc.constantFrom('(', '(?:', '(?<n>'), tie('all'))
      .map(([open, inner]) => (open === '(?<n>' ? `(?:${inner})` : `${open}${inner})`)),
  ),
  all: fc
    .array(tie('part'), { minLength: 1, maxLength: 4 })
    .chain((parts) => fc.constantFrom('', '', '|').map((joint) => parts.join(joint))),
})).all;
const letters = [
  'a',
  'b',
  'A',
  'z',
  '1',
  ' ',
  '\n',
  '\r',
  '\t',
  '\v',
  '\u00a0',
  '\u2028',
  '\ufeff',
  '\0',
  '\b',
  '-',
  '[',
  ']',
  '/',
];
const text = fc
  .array(
    fc.constantFrom(
      ...letters,
      '.',
      '$',
      ':',
      '&',
      'é',
      'Ж',
      'Ω',
      'λ',
      '😀',
      '😁',
      '\ud83d',
      '\ue000',
      '\u0378',
      '٣',
      '_',
      'n',
    ),
    { maxLength: 8 },
  )
  .map((parts) => parts.join(''));

/**
 * True if V8 finds a match that starts at a code point or at the end of the text, as ECMA-262 requires. Without the
 * sticky flag, V8 also tries the position inside a surrogate pair, where \B matches.
 */
function matchesInV8(pattern: string, value: string): boolean {
  const matcher = new RegExp(pattern, 'uy');
  for (let index = 0; index <= value.length; index += (value.codePointAt(index) ?? 0) > 0xffff ? 2 : 1) {
    matcher.lastIndex = index;
    if (matcher.test(value)) return true;
  }
  return false;
}

verifies('schema.linear', 'a translated pattern matches exactly the texts that the original matches', () => {
  fc.assert(
    fc.property(source, text, (pattern, value) => {
      expect(linearPattern(pattern).test(value)).toBe(matchesInV8(pattern, value));
    }),
    { numRuns: 500 },
  );
});

verifies('schema.linear', 'a pattern never matches inside a surrogate pair', () => {
  expect(linearPattern('\\B').test('a😀a')).toBe(false);
  expect(linearPattern('\\B').test('a😀😁a')).toBe(true);
});

verifies('schema.linear', 'case is ignored exactly where a flag or a modifier asks for it', () => {
  expect(linearPattern('geheim', 'i').test('GEHEIM')).toBe(true);
  expect(linearPattern('geheim').test('GEHEIM')).toBe(false);
  expect(linearPattern('a(?i:b)').test('aB')).toBe(true);
  expect(linearPattern('a(?i:b)').test('AB')).toBe(false);
  expect(linearPattern('(?<year>\\d{4})').test('in 1999')).toBe(true);
});

verifies('schema.linear', 'patterns that look simple match in linear time too', async () => {
  const text = 'a'.repeat(50_000);
  const sources = [`^${'a?'.repeat(40)}${'a'.repeat(40)}$`, '^[a]*$', '^a*b', '^[^b]*b?c?$', '^a+$'];
  await inProcessorTime(2000, () => {
    for (const source of sources) expect(typeof linearPattern(source).test(`${text}!`)).toBe('boolean');
  });
  expect(linearPattern(`^${'a?'.repeat(40)}${'a'.repeat(40)}$`).test('a'.repeat(60))).toBe(true);
  expect(linearPattern('^[(|)*+]+$').test('(|)*+')).toBe(true);
  expect(linearPattern('^\\(x\\)*$').test('(x)))')).toBe(true);
});

verifies('path.rfc9535', 'a dot in a JSONPath pattern excludes only line feed and carriage return', () => {
  expect(['\u2028', '\u2029', '😀', '\n', '\r'].map((value) => jsonPathPattern('.', true).test(value))).toEqual([
    true,
    true,
    true,
    false,
    false,
  ]);
  expect(jsonPathPattern('a|b', true).test('ab')).toBe(false);
  expect(jsonPathPattern('a|b', false).test('xb')).toBe(true);
});
