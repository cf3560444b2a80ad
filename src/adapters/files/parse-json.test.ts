import { expect } from 'vitest';
import { verifies } from '../../../spec/verifies.js';
import type { DocumentReadError } from './document-read-error.js';
import { parseJson, positionInJson } from './parse-json.js';
import { parseToml, positionInToml } from './parse-toml.js';

function fault(read: () => unknown): string {
  try {
    read();
  } catch (error) {
    const { message, place } = error as DocumentReadError;
    return place === undefined ? message : `${place.line}:${place.column} ${message}`;
  }
  return 'nothing';
}

verifies('definition.place', 'a document that is JSON is read as something else', () => {
  const texts = [
    '{}',
    ' [ 1 , -0.5e+3, 1E2, 0, "", "\\u00e9\\n\\"\\\\\\/", true, false, null, [], {"a":{"b":[{}]}} ] ',
    '"plain"',
    '{"a":1,"":2,"constructor":3,"ключ":"\\ud83d\\ude00 😀"}',
  ];
  for (const text of texts) expect(parseJson(text), text).toEqual(JSON.parse(text));
});

verifies('definition.place', 'a document that is not JSON is read, or nobody says where it stops being JSON', () => {
  const wrong: [string, string][] = [
    ['', '1:1 the text ends where a value should be'],
    ['{"a": 1,\n  "b": 2,\n  "a": 3}', '3:3 the key "a" is there twice'],
    ['{"a":{"b":1,"\\u0062":2}}', '1:13 the key "b" is there twice'],
    ['{"a": 1,}', '1:9 "}" stands where a key in double quotes should be'],
    ["{'a': 1}", '1:2 "\'" stands where a key in double quotes should be'],
    ['{"a" 1}', '1:6 "1" stands where ":" should be'],
    ['[1 2]', '1:4 "2" stands where "," or "]" should be'],
    ['[1,\n\n  nul]', '3:3 "n" stands where a value should be'],
    ['[01]', '1:3 "1" stands where "," or "]" should be'],
    ['[1.]', '1:3 "." stands where "," or "]" should be'],
    ['[+1]', '1:2 "+" stands where a value should be'],
    ['[NaN]', '1:2 "N" stands where a value should be'],
    ['{} x', '1:4 there is text after the end of the document'],
    ['["a', '1:2 the text ends inside a string'],
    ['["a\nb"]', '1:4 a control character stands in a string; write it as an escape'],
    ['["\\x41"]', '1:3 an escape in a string is not one that JSON knows'],
    ['["\\u12g4"]', '1:3 an escape in a string is not one that JSON knows'],
    ['// note\n{}', '1:1 "/" stands where a value should be'],
    ['😀', '1:1 "😀" stands where a value should be'],
    ['['.repeat(100_000), '1:257 it is nested deeper than 256'],
  ];
  for (const [text, says] of wrong)
    expect(
      fault(() => parseJson(text)),
      text.slice(0, 40),
    ).toBe(says);
});

verifies('definition.place', 'a flaw is told without the line it stands in', () => {
  const json = '{\n  "id": "a",\n  "composite": {\n    "steps": [\n      {},\n      {"loopId": "b"}\n    ]\n  }\n}';
  expect(positionInJson(json, '/id')).toEqual({ line: 2, column: 3 });
  expect(positionInJson(json, '/composite/steps/1')).toEqual({ line: 6, column: 7 });
  expect(positionInJson(json, '/composite/steps/1/loopId')).toEqual({ line: 6, column: 8 });
  expect(positionInJson(json, '/composite/steps/0/inputMapping/a')).toEqual({ line: 5, column: 7 });
  expect(positionInJson(json, '/name')).toEqual({ line: 1, column: 1 });
  const toml = [
    'id = "a"',
    'prompt.template = """',
    'name = "not a key"',
    '"""',
    '[composite]',
    '  [[composite.steps]]',
    'loopId = "a"',
    '[[composite.steps]]',
    '  "loopId" = "b"',
    "[prices.'a/b']",
    'x.y = 1',
  ].join('\n');
  const lines = [
    '/id',
    '/prompt/template',
    '/name',
    '/composite/steps/0/loopId',
    '/composite/steps/1/loopId',
    '/composite/steps/1/no',
    '/prices/a~1b/x/y',
  ];
  expect(lines.map((path) => positionInToml(toml, path)?.line)).toEqual([1, 2, undefined, 7, 9, 8, 11]);
});

verifies('definition.place', 'a document that is not TOML is told without its place', () => {
  expect(fault(() => parseToml('a = 1\nb = \n'))).toMatch(/^2:\d+ /);
  expect(fault(() => parseToml('a = 1\na = 2'))).toMatch(/^2:1 trying to redefine/);
  expect(fault(() => parseToml('n = 99999999999999999999'))).toMatch(/^1:5 integer value/);
  expect(fault(() => parseToml(`a = ${'['.repeat(5000)}`))).toMatch(/^1:\d+ .*nested/);
  expect(fault(() => parseToml(`k = "${'x'.repeat(100_000)}`)).length).toBeLessThan(400);
});
