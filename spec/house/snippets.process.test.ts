import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { expect } from 'vitest';
import { verifies } from '../verifies.js';
import { fusedStatements, outputFaults, type Printed, unpromisedPrints } from './outputs.js';
import { filesFor, isQuoteOf, type Snippet, snippetsIn } from './snippets.js';
import { readText, sources, textFiles } from './tree.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const documents = ['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'CHANGELOG.md'];
const pages = [
  ...documents.map((file) => ({ file, text: readText(file) })),
  ...textFiles(['docs', 'examples', 'templates']),
].filter(({ file }) => file.endsWith('.md'));

/** Pages whose code is not run here, with the reason. */
const notRun: ReadonlyMap<string, string> = new Map([
  ['CONTRIBUTING.md', 'it shows the form of a test, with an omission'],
  ['docs/quickstart.md', 'spec/docs/quickstart.process.test.ts runs it in the project that it creates'],
  [
    'docs/cookbook/express.md',
    'express is no dependency; node.test.ts and server.test.ts of the surfaces do what it does',
  ],
  ['docs/guides/hosted-loops.md', 'spec/docs/quickstart.process.test.ts runs it in the project that it creates'],
]);
const all = pages.flatMap(({ file, text }) => snippetsIn(file, text));
/** The programs of the examples. Their own tests run them, so code that quotes them is not run here. */
const examples = sources(['examples']).map(({ text }) => text);
const isQuote = (snippet: Pick<Snippet, 'code'>): boolean => examples.some((text) => isQuoteOf(snippet, text));
const snippets = all.filter((snippet) => !notRun.has(snippet.file) && !isQuote(snippet));

verifies('house.snippets', 'the documents contain code that can run', () => {
  expect(snippets.length).toBeGreaterThan(0);
});

verifies('house.snippets', 'every page that is not run contains code and has a reason', () => {
  for (const [page, reason] of notRun) {
    expect(
      all.some(({ file }) => file === page),
      page,
    ).toBe(true);
    expect(reason).not.toBe('');
  }
});

const recorder = pathToFileURL(join(root, 'spec/house/output-recorder.mjs')).href;

interface SnippetRun {
  readonly output: string;
  readonly printed: readonly Printed[];
}

type RunnableCode = Pick<Snippet, 'code' | 'language'>;

function writeIn(folder: string, name: string, text: string): void {
  mkdirSync(dirname(join(folder, name)), { recursive: true });
  writeFileSync(join(folder, name), text);
}

/** Runs code twice in one new folder that holds the files which it may import. */
function runTwice({ code, language }: RunnableCode, files: readonly Snippet[] = []): readonly [SnippetRun, SnippetRun] {
  // Inside of the package, so that the snippet can import the package by its name.
  const folder = mkdtempSync(join(root, 'dist', 'snippet-'));
  const isTypeScript = language === 'ts' || files.some((file) => file.language === 'ts');
  const main = language === 'ts' ? 'snippet.ts' : 'snippet.mjs';
  try {
    for (const { name = '', code: text } of files) writeIn(folder, name, text);
    writeIn(folder, main, code);
    const run = (recordName: string): SnippetRun => {
      const file = join(folder, recordName);
      writeFileSync(file, '');
      const env = { ...process.env, RONDO_SNIPPET_OUTPUT: file };
      const args = ['--import', recorder, ...(isTypeScript ? ['--import', 'tsx'] : []), main];
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

for (const snippet of snippets) {
  const { file, line, code } = snippet;
  verifies('house.snippets', `the code in ${file}, line ${line}, runs twice and prints what it promises`, () => {
    const [first, second] = runTwice(snippet, filesFor(snippet, snippets));
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
  const [{ printed }] = runTwice({ code, language: 'js' });
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
    expect(outputFaults(twin, runTwice({ code: twin, language: 'js' })[0].printed), other).toHaveLength(1);
  }
});

verifies('docs.output', 'every console.log of a snippet promises its output', () => {
  const silent = snippets.flatMap(({ file, line, code }) =>
    unpromisedPrints(code).map((print) => `${file}, line ${line + print - 1}`),
  );
  expect(silent).toEqual([]);
  expect(unpromisedPrints('console.log(1); // 1\nconsole.log(2);\n')).toEqual([2]);
});

verifies('house.snippets', 'only code that an example contains literally counts as quoted from it', () => {
  const quoted = readText('examples/compare/rondo/smallest-loop.ts');
  expect(isQuote({ code: `// rondo.ts\n${quoted}` })).toBe(true);
  expect(isQuote({ code: quoted.replace('Hello', 'Goodbye') }), 'changed code would not be run').toBe(false);
});

verifies('house.snippets', 'TypeScript runs, and imports the named snippets above it', () => {
  const text =
    "```ts\n// parts/two.ts\nexport const two: number = 2;\n```\n```ts\nimport { two } from './parts/two.js';\n\nconsole.log(two as number); // 2\n```\n";
  const page = snippetsIn('page.md', text);
  const [, main] = page;
  if (main === undefined) throw new Error('The second snippet was not found.');
  const [{ printed }] = runTwice(main, filesFor(main, page));
  expect(printed.map((one) => one.text)).toEqual(['2']);
  expect(outputFaults(main.code, printed)).toEqual([]);
  expect(outputFaults(main.code.replace('// 2', '// 3'), printed)).toHaveLength(1);
});
