import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { expect } from 'vitest';
import { verifies } from '../verifies.js';
import { fusedStatements, outputFaults, type Printed, promisesIn } from './outputs.js';
import { snippetsIn } from './snippets.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const pages = [
  'README.md',
  'ARCHITECTURE.md',
  'CONTRIBUTING.md',
  ...readdirSync(join(root, 'docs'), { recursive: true }).map((name) => `docs/${name}`),
];
const snippets = pages
  .filter((page) => page.endsWith('.md'))
  .flatMap((page) => snippetsIn(page, readFileSync(join(root, page), 'utf8')));

verifies('house.snippets', 'the documents contain code that can run', () => {
  expect(snippets.length).toBeGreaterThan(0);
});

const recorder = pathToFileURL(join(root, 'spec/house/output-recorder.mjs')).href;

interface SnippetRun {
  readonly output: string;
  readonly printed: readonly Printed[];
}

/** Runs code twice in one new folder. */
function runTwice(code: string): readonly [SnippetRun, SnippetRun] {
  // Inside of the package, so that the snippet can import the package by its name.
  const folder = mkdtempSync(join(root, 'dist', 'snippet-'));
  try {
    writeFileSync(join(folder, 'snippet.mjs'), code);
    const run = (recordName: string): SnippetRun => {
      const file = join(folder, recordName);
      writeFileSync(file, '');
      const env = { ...process.env, RONDO_SNIPPET_OUTPUT: file };
      const args = ['--import', recorder, 'snippet.mjs'];
      const output = execFileSync(process.execPath, args, { cwd: folder, encoding: 'utf8', env });
      const lines = readFileSync(file, 'utf8')
        .split('\n')
        .filter((line) => line !== '');
      return { output, printed: lines.map((line) => JSON.parse(line)) };
    };
    return [run('first.ndjson'), run('second.ndjson')];
  } finally {
    rmSync(folder, { recursive: true });
  }
}

for (const { file, line, code } of snippets) {
  verifies('house.snippets', `the code in ${file}, line ${line}, runs twice and prints what it promises`, () => {
    const [first, second] = runTwice(code);
    expect(second.output, 'the second run printed something else').toBe(first.output);
    expect(outputFaults(code, first.printed)).toEqual([]);
  });
}

verifies('docs.format', 'no line of code in the documents holds two statements', () => {
  const fused = snippets.flatMap(({ file, line, code }) =>
    fusedStatements(code).map((fault) => `${file}, in the code from line ${line}: ${fault}`),
  );
  expect(fused).toEqual([]);
  expect(fusedStatements('const a = { b: 1,\n});const c = 2;\n'.replace('})', '}'))).toHaveLength(1);
  expect(fusedStatements('if (a) {\n  b(); c();\n}\n')).toHaveLength(1);
  expect(fusedStatements("for (const a of b) c();\nconst d = () => {\n  e();\n};\nconst f = 'x; y';\n")).toEqual([]);
});

verifies('docs.output', 'a comment that promises another output is detected', () => {
  const code = [
    "import { format } from 'node:util';",
    "console.log(format('%d lamps', 12)); // 12 lamps",
    'for (const n of [1, 2]) console.log({',
    '  n,',
    '}); // { n: 1 }',
    '// { n: 2 }',
    'const print = (text) => console.log(text); // …: 7',
    "print('a // b: 7');",
    'if (print === undefined) console.log(1);',
    '',
    '// An unrelated comment.',
    "console.log('not promised');",
  ].join('\n');
  const [{ printed }] = runTwice(code);
  expect(outputFaults(code, printed)).toEqual([]);
  const wrong: readonly (readonly [right: string, wrong: string])[] = [
    ['// 12 lamps', '// 12 lamp'],
    ['// 12 lamps', '// 12'],
    ['// { n: 2 }', '// { n: 3 }'],
    ['\n// { n: 2 }', ''],
    ['// …: 7', '// …: 8'],
    ['console.log(1);', 'console.log(1); // 1'],
  ];
  for (const [right, other] of wrong) {
    const twin = code.replace(right, other);
    expect(outputFaults(twin, runTwice(twin)[0].printed), other).toHaveLength(1);
  }
});

verifies('docs.output', 'every snippet that prints promises its output', () => {
  const silent = snippets.filter(({ code }) => code.includes('console.log(') && promisesIn(code).length === 0);
  expect(silent.map(({ file, line }) => `${file}, line ${line}`)).toEqual([]);
});
