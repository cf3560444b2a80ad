// The documents that the package ships, and the links between them. The API reference, which is generated when the
// package is packed, has a test of its own.

import { execFileSync } from 'node:child_process';
import { beforeAll, expect } from 'vitest';
import { absolute, readText } from '../house/tree.js';
import { brokenLinks } from '../support/page-links.js';
import { verifies } from '../verifies.js';

let files: ReadonlySet<string> = new Set();

beforeAll(() => {
  const packed = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    cwd: absolute('.'),
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const [report] = JSON.parse(packed) as [{ files: { path: string }[] }];
  files = new Set(report.files.map(({ path }) => path).filter((path) => !path.startsWith('docs/reference/')));
}, 60_000);

verifies('docs.package', 'every link of a document in the package leads to a file and a heading in the package', () => {
  const pages = [...files].filter((file) => file.endsWith('.md'));
  const broken = pages.flatMap((page) => brokenLinks(page, readText(page), files).map((link) => `${page}: ${link}`));
  expect(broken).toEqual([]);
  const wrong =
    '# A `b`, c\n[1](#a-b-c) [2](#d) [3](spec/verifies.ts) [4](docs/) [5](docs/missing.md) [6](docs/glossary.md#none)';
  expect(brokenLinks('README.md', wrong, files)).toEqual([
    '#d',
    'spec/verifies.ts',
    'docs/missing.md',
    'docs/glossary.md#none',
  ]);
});

verifies('docs.package', 'the package contains the documentation and names its repository', () => {
  const pages = ['README.md', 'CHANGELOG.md', 'docs/README.md', 'docs/quickstart.md', 'docs/concepts.md'];
  expect(pages.filter((page) => !files.has(page))).toEqual([]);
  expect([...files].filter((file) => file.includes('node_modules/'))).toEqual([]);
  const { repository, homepage, bugs, keywords } = JSON.parse(readText('package.json'));
  expect(repository.url).toMatch(/^git\+https:/);
  for (const address of [homepage, bugs]) expect(address).toMatch(/^https:/);
  expect(keywords.length).toBeGreaterThan(0);
});
