// The linter checks these rules in place of a house test. The samples prove that none of them is switched off.

import { expect } from 'vitest';
import { verifies } from '../verifies.js';
import { lint } from './linter.js';
import { readText } from './tree.js';

const repeat = (count: number, line: string): string => `${line}\n`.repeat(count);
const block = (lines: number): string => `{\n${repeat(lines, '  f();')}}`;
const functionKinds = (lines: number): readonly string[] => [
  `export function f() ${block(lines)}`,
  `export const f = () => ${block(lines)};`,
  `export class C {\n  m() ${block(lines)}\n}`,
  `export class C {\n  constructor() ${block(lines)}\n}`,
  `export const o = {\n  m() ${block(lines)},\n};`,
];

/** Code that a rule must reject in src. */
const rejected: readonly (readonly [rule: string, texts: readonly string[]])[] = [
  ['style/noExcessiveLinesPerFile', [repeat(601, 'f();'), repeat(301, 'f();\n')]],
  ['complexity/noExcessiveLinesPerFunction', functionKinds(101)],
  ['suspicious/noExplicitAny', ['export let a: any;', 'f<Map<string, any>>();']],
  ['suspicious/noTsIgnore', ['// @ts-ignore\nf();']],
  ['suspicious/noFocusedTests', ["test.only('a', () => {});"]],
  ['suspicious/noSkippedTests', ["test.skip('a', () => {});"]],
  ['security/noGlobalEval', ["eval('1');", "globalThis.eval('1');"]],
  ['nursery/noImpliedEval', ["setTimeout('f()', 1);", "new Function('return 1');"]],
  ['nursery/noFloatingPromises', ['async function f() {}\nf();']],
  ['nursery/noMisusedPromises', ['const f = async () => true;\nif (f()) console.log(1);']],
  ['performance/noReExportAll', ["export * from './b.js';", "export * as b from './b.js';"]],
  ['style/noRestrictedImports', ["import vm from 'node:vm';\nvm.f();", "await import('vm');", "require('node:vm');"]],
  ['style/noNonNullAssertion', ['f()!.g();']],
  ['style/noParameterAssign', ['export function f(a: number) {\n  a = 1;\n}']],
  ['style/useThrowOnlyError', ["throw 'a';"]],
  ['style/useNodejsImportProtocol', ["import { join } from 'path';\njoin();"]],
  ['style/useImportType', ["import { A } from './a.js';\nexport const a: A = f();"]],
  ['correctness/noUnusedVariables', ['const a = 1;', 'function f() {}']],
  ['correctness/noUnusedImports', ["import { a } from './a.js';"]],
  ['correctness/noUnusedFunctionParameters', ['export function f(a: number) {}']],
  ['correctness/noUnusedPrivateClassMembers', ['export class C {\n  private a = 1;\n}']],
];

const samples = rejected.flatMap(([rule, texts], row) =>
  texts.map((text, index) => ({ rule, file: `src/sample-${row}-${index}.ts`, text })),
);
const accepted = [repeat(600, 'f();'), ...functionKinds(100)].map((text, index) => ({
  file: `src/accepted-${index}.ts`,
  text,
}));
const testFile = { file: 'spec/long.test.ts', text: repeat(601, 'f();') };
const results = lint([...samples, ...accepted, testFile]);

for (const { rule, file, text } of samples) {
  const sample = text.length > 80 ? `${text.slice(0, 60)}…` : text;
  verifies('house.linter', `${rule} rejects ${JSON.stringify(sample)}`, () => {
    expect(results.get(file), `biome.json has switched ${rule} off`).toContain(`lint/${rule}`);
  });
}

verifies('house.linter', 'a file of 600 lines and a function of 100 are accepted', () => {
  for (const { file } of accepted) expect(results.get(file), file).toEqual([]);
});

verifies('house.linter', 'a test file has at most 600 lines too', () => {
  expect(results.get(testFile.file)).toEqual(['lint/style/noExcessiveLinesPerFile']);
});

verifies(
  'house.linter',
  'a file of more than 400 lines and a function of more than 60 are reported without failing',
  () => {
    const large = [repeat(401, 'f();'), ...functionKinds(61)];
    const small = [repeat(400, 'f();'), ...functionKinds(60)];
    const files = [...large, ...small].map((text, index) => ({ file: `src/sample-${index}.ts`, text }));
    const options = { configs: ['biome.json', 'biome.sizes.json'], severity: 'warning' } as const;
    const warnings = [...lint(files, options).values()];
    expect(warnings.map((rules) => rules.length)).toEqual([...large.map(() => 1), ...small.map(() => 0)]);
  },
);

verifies('house.linter', 'only the listed files are exempt from a rule', () => {
  const { files, overrides, linter } = JSON.parse(readText('biome.json'));
  const isOff = ([, setting]: [string, unknown]): boolean => setting === 'off';
  const exemptions = (overrides as readonly { includes: readonly string[]; linter: { rules: object } }[]).flatMap(
    ({ includes, linter: { rules } }) =>
      Object.values(rules).flatMap((group: object) =>
        Object.entries(group)
          .filter(isOff)
          .map(([rule]) => `${rule}: ${includes.join(' ')}`),
      ),
  );
  expect(exemptions, 'a rule was switched off for more files').toEqual([
    'noTemplateCurlyInString: spec/guards/**',
    'noThenProperty: spec/probes/**',
    'noAssignInExpressions: spec/probes/**',
  ]);
  expect(linter).not.toHaveProperty('enabled');
  expect(files.includes, 'a folder was hidden from the linter').toEqual([
    '**',
    '!!**/dist',
    '!!**/lib',
    '!!**/dist-bench',
    '!!**/node_modules',
    '!!**/coverage',
    '!!.ci/proof',
    '!!.ci/reports',
    '!**/package-lock.json',
    '!**/*.md',
    '!spec/golden',
  ]);
});

verifies('house.linter', 'the gate runs the linter, and a warning fails it', () => {
  const { scripts } = JSON.parse(readText('package.json'));
  expect(scripts.lint).toMatch(/^biome check --error-on-warnings && /);
  expect(readText('.ci/run')).toMatch(/^stage lint '' npm run --silent lint /m);
});
