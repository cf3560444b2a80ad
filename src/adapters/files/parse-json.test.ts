import { expect } from 'vitest';
import { verifies } from '../../../spec/verifies.js';
import type { DocumentReadError } from './document-read-error.js';
import { findJsonPositions, parseJson } from './parse-json.js';
import { parseToml } from './parse-toml.js';

function errorOf(parse: () => unknown): string {
  try {
    parse();
  } catch (error) {
    const { message, position } = error as DocumentReadError;
    return position === undefined ? message : `${position.line}:${position.column} ${message}`;
  }
  return 'no error';
}

verifies('definition.place', 'valid JSON is parsed as JSON.parse does', () => {
  const texts = [
    '{}',
    ' [ 1 , -0.5e+3, 1E2, 0, "", "\\u00e9\\n\\"\\\\\\/", true, false, null, [], {"a":{"b":[{}]}} ] ',
    '"plain"',
    '{"a":1,"":2,"constructor":3,"ключ":"\\ud83d\\ude00 😀"}',
  ];
  for (const text of texts) expect(parseJson(text), text).toEqual(JSON.parse(text));
});

verifies('definition.place', 'invalid JSON is rejected with line, column and reason', () => {
  const invalid: [string, string][] = [
    ['', '1:1 expected a value, but the text ends'],
    ['{"a": 1,\n  "b": 2,\n  "a": 3}', '3:3 duplicate key "a"'],
    ['{"a":{"b":1,"\\u0062":2}}', '1:13 duplicate key "b"'],
    ['{"a": 1,}', '1:9 expected a key in double quotes, but found "}"'],
    ["{'a': 1}", '1:2 expected a key in double quotes, but found "\'"'],
    ['{"a" 1}', '1:6 expected ":", but found "1"'],
    ['[1 2]', '1:4 expected "," or "]", but found "2"'],
    ['[1,\n\n  nul]', '3:3 expected a value, but found "n"'],
    ['[01]', '1:3 expected "," or "]", but found "1"'],
    ['[1.]', '1:3 expected "," or "]", but found "."'],
    ['[+1]', '1:2 expected a value, but found "+"'],
    ['[NaN]', '1:2 expected a value, but found "N"'],
    ['{} x', '1:4 there is text after the end of the document'],
    ['["a', '1:2 the text ends inside a string'],
    ['["a\nb"]', '1:4 unescaped control character in a string'],
    ['["\\x41"]', '1:3 invalid escape sequence in a string'],
    ['["\\u12g4"]', '1:3 invalid escape sequence in a string'],
    ['// note\n{}', '1:1 expected a value, but found "/"'],
    ['😀', '1:1 expected a value, but found "😀"'],
    ['['.repeat(100_000), '1:257 it is nested deeper than 256 levels'],
  ];
  for (const [text, message] of invalid)
    expect(
      errorOf(() => parseJson(text)),
      text.slice(0, 40),
    ).toBe(message);
});

verifies('definition.place', 'a member is found by its JSON Pointer in JSON', () => {
  const json = '{\n  "id": "a",\n  "composite": {\n    "steps": [\n      {},\n      {"loopId": "b"}\n    ]\n  }\n}';
  expect(findJsonPositions(json)('/id')).toEqual({ line: 2, column: 3 });
  expect(findJsonPositions(json)('/composite/steps/1')).toEqual({ line: 6, column: 7 });
  expect(findJsonPositions(json)('/composite/steps/1/loopId')).toEqual({ line: 6, column: 8 });
  expect(findJsonPositions(json)('/composite/steps/0/inputMapping/a')).toEqual({ line: 5, column: 7 });
  expect(findJsonPositions(json)('/name')).toEqual({ line: 1, column: 1 });
});

verifies('definition.place', 'invalid TOML is rejected with line, column and a short reason', () => {
  expect(errorOf(() => parseToml('a = 1\nb = \n'))).toMatch(/^2:\d+ /);
  expect(errorOf(() => parseToml('a = 1\na = 2'))).toMatch(/^2:1 trying to redefine/);
  expect(errorOf(() => parseToml('n = 99999999999999999999'))).toMatch(/^1:5 integer value/);
  expect(errorOf(() => parseToml(`a = ${'['.repeat(5000)}`))).toMatch(/^1:\d+ .*nested/);
  expect(errorOf(() => parseToml(`k = "${'x'.repeat(100_000)}`)).length).toBeLessThan(400);
});
