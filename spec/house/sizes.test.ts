import { expect } from 'vitest';
import { verifies } from '../verifies.js';
import { codeLines, limits, sizeFaults } from './sizes.js';
import { isTest, type SourceText, sources } from './tree.js';

const lines = (count: number, line: string): string => `${line}\n`.repeat(count);
const at = (file: string, text: string): SourceText => ({ file, text });

verifies('house.sizes', 'headers and accessors stay within their limits, and file names are specific', () => {
  const files = sources(['src', 'bench', 'examples', 'scripts', 'spec', 'web']).filter(({ file }) => !isTest(file));
  expect(files.flatMap(sizeFaults)).toEqual([]);
});

verifies('house.sizes', 'the kernel has at most 1,300 lines of code', () => {
  const kernel = sources(['src/kernel']).filter(({ file }) => !isTest(file));
  const total = kernel.map(codeLines).reduce((sum, count) => sum + count, 0);
  expect(limits.kernel).toBe(1300);
  expect(total, 'the kernel is too large to be read at one sitting').toBeLessThanOrEqual(limits.kernel);
});

verifies('house.sizes', 'an accessor of more than 100 lines is rejected', () => {
  const accessor = (count: number): string => `class C { get g() {\n${lines(count - 2, 'a();')}}}`;
  expect(sizeFaults(at('src/kernel/a.ts', accessor(100)))).toEqual([]);
  expect(sizeFaults(at('src/kernel/a.ts', accessor(101)))).toHaveLength(1);
});

verifies('house.sizes', 'a header of more than eight lines is rejected', () => {
  expect(sizeFaults(at('src/kernel/a.ts', `${lines(8, '// why')}\n${lines(3, '// more')}a();`))).toEqual([]);
  expect(sizeFaults(at('src/kernel/a.ts', `#!/usr/bin/env node\n${lines(9, '// why')}a();`))).toHaveLength(1);
  expect(sizeFaults(at('src/kernel/a.ts', `/**\n${lines(8, ' * why')} */\na();`))).toHaveLength(1);
});

verifies('house.sizes', 'a vague file name is rejected', () => {
  const vague = ['utils.ts', 'text-helpers.ts', 'common/a.ts', 'session.manager.ts', 'types.ts'];
  for (const name of vague) expect(sizeFaults(at(`src/kernel/${name}`, 'a();')), name).toHaveLength(1);
  expect(sizeFaults(at('src/kernel/typed-entry.ts', 'a();'))).toEqual([]);
});

verifies('house.sizes', 'only lines of code count toward the kernel, and each of them does', () => {
  const text =
    '// why\n\n/** doc\n * doc\n */\nexport const a = 1; // why\n/* b */ f(`x\n// not a comment\n`);\n\n// end\n';
  expect(codeLines(at('src/kernel/a.ts', text))).toBe(4);
});
