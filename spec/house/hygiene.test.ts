import { expect } from 'vitest';
import { verifies } from '../verifies.js';
import { evaluationFaults, hygieneFaults, type Manifest, manifestFaults } from './hygiene.js';
import { readText, sources } from './tree.js';

const at = (text: string) => ({ file: 'src/a.ts', text });

verifies('house.hygiene', 'work is postponed or a check switched off', () => {
  const files = sources(['src', 'bench', 'examples', 'scripts', 'spec', 'web']);
  expect(files.flatMap(hygieneFaults)).toEqual([]);
});

verifies('house.hygiene', 'text runs as code', () => {
  expect(sources(['src']).flatMap(evaluationFaults)).toEqual([]);
});

verifies('house.hygiene', 'an install resolves to versions nobody tried', () => {
  expect(manifestFaults(JSON.parse(readText('package.json')))).toEqual([]);
  expect(readText('package-lock.json')).not.toContain('"resolved"');
});

for (const text of [
  '// TODO later',
  'f(); /* FIXME */',
  '// @ts-ignore\nf();',
  '/* biome-ignore lint: no */ f();',
  'let a: any;',
  'f<Map<string, any>>();',
]) {
  verifies('house.hygiene', `this passes: ${text}`, () => {
    expect(hygieneFaults(at(text))).toHaveLength(1);
  });
}

for (const text of [
  'eval("1");',
  'new Function("return 1");',
  'Function("return 1")();',
  'globalThis.eval("1");',
  "import vm from 'node:vm';",
  "await import('vm');",
]) {
  verifies('house.hygiene', `this runs text as code and passes: ${text}`, () => {
    expect(evaluationFaults(at(text))).toHaveLength(1);
  });
}

verifies('house.hygiene', 'a word in a string or a template is taken for a comment', () => {
  const text = `const a = "// TODO"; const b = \`\${a} // @ts-ignore\`; type Any = { any: string }; redis.eval(b);`;
  expect([...hygieneFaults(at(text)), ...evaluationFaults(at(text))]).toEqual([]);
});

verifies('house.hygiene', 'a range or a tag is taken for a version', () => {
  const faults = (version: string): number => manifestFaults({ dependencies: { a: version } }).length;
  expect(['^1.0.0', '~1.0.0', '>=1.0.0', '1.x', '*', 'latest', '1.0'].map(faults)).toEqual([1, 1, 1, 1, 1, 1, 1]);
  expect(['1.0.0', '1.0.0-rc.1', 'npm:typescript@7.0.2', 'npm:@a/b@1.2.3'].map(faults)).toEqual([0, 0, 0, 0]);
  for (const field of ['optionalDependencies', 'devDependencies', 'overrides'] satisfies (keyof Manifest)[]) {
    expect(manifestFaults({ [field]: { a: '^1.0.0' } })).toHaveLength(1);
  }
});

verifies('house.hygiene', 'a manifest declares at most twelve runtime dependencies', () => {
  const some = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`p${i}`, '1.0.0']));
  expect(manifestFaults({ dependencies: some(12) })).toEqual([]);
  expect(manifestFaults({ dependencies: some(12), optionalDependencies: { q: '1.0.0' } })).toHaveLength(1);
});
