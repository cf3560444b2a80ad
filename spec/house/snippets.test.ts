import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { verifies } from '../verifies.js';
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

for (const { file, line, code } of snippets) {
  verifies('house.snippets', `the code in ${file}, line ${line}, does not run, or not twice`, () => {
    // Inside the package, so that it can import itself by name as a user would.
    const folder = mkdtempSync(join(root, 'dist', 'snippet-'));
    writeFileSync(join(folder, 'snippet.mjs'), code);
    const run = (): string => execFileSync(process.execPath, ['snippet.mjs'], { cwd: folder, encoding: 'utf8' });
    expect(run()).toBe(run());
    rmSync(folder, { recursive: true });
  });
}
