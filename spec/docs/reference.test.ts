import { expect } from 'vitest';
import { referencePages } from '../../scripts/api-reference.mjs';
import { readText, textFiles } from '../house/tree.js';
import { brokenLinks } from '../support/page-links.js';
import { verifies } from '../verifies.js';

const pages = referencePages();
/** The names of the members that the page of `rondo` lists, by the name of the type. */
const members: ReadonlyMap<string, readonly string[]> = new Map(
  (pages.get('rondo.md') ?? '')
    .split(/^### /m)
    .slice(1)
    .map((section) => {
      const names = [...section.matchAll(/^\| `(\w+)/gm)].map(([, name = '']) => name);
      return [section.slice(0, section.indexOf('\n')), names];
    }),
);

verifies('docs.reference', 'packing the package writes the pages that the documentation names', () => {
  const { files, scripts } = JSON.parse(readText('package.json'));
  expect(files).toContain('docs');
  expect(scripts.prepack).toContain('npm run reference');
  expect(readText('.gitignore').split('\n')).toContain('docs/reference/');
  const named = [...readText('docs/README.md').matchAll(/`docs\/reference\/([\w-]+\.md)`/g)].map(([, page]) => page);
  expect(named).toEqual([...pages.keys()]);
});

verifies('docs.reference', 'every link of a page leads to a file and a heading', () => {
  const names = [...pages.keys()].map((page) => `docs/reference/${page}`);
  const files = new Set([...textFiles(['docs']).map(({ file }) => file), ...names]);
  const broken = [...pages].flatMap(([page, text]) => brokenLinks(`docs/reference/${page}`, text, files));
  expect(broken).toEqual([]);
  expect(brokenLinks('docs/reference/rondo.md', '[1](guides/ai-sdk.md) [2](../guides/ai-sdk.md)', files)).toHaveLength(
    1,
  );
});

verifies('docs.reference', 'a type that an exported signature refers to has a section', () => {
  expect(members.get('LoopsToolDefinition')).toEqual(expect.arrayContaining(['name', 'inputSchema', 'execute']));
  expect(members.get('LoopsToolOptions')).toEqual(expect.arrayContaining(['approvedTarget', 'onToolOutputDelta']));
  expect([...members.keys()]).toEqual(expect.arrayContaining(['ApprovalPolicy', 'RetrySpec', 'Safety']));
  expect([...members.keys()].filter((name) => ['Host', 'Store'].includes(name))).toEqual([]);
});

verifies('docs.reference', 'an interface has its inherited members, with or without a comment', () => {
  const inherited = ['approval', 'cache', 'filters', 'rateLimit', 'retry', 'timeoutMs'];
  expect([...(members.get('PolicyOption') ?? [])].sort()).toEqual([...inherited, 'fallback', 'routing'].sort());
  expect(members.get('LoopsToolOptions')).toEqual(expect.arrayContaining(['toolCallId', 'messages', 'abortSignal']));
});
