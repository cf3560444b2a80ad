// The markers in the source match the tables of guards, and an operation breaks a guard as specified or is refused.

import ts from 'typescript';
import { expect } from 'vitest';
import { nodes, parse } from '../house/syntax.js';
import { isTest, type SourceText, sources } from '../house/tree.js';
import { verifies } from '../verifies.js';
import { fileOf, librarySources, markersIn } from './markers.js';
import { mutate, type Operation } from './mutate.js';

/** The slugs in the rows of the tables of a file: calls of what `guardsOf` returned. */
function slugsIn(text: SourceText): string[] {
  const all = [...nodes(parse(text))];
  const calls = all.filter(ts.isCallExpression);
  const isTable = ({ initializer }: ts.VariableDeclaration): boolean =>
    initializer !== undefined && ts.isCallExpression(initializer) && initializer.expression.getText() === 'guardsOf';
  const tables = new Set(
    all
      .filter(ts.isVariableDeclaration)
      .filter(isTable)
      .map(({ name }) => name.getText()),
  );
  const rows = calls.filter(({ expression }) => tables.has(expression.getText()));
  return rows.map((row) => {
    const slug = row.arguments[2];
    return slug && ts.isStringLiteral(slug) ? slug.text : `not a literal: ${row.getText()}`;
  });
}

const twins = sources(['spec/guards'])
  .filter(({ file }) => isTest(file))
  .flatMap(slugsIn);

const SOURCE = `
const limit = 5;
function check(a, b, c) {
  // Why it is so.
  // guard: condition
  if (a && b) return undefined;
  // guard: branch
  else if (c) a.stop();
  // guard: loop
  while (a) b();
  // guard: statement
  b(c);
  // guard: assignment
  a.value = copy(b);
  const parts = [a, /* guard: element */ ...b, c];
  const text = \`\${/* guard: span */ a}:1\`;
  if (a && /* guard: operand */ b) c(a, /* guard: argument */ b.trim('x'));
  // guard: method
  return a.b.trim('x') as string;
}
`;

const broken: readonly [slug: string, operation: Operation, expected: string][] = [
  ['condition', 'never', 'if (false) return undefined;'],
  ['condition', 'always', 'if (true) return undefined;'],
  ['condition', { take: 1 }, 'if (b) return undefined;'],
  ['branch', 'drop', 'else ;'],
  ['branch', 'never', 'else if (false) a.stop();'],
  ['loop', 'never', 'while (false) b();'],
  ['statement', 'drop', '// guard: statement\n  ;\n'],
  ['statement', { take: 0 }, '// guard: statement\n  c;'],
  ['assignment', { value: '0' }, 'a.value = 0;'],
  ['assignment', { take: 1 }, '// guard: assignment\n  copy(b);'],
  ['element', 'drop', '[a, /* guard: element */ c]'],
  ['span', { value: "''" }, "{/* guard: span */ ''}:1"],
  ['operand', 'drop', 'if (a) c('],
  ['operand', 'always', 'if (a && /* guard: operand */ true) c('],
  ['argument', 'drop', 'c(a);'],
  ['argument', { take: 'receiver' }, 'c(a, /* guard: argument */ b);'],
  ['method', { take: 'receiver' }, 'return a.b;'],
  ['method', { literal: ['x', 'y'] }, "return a.b.trim('y') as string;"],
  ['method', { rewrite: [/trim\('x'\)/, 'slice(0, 1)'] }, 'return a.b.slice(0, 1) as string;'],
];

for (const [slug, operation, expected] of broken) {
  verifies('house.guards', `guard "${slug}" is broken by ${JSON.stringify(operation)}`, () => {
    expect(mutate('a.ts', SOURCE, slug, operation)).toContain(expected);
  });
}

const refused: readonly [promise: string, slug: string, operation: Operation, message: RegExp][] = [
  ['an unknown guard is refused', 'missing', 'drop', /0 markers/],
  ['an operation that changes nothing is refused', 'loop', { value: 'a' }, /changes nothing/],
  ['a text that does not occur is refused', 'method', { rewrite: [/absent/, ''] }, /does not match/],
  ['a name that the file does not use is refused', 'method', { value: 'unknown' }, /the name unknown/],
  ['a twin that cannot be parsed is refused', 'method', { value: '(' }, /expected/i],
  ['a part that does not exist is refused', 'method', { take: 4 }, /no part 4/],
  ['a literal that does not occur is refused', 'method', { literal: ['z', ''] }, /0 times/],
];

for (const [promise, slug, operation, message] of refused) {
  verifies('house.guards', promise, () => {
    expect(() => mutate('a.ts', SOURCE, slug, operation)).toThrow(message);
  });
}

verifies('house.guards', 'a declaration cannot be dropped', () => {
  const text = '// guard: name\nconst name = 1;\nuse(name);';
  expect(() => mutate('a.ts', text, 'name', 'drop')).toThrow(/declaration/);
});

verifies('house.guards', 'a marker that is misspelt, or that marks nothing, is refused', () => {
  const marked = (text: string) => () => markersIn(parse({ file: 'a.ts', text }));
  expect(marked('// guard: a-b1\nf();')()).toHaveLength(1);
  for (const text of ['// guard: A\nf();', '// guard:a\nf();', '/** guard: a */\nf();', 'f(); // guard: a\ng();'])
    expect(marked(text)).toThrow(/a\.ts:1/);
  for (const text of ['f(/* guard: a */\n b);', '// guard: a\n// Why.\nf();'])
    expect(marked(text)).toThrow(/marks nothing/);
  expect(marked('// guard: a\n// guard: b\nf();')()).toHaveLength(2);
  expect(() => mutate('a.ts', '// guard: a\nf();\n// guard: a\ng();', 'a', 'drop')).toThrow(/2 markers/);
});

verifies('house.guards', 'every marker in src is unique and used by a twin, and every twin has its marker', () => {
  const guarded = librarySources().filter(({ text }) => text.includes('guard:'));
  const markers = guarded.flatMap((source) => markersIn(parse(source)).map(({ slug }) => slug));
  expect(markers.filter((slug, at) => markers.indexOf(slug) !== at)).toEqual([]);
  expect([...new Set(twins)].sort()).toEqual([...markers].sort());
  for (const slug of markers) expect(fileOf(slug).text).toContain(`guard: ${slug}`);
});
