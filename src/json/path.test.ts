import fc from 'fast-check';
import { JSONPathEnvironment } from 'json-p3';
import { expect } from 'vitest';
import { codeOf } from '../../spec/support/code-of.js';
import { inProcessorTime } from '../../spec/support/processor-time.js';
import { verifies } from '../../spec/verifies.js';
import { LoopError } from '../base/errors.js';
import type { Json } from '../protocol/json.js';
import { countCharacters } from './characters.js';
import { compileJsonPath } from './path.js';

const find = (text: string, root: Json) => compileJsonPath(text, '').findAll(root);
const failureCode = (work: () => unknown) => codeOf(Promise.resolve().then(work));

verifies('path.rfc9535', 'a malformed path is refused at registration', async () => {
  const malformed = [
    '',
    '$.',
    'a',
    '$[',
    '$[?(',
    '$.a b',
    '$[01]',
    '$[?match(@.a)]',
    '$.a..',
    '@.a',
    '$[?@.a=1]',
    "$['a",
    '$.a$',
  ];
  for (const text of [
    ...malformed,
    `$${'.a'.repeat(5_000)}`,
    `$[?${'('.repeat(4_000)}`,
    `$[?${'!'.repeat(8_000)}@.a]`,
  ]) {
    expect(await failureCode(() => compileJsonPath(text, '/steps/0/inputMapping')), text.slice(0, 50)).toBe(
      'DEFINITION_INVALID',
    );
  }
  expect(await failureCode(() => compileJsonPath(3 as unknown as string, ''))).toBe('DEFINITION_INVALID');
  try {
    compileJsonPath('$.a[', '/steps/0/inputMapping/x');
    expect.unreachable();
  } catch (error) {
    const { message, data } = error as LoopError;
    expect(message).toContain('The path "$.a[" at /steps/0/inputMapping/x cannot be used: ');
    expect(data).toMatchObject({ path: '/steps/0/inputMapping/x', reason: expect.stringContaining('unclosed') });
  }
});

verifies('path.rfc9535', 'a path selects own members only', () => {
  const document = JSON.parse('{"a": [1, {"x y": 2}], "n": null, "__proto__": {"b": 3}}');
  expect(find('$.toString', document)).toEqual([]);
  expect(find('$.constructor.name', document)).toEqual([]);
  expect(find("$['__proto__'].b", document)).toEqual([3]);
  expect(find('$.__proto__.c', { a: 1 })).toEqual([]);
  expect(find('$.length', ['a'])).toEqual([]);
  expect(find("$['0']", ['a'])).toEqual([]);
  expect(find('$.a.length', { a: 'text' })).toEqual([]);
  expect(find('$..toString', document)).toEqual([]);
  expect(find('$[?@.length]', { a: 'text' })).toEqual([]);
  expect(find('$[0]', { 0: 'a' })).toEqual([]);
});

verifies('path.rfc9535', 'findOne returns the selected value if there is exactly one', () => {
  const document = { a: [1, { 'x y': null }], b: { c: 1, d: 2 } };
  const findOne = (text: string) => compileJsonPath(text, '').findOne(document);
  expect(
    ["$.a[1]['x y']", '$.a[-2]', '$.a[-3]', '$.a[2]', '$.b.x', '$.b[*]', '$.b[?@ > 1]', '$', '$..c'].map(findOne),
  ).toEqual([null, 1, undefined, undefined, undefined, undefined, 2, document, 1]);
  expect(compileJsonPath("$.a[1]['x y']", '').singularSegments).toEqual(['a', 1, 'x y']);
  for (const text of ['$.b[*]', '$..c', '$.a[0,1]', '$.a[0:1]'])
    expect(compileJsonPath(text, '').singularSegments, text).toBe(undefined);
  expect(compileJsonPath('$.a', '/here')).toBe(compileJsonPath('$.a', '/there'));
});

verifies('path.rfc9535', 'the root identifier in a nested filter is the root of the document', () => {
  const document = {
    c: 1,
    a: [
      { b: [1], c: 5 },
      { b: [2], c: 2 },
    ],
  };
  expect(find('$.a[?@.b[?@ == $.c]]', document)).toEqual([{ b: [1], c: 5 }]);
  expect(find('$[?length(@) == 1]', ['😀', '😀😀', 'é'])).toEqual(['😀', 'é']);
  expect(find("$[?@ < '\u{1f600}']", ['\uffff', '\u{1f601}', 'a'])).toEqual(['\uffff', 'a']);
});

verifies('path.bounds', 'the number of selected values is bounded', async () => {
  const wide = Array.from({ length: 400 }, () => Array.from({ length: 300 }, (_, i) => i));
  expect(await failureCode(() => find('$..*', wide))).toBe('MAPPING_FAILED');
  expect(await failureCode(() => find('$[*][*]', wide))).toBe('MAPPING_FAILED');
  expect(find('$[*][0]', wide)).toHaveLength(400);
  let deep: Json = {};
  for (let i = 0; i < 200; i++) deep = { a: deep, b: deep };
  expect(await failureCode(() => find('$..a', deep))).toBe('MAPPING_FAILED');
  for (let i = 0; i < 100_000; i++) deep = { a: deep };
  expect(await failureCode(() => find('$..a', deep))).toBe('MAPPING_FAILED');
  expect(await failureCode(() => find('$[?@ == $.a]', { a: deep, b: nested(100_000) }))).toMatch(
    /nothing|MAPPING_FAILED/,
  );
  expect(find('$.a.a.a.b', deep)).toEqual([]);
});

function nested(levels: number): Json {
  let value: Json = {};
  for (let i = 0; i < levels; i++) value = { a: value };
  return value;
}

