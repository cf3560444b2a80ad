import fc from 'fast-check';
import { expect } from 'vitest';
import { renderToml } from '../../../spec/support/toml-rendering.js';
import { verifies } from '../../../spec/verifies.js';
import { parseToml } from './parse-toml.js';
import { findTomlPositions } from './toml-positions.js';

/** Returns the position of each pointer as `line:column`. */
function positionsOf(text: string, pointers: readonly string[]): string[] {
  parseToml(text);
  const positionOf = findTomlPositions(text);
  return pointers.map((pointer) => {
    const { line, column } = positionOf(pointer);
    return `${line}:${column}`;
  });
}

verifies('definition.place', 'a member of a TOML table is found by its JSON Pointer', () => {
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
    'x . y = 1 # z = 2',
  ].join('\n');
  const pointers = [
    ...['/id', '/prompt', '/prompt/template', '/name', ''],
    ...['/composite/steps', '/composite/steps/0', '/composite/steps/0/loopId', '/composite/steps/1/loopId'],
    ...['/composite/steps/1/no', '/composite/steps/2', '/prices', '/prices/a~1b', '/prices/a~1b/x', '/prices/a~1b/x/y'],
  ];
  const found = ['1:1', '2:1', '2:8', '1:1', '1:1', '6:15', '6:15', '7:1', '9:3', '8:13', '6:15', '10:2', '10:9'];
  expect(positionsOf(toml, pointers)).toEqual([...found, '11:1', '11:5']);
});

verifies('definition.place', 'nested arrays of tables of a TOML workflow are found', () => {
  const toml = [
    '[workflow]',
    'name = "w"',
    '[[workflow.steps]]',
    'action = "view {file}"',
    '[workflow.steps.retry]',
    'strategy = "fixed"',
    '[[workflow.steps.scope.steps]]',
    'action = "one"',
    '[[workflow.steps.scope.steps]]',
    'action = "two"',
    '[[workflow.steps]]',
    '[[workflow.steps.scope.steps]]',
    'action = "three"',
  ].join('\r\n');
  const pointers = [
    '/workflow/steps/0/retry/strategy',
    '/workflow/steps/0/retry/delay',
    '/workflow/steps/0/scope/steps/1/action',
    '/workflow/steps/1',
    '/workflow/steps/1/action',
    '/workflow/steps/1/scope/steps/0/action',
  ];
  expect(positionsOf(toml, pointers)).toEqual(['6:1', '5:17', '10:1', '11:12', '11:12', '13:1']);
});

verifies('definition.place', 'members of inline tables and elements of inline arrays of TOML are found', () => {
  const toml = [
    '\ufeffsteps = [ # b = 1',
    '  { action = "a, ]}", tags = [1, [2, "#"]] },',
    "  { 'on error' = '''x = 1'''''}, # }",
    ']',
    'when = 1979-05-27 07:32:00',
    '"\\u0061\\t\\U0001F600" = { x.y = 1, x.z = "\\\\" }',
    'text = """\\"""" # still a comment',
    'last = 1',
  ].join('\n');
  const pointers = [
    ...['/steps', '/steps/0', '/steps/0/tags/1', '/steps/0/tags/1/1', '/steps/1', '/steps/1/on error', '/steps/1/b'],
    ...['/when', '/a\t😀', '/a\t😀/x/y', '/a\t😀/x/z', '/text', '/last'],
  ];
  const expected = ['1:1', '2:3', '2:34', '2:38', '3:3', '3:5', '3:3', '5:1', '6:1', '6:28', '6:37', '7:1', '8:1'];
  expect(positionsOf(toml, pointers)).toEqual(expected);
});

verifies('definition.place', 'the header of a table is its position, also after that of a subtable', () => {
  expect(positionsOf('[a.b]\nx = 1\n[a]\ny = 1', ['/a', '/a/b', '/a/z', '/a/b/z'])).toEqual([
    '3:2',
    '1:4',
    '3:2',
    '1:4',
  ]);
});

verifies('definition.place', 'every member of every TOML document is found where its key was written', () => {
  const keys = fc
    .oneof(
      fc.stringMatching(/^[a-z]{1,3}$/),
      fc.string({ maxLength: 4 }),
      fc.constantFrom('a/b~c', '"q"', "'", 'ä😀', '', '1', '.', '=', '#'),
    )
    .filter((key) => key !== '__proto__');
  const members = fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('a = 1\n[b]\n', '"""', "'''", '#', '\\'), fc.boolean()),
      fc.integer({ min: -1e6, max: 1e6 }),
      fc.array(tie('value'), { maxLength: 4 }),
      fc.dictionary(keys, tie('value'), { maxKeys: 4 }),
      fc.array(fc.dictionary(keys, tie('value'), { maxKeys: 3 }), { maxLength: 3 }),
    ),
  }));
  const documents = fc.dictionary(keys, members.value, { maxKeys: 5 });
  const checkPositions = (document: { [key: string]: unknown }, seed: number): void => {
    const { text, positions } = renderToml(document, seed);
    expect(parseToml(text), text).toEqual(document);
    const positionOf = findTomlPositions(text);
    for (const [pointer, position] of positions) {
      expect(positionOf(pointer), `${pointer} in\n${text}`).toEqual(position);
      expect(positionOf(`${pointer}/no such member`), `below ${pointer} in\n${text}`).toEqual(position);
    }
  };
  fc.assert(fc.property(documents, fc.integer(), checkPositions), { numRuns: 400 });
});

verifies('definition.place', 'every text is scanned in linear time, also one that is no TOML', () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...'ab.=[]{}"\'#,\\ \n\r') }), (text) => {
      expect(findTomlPositions(text)('/a').line).toBeGreaterThan(0);
    }),
  );
  const long = 300_000;
  const texts = ['[', '{', 'a.', '[a]\n', '"', "'''", '#\n', 'a={', 'a=[', 'a=""""""\n', 'a="\\'];
  const start = performance.now();
  for (const text of texts) expect(findTomlPositions(text.repeat(long / text.length))('/b').line).toBe(1);
  expect(performance.now() - start, 'the scanner takes more than linear time').toBeLessThan(10_000);
});
