import { expect } from 'vitest';
import { verifies } from '../verifies.js';
import { codeLines, limits, sizeFaults } from './sizes.js';
import { isTest, type SourceText, sources } from './tree.js';

const lines = (count: number, line: string): string => `${line}\n`.repeat(count);
const at = (file: string, text: string): SourceText => ({ file, text });
const ofLength = (count: number): string => `{\n${lines(count - 2, 'a();')}}`;

verifies('house.sizes', 'a file, function or header outgrows its reader', () => {
  const files = sources(['src', 'bench', 'examples', 'scripts', 'spec', 'web']).filter(({ file }) => !isTest(file));
  expect(files.flatMap(sizeFaults)).toEqual([]);
});

verifies('house.sizes', 'the kernel grows until nobody reads it whole', () => {
  const kernel = sources(['src/kernel']).filter(({ file }) => !isTest(file));
  const total = kernel.map(codeLines).reduce((sum, count) => sum + count, 0);
  expect(total).toBeLessThanOrEqual(limits.kernel);
});

verifies('house.sizes', 'a file of 401 lines passes', () => {
  expect(sizeFaults(at('src/kernel/a.ts', lines(400, 'a();')))).toEqual([]);
  expect(sizeFaults(at('src/kernel/a.ts', lines(401, 'a();')))).toHaveLength(1);
});

const functions: readonly [kind: string, head: string, tail: string][] = [
  ['function', 'function f() ', ''],
  ['arrow', 'const f = () => ', ';'],
  ['method', 'class C { m() ', '}'],
  ['constructor', 'class C { constructor() ', '}'],
  ['getter', 'class C { get g() ', '}'],
  ['object method', 'const o = { m() ', '};'],
];

for (const [kind, head, tail] of functions) {
  verifies('house.sizes', `a long ${kind} passes`, () => {
    expect(sizeFaults(at('src/kernel/a.ts', head + ofLength(60) + tail))).toEqual([]);
    expect(sizeFaults(at('src/kernel/a.ts', head + ofLength(61) + tail))).toHaveLength(1);
  });
}

verifies('house.sizes', 'a header becomes an essay', () => {
  expect(sizeFaults(at('src/kernel/a.ts', `${lines(8, '// why')}\n${lines(3, '// more')}a();`))).toEqual([]);
  expect(sizeFaults(at('src/kernel/a.ts', `#!/usr/bin/env node\n${lines(9, '// why')}a();`))).toHaveLength(1);
  expect(sizeFaults(at('src/kernel/a.ts', `/**\n${lines(8, ' * why')} */\na();`))).toHaveLength(1);
});

verifies('house.sizes', 'a drawer for everything appears', () => {
  const drawers = ['utils.ts', 'text-helpers.ts', 'common/a.ts', 'session.manager.ts', 'types.ts'];
  for (const name of drawers) expect(sizeFaults(at(`src/kernel/${name}`, 'a();'))).toHaveLength(1);
  expect(sizeFaults(at('src/kernel/typed-entry.ts', 'a();'))).toEqual([]);
});

verifies('house.sizes', 'comments and blank lines count as kernel code, or code as comments', () => {
  const text =
    '// why\n\n/** doc\n * doc\n */\nexport const a = 1; // why\n/* b */ f(`x\n// not a comment\n`);\n\n// end\n';
  expect(codeLines(at('src/kernel/a.ts', text))).toBe(4);
});
