import { expect } from 'vitest';
import { verifies } from '../verifies.js';
import { commentFaults, evaluationFaults, type Manifest, manifestFaults } from './hygiene.js';
import { readText, sources } from './tree.js';

const at = (text: string) => ({ file: 'src/a.ts', text });

verifies('house.hygiene', 'no comment postpones work or suppresses a check', () => {
  const files = sources(['src', 'bench', 'examples', 'scripts', 'spec', 'web']);
  expect(files.flatMap(commentFaults)).toEqual([]);
});

verifies('house.hygiene', 'no source evaluates text as code', () => {
  expect(sources(['src']).flatMap(evaluationFaults)).toEqual([]);
});

for (const folder of ['', 'examples/compare/mastra/']) {
  verifies('house.hygiene', `every version in ${folder}package.json is exact`, () => {
    expect(manifestFaults(JSON.parse(readText(`${folder}package.json`)))).toEqual([]);
    expect(readText(`${folder}package-lock.json`), 'the lockfile names a registry').not.toContain('"resolved"');
  });
}

for (const text of [
  '// TODO later',
  'f(); /* FIXME */',
  '// @ts-ignore\nf();',
  '// @ts-nocheck\nf();',
  '/* biome-ignore lint: no */ f();',
]) {
  verifies('house.hygiene', `this comment is rejected: ${JSON.stringify(text)}`, () => {
    expect(commentFaults(at(text))).toHaveLength(1);
  });
}

for (const text of ['new Function("return 1");', 'Function("return 1")();', 'globalThis.Function("return 1")();']) {
  verifies('house.hygiene', `this evaluation is rejected: ${text}`, () => {
    expect(evaluationFaults(at(text))).toHaveLength(1);
  });
}

verifies('house.hygiene', 'a string or a template is not mistaken for a comment or a call', () => {
  const text = `const a = "// TODO"; const b = \`\${a} // @ts-ignore\`; type Fn = { Function: string }; redis.Function(b);`;
  expect([...commentFaults(at(text)), ...evaluationFaults(at(text))]).toEqual([]);
});

verifies('house.hygiene', 'a version range or a tag is rejected', () => {
  const faults = (version: string): number => manifestFaults({ dependencies: { a: version } }).length;
  expect(['^1.0.0', '~1.0.0', '>=1.0.0', '1.x', '*', 'latest', '1.0'].map(faults)).toEqual([1, 1, 1, 1, 1, 1, 1]);
  expect(['1.0.0', '1.0.0-rc.1', 'npm:typescript@7.0.2', 'npm:@a/b@1.2.3'].map(faults)).toEqual([0, 0, 0, 0]);
  for (const field of ['optionalDependencies', 'devDependencies', 'overrides'] satisfies (keyof Manifest)[]) {
    expect(manifestFaults({ [field]: { a: '^1.0.0' } })).toHaveLength(1);
  }
  expect(manifestFaults({ overrides: { a: { b: '^1.0.0' } } })).toHaveLength(1);
});

verifies('house.hygiene', 'a manifest declares at most twelve runtime dependencies', () => {
  const packages = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`p${i}`, '1.0.0']));
  expect(manifestFaults({ dependencies: packages(12) })).toEqual([]);
  expect(manifestFaults({ dependencies: packages(12), optionalDependencies: { q: '1.0.0' } })).toHaveLength(1);
});
