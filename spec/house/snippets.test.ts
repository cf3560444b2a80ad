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

verifies('house.snippets', 'the documents hold no code that could be run', () => {
  expect(snippets.length).toBeGreaterThan(0);
});

const recorder = pathToFileURL(join(root, 'spec/house/output-recorder.mjs')).href;

interface Ran {
  readonly output: string;
  readonly printed: readonly Printed[];
}

/** Runs code twice in a folder of its own. */
function ranTwice(code: string): readonly [Ran, Ran] {
  // Inside the package, so that it can import itself by name as a user would.
  const folder = mkdtempSync(join(root, 'dist', 'snippet-'));
  try {
    writeFileSync(join(folder, 'snippet.mjs'), code);
    const run = (record: string): Ran => {
      const file = join(folder, record);
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
  verifies('house.snippets', `the code in ${file}, line ${line}, does not run, or not twice`, () => {
    const [first, second] = ranTwice(code);
    expect(second.output).toBe(first.output);
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

verifies('docs.output', 'comments that promise another output than is printed are noticed', () => {
  const code = [
    "import { format } from 'node:util';",
    "console.log(format('%d lamps', 12)); // 12 lamps",
    'for (const n of [1, 2]) console.log({',
    '  n,',
    '}); // { n: 1 }',
    '// { n: 2 }',
    'const told = (text) => console.log(text); // …: 7',
    "told('a // b: 7');",
    'if (told === undefined) console.log(1);',
    '',
    '// A comment of its own.',
    "console.log('not promised');",
  ].join('\n');
  const [{ printed }] = ranTwice(code);
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
    expect(outputFaults(twin, ranTwice(twin)[0].printed), other).toHaveLength(1);
  }
});

verifies('docs.output', 'the documents promise outputs, so that somebody sees what the code prints', () => {
  const silent = snippets.filter(({ code }) => code.includes('console.log(') && promisesIn(code).length === 0);
  expect(silent.map(({ file, line }) => `${file}, line ${line}`)).toEqual([]);
});