verifies('path.bounds', 'the number of visited values is bounded', async () => {
  const list = Array.from({ length: 3_000 }, (_, i) => ({ i, text: 'a'.repeat(50) }));
  const chain = nested(200);
  const unbounded = ['$[?count($..*) > 0]', "$[?search($[0].text, 'a') && count($[?@.i > 1]) > 1]"];
  const long = 'a'.repeat(1_000_000);
  await inProcessorTime(10_000, async () => {
    expect(await failureCode(() => find('$..[?@..[?@..[?@..[?@..b]]]]', chain))).toBe('MAPPING_FAILED');
    for (const text of unbounded) expect(await failureCode(() => find(text, list)), text).toBe('MAPPING_FAILED');
    expect(await failureCode(() => find('$.list[?length($.long) > 1]', { list, long }))).toBe('MAPPING_FAILED');
  });
});

verifies('path.bounds', 'a pattern in a filter matches in linear time', async () => {
  const evil = `${'a'.repeat(50_000)}!`;
  await inProcessorTime(200, () => {
    expect(find("$[?match(@, '(a+)+')]", [evil])).toEqual([]);
    expect(find("$[?search(@, '(a|a)*b')]", [evil])).toEqual([]);
    expect(find('$.list[?match(@, $.pattern)]', { pattern: '(?=a).*', list: ['a'] })).toEqual([]);
  });
  expect(await failureCode(() => compileJsonPath("$[?match(@, '(?=a)')]", ''))).toBe('DEFINITION_INVALID');
  expect(await failureCode(() => compileJsonPath("$[?search(@, '(')]", ''))).toBe('DEFINITION_INVALID');
});

const name = fc.constantFrom('a', 'b', 'c', 'x y', "it's", '0', 'toString', '😀');
const document = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'medium' },
    fc.constantFrom<Json>(null, true, 0, 1, 2, 'a', 'b', 'ab', ''),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(name, tie('value'), { maxKeys: 4 }) as fc.Arbitrary<Json>,
  ),
})).value;
const index = fc.integer({ min: -3, max: 3 });
const selector = fc.oneof(
  name.map((text) => JSON.stringify(text)),
  index.map(String),
  fc.constant('*'),
  fc.tuple(fc.option(index), fc.option(index), fc.option(index)).map(([a, b, c]) => `${a ?? ''}:${b ?? ''}:${c ?? ''}`),
  fc
    .tuple(
      fc.constantFrom('@.a', '@', '@[0]', '$.b', 'length(@)', 'count(@.*)', 'value(@..a)', '1', "'a'"),
      fc.constantFrom('==', '!=', '<', '<=', '>', '>='),
    )
    .chain(([left, operator]) =>
      fc.constantFrom('@.b', '@', '1', "'ab'", 'null', 'true').map((right) => `?${left} ${operator} ${right}`),
    ),
  fc.constantFrom('?@.a', '?!@.a', '?@.a && @.b', '?@.a || !@.b', '?@[?@ == 1]'),
);
const segment = fc.tuple(fc.constantFrom('', '', '..'), fc.array(selector, { minLength: 1, maxLength: 2 }));
const path = fc
  .array(segment, { maxLength: 4 })
  .map((segments) => `$${segments.map(([dots, selectors]) => `${dots}[${selectors.join(',')}]`).join('')}`);

verifies('path.rfc9535', 'a random path selects the same values as another implementation', () => {
  const reference = new JSONPathEnvironment();
  fc.assert(
    fc.property(path, document, (text, root) => {
      const expected = reference.query(text, root as Parameters<typeof reference.query>[1]).values();
      expect(find(text, root)).toEqual(expected);
    }),
    { numRuns: 1_500 },
  );
});

verifies('path.rfc9535', 'a path that needs no parser selects the same values as another implementation', () => {
  const reference = new JSONPathEnvironment();
  const plain = fc.constantFrom('.a', '.b', '._', "['x y']", "['0']", '[0]', '[-1]', '[2]', '.*', '[*]');
  fc.assert(
    fc.property(fc.array(plain, { maxLength: 4 }), document, (segments, root) => {
      const text = `$${segments.join('')}`;
      const expected = reference.query(text, root as Parameters<typeof reference.query>[1]).values();
      expect(find(text, root)).toEqual(expected);
    }),
    { numRuns: 1_500 },
  );
});

verifies('path.bounds', 'random text is either a valid path or refused with DEFINITION_INVALID', () => {
  const parts = fc.constantFrom(
    '$',
    '@',
    '.',
    '..',
    '[',
    ']',
    '?',
    '(',
    ')',
    '*',
    ',',
    ':',
    "'",
    '"',
    '\\',
    'a',
    '1',
    '-',
    '==',
    '&&',
    '!',
    'match',
    ' ',
    '\ud800',
  );
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.array(parts, { maxLength: 12 }).map((list) => `$${list.join('')}`),
      ),
      (text) => {
        try {
          expect(Array.isArray(find(text, { a: [1] }))).toBe(true);
        } catch (error) {
          expect(error).toBeInstanceOf(LoopError);
          expect((error as LoopError).code).toBe('DEFINITION_INVALID');
        }
      },
    ),
    { numRuns: 2_000 },
  );
});

verifies('path.rfc9535', 'the length of a text is counted in characters', () => {
  const units = fc.constantFrom('a', '\ud83d', '\ude00', '😀', 'é', '\u200d');
  fc.assert(
    fc.property(
      fc.array(units).map((parts) => parts.join('')),
      (text) => {
        expect(countCharacters(text)).toBe([...text].length);
      },
    ),
  );
});
