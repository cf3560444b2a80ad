import fc from 'fast-check';
import { expect } from 'vitest';
import { verifies } from '../../../spec/verifies.js';
import { compileAction, compileText, lookupIn } from './placeholders.js';
import { splitWords } from './words.js';

verifies('plan.words', 'quotes and whitespace split a text into words', () => {
  const examples: [string, string[]][] = [
    ['', []],
    [' \t\n', []],
    ["edit {file} 'add logging'", ['edit', '{file}', 'add logging']],
    ['  a  b\tc\nd ', ['a', 'b', 'c', 'd']],
    ["a'b c'd", ['ab cd']],
    [`a"b c"'d e'f`, ['ab cd ef']],
    [`'' "" x''`, ['', '', 'x']],
    [String.raw`"a \"b\" \\ \n"`, [String.raw`a "b" \ \n`]],
    [String.raw`'a \" b' c\d`, [String.raw`a \" b`, String.raw`c\d`]],
    [`"it's" 'say "x"'`, ["it's", 'say "x"']],
    ['a\u00a0b', ['a', 'b']],
  ];
  for (const [text, words] of examples) expect(splitWords(text), text).toEqual(words);
});

verifies('plan.words', 'a quote that is not closed is refused with its column', () => {
  const examples: [string, number][] = [
    ["view 'a", 6],
    ['view a"b', 7],
    [String.raw`view "a\"`, 6],
    [`"a" 'b' 'c`, 9],
  ];
  for (const [text, column] of examples)
    expect(() => splitWords(text, '/steps/0/action'), text).toThrow(`not closed (column ${column})`);
});

verifies('plan.words', 'a text of more than 64 KiB or 1,000 words is refused', () => {
  expect(splitWords('a '.repeat(1_000))).toHaveLength(1_000);
  expect(() => splitWords('a '.repeat(1_001))).toThrow('1000 words');
  expect(splitWords('a'.repeat(65_536))).toHaveLength(1);
  for (const compile of [splitWords, compileText, compileAction])
    expect(() => compile('a'.repeat(65_537))).toThrow(expect.objectContaining({ code: 'DEFINITION_INVALID' }));
});

verifies('plan.words', 'a value is part of exactly one word, whatever it contains', () => {
  const values = fc.oneof(fc.string(), fc.constantFrom("' '", '" "', '{x}', 'a b', '{{', '}}', '$(x)', '; rm'));
  fc.assert(
    fc.property(values, values, (file, x) => {
      const action = compileAction(`edit {file} pre{x}'- {x} -'"{file}" {{x}}`);
      expect(action.placeholders).toEqual(['file', 'x']);
      expect(action.render(lookupIn({ file, x }))).toEqual(['edit', file, `pre${x}- ${x} -${file}`, '{x}']);
    }),
  );
});

verifies('plan.words', 'quoting any text gives it back as one word', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: fc.constantFrom(...'ab \'"\\\n\t{}') })), (words) => {
      const double = words.map((word) => `"${word.replace(/["\\]/g, '\\$&')}"`);
      const single = words.map((word) => `'${word.replaceAll("'", `'"'"'`)}'`);
      expect(splitWords(double.join(' '))).toEqual(words);
      expect(splitWords(single.join('\n'))).toEqual(words);
    }),
  );
});

verifies('plan.words', 'placeholders are filled with text as it is and other values as JSON', () => {
  const values = { a: 'x', 'b-1': { c: [1, 'y'], d: null }, n: 0.5, é: true, list: ['first'] };
  const examples: [string, string][] = [
    ['{a}', 'x'],
    ['<{a}{a}>', '<xx>'],
    ['{b-1.c} {b-1.d} {n} {é}', '[1,"y"] null 0.5 true'],
    ['{b-1}', '{"c":[1,"y"],"d":null}'],
    ['{list.0} {b-1.c.1}', 'first y'],
    ['{{a}} {{{a}}} {{}}', '{a} {x} {}'],
    ['', ''],
  ];
  for (const [text, rendered] of examples) expect(compileText(text).render(lookupIn(values)), text).toBe(rendered);
});

verifies('plan.words', 'a placeholder without a value is an error that lists the available names', () => {
  const text = compileText('view {file} {range.start}');
  expect(text.placeholders).toEqual(['file', 'range.start']);
  const values = { file: 'a', range: { end: 1 } };
  expect(() => text.render(lookupIn(values), Object.keys(values))).toThrow(
    'The placeholder {range.start} has no value; available: file, range.',
  );
  for (const name of ['__proto__', 'constructor.name', 'file.length', 'range.__proto__', 'toString'])
    expect(() => compileText(`{${name}}`).render(lookupIn(values)), name).toThrow(
      expect.objectContaining({ code: 'MAPPING_FAILED' }),
    );
});

verifies('plan.words', 'a brace that opens or closes no placeholder is refused with its column', () => {
  const examples: [string, number][] = [
    ['view { x', 6],
    ['{}', 1],
    ['a {b c}', 3],
    ['a } b', 3],
    ['{a}}', 4],
    ['{{{', 3],
    ['{a..b}', 1],
    ['{.a}', 1],
    [`x {'a'}`, 3],
  ];
  for (const [text, column] of examples)
    expect(() => compileAction(text, '/steps/0/action'), text).toThrow(`(column ${column})`);
});
