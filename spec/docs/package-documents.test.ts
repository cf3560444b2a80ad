// The documents that the package ships, and the links between them.

import { execFileSync } from 'node:child_process';
import { posix } from 'node:path';
import { beforeAll, expect } from 'vitest';
import { absolute, readText } from '../house/tree.js';
import { verifies } from '../verifies.js';

let files: ReadonlySet<string> = new Set();

beforeAll(() => {
  const packed = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    cwd: absolute('.'),
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const [report] = JSON.parse(packed) as [{ files: { path: string }[] }];
  files = new Set(report.files.map(({ path }) => path));
}, 60_000);

const withoutCode = (text: string): string => text.replace(/^```[\s\S]*?^```$/gm, '');

/** Returns the anchors of the headings of a document, as GitHub and npm derive them. */
function anchorsIn(text: string): ReadonlySet<string> {
  const headings = [...withoutCode(text).matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) => heading);
  const slugs = headings.map((heading) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
  return new Set(slugs);
}

/** Returns the links of a document that do not lead to a file, a directory or a heading of the package. */
function brokenLinks(page: string, text: string): string[] {
  const links = [...withoutCode(text).matchAll(/\]\((?!https?:)([^)\s]+)\)/g)].map(([, link = '']) => link);
  return links.filter((link) => {
    const [path = '', anchor] = link.split('#', 2);
    const target = path === '' ? page : posix.join(posix.dirname(page), path);
    const isFile = files.has(target);
    const isDirectory = [...files].some((file) => file.startsWith(target.endsWith('/') ? target : `${target}/`));
    if (!isFile) return !isDirectory;
    return anchor !== undefined && !anchorsIn(target === page ? text : readText(target)).has(anchor);
  });
}

verifies('docs.package', 'every link of a document in the package leads to a file and a heading in the package', () => {
  const pages = [...files].filter((file) => file.endsWith('.md'));
  const broken = pages.flatMap((page) => brokenLinks(page, readText(page)).map((link) => `${page}: ${link}`));
  expect(broken).toEqual([]);
  const wrong =
    '# A `b`, c\n[1](#a-b-c) [2](#d) [3](spec/verifies.ts) [4](docs/) [5](docs/missing.md) [6](docs/glossary.md#none)';
  expect(brokenLinks('README.md', wrong)).toEqual([
    '#d',
    'spec/verifies.ts',
    'docs/missing.md',
    'docs/glossary.md#none',
  ]);
});

verifies('docs.package', 'the package contains the documentation and names its repository', () => {
  const pages = [
    'README.md',
    'CHANGELOG.md',
    'docs/README.md',
    'docs/quickstart.md',
    'docs/concepts.md',
    'docs/reference.md',
    'docs/reference-ai-sdk.md',
  ];
  expect(pages.filter((page) => !files.has(page))).toEqual([]);
  const { repository, homepage, bugs, keywords } = JSON.parse(readText('package.json'));
  expect(repository.url).toMatch(/^git\+https:/);
  for (const address of [homepage, bugs]) expect(address).toMatch(/^https:/);
  expect(keywords.length).toBeGreaterThan(0);
});
